"""The surroundings of a trial: CPUs, limits, hosts of its parts, observer and profile collector."""

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
    """Samples the hosts of a trial every second. Instants are on the laboratory's clock."""

    def watch(self, name: str, read: Callable[[], ProcessSample | None]) -> None:
        """Call `read` at every sample."""

    def mark(self) -> float:
        """Read what is too expensive for every second; call just outside the window."""

    def series(self, start_monotonic_s: float = 0.0) -> tuple[HostRow, ...]:
        """The rows so far, from `start_monotonic_s` on."""

    def window(self, open_monotonic_s: float, close_monotonic_s: float) -> HostWindow:
        """The host between two instants."""


@dataclass(slots=True)
class Surroundings:
    """CPUs, limits towards the server, and places of a trial's parts: this host. `prony_hosts` has others."""

    partition: CpuPartition
    limits: Limits

    @property
    def all_cpus(self) -> tuple[int, ...]:
        """Every CPU of server and client on the server's host."""
        if self.partition.apart:
            return self.partition.server
        return tuple(sorted({*self.partition.server, *self.partition.client}))

    @property
    def apart(self) -> bool:
        """Whether server and client are on different hosts, with CPU numbers of their own."""
        return False

    @property
    def server_address(self) -> str:
        """Address at which engines reach a launched server."""
        return "127.0.0.1"

    def engine(self, load: EngineLoad) -> Engine:
        """Offer this load from all load hosts. Raises EnvironmentFault."""
        return EngineRun(load)

    def single(self, load: EngineLoad) -> Engine:
        """Offer a load of a single user, or one that cannot be split, from a single host."""
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
        """Each host of the trial, after its load; empty with everything on this host."""
        return ()

    def failed(self) -> str | None:
        """A lost or late host, in a sentence. Called with each event, so it must be cheap."""
        return None


class TrialObserver(Protocol):
    """Receives the progress of one trial. No method may raise or take long."""

    def phase(self, name: str, expected_s: float | None) -> None:
        """The trial enters a phase."""

    def row(self, row: IntervalRow) -> None:
        """A second of load has passed."""

    def note(self, text: str) -> None:
        """A line for the user."""


class ProfileCollector(Protocol):
    """Collects the profile of a trial. No method raises: a fault is a sentence in the profile."""

    def attach(self, pids: Iterable[int]) -> None:
        """The slow preparations, under load before the window."""

    def begin(self, window_s: float) -> None:
        """The window is open, for `window_s` at most."""

    def end(self) -> Profile:
        """The window closed, or the server ended."""

    def detach(self) -> None:
        """Detach from the server; may be called at any time, and repeatedly."""


def trial_facts(plan: TrialPlan, server: ServerUnderTest) -> LoadFacts:
    """Facts known before the start; ports and descriptors are forecast from them."""
    plan = plan.in_http_version(server.http_version)
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
