"""What an entry of the catalogue is."""

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

NOTHING = frozenset({"ok", "level", "protocol"})
"""Codes of findings that found nothing."""
BODY = "x" * 64
"""The reference server's default response body."""
SECONDS = 3.0
LONG = SteadyWindow(window_s=9.0)
"""Long enough for change points."""


def hello(expect: bool = True, delay_ms: float | None = None, *, status_only: bool = False) -> Workload:
    """One GET; `expect` declares the correct response, `status_only` nothing but its status."""
    right = Expectation(status=(200,), body_bytes=None if status_only else len(BODY)) if expect else None
    return Workload(name="hello", delay_ms=delay_ms, steps=(Step(name="hello", path="/", expect=right),))


Side = Literal["server", "client"]
Disturbance = Callable[["RunningSetup"], AbstractContextManager[None]]
"""Something that is done to the host while a set-up runs."""


@dataclass(frozen=True, slots=True)
class RunningSetup:
    """What a disturbance may act on: the CPUs of both sides, the server's process and its port."""

    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]
    server_pid: int | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """A server, a load and a disturbance: one trial."""

    serve: tuple[str, ...] = ("--work", "100us")
    """Arguments of `prony-engine serve`; the default burns CPU, so that the server is the bottleneck."""
    command: tuple[str, ...] | None = None
    """Another server in place of the reference one; {host} and {port} are filled in."""
    load: Load = field(default_factory=lambda: ClosedLoad(users=8))
    measured: Measured = field(default_factory=lambda: WholeRun(duration_s=SECONDS))
    workload: Workload = field(default_factory=hello)
    connections: Connections = field(default_factory=Connections)
    tls: bool = False
    worker_threads: int | None = None
    """Declared in its server.yaml."""
    foreign: bool = False
    """The server is not started by Prony but beside it, on any CPU, and measured at its URL."""
    calibrated: bool = False
    """The client's ceiling is measured after the trial."""
    shared_cpus: bool = False
    """Server and client on the same CPU."""
    client_threads: int = 1
    """Threads of the load generator on each of its CPUs."""
    injected_faults: tuple[str, ...] = ()
    """Faults that the engine is to have (docs/engine.md); the reference server is never touched."""
    around: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered before anything is started."""
    disturbance: Disturbance | None = None
    """Entered when the server is started."""
    in_window: bool = False
    """The disturbance begins when the window opens."""
    edited: Callable[[Evidence], Evidence] | None = None
    """For what no host can stage: applied to the evidence of a real trial before it is judged."""
    needs: tuple[str, ...] = ()
    """Of the host: `root`, `cgroup`, `steering`, `tc`, `two-cpus`."""


@dataclass(frozen=True, slots=True)
class SetupResult:
    """The judged trial of a set-up."""

    evidence: Evidence
    judgement: Judgement
    figures: dict[str, float]

    def kind(self, check: str) -> Kind | None:
        """Of this check's finding; None when it does not apply."""
        found = self.judgement.finding(check)
        return None if found is None else found.kind

    def reason(self, check: str) -> str:
        """What this check's finding says."""
        found = self.judgement.finding(check)
        return "" if found is None else found.reason

    @property
    def found(self) -> dict[str, Finding]:
        """By check: the findings that have a code of their own, or say residual drift."""
        return {one.check: one for one in self.judgement.findings if one.code not in NOTHING or one.plateau}

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Its figures as they are printed."""
        return estimates(self.evidence, self.judgement, self.figures)


@dataclass(frozen=True, slots=True)
class ExtraCase:
    """A second case of the same entry: what Prony reported, and how it failed."""

    reported: str
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An injected fault, its clean run, and the finding that must detect it."""

    number: int
    name: str
    fault: str
    """What is wrong, in one sentence."""
    setup: Setup
    named_by: tuple[str, ...]
    """One of these checks must find it: the trial does not conform, or its figures have a bound."""
    clean: Setup
    also: Callable[[SetupResult], str | None] = lambda _: None
    """What else must hold of the faulty trial; a sentence when it does not."""
    beside: Callable[[SetupResult], ExtraCase | None] = lambda _: None
    """The second case of an entry that one trial cannot show."""
    bent: tuple[str, ...] = ()
    """Figures whose true value the clean run has: it must lie within the faulty trial's bounds, as far as the
    trial conforms.
    """
    other_tools: bool = True
    """Whether wrk and ab can be pointed at this set-up."""


def said(bias: Bias) -> str:
    """-2 to +30 %; *open* on a side that nothing bounds."""
    low, high = ("open" if end is None else f"{100 * end + 0.0:+.2g}" for end in (bias.low, bias.high))
    return f"{low} to {high} %"


def coded(check: str, code: str, outcome: SetupResult) -> str | None:
    """None where the check's finding has this code; else which one it has."""
    found = outcome.judgement.finding(check)
    if found is not None and found.code == code:
        return None
    return f"{check} has the code {'none' if found is None else found.code}, expected {code}"


def conditional(check: str, outcome: SetupResult) -> str | None:
    """None where what is printed rests on a condition of this check."""
    found = outcome.judgement.finding(check)
    return None if found is not None and found.provided else f"{check} makes no condition"


SAME = 0.002
"""Figures that differ by less are the same: a rate that the schedule sets has no interval."""


def overlaps(true: Estimate, faulty: Estimate) -> bool:
    """Whether the two worst-case intervals meet: the host of the twin may be busy, too."""
    (low, high), (least, most) = _ends(faulty), _ends(true)
    return least <= high * (1 + SAME) and most >= low * (1 - SAME)


def _ends(of: Estimate) -> tuple[float, float]:
    low, high = of.uncertainty.worst
    return (0.0 if low is None else of.value * (1 + low)), (
        float("inf") if high is None else of.value * (1 + high)
    )
