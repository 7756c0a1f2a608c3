"""A running server whose host is in hosts.yaml, read there as `prony.targets.external` does here."""

from __future__ import annotations

from dataclasses import dataclass

from prony.evidence.host import CpuPartition
from prony.load.preflight import ReadyProbe
from prony.plan.target import TlsOptions, Url
from prony.targets.base import RunningTarget
from prony.targets.external import ExternalServer, RunningExternal
from prony_hosts.reach import Reached
from prony_hosts.server_host import Started
from prony_hosts.target import RunningHosted


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedExternal(ExternalServer):
    """A running server on another host as a target."""

    host: Reached

    def start(self, partition: CpuPartition) -> RunningTarget:
        del partition  # already running
        return RunningObserved(self.host, self.host.call("observe", self.at), self.at)


class RunningObserved(RunningHosted):
    """Read by its host; requests come from the load hosts."""

    def __init__(self, host: Reached, started: Started, at: Url) -> None:
        super().__init__(host, started, started.identity.name)
        self._at = at

    @property
    def tls(self) -> TlsOptions:
        return self._at.tls

    @property
    def addresses(self) -> tuple[str, ...]:
        return self._at.addresses

    def wait_ready(self, probe: ReadyProbe | None, timeout_s: float) -> None:
        """Waits as for any server at a URL."""
        RunningExternal(self._at).wait_ready(probe, timeout_s)

    def set_affinity(self, cpus: tuple[int, ...]) -> bool:
        """False: a server that Prony did not start is not moved."""
        del cpus
        return False

    def cpus(self) -> tuple[int, ...]:
        """CPUs on which any of its threads may run."""
        cpus: tuple[int, ...] = self._host.call("cpus")
        return cpus
