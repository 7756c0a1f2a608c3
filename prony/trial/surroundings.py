"""What a trial is given: CPUs, limits, where its parts run, whom it tells, and who collects its profile."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from prony.evidence.engine import IntervalRow
from prony.evidence.host import CpuPartition, HostRow, HostWindow, Limits
from prony.evidence.hosts import HostEvidence
from prony.evidence.profile import Profile
from prony.evidence.server import ProcessSample
from prony.evidence.trial import LoadFacts
from prony.host.sampler import HostSampler
from prony.load.base import Engine
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.load.facts import load_facts
from prony.load.reference import Certificate, reference_server
from prony.plan.load import WholeRun
from prony.plan.trial import TrialPlan
from prony.targets.base import ServerUnderTest


class Sampler(AbstractContextManager["Sampler"], Protocol):
    """What happens on the hosts of a trial, once a second. Instants are on the laboratory's clock."""

    def watch(self, name: str, read: Callable[[], ProcessSample | None]) -> None:
        """Call `read` at every sample."""

    def mark(self) -> float:
        """Read what is too expensive for every second: just outside the window."""

    def series(self, start_monotonic_s: float = 0.0) -> tuple[HostRow, ...]:
        """The rows so far, from this moment on."""

    def window(self, open_monotonic_s: float, close_monotonic_s: float) -> HostWindow:
        """The host between two moments."""


@dataclass(slots=True)
class Surroundings:
    """CPUs, limits towards the server, and where a trial's parts run: here. `prony_hosts` has others."""

    partition: CpuPartition
    limits: Limits

    @property
    def all_cpus(self) -> tuple[int, ...]:
        """Every CPU of the server's host that server and client may use between them."""
        if self.partition.apart:
            return self.partition.server
        return tuple(sorted({*self.partition.server, *self.partition.client}))

    @property
    def apart(self) -> bool:
        """Whether server and client are on different hosts: CPU 0 of one is not CPU 0 of the other."""
        return False

    @property
    def server_address(self) -> str:
        """Where engines reach a server that is launched."""
        return "127.0.0.1"

    def engine(self, load: EngineLoad) -> Engine:
        """Offer this load, from all hosts that offer loads. Raises EnvironmentFault."""
        return EngineRun(load)

    def single(self, load: EngineLoad) -> Engine:
        """Offer a load that one user walks, or that must not be shared out, from one host."""
        return EngineRun(load)

    def sampler(
        self,
        server_cpus: Collection[int],
        client_cpus: Collection[int],
        own_pids: Callable[[], set[int]],
        url: str,  # noqa: ARG002 (where the load goes, for the links of several hosts)
    ) -> Sampler:
        """Samples the hosts while it is entered."""
        return HostSampler(server_cpus, client_cpus, own_pids)

    def reference_server(
        self, options: Sequence[str], cpus: tuple[int, ...], certificate: Certificate | None
    ) -> AbstractContextManager[str]:
        """The URL of a reference server where the server under test runs."""
        return reference_server(options, cpus, certificate)

    def evidence(self) -> tuple[HostEvidence, ...]:
        """Each host of the trial, after its load; empty when everything was on this one."""
        return ()

    def failed(self) -> str | None:
        """Which host is lost or late, in one sentence. Asked with each event, so it must be cheap."""
        return None


class TrialObserver(Protocol):
    """Receives the progress of one trial. No method may raise or take long."""

    def phase(self, name: str, expected_s: float | None) -> None:
        """The trial enters a phase."""

    def row(self, row: IntervalRow) -> None:
        """One second of load has passed."""

    def note(self, text: str) -> None:
        """Something worth a line."""


class ProfileCollector(Protocol):
    """Of one trial. None of its methods raises: what goes wrong is a sentence in the profile."""

    def attach(self, pids: Iterable[int]) -> None:
        """Under load, before the window: what takes long."""

    def begin(self, window_s: float) -> None:
        """The window is open, for `window_s` at most."""

    def end(self) -> Profile:
        """It is closed, or the server ended."""

    def detach(self) -> None:
        """Leave the server alone; may be called at any time, twice as well."""


def trial_facts(plan: TrialPlan, server: ServerUnderTest) -> LoadFacts:
    """Known before anything is started; also what ports and descriptors are forecast from."""
    plan = plan.spoken(server.http_version)
    facts = load_facts(
        plan.load,
        plan.workload,
        plan.connections,
        claim="protocol" if isinstance(plan.measured, WholeRun) else None,
        duration_s=plan.deadline_s,
        server_closes_after=server.closes_after,
        tls=server.https,
    )
    return facts.model_copy(
        update={
            "driver": plan.driver,
            "preflight": plan.preflight,
            "transport": "tcp" if server.unix is None else "unix",
            "sources": max(1, len(plan.source_addresses)),
            "destinations": server.destinations,
        }
    )
