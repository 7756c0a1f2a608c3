"""The options that mean the same on every command that measures, written once. Must not run anything."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from prony.cli import options
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.plan.plan import Cell, Plan

DEFAULT_LAST_LOOK = 20
MOST_REPEATS = 100
GOES_WITH_RESUME = ("resume", "server_cpus", "client_cpus", "repeat_disturbed", "db", "json", "report")
"""What may stand beside --resume: everything else is the stored plan's."""


@dataclass(frozen=True, slots=True)
class Common:
    """Of each command those that apply to it (`measures`)."""

    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="ID", help="Continue an experiment that was interrupted (an id or "
                     "'latest'); its plan is the stored one."),
    ] = None  # fmt: skip
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Of the order of trials and of all draws [default: the plan's, else "
                     "drawn and recorded]."),
    ] = None  # fmt: skip
    until_clear: Annotated[
        bool,
        typer.Option("--until-clear", help="After these trials add blocks until every pair of servers is "
                     "clear; intervals hold at every look."),
    ] = False  # fmt: skip
    max_trials: Annotated[
        int | None,
        typer.Option("--max-trials", help="With --until-clear: maximum per server [default: 20]."),
    ] = None
    limits: list[str] | None = None
    repeat_disturbed: Annotated[
        int,
        typer.Option("--repeat-disturbed", metavar="N", help="Repeat a trial up to N times while it is "
                     "rejected for other load on the host (isolation, host); the rejected ones stay on "
                     "record."),
    ] = 0  # fmt: skip
    request_parts: Annotated[
        bool,
        typer.Option("--request-parts", help="Take the time of each request apart: connect, send, wait, "
                     "receive; costs the client some CPU."),
    ] = False  # fmt: skip
    driver: Annotated[
        str | None, typer.Option("--driver", help="auto, io_uring or epoll [default: auto].")
    ] = None
    jdk: Annotated[
        str | None,
        typer.Option("--jdk", help="JDK of servers that Prony starts, a major version or a folder [default: "
                     "what each server prefers]."),
    ] = None  # fmt: skip
    server_cpus: Annotated[
        str | None, typer.Option("--server-cpus", help="CPUs of the server, such as 0-3 [default: chosen].")
    ] = None
    client_cpus: Annotated[
        str | None,
        typer.Option("--client-cpus", help="CPUs of the load generator and the sampler [default: chosen]."),
    ] = None
    db: Annotated[
        str | None, typer.Option("--db", help="Where results are kept, a file or an SQLAlchemy URL.")
    ] = None
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a self-contained HTML report to this file.")
    ] = None

    def applied(self, plan: Plan) -> Plan:
        """The plan as these options want it. Raises UsageError for one that does not apply to it."""
        from prony.plan.target import with_jdk

        if not 0 <= self.repeat_disturbed <= MOST_REPEATS:
            raise UsageError(f"--repeat-disturbed is {self.repeat_disturbed}; expected 0 to {MOST_REPEATS}")
        cells = tuple(self._applied(cell) for cell in plan.cells)
        if self.jdk is not None and not any(with_jdk(cell.target, self.jdk) for cell in cells):
            raise UsageError("--jdk applies to servers that Prony launches; this one is already running")
        plan = plan.model_copy(update={"cells": cells, "repeat_disturbed": self.repeat_disturbed})
        last = self.last_look(min(cell.trials for cell in cells))
        if last is None:
            return plan
        parts = tuple(
            part.model_copy(update={"until_clear": last})
            if len({cell.server for cell in plan.of(part.name)}) > 1
            else part
            for part in plan.parts
        )
        return plan.model_copy(update={"parts": parts})

    def _applied(self, cell: Cell) -> Cell:
        from prony.plan.target import with_jdk

        trial: dict[str, Any] = {}
        if self.driver is not None:
            trial["driver"] = options.one_of(self.driver, "--driver", ("auto", "io_uring", "epoll"))
        if self.request_parts:
            trial["request_parts"] = True
        more: dict[str, Any] = {}
        if trial:
            more["trial"] = cell.trial.model_copy(update=trial)
        if self.limits:
            more["limits"] = cell.limits | options.limits(self.limits)
        if self.jdk is not None:
            more["target"] = with_jdk(cell.target, self.jdk) or cell.target
        return cell.model_copy(update=more) if more else cell

    def last_look(self, first: int) -> int | None:
        """After how many trials to stop adding. Raises UsageError for what makes no plan."""
        from prony.plan.planfile import MOST_LOOKS

        if not self.until_clear:
            if self.max_trials is not None:
                raise UsageError("--max-trials requires --until-clear; otherwise use --trials")
            return None
        most = DEFAULT_LAST_LOOK if self.max_trials is None else self.max_trials
        if not 3 <= first <= most <= MOST_LOOKS:
            raise UsageError(
                f"the first look is after {first} trials (--trials) and the last after {most} "
                "(--max-trials); expected at least 3, and the last look at or after the first and at most "
                f"{MOST_LOOKS}"
            )
        return most

    def check_resume(self, others: Mapping[str, object]) -> None:
        """Raises UsageError for anything that the stored plan already says. `others`: what else was given to
        the command, by the name of its option.
        """
        own = (field.name for field in fields(self) if field.name not in GOES_WITH_RESUME)
        given = [f"--{name.replace('_', '-')}" for name in own if getattr(self, name)]
        given += [name for name, value in others.items() if value]
        if given:
            raise UsageError(
                f"--resume continues with the plan as it was stored: leave out {', '.join(given)}"
            )


def measures(
    *, without: tuple[str, ...] = (), beside_resume: tuple[str, ...] = ()
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Gives a command the options of `Common`, but for those that cannot apply to it; it receives them as
    `common`. With --resume the command itself is not called: the stored plan is continued, and of the
    command's own parameters only those `beside_resume` may be given.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        hints = get_type_hints(command, include_extras=True)
        shared = get_type_hints(Common, include_extras=True)
        own = [one for one in inspect.signature(command).parameters.values() if one.name != "common"]
        parameters = [one.replace(annotation=hints[one.name]) for one in own]
        names = [field.name for field in fields(Common) if field.name not in without]
        defaults = Common()
        parameters += [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=options.LIMITS if name == "limits" else getattr(defaults, name),
                annotation=shared[name],
            )
            for name in names
        ]

        def run(**given: Any) -> int:
            common = Common(**{name: given.pop(name) for name in names})
            if common.resume is None:
                return command(**given, common=common)

            from prony.cli import measure

            taken = {name: given.pop(name) for name in beside_resume}
            others = {
                _option_of(one): given[one.name]
                for one in parameters
                if one.name in given and given[one.name] != getattr(one.default, "default", one.default)
            }
            return measure.resume(common, others, **taken)

        run.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": int}
        run.__doc__, run.__name__ = command.__doc__, command.__name__
        return run

    return decorate


def _option_of(parameter: inspect.Parameter) -> str:
    """As it is typed, such as `--set`; the plain name of one without dashes."""
    described = (parameter.default, *getattr(parameter.annotation, "__metadata__", ()))
    words = [word for one in described for word in getattr(one, "param_decls", None) or ()]
    return next((word for word in words if word.startswith("--")), parameter.name)
