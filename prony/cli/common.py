"""The options that mean the same on every command that measures, written once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from prony.cli import options
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.plan.cell import Cell
    from prony.plan.part import Sharing
    from prony.plan.plan import Plan


Duet = Annotated[
    bool | None,
    Option("--duet/--no-duet", help="Run the servers of a block together, loaded in turns of a second, so "
           "that host noise hits both; or one server at a time [default: turns for servers without a "
           "JVM, where the load allows it]."),
]  # fmt: skip
ONE_END = "--windows have a fixed length, which --within would end early: give one of them"
DEFAULT_LAST_LOOK = 20
MOST_REPEATS = 100
GOES_WITH_RESUME = (
    "resume", "server_cpus", "client_cpus", "repeat_disturbed", "hosts", "attach", "metrics",
    "push", "strict", "details", "db", "json", "report",
)  # fmt: skip
"""Options allowed with --resume; the stored plan fixes all others."""


@dataclass(frozen=True, slots=True)
class Common:
    """Options of several commands; each takes those that apply."""

    resume: Annotated[
        str | None,
        Option("--resume", metavar="ID", help="Continue an interrupted experiment (an id or 'latest') by "
               "its stored plan."),
    ] = None  # fmt: skip
    seed: Annotated[
        int | None,
        Option("--seed", help="Random seed for the trial order and all draws [default: the plan's, "
               "else drawn and recorded]."),
    ] = None  # fmt: skip
    until_clear: Annotated[
        bool,
        Option("--until-clear", help="Add blocks after these trials until every pair of servers is "
               "clear; intervals account for repeated looks."),
    ] = False  # fmt: skip
    max_trials: Annotated[
        int | None,
        Option("--max-trials", help="With --until-clear: maximum trials per server [default: 20]."),
    ] = None
    budget: Annotated[
        str | None,
        Option("--budget", metavar="TIME", help="Time limit of all trials, such as 30m: the planned "
               "trials or three per cell, then blocks where a claim is nearest."),
    ] = None  # fmt: skip
    share_process: Annotated[
        str | None,
        Option("--share-process", metavar="loads|workloads|none", help="loads: a process per server and "
               "workload serves all loads; workloads: a process per server serves all workloads and loads; "
               "none: a process per trial [default: the plan's, else none]."),
    ] = None  # fmt: skip
    limits: options.Limits = None
    repeat_disturbed: Annotated[
        int,
        Option("--repeat-disturbed", metavar="N", help="Repeat a trial up to N times while it is rejected "
               "for other load on the host (isolation, host); rejected trials stay on record."),
    ] = 0  # fmt: skip
    within: Annotated[
        str | None,
        Option("--within", metavar="SHARE", help="End a window when its figure is known to ±SHARE, "
               "such as 2%; its length is then the maximum."),
    ] = None  # fmt: skip
    windows: Annotated[
        int | None,
        Option("--windows", metavar="K", help="Measure K consecutive windows in each process; "
               "comparisons print the variance within and between processes, and the cheapest mix."),
    ] = None  # fmt: skip
    request_parts: Annotated[
        bool,
        Option("--request-parts", help="Time the phases of each request: connect, send, wait, "
               "receive; costs the client some CPU."),
    ] = False  # fmt: skip
    instructions: Annotated[
        bool,
        Option("--instructions", help="Count the server's instructions per request by the CPU's counter, "
               "where it can be read."),
    ] = False  # fmt: skip
    explain: Annotated[
        bool,
        Option("--explain", help="After the measured trials, another per server with a profiler: "
               "where its CPU time goes (docs/explain.md); it adds no figures."),
    ] = False  # fmt: skip
    attach: Annotated[
        bool,
        Option("--attach", help="With --explain: attach to a server that Prony did not start, without "
               "a prompt."),
    ] = False  # fmt: skip
    driver: Annotated[str | None, Option("--driver", help="auto, io_uring or epoll [default: auto].")] = None
    jdk: Annotated[
        str | None,
        Option("--jdk", help="JDK of servers that Prony starts, a major version or a folder [default: "
               "each server's own]."),
    ] = None  # fmt: skip
    server_cpus: Annotated[
        str | None, Option("--server-cpus", help="CPUs of the server, such as 0-3 [default: chosen].")
    ] = None
    client_cpus: Annotated[
        str | None,
        Option("--client-cpus", help="CPUs of the load generator and the sampler [default: chosen]."),
    ] = None
    hosts: Annotated[
        Path | None,
        Option("--hosts", metavar="FILE", help="Run server and load on the hosts of this hosts.yaml "
               "(docs/hosts.md)."),
    ] = None  # fmt: skip
    metrics: Annotated[
        str | None,
        Option("--metrics", metavar="HOST:PORT", help="Serve live figures to Prometheus at "
               "http://HOST:PORT/metrics (a loopback address; docs/exports.md)."),
    ] = None  # fmt: skip
    push: Annotated[
        str | None,
        Option("--push", metavar="URL", help="Send each ended trial to this Elasticsearch or OpenSearch "
               "(docs/exports.md)."),
    ] = None  # fmt: skip
    strict: Annotated[
        str | None,
        Option("--strict", metavar="SHARE", help="Exit code 3 where a headline figure is not good to "
               "±SHARE, such as 3%, in the worst case."),
    ] = None  # fmt: skip
    details: options.Details = False
    db: options.Db = None
    json: options.Json = False
    report: options.Report = None

    def __post_init__(self) -> None:
        """Raises UsageError for values invalid in any plan."""
        from prony.plan.load import MOST_WINDOWS

        _ = self.strict_share
        if self.windows is not None and not 1 <= self.windows <= MOST_WINDOWS:
            raise UsageError(f"--windows is {self.windows}; expected 1 to {MOST_WINDOWS}")
        if self.windows is not None and self.within is not None:
            raise UsageError(ONE_END)
        if not 0 <= self.repeat_disturbed <= MOST_REPEATS:
            raise UsageError(f"--repeat-disturbed is {self.repeat_disturbed}; expected 0 to {MOST_REPEATS}")

    @property
    def strict_share(self) -> float | None:
        """As a share. Raises UsageError."""
        return None if self.strict is None else options.share(self.strict, "--strict")

    def applied(self, plan: Plan) -> Plan:
        """The plan with these options applied. Raises UsageError for an option that does not apply."""
        from prony.plan.target import with_jdk

        cells = tuple(self._applied(cell) for cell in plan.cells)
        if self.jdk is not None and not any(with_jdk(cell.target, self.jdk) for cell in cells):
            raise UsageError("--jdk applies to servers that Prony launches; this server is already running")
        if not any(cell.trial.measured.kind == "steady" for cell in cells):
            for given, what in ((self.within, "--within ends"), (self.windows, "--windows repeats")):
                if given is not None:
                    raise UsageError(f"{what} a steady window; this plan has whole runs only")
        plan = plan.model_copy(update={"cells": cells, "repeat_disturbed": self.repeat_disturbed})
        plan = self._looking(self._sharing(plan))
        if self.budget is None:
            return plan
        from prony.experiment.stored import timed
        from prony.plan.budget import within
        from prony.store import Store

        budget_s = options.seconds(self.budget, "--budget", at_least_s=1.0)
        return within(timed(plan, Store.open(self.db)), budget_s)

    def _looking(self, plan: Plan) -> Plan:
        """Applies --until-clear. Raises UsageError where no part has a pair."""
        last = self.last_look(min(cell.trials for cell in plan.cells))
        if last is None:
            return plan
        # A part that follows another takes over its servers.
        servers = {part.name: {cell.server for cell in plan.of(part.name)} for part in plan.parts}
        comparing = [part.name for part in plan.parts if part.follows or len(servers[part.name]) > 1]
        if not comparing:
            raise UsageError(
                "--until-clear compares pairs of servers; no part of this plan has two servers: omit it"
            )
        return _with_parts(plan, until_clear=dict.fromkeys(comparing, last))

    def _sharing(self, plan: Plan) -> Plan:
        """Applies --share-process. Raises UsageError if no cells of the plan can share."""
        if self.share_process is None:
            return plan
        from prony.plan.processes import why_not

        kinds: dict[str, Sharing | None] = {"loads": "loads", "workloads": "workloads", "none": None}
        sharing = kinds[options.one_of(self.share_process, "--share-process", tuple(kinds))]
        whys = {
            part.name: sharing and why_not(plan.of(part.name), sharing, grows=part.search is not None)
            for part in plan.parts
        }
        if all(whys.values()):
            raise UsageError(f"--share-process {sharing} does not apply: {next(iter(whys.values()))}")
        return _with_parts(plan, share_process={name: None if why else sharing for name, why in whys.items()})

    def _applied(self, cell: Cell) -> Cell:
        from prony.plan.load import SteadyWindow
        from prony.plan.target import with_jdk

        trial: dict[str, Any] = {}
        if self.driver is not None:
            trial["driver"] = options.one_of(self.driver, "--driver", ("auto", "io_uring", "epoll"))
        if self.request_parts:
            trial["request_parts"] = True
        if self.instructions:
            trial["instructions"] = True
        measured = cell.trial.measured
        if isinstance(measured, SteadyWindow):
            changes: dict[str, Any] = {} if self.windows is None else {"windows": self.windows}
            if self.within is not None:
                changes["precision"] = options.share(self.within, "--within")
            if changes:
                trial["measured"] = measured = measured.model_copy(update=changes)
            if changes and measured.windows > 1 and measured.precision is not None:
                raise UsageError(f"{ONE_END}; the plan has the other")
        more: dict[str, Any] = {}
        if trial:
            more["trial"] = cell.trial.model_copy(update=trial)
        if self.limits:
            more["limits"] = cell.limits | options.limits(self.limits)
        if self.explain:
            more["explain"] = True
        if self.jdk is not None:
            more["target"] = with_jdk(cell.target, self.jdk) or cell.target
        return cell.model_copy(update=more) if more else cell

    def in_turns(self, plan: Plan, design: bool | None) -> bool:
        """Whether the servers of a plan take turns: as requested, else where that is the better design."""
        if design is not None or self.hosts is not None:
            return bool(design)
        from prony.experiment.duets import why_sequential
        from prony.experiment.testbed import Targets

        plan = replace(self, budget=None).applied(with_duet(plan))
        return why_sequential(plan, Targets()) is None

    def last_look(self, first: int) -> int | None:
        """The last look, in trials per server; None without --until-clear. Raises UsageError."""
        from prony.plan.part import MOST_LOOKS

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

    def continuing(self, stored: Plan) -> Common:
        """With the stored plan's hosts, from --hosts or else from its original file."""
        if not stored.hosts:
            if self.hosts is not None:
                raise UsageError("this experiment ran on a single host; continue it there, without --hosts")
            return self
        known = self.hosts or (None if stored.hosts_file is None else Path(stored.hosts_file))
        if known is None or not known.is_file():
            names = ", ".join(host.name for host in stored.hosts)
            raise UsageError(f"this experiment ran on several hosts ({names}); give their file: --hosts")
        return replace(self, hosts=known)

    def check_resume(self, others: Mapping[str, object]) -> None:
        """Raises UsageError for options fixed by the stored plan. `others`: further options, by name."""
        given = [
            f"--{field.name.replace('_', '-')}"
            for field in fields(self)
            if field.name not in GOES_WITH_RESUME and is_given(getattr(self, field.name), field.default)
        ]
        given += others
        if given:
            raise UsageError(f"--resume uses the stored plan: omit {', '.join(given)}")


def is_given(value: object, default: object) -> bool:
    """Whether an option differs from its default; unset lists are empty."""
    return value != default and value not in ([], ())


def with_duet(plan: Plan, duet: bool = True) -> Plan:
    """The plan with the servers of all parts in turns, or one at a time."""
    return _with_parts(plan, duet={part.name: duet for part in plan.parts})


def _with_parts(plan: Plan, **changes: Mapping[str, object]) -> Plan:
    """With these fields changed: field -> part -> value."""
    parts = (
        part.model_copy(update={field: of[part.name] for field, of in changes.items() if part.name in of})
        for part in plan.parts
    )
    return plan.model_copy(update={"parts": tuple(parts)})
