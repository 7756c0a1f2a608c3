"""Where the parts of a trial run: engines, the sampler of the host, single requests, the reference server.

`Local` is this host.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from prony.evidence.host import HostRow, HostWindow
from prony.evidence.hosts import HostEvidence
from prony.evidence.server import ProcessSample
from prony.host.sampler import HostSampler
from prony.load.base import Engine
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.load.reference import Certificate, reference_server


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


class Places(Protocol):
    """Where the parts of a trial run."""

    @property
    def apart(self) -> bool:
        """Whether server and client are on different hosts: CPU 0 of one is not CPU 0 of the other."""

    def engine(self, load: EngineLoad) -> Engine:
        """Offer this load, from all hosts that offer loads. Raises EnvironmentFault."""

    def single(self, load: EngineLoad) -> Engine:
        """Offer a load that one user walks, or that must not be shared out, from one of them."""

    @property
    def server_address(self) -> str:
        """Where engines reach a server that is launched."""

    def sampler(
        self,
        server_cpus: Collection[int],
        client_cpus: Collection[int],
        own_pids: Callable[[], set[int]],
        url: str,
    ) -> Sampler:
        """What the hosts do; it samples while it is entered. `url`: where the load goes."""

    def reference_server(
        self, options: Sequence[str], cpus: tuple[int, ...], certificate: Certificate | None
    ) -> AbstractContextManager[str]:
        """The URL of a reference server where the server under test runs."""

    def evidence(self) -> tuple[HostEvidence, ...]:
        """Each host of the trial, after its load; empty when everything was on this one."""

    def failed(self) -> str | None:
        """Which host is lost or late, in one sentence; None while all are well. Asked with each event, so it
        must cost next to nothing.
        """


@dataclass(frozen=True, slots=True)
class Local:
    """Everything on this host."""

    apart: bool = False
    server_address: str = "127.0.0.1"

    def engine(self, load: EngineLoad) -> Engine:
        return EngineRun(load)

    def single(self, load: EngineLoad) -> Engine:
        return EngineRun(load)

    def sampler(
        self,
        server_cpus: Collection[int],
        client_cpus: Collection[int],
        own_pids: Callable[[], set[int]],
        url: str,
    ) -> Sampler:
        del url
        return HostSampler(server_cpus, client_cpus, own_pids)

    def reference_server(
        self, options: Sequence[str], cpus: tuple[int, ...], certificate: Certificate | None
    ) -> AbstractContextManager[str]:
        return reference_server(options, cpus, certificate)

    def evidence(self) -> tuple[HostEvidence, ...]:
        return ()

    def failed(self) -> None:
        return None
