"""Actors on a measured host: sampling, and engines on a load host. They use the classes of a single-host
trial. Servers: server_host.py.

Instants are on the host's own monotonic clock; the laboratory converts them.
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
from prony.host.hardware import changed, read_sysctls
from prony.host.proc import read_text
from prony.host.readings import io_uring_works
from prony.host.resource_limits import limits, raise_descriptors
from prony.host.sampler import HostSampler
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun, engine_version
from prony_hosts import files
from prony_hosts.actor import LEASE_S, HostActor
from prony_hosts.link_watch import LinkWatch
from prony_hosts.network_path import link_to

BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
MOST_EVENTS: Final = 200
"""Events per reply; the rest follow in the next."""


@dataclass(frozen=True, slots=True)
class HostDescription:
    """Properties of a host that the laboratory plans with."""

    cpus: tuple[int, ...]
    """CPUs granted to its worker."""
    limits: Limits
    fingerprint: Fingerprint
    boot_id: str | None
    """Equal on hosts that share one machine (network namespaces, containers)."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """Readings of a host over the measured window."""

    window: HostWindow
    network: NetworkUse | None
    round_trip_load_ms: float | None


class MeasuredHost(HostActor):
    """Common to server hosts and load hosts: description, sampling and single requests."""

    def __init__(self, lease_s: float = LEASE_S) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="prony-host-")
        self._sampler: HostSampler | None = None
        self._stopping = threading.Lock()
        """Serialises stops of the sampler."""
        self._link: LinkWatch | None = None
        raise_descriptors()
        super().__init__(lease_s)

    async def now_ns(self) -> int:
        """This host's monotonic clock; on the event loop, so that no other call delays it."""
        return time.monotonic_ns()

    def describe(self) -> HostDescription:
        """CPUs, limits and fingerprint of this host."""
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
        """Names of the kernel settings that changed."""
        return changed(before, read_sysctls())

    def link(self, address: str, port: int | None, declared_bits_per_s: float | None) -> Link | None:
        """The interface towards `address`, with the round trip to `port`. Without a port: the interface that
        has the address. None when no interface can be determined.
        """
        return link_to(address, port, declared_bits_per_s)

    def sample(self, cpus: Collection[int], interface: str | None, port: int) -> None:
        """Starts to sample this host and its link once a second."""
        self.stop_sampling()
        with self._lock:
            sampler = self._new_sampler(cpus)
            if interface is not None:
                link = self._link = LinkWatch(interface, port, here=self._serves)
                sampler.watch("link", link.sample)
            self._sampler = sampler.start()

    def mark(self) -> float:
        """Takes readings too expensive for every second. Returns the time on this host's clock."""
        return self._sampling().mark()

    def series(self, start_s: float) -> tuple[HostRow, ...]:
        """The rows since `start_s`."""
        return self._sampling().series(start_s)

    def window(self, open_s: float, close_s: float) -> Sampled:
        """Readings between two instants."""
        window = self._sampling().window(open_s, close_s)
        link = self._link
        if link is None:
            return Sampled(window, None, None)
        return Sampled(window, link.use(open_s, close_s), link.round_trip_ms(open_s, close_s))

    def stop_sampling(self) -> None:
        """Stops the sampler; its rows stay until the next start. Not under the actor's lock: the sampler's
        thread is joined and may be waiting for that lock.
        """
        with self._stopping:
            if self._sampler is not None:
                self._sampler.stop()

    def stop_everything(self) -> None:
        """Stops the sampler; subclasses stop their processes."""
        self.stop_sampling()

    _serves = False

    def _new_sampler(self, cpus: Collection[int]) -> HostSampler:
        raise NotImplementedError

    def _sampling(self) -> HostSampler:
        if self._sampler is None:
            raise EnvironmentFault("this host is not sampled: its actor restarted during the trial")
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
        """Starts an engine and returns its number. Raises EnvironmentFault."""
        here = files.put(contents, Path(self._scratch.name))
        run = EngineRun(files.moved(load, here))
        with self._lock:
            self._next += 1
            number = self._next
        self._keep(lambda: self._engines.update({number: run}), run.close)
        return number

    def send(self, number: int, command: dict[str, Any]) -> None:
        """Sends a command of docs/engine.md."""
        self._engine(number).send(command)

    def events(self, number: int, timeout_s: float) -> list[dict[str, Any]] | None:
        """The next events as the engine wrote them: empty at the timeout, None after the last. Raises
        EnvironmentFault when the engine ended without a report.
        """
        run = self._engine(number)
        fault = self._faults.pop(number, None)
        if fault is not None:
            raise fault
        events: list[dict[str, Any]] = []
        event = run.next_event(timeout_s)
        while event is not None:
            events.append(event)
            if len(events) == MOST_EVENTS:
                break
            try:
                event = run.next_event(0.0)
            except EnvironmentFault as after:
                self._faults[number] = after
                break
        return None if not events and run.ended else events

    def close(self, number: int) -> None:
        """Ends the engine."""
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
