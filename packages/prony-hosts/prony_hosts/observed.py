"""A server at a URL that runs on a server's host of hosts.yaml: somebody else started it, and its host reads
it. What `prony.targets.external` is on this host, over the actor of its host.
"""

from __future__ import annotations

from dataclasses import dataclass

from prony.evidence.host import CpuPartition
from prony.load.asked import ReadyProbe
from prony.plan.target import TlsOptions, Url
from prony.targets.base import RunningTarget
from prony.targets.external import ExternalServer, RunningExternal
from prony_hosts.reach import Reached
from prony_hosts.server_host import Started
from prony_hosts.target import RunningHosted


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedExternal(ExternalServer):
    """A running server as a target, on another host."""

    host: Reached

    def start(self, partition: CpuPartition) -> RunningTarget:
        del partition  # it runs where it is
        return RunningObserved(self.host, self.host.call("observe", self.at), self.at)


class RunningObserved(RunningHosted):
    """Read by its host, and asked as any server at a URL: from where the load comes."""

    def __init__(self, host: Reached, found: Started, at: Url) -> None:
        super().__init__(host, found, found.identity.name)
        self._at = at

    @property
    def tls(self) -> TlsOptions:
        return self._at.tls

    @property
    def addresses(self) -> tuple[str, ...]:
        return self._at.addresses

    def wait_ready(self, probe: ReadyProbe | None, timeout_s: float) -> None:
        """It is running, or it is not."""
        RunningExternal(self._at).wait_ready(probe, timeout_s)

    def set_affinity(self, cpus: tuple[int, ...]) -> bool:
        """False: somebody else has decided where it runs."""
        del cpus
        return False

    def cpus(self) -> tuple[int, ...]:
        """Where any of its threads may run now."""
        found: tuple[int, ...] = self._host.call("cpus")
        return found
