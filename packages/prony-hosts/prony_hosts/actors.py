"""What runs on a host for the laboratory: whatever reads the host, and engines on a load host (of a server's
host: server_host.py). The same classes as in a trial on one host.

Instants are those of the host's own monotonic clock; the laboratory puts them on its own.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import prony
from prony.errors import EnvironmentFault
from prony.evidence.host import Fingerprint, HostRow, HostWindow, Limits
from prony.evidence.hosts import Link, NetworkUse
from prony.host.affinity import granted_cpus
from prony.host.fingerprint import fingerprint
from prony.host.link_watch import LinkWatch
from prony.host.proc import read_text
from prony.host.readings import io_uring_works
from prony.host.resource_limits import limits, raise_descriptors
from prony.host.sampler import HostSampler
from prony.host.sysctls import changed, read_sysctls
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun, engine_version
from prony_hosts import files
from prony_hosts.actor import LEASE_S, HostActor
from prony_hosts.network_path import link_to

BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
MOST_EVENTS: Final = 200
"""In one reply: of an engine that tells more the rest comes with the next."""


@dataclass(frozen=True, slots=True)
class HostDescription:
    """A host as the laboratory plans for it."""

    cpus: tuple[int, ...]
    """Those that its worker may use."""
    limits: Limits
    fingerprint: Fingerprint
    boot_id: str | None
    """The same on all hosts that are one machine (network namespaces, containers)."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """What a host was and did over the window."""

    window: HostWindow
    network: NetworkUse | None
    round_trip_load_ms: float | None


class MeasuredHost(HostActor):
    """What both kinds of host do: they say what they are, are sampled, and send single requests."""

    def __init__(self, lease_s: float = LEASE_S) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="prony-host-")
        self._sampler: HostSampler | None = None
        self._stopping = threading.Lock()
        """Of the sampler: one at a time."""
        self._link: LinkWatch | None = None
        raise_descriptors()
        super().__init__(lease_s)

    async def now_ns(self) -> int:
        """This host's monotonic clock; on the event loop, so that nothing is in the way."""
        return time.monotonic_ns()

    def describe(self) -> HostDescription:
        """What this host is."""
        software = {
            "prony": prony.__version__,
            "prony-engine": engine_version(),
            "python": ".".join(map(str, sys.version_info[:3])),
        }
        return HostDescription(
            cpus=granted_cpus(),
            limits=limits().model_copy(update={"io_uring": io_uring_works()}),
            fingerprint=fingerprint(software),
            boot_id=read_text(BOOT_ID),
        )

    def settings_changed(self, before: dict[str, str]) -> tuple[str, ...]:
        """Kernel settings that are no longer what they were."""
        return changed(before, read_sysctls())

    def link(self, address: str, port: int | None, declared_bits_per_s: float | None) -> Link | None:
        """The interface towards this address (of a server that listens here: with it), and the round trip
        where there is a port to ask; None where no interface can be told.
        """
        return link_to(address, port, declared_bits_per_s)

    def sample(self, cpus: Collection[int], interface: str | None, port: int) -> None:
        """Sample this host once a second from now on, and its link."""
        self.stop_sampling()
        with self._lock:
            sampler = self._new_sampler(cpus)
            if interface is not None:
                link = self._link = LinkWatch(interface, port, here=self._serves)
                sampler.watch("link", link.sample)
            self._sampler = sampler.start()

    def mark(self) -> float:
        """Read what is too expensive for every second; this host's clock."""
        return self._sampling().mark()

    def series(self, start_s: float) -> tuple[HostRow, ...]:
        """The rows so far, from this moment on."""
        return self._sampling().series(start_s)

    def window(self, open_s: float, close_s: float) -> Sampled:
        """This host between two moments."""
        found = self._sampling().window(open_s, close_s)
        link = self._link
        if link is None:
            return Sampled(found, None, None)
        return Sampled(found, link.use(open_s, close_s), link.round_trip_ms(open_s, close_s))

    def stop_sampling(self) -> None:
        """The rows stay until it is sampled anew. Not under the actor's lock: the sampler's thread, which is
        waited for, may just be asking for the engines.
        """
        with self._stopping:
            if self._sampler is not None:
                self._sampler.stop()

    def stop_everything(self) -> None:
        """The sampler; the subclasses' processes."""
        self.stop_sampling()

    _serves = False

    def _new_sampler(self, cpus: Collection[int]) -> HostSampler:
        raise NotImplementedError

    def _sampling(self) -> HostSampler:
        if self._sampler is None:
            raise EnvironmentFault("this host is not sampled: its actor was started anew during the trial")
        return self._sampler


class LoadHost(MeasuredHost):
    """Runs engines."""

    def __init__(self, lease_s: float = LEASE_S) -> None:
        self._engines: dict[int, EngineRun] = {}
        self._faults: dict[int, Exception] = {}
        self._next = 0
        super().__init__(lease_s)

    def _new_sampler(self, cpus: Collection[int]) -> HostSampler:
        return HostSampler((), cpus, self._engine_pids)

    def _engine_pids(self) -> set[int]:
        with self._lock:
            return {pid for run in self._engines.values() for pid in run.pids}

    def start_engine(self, load: EngineLoad, contents: Mapping[str, bytes]) -> int:
        """A number for the engine. Raises EnvironmentFault."""
        here = files.put(contents, Path(self._scratch.name))
        run = EngineRun(files.moved(load, here))
        with self._lock:
            self._next += 1
            number = self._next
        self._keep(lambda: self._engines.update({number: run}), run.close)
        return number

    def send(self, number: int, command: dict[str, Any]) -> None:
        """A command of docs/engine.md."""
        self._engine(number).send(command)

    def events(self, number: int, timeout_s: float) -> list[dict[str, Any]] | None:
        """The next events as the engine wrote them; empty at the timeout, None after the last. Raises
        EnvironmentFault when the engine ended without a report.
        """
        run = self._engine(number)
        fault = self._faults.pop(number, None)
        if fault is not None:
            raise fault
        found: list[dict[str, Any]] = []
        event = run.next_event(timeout_s)
        while event is not None:
            found.append(event)
            if len(found) == MOST_EVENTS:
                break
            try:
                event = run.next_event(0.0)
            except EnvironmentFault as after:
                self._faults[number] = after
                break
        return None if not found and run.ended else found

    def close(self, number: int) -> None:
        """Make sure that the engine has ended."""
        with self._lock:
            run = self._engines.pop(number, None)
        if run is not None:
            run.close()

    def stop_everything(self) -> None:
        """Engines stop when their standard input closes."""
        with self._lock:
            runs, self._engines = list(self._engines.values()), {}
        for run in runs:
            run.close()
        super().stop_everything()

    def _engine(self, number: int) -> EngineRun:
        with self._lock:
            run = self._engines.get(number)
        if run is None:
            self.check_kept()
            raise EnvironmentFault("the engine has ended")
        return run
