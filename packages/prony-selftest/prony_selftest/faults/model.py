"""Types of the catalogue's entries."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

from prony.evidence.trial import Evidence
from prony.judge.estimate import Estimate, estimates
from prony.judge.finding import Bias, Finding, Judgement, Kind
from prony.plan.load import ClosedLoad, Connections, Load, Measured, SteadyWindow, WholeRun
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.workload import Workload
from prony.report.labels import label_of

NOTHING = frozenset({"ok", "level", "protocol"})
"""Codes of findings without a problem."""
BODY = "x" * 64
"""The reference server's default response body."""
SECONDS = 3.0
LONG = SteadyWindow(window_s=9.0)
"""Enough for change points."""


def hello(expect: bool = True, delay_ms: float | None = None, *, status_only: bool = False) -> Workload:
    """One GET; `expect` declares the correct response, `status_only` its status only."""
    right = Expectation(status=(200,), body_bytes=None if status_only else len(BODY)) if expect else None
    return Workload(name="hello", delay_ms=delay_ms, steps=(Step(name="hello", path="/", expect=right),))


Side = Literal["server", "client"]
Disturbance = Callable[["RunningSetup"], AbstractContextManager[None]]
"""Acts on the host while a set-up runs."""


@dataclass(frozen=True, slots=True)
class RunningSetup:
    """Targets of a disturbance: CPUs of both sides, the server's process and port."""

    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]
    server_pid: int | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """A server, a load and a disturbance: one trial."""

    serve: tuple[str, ...] = ("--work", "100us")
    """Arguments of `prony-engine serve`; by default it burns CPU, to be the bottleneck."""
    command: tuple[str, ...] | None = None
    """A server other than the reference server; {host} and {port} are filled in."""
    load: Load = field(default_factory=lambda: ClosedLoad(users=8))
    measured: Measured = field(default_factory=lambda: WholeRun(duration_s=SECONDS))
    workload: Workload = field(default_factory=hello)
    connections: Connections = field(default_factory=Connections)
    tls: bool = False
    worker_threads: int | None = None
    """Declared in its server.yaml."""
    foreign: bool = False
    """The server is started outside Prony, on any CPU, and measured at its URL."""
    calibrated: bool = False
    """The client's ceiling is measured after the trial."""
    shared_cpus: bool = False
    """Server and client on the same CPU."""
    client_threads: int = 1
    """Threads of the load generator per CPU."""
    injected_faults: tuple[str, ...] = ()
    """Faults of the engine (docs/engine.md); the reference server is unaffected."""
    context: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered before anything starts."""
    disturbance: Disturbance | None = None
    """Entered when the server has started."""
    in_window: bool = False
    """The disturbance begins when the window opens."""
    edited: Callable[[Evidence], Evidence] | None = None
    """Applied to a real trial's evidence before judging, for faults that cannot be staged."""
    host: str = "127.0.0.1"
    """Listening address of a server that Prony launches."""
    needs: tuple[str, ...] = ()
    """Requirements of the host: `root`, `cgroup`, `ipv6`, `memory`, `steering`, `tc`, `two-cpus`."""


@dataclass(frozen=True, slots=True)
class SetupResult:
    """The judged trial of a set-up."""

    evidence: Evidence
    judgement: Judgement
    figures: dict[str, float]

    def kind(self, check: str) -> Kind | None:
        """Kind of this check's finding; None if the check does not apply."""
        finding = self.judgement.finding(check)
        return None if finding is None else finding.kind

    def reason(self, check: str) -> str:
        """Reason of this check's finding; empty without one."""
        finding = self.judgement.finding(check)
        return "" if finding is None else finding.reason

    @property
    def detections(self) -> dict[str, Finding]:
        """Check -> its finding, if it reports a problem or residual drift."""
        return {
            finding.check: finding
            for finding in self.judgement.findings
            if finding.code not in NOTHING or finding.plateau
        }

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Figures as they are printed."""
        return estimates(self.evidence, self.judgement, self.figures)


@dataclass(frozen=True, slots=True)
class ExtraCase:
    """A second case of an entry: Prony's report, and its failure."""

    reported: str
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An injected fault, its clean run, and the finding that must detect it."""

    number: int
    name: str
    fault: str
    """The fault, in one sentence."""
    setup: Setup
    named_by: tuple[str, ...]
    """One of these checks must detect it: the trial does not conform, or its figures have a bound."""
    clean: Setup
    requirement: Callable[[SetupResult], str | None] = lambda _: None
    """A further requirement on the faulty trial; returns a sentence if it fails."""
    second_case: Callable[[SetupResult], ExtraCase | None] = lambda _: None
    """A second case, for entries that one trial cannot show."""
    biased: tuple[str, ...] = ()
    """Figures whose clean value must lie within the bounds of a conforming faulty trial."""
    refused: str = ""
    """A word of the refusal that this set-up must get before any load; empty: it is measured."""
    other_tools: bool = True
    """Whether wrk and ab can measure this set-up."""


def bias_range(bias: Bias, figure: str = "") -> str:
    """-2 to +30 %, after the figure's label; *open* for an unbounded side."""
    low, high = ("open" if end is None else _percent(100 * end + 0.0) for end in (bias.low, bias.high))
    return (f"{label_of(figure)} " if figure else "") + f"{low} to {high} %"


def _percent(value: float) -> str:
    return f"{value:+.2g}" if abs(value) < 99.5 else f"{value:+,.0f}"


def coded(check: str, code: str, outcome: SetupResult) -> str | None:
    """None if the check's finding has this code; else a sentence."""
    finding = outcome.judgement.finding(check)
    if finding is not None and finding.code == code:
        return None
    return f"{check} has the code {'none' if finding is None else finding.code}, expected {code}"


def conditional(check: str, outcome: SetupResult) -> str | None:
    """None if this check makes a condition; else a sentence."""
    finding = outcome.judgement.finding(check)
    return None if finding is not None and finding.provided else f"{check} makes no condition"


SAME = 0.002
"""Smaller differences are ignored: a rate set by a schedule has no interval."""


def overlaps(true: Estimate, faulty: Estimate) -> bool:
    """Whether the two worst-case intervals overlap: the twin's host may be busy, too."""
    (low, high), (least, most) = _ends(faulty), _ends(true)
    return least <= high * (1 + SAME) and most >= low * (1 - SAME)


def _ends(of: Estimate) -> tuple[float, float]:
    low, high = of.uncertainty.worst
    return (0.0 if low is None else of.value * (1 + low)), (
        float("inf") if high is None else of.value * (1 + high)
    )
