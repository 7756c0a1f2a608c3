"""What an entry of the catalogue is. Must not know how one is staged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

from prony.evidence.trial import Evidence
from prony.judge.finding import Judgement, Status
from prony.plan.load import ClosedLoad, Connections, Load, Measured, WholeRun
from prony.plan.workload import Expectation, Step, Workload

BODY = "x" * 64
"""What the reference server answers unless it is told otherwise."""
SECONDS = 3.0


def hello(expect: bool = True, delay_ms: float | None = None) -> Workload:
    """One request whose right answer is declared, or not."""
    right = Expectation(status=(200,), body_bytes=len(BODY)) if expect else None
    return Workload(name="hello", delay_ms=delay_ms, steps=(Step(name="hello", path="/", expect=right),))


Side = Literal["server", "client"]
Trouble = Callable[["Scene"], AbstractContextManager[None]]
"""Something that is done to the machine while a set-up runs."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a trouble may act on: where both sides run, the server's process and its port."""

    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]
    server_pid: int | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """A server, a load and a trouble: one trial."""

    serve: tuple[str, ...] = ("--work", "100us")
    """Words for `prony-engine serve`; by default it burns CPU, so that the server is what is busy."""
    command: tuple[str, ...] | None = None
    """Another server than the reference one, with {host} and {port} to be filled in."""
    load: Load = field(default_factory=lambda: ClosedLoad(users=8))
    measured: Measured = field(default_factory=lambda: WholeRun(duration_s=SECONDS))
    workload: Workload = field(default_factory=hello)
    connections: Connections = field(default_factory=Connections)
    tls: bool = False
    worker_threads: int | None = None
    """Declared in its server.yaml."""
    shared_cpus: bool = False
    """Server and client on the same CPU."""
    rig: str | None = None
    """A defect of the rigged engine (engine/src/rig.rs)."""
    around: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered before anything is started."""
    trouble: Trouble | None = None
    """Entered when the server is started."""
    in_window: bool = False
    """The trouble begins only when the load is there."""
    needs: tuple[str, ...] = ()
    """Of the machine: `root`, `cgroup`, `two-cpus`, `rigged`."""


@dataclass(frozen=True, slots=True)
class Staged:
    """What came of a set-up."""

    evidence: Evidence
    judgement: Judgement
    figures: dict[str, float]

    def status(self, check: str) -> Status | None:
        """Of this check's finding; None when it does not apply."""
        return next((f.status for f in self.judgement.findings if f.check == check), None)

    def reason(self, check: str) -> str:
        """What this check's finding says."""
        return next((f.reason for f in self.judgement.findings if f.check == check), "")

    @property
    def accused(self) -> dict[str, Status]:
        """The checks that found something."""
        return {
            f.check: f.status for f in self.judgement.findings if f.status in {Status.SUSPECT, Status.INVALID}
        }


@dataclass(frozen=True, slots=True)
class Beside:
    """What was put on beside the lie itself: what Prony said, and what was wrong with that."""

    said: str
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A lie, its twin, and what Prony must say of the lie."""

    number: int
    name: str
    lie: str
    """What is wrong, in one sentence."""
    setup: Setup
    named_by: tuple[str, ...]
    """One of these checks must accuse it."""
    twin: Setup
    also: Callable[[Staged], str | None] = lambda _: None
    """What else must hold of the lie; a sentence when it does not."""
    beside: Callable[[Staged], Beside | None] = lambda _: None
    """The other half of a lie that one trial cannot show."""
    plain: bool = True
    """Whether wrk and ab can be pointed at this set-up."""
