"""`prony wrk …`, `prony ab …`: runs another tool's command line with Prony's own options removed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, get_type_hints

from prony.cli import options
from prony.cli.common import Common
from prony.errors import ExitCode, UsageError
from prony_frontends import front_end

if TYPE_CHECKING:
    from prony.experiment.testbed import Progress
    from prony.plan.plan import Plan
    from prony_frontends.base import Ran

FLAGS = ("--explain", "--exit-like-original")
SHARED = ("seed", "driver", "client_cpus", "limits", "metrics", "push", "db", "report")
"""Options of all measuring commands (prony.cli.common) that every front end accepts."""
OWN_USAGE = """
Prony's own options, with any tool:
  --explain             Print the resulting Prony plan without running it.
  --exit-like-original  Exit as the tool would, even if the run does not conform (else 3).
"""
JUDGEMENT = "Standard error ends with two lines: whether the run conforms, and how good its figures are.\n"


@dataclass(frozen=True, slots=True)
class Own:
    """Prony's own options from the command line."""

    flags: frozenset[str]
    values: dict[str, list[str]]
    """Field of `Common` -> values given."""

    @property
    def common(self) -> Common:
        """The options as other commands have them. Raises UsageError."""
        last: dict[str, Any] = {name: given[-1] for name, given in self.values.items()}
        if "seed" in last:
            last["seed"] = _number(last["seed"])
        if "report" in last:
            last["report"] = Path(last["report"])
        return Common(**{**last, "limits": self.values.get("limits")})


def shared() -> dict[str, tuple[str, Any]]:
    """Option, such as `--client-cpus` -> field of `Common` and parser metadata."""
    hints = get_type_hints(Common, include_extras=True)
    by_option = {}
    for name in SHARED:
        metadata = hints[name].__metadata__[0]
        by_option[f"--{name.replace('_', '-')}"] = (name, metadata)
    return by_option


def usage() -> str:
    """Prony's own options for `prony TOOL -h`."""
    lines: list[str] = []
    for option, (_, metadata) in shared().items():
        head = f"{option} {metadata.metavar or 'VALUE'}"
        lines += wrap(f"{head:<20}  {metadata.help}", 78, initial_indent="  ", subsequent_indent=" " * 24)
    return OWN_USAGE + "\n".join(lines) + f"\n{JUDGEMENT}"


def divided(argv: Sequence[str]) -> tuple[Own, list[str]]:
    """Splits a command line into Prony's options and the tool's. Raises UsageError for a missing value."""
    flags: set[str] = set()
    values: dict[str, list[str]] = {}
    rest: list[str] = []
    own_options = shared()
    words = iter(argv)
    for word in words:
        if word == "--":  # the rest is for a script, as in wrk's `-- --seed 5`
            return Own(frozenset(flags), values), [*rest, word, *words]
        name, equals, value = word.partition("=")
        if word in FLAGS:
            flags.add(word)
        elif name in own_options:
            given = value if equals else next(words, None)
            if given is None:
                raise UsageError(f"{name} needs a value; see prony's own options in -h")
            values.setdefault(own_options[name][0], []).append(given)
        else:
            rest.append(word)
    return Own(frozenset(flags), values), rest


def offers(common: Common) -> Callable[[Plan, Progress], Ran]:
    """Returns a function that runs a front end's plan as other commands do."""

    def offer(plan: Plan, progress: Progress) -> Ran:
        from prony.cli import measure
        from prony.report.reading import load_result, remember_answer
        from prony_frontends.base import Ran

        seeded = plan.model_copy(update={"seed": options.seed(common.seed)})
        done = measure.measured(seeded, common, progress, warned=_note)
        view = load_result(done.store, done.identifier)
        remember_answer(done.store, view)

        def write_page(file: Path) -> None:
            from prony.report.html import write_html

            write_html(view, file)

        if common.report is not None:
            write_page(common.report)
        return Ran(done.identifier, done.store.trials(done.identifier)[0], done.interrupted, write_page)

    return offer


def _note(sentence: str) -> None:
    print(f"prony: note: {sentence}", file=sys.stderr)


def command(argv: Sequence[str]) -> int:
    """Runs the tool `argv[0]`. Raises PronyError."""
    from prony_frontends.base import FrontEndOptions, own_context

    tool = front_end(argv[0])
    own, rest = divided(argv[1:])
    if rest in (["-h"], ["--help"]):
        sys.stdout.write(tool.usage.rstrip("\n") + "\n" + usage())
        return ExitCode.OK
    wanted = FrontEndOptions("--explain" in own.flags, "--exit-like-original" in own.flags)
    context = own_context(wanted, offers(own.common))
    try:
        return tool.run(rest, context)
    finally:
        context.stdout.flush()


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as fault:
        raise UsageError(f"--seed is '{text}'; expected a whole number") from fault
