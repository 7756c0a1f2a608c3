"""`prony wrk …`, `prony ab …` and so on: another tool's command line, less the few options that are Prony's.
Must not know which tools there are, or what their arguments mean.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prony.cli import options
from prony.errors import ExitCode, UsageError
from prony.frontends import front_end, names

if TYPE_CHECKING:
    from prony.experiment.testbed import Testbed
    from prony.store import Store

FLAGS = ("--explain", "--exit-like-original")
VALUES = ("--db", "--client-cpus", "--driver", "--seed")
OWN_USAGE = """
Prony's own options, with any tool:
    --explain             Print the Prony plan that this becomes, and run nothing
    --exit-like-original  Exit as the tool would, also when the run was invalid (else 3)
    --seed N              For all draws (default: drawn, and recorded)
    --driver NAME         auto, io_uring or epoll
    --client-cpus LIST    CPUs for the load (default: chosen)
    --db FILE             Where results are kept, a file or an SQLAlchemy URL
The verdict is printed on standard error, in two lines.
"""


@dataclass(frozen=True, slots=True)
class Own:
    """Prony's own options, as they were given."""

    flags: frozenset[str]
    values: dict[str, str]


def divided(argv: Sequence[str]) -> tuple[Own, list[str]]:
    """Prony's own options, and what is the tool's. Raises UsageError for one without its value."""
    flags: set[str] = set()
    values: dict[str, str] = {}
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--":  # What follows is a script's, such as wrk's `-- --seed 5`.
            return Own(frozenset(flags), values), [*rest, word, *words]
        name, equals, value = word.partition("=")
        if word in FLAGS:
            flags.add(word)
        elif name in VALUES:
            given = value if equals else next(words, None)
            if given is None:
                raise UsageError(f"{name} needs a value; see prony's own options in -h")
            values[name] = given
        else:
            rest.append(word)
    return Own(frozenset(flags), values), rest


def is_front_end(argv: Sequence[str]) -> bool:
    """Whether the command line is another tool's."""
    return bool(argv) and argv[0] in names()


def command(argv: Sequence[str]) -> int:
    """`argv[0]` is the tool. Raises PronyError."""
    from prony.frontends.base import Asked, own_context

    tool = front_end(argv[0])
    own, rest = divided(argv[1:])
    if rest in (["-h"], ["--help"]):
        sys.stdout.write(tool.usage.rstrip("\n") + "\n" + OWN_USAGE)
        return ExitCode.OK
    driver: Any = options.one_of(
        own.values.get("--driver", "auto"), "--driver", ("auto", "io_uring", "epoll")
    )
    asked = Asked(
        explain="--explain" in own.flags,
        exit_like_original="--exit-like-original" in own.flags,
        seed=options.seed(_number(own.values.get("--seed"))),
        driver=driver,
    )

    def open_laboratory() -> tuple[Testbed, Store]:
        from prony.cli.testbed import prepare
        from prony.store import Store

        return prepare(None, own.values.get("--client-cpus")), Store.open(own.values.get("--db"))

    context = own_context(asked, open_laboratory)
    try:
        return tool.run(rest, context)
    finally:
        context.stdout.flush()


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as fault:
        raise UsageError(f"--seed is '{text}'; expected a whole number") from fault
