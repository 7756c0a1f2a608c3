"""What a trial asks of a server under test. A kind of target is a pair of classes: `ServerUnderTest` (once
for a plan) and `RunningTarget` (once for a trial). None means: not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from prony.evidence.host import CpuPartition, Limits
from prony.evidence.server import (
    CgroupThrottle,
    JvmSnapshot,
    ProcessSample,
    ServerIdentity,
    ServiceUse,
    StartUp,
)
from prony.evidence.trial import Ceiling
from prony.load.preflight import ReadyProbe
from prony.plan.target import TlsOptions
from prony.plan.trial import TrialPlan
from prony.server.address import Address
from prony.server.build import Built
from prony.server.threads import Readings

OnLine = Callable[[str, str], None]
"""Server's name, a line of its build."""


@dataclass(frozen=True, slots=True)
class Placement:
    """CPUs of a server that somebody else started. Empty: not running, ours to place, or elsewhere."""

    cpus: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """Of each serving process on this host: where it may run."""
    hidden: bool = False
    """It listens on this host, but its process cannot be read."""

    @property
    def all_cpus(self) -> frozenset[int]:
        """Empty: not known."""
        return frozenset[int]().union(*self.cpus.values())


class ServerUnderTest(Protocol):
    """A target of the plan: what is known of it without a running process, and how to start it."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> ServerIdentity: ...

    @property
    def owned(self) -> bool:
        """Whether Prony starts and stops it and chooses its CPUs."""

    @property
    def https(self) -> bool: ...

    @property
    def http_version(self) -> str | None:
        """The version of HTTP that its load is offered in; None: the plan says."""

    @property
    def unix(self) -> str | None: ...

    @property
    def destinations(self) -> int:
        """How many addresses connections go to: each has ports of its own."""

    @property
    def closes_after(self) -> int | None:
        """Declared requests per connection; None: not declared."""

    @property
    def max_connections(self) -> int | None:
        """Declared limit of connections at a time; None: not declared."""

    @property
    def built(self) -> Built | None:
        """What `prepare` built; None: nothing is built on this host, so conformance is not checked."""

    @property
    def has_services(self) -> bool:
        """Whether backing services are started with it, which need CPUs of their own."""
        return False

    @property
    def workloads(self) -> tuple[str, ...]:
        """Declared ones; empty: any may be tried."""
        return ()

    def placement(self) -> Placement:
        """Where it runs now, by somebody else's doing."""
        return Placement()

    def lacking(self) -> str | None:
        """What this host lacks to build and start it, with what to do; None when nothing."""
        return None

    def prepare(self, on_line: OnLine) -> None:
        """Once, before the first trial: find and build what is missing. Raises PronyError."""

    def limits(self, found: Limits) -> Limits:
        """The limits of this host towards the target."""
        return found

    def ceilings(self, plan: TrialPlan, cpus: int) -> tuple[Ceiling, ...]:  # noqa: ARG002
        """Limits of its rate other than CPU."""
        return ()

    def start(self, partition: CpuPartition) -> RunningTarget:
        """For one trial; it is not ready yet. Raises EnvironmentFault when it cannot be started."""


class RunningTarget(Protocol):
    """A server under test for the time of one trial."""

    @property
    def url(self) -> str:
        """Scheme, host and port, or `unix:` and a path."""

    @property
    def tls(self) -> TlsOptions: ...

    @property
    def addresses(self) -> tuple[str, ...]:
        """HOST:PORT where connections go in place of the URL's host."""

    @property
    def address(self) -> Address | None:
        """Where a preflight request is sent; None: it takes none."""

    @property
    def identity(self) -> ServerIdentity: ...

    def wait_ready(self, probe: ReadyProbe | None, timeout_s: float) -> StartUp | None:
        """Until `probe` gets a right response, or by its own means without one; a server of somebody else's
        is asked once. None: it was running already. Raises EnvironmentFault.
        """

    def set_affinity(self, cpus: tuple[int, ...]) -> bool:
        """Move it to these CPUs; False where that is not ours to do."""

    def set_compiler_affinity(self, cpus: tuple[int, ...]) -> bool:  # noqa: ARG002
        """Move its JIT compilers alone, until `set_affinity`; False: none, or not ours to do."""
        return False

    def cpus(self) -> tuple[int, ...]:
        """On which CPUs of this host it may run while it is measured; empty: not known."""

    def quota_cpus(self) -> float | None:
        """The CPU quota of its control group, in CPUs; None: there is none, or it cannot be read."""

    def thread_times(self) -> Readings: ...

    def pids(self) -> tuple[int, ...]:
        """Living processes on this host."""

    def service_pids(self) -> set[int]:
        """The living processes of its backing services on this host."""
        return set()

    def sample(self) -> ProcessSample | None: ...

    def jvm(self) -> JvmSnapshot | None:
        """The counters of its runtime now."""
        return None

    def throttle(self) -> tuple[CgroupThrottle, ...] | None:
        """CPU quota counters so far, of each level of its cgroup with a quota."""

    def service_samples(self) -> Mapping[str, ProcessSample]:
        """The counters of its backing services now, by name."""
        return {}

    def service_use(
        self,
        opened: Mapping[str, ProcessSample],  # noqa: ARG002
        closed: Mapping[str, ProcessSample],  # noqa: ARG002
    ) -> tuple[ServiceUse, ...]:
        """Its backing services, and what they used between two readings."""
        return ()

    def request_count(self) -> int | None:
        """How many requests it has read so far, by its own count. Must not be asked in a window."""

    def exit_description(self) -> str | None:
        """How it ended; None while it lives, or where that cannot be told."""

    def ended_service(self) -> str | None:
        """Which backing service ended, and how; None while all of them live."""
        return None

    def look(self) -> None:
        """Polls listening sockets, each second under load and at its end. Must cost next to nothing."""

    def connections_by_process(self) -> tuple[int, ...] | None:
        """Now, most first; empty for a single process. Reads all descriptors: not within a window."""

    def stop(self) -> bool | None:
        """End it; whether it was gone then. None: it is not ours to stop. May be called twice."""
