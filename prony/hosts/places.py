"""The parts of one trial on several hosts: engines on the load hosts, a sampler on each, the reference server
on the server's host. What `prony.trial.places.Local` is on one. Must not know the order of a trial.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from statistics import fmean
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from prony.errors import EnvironmentFault
from prony.evidence.host import HostRow, HostWindow
from prony.evidence.hosts import HostEvidence, Link
from prony.evidence.server import Probe, ProcessSample
from prony.host.proc import parse_cpus, read_text
from prony.hosts import files
from prony.hosts.actors import BOOT_ID, Sampled
from prony.hosts.reach import EVERY_S, Reached
from prony.load.base import Engine
from prony.load.clock import ClockEstimate, RoundTrip
from prony.load.contract import EngineLoad
from prony.load.handle import HostLost
from prony.load.reference import Certificate
from prony.load.shares import shared
from prony.load.together import EnginesTogether
from prony.plan.workload import Workload
from prony.server.address import Address

EVENTS_GRACE_S = 30.0
"""Beyond the time that a host was to wait for events."""


def cpus_of(one: Reached) -> tuple[int, ...]:
    """Those that hosts.yaml names, else all that its worker may use."""
    named = one.host.keys.cpus
    return one.facts.cpus if named is None else tuple(parse_cpus(named))


class RemoteEngine:
    """An engine on a load host (`prony.load.handle.EngineHandle`)."""

    def __init__(self, host: Reached, number: int) -> None:
        self.host, self._number = host, number

    @property
    def name(self) -> str:
        return self.host.name

    def send(self, command: dict[str, Any]) -> None:
        self.host.begin("send", self._number, command)  # a host that is lost is seen by who reads its events

    def events(self, timeout_s: float) -> Sequence[dict[str, Any]] | None:
        found: list[dict[str, Any]] | None = self.host.call(
            "events", self._number, timeout_s, timeout_s=timeout_s + EVENTS_GRACE_S
        )
        return found

    def clock(self) -> ClockEstimate:
        return self.host.clock()

    def close(self) -> None:
        with suppress(HostLost):
            self.host.call("close", self._number, timeout_s=EVENTS_GRACE_S)


class HostedPlaces:
    """For one trial. `server`: the host of a server that Prony launches; None: a server at a URL."""

    def __init__(
        self, server: Reached | None, loads: Sequence[Reached], lost: Callable[[], Mapping[str, str]]
    ) -> None:
        self.server, self.loads, self._lost = server, tuple(loads), lost
        self.measured: EnginesTogether | None = None
        """The engines of the measured load."""
        self._latest: EnginesTogether | None = None
        self._sampler: HostedSampler | None = None
        self._begun = {one.name: one.clock() for one in self.hosts}

    @property
    def hosts(self) -> tuple[Reached, ...]:
        """Those of this trial."""
        return self.loads if self.server is None else (self.server, *self.loads)

    @property
    def apart(self) -> bool:
        """Hosts that are one machine (network namespaces, containers) share its CPUs. A server at a URL can
        be read on the laboratory's host only.
        """
        boot = read_text(BOOT_ID) if self.server is None else self.server.facts.boot_id
        return boot is not None and all(one.facts.boot_id != boot for one in self.loads)

    @property
    def server_address(self) -> str:
        """Where load hosts reach a server on the server's host."""
        return "127.0.0.1" if self.server is None else self.server.attached.reached_at

    def engine(self, load: EngineLoad) -> Engine:
        return self._start(load, self.loads)

    def single(self, load: EngineLoad) -> Engine:
        return self._start(load, self.loads[:1])

    def _start(self, load: EngineLoad, hosts: Sequence[Reached]) -> EnginesTogether:
        contents = files.of_load(load)
        shares = shared(load, [one.host.weight for one in hosts])
        begun = []
        for one, share in zip(hosts, shares, strict=True):
            if share is not None:
                own = share.model_copy(update={"cpus": cpus_of(one) if load.cpus else ()})
                begun.append((one, one.begin("start_engine", own, contents)))
        handles: list[RemoteEngine] = []
        faults: list[EnvironmentFault] = []
        for one, future in begun:  # each of them: one that fails leaves no engine of a later host behind
            try:
                handles.append(RemoteEngine(one, one.end(future, "start_engine")))
            except EnvironmentFault as fault:
                faults.append(fault)
        if faults:
            for handle in handles:
                with suppress(EnvironmentFault):
                    handle.close()
            raise faults[0]
        self._latest = EnginesTogether(load, handles)
        return self._latest

    def sampler(
        self,
        server_cpus: Collection[int],
        client_cpus: Collection[int],
        own_pids: Callable[[], set[int]],
        url: str = "",
    ) -> HostedSampler:
        """Each host samples its own CPUs and processes."""
        del server_cpus, client_cpus, own_pids
        self._sampler = HostedSampler(self, url)
        return self._sampler

    def now_measured(self) -> None:
        """The window is about to open: the engines of now are those of the trial."""
        self.measured = self._latest

    def probe(
        self, address: Address, workload: Workload, known: Mapping[str, str] | None = None
    ) -> tuple[Probe, ...] | None:
        """From a load host: it has the way that the load takes."""
        found: tuple[Probe, ...] | None = self.loads[0].call(
            "probe", address, workload, dict(known or {}), files.of_workload(workload)
        )
        return found

    def reference_server(
        self, options: Sequence[str], cpus: tuple[int, ...], certificate: Certificate | None
    ) -> AbstractContextManager[str]:
        return self._reference(options, cpus, certificate)

    @contextmanager
    def _reference(
        self, options: Sequence[str], cpus: tuple[int, ...], certificate: Certificate | None
    ) -> Iterator[str]:
        if self.server is None:
            raise EnvironmentFault(
                "hosts.yaml names no server's host: there is none to run the reference server"
            )
        pem = None
        if certificate is not None:
            pem = tuple(path.read_bytes() for path in (certificate.ca, certificate.cert, certificate.key))
        url = self.server.call("start_reference", list(options), cpus, pem)
        try:
            yield url
        finally:
            with suppress(HostLost):
                self.server.call("stop_reference", url)

    def failed(self) -> str | None:
        lost = self._lost()
        return next((lost[one.name] for one in self.hosts if one.name in lost), None)

    def evidence(self) -> tuple[HostEvidence, ...]:
        sampler, engines = self._sampler, self.measured or self._latest
        told = {} if engines is None else engines.told()
        lost = {**({} if engines is None else engines.lost), **self._lost()}
        cut_by = {} if engines is None else engines.cut_by
        found = []
        for one in self.hosts:
            if one in self.loads and engines is not None and one.name not in told and one.name not in lost:
                continue  # Fewer users than hosts: it had no part in the load.
            own = sampler.of(one.name) if sampler is not None else Gathered()
            between = None if sampler is None else sampler.window_ns
            found.append(
                HostEvidence(
                    name=one.name,
                    role=one.host.role,
                    weight=one.host.weight,
                    fingerprint=one.facts.fingerprint,
                    host_window=None if own.sampled is None else own.sampled.window,
                    host_rows=own.rows,
                    clock=one.clock().evidence(
                        *cut_by.get(one.name, (self._begun[one.name],)), between_ns=between
                    ),
                    link=own.link,
                    network=None if own.sampled is None else own.sampled.network,
                    lost=lost.get(one.name),
                    **told.get(one.name, {}),
                )
            )
        return tuple(found)


class Gathered:
    """What was sampled of one host."""

    link: Link | None = None
    interface: str | None = None
    rows: tuple[HostRow, ...] = ()
    sampled: Sampled | None = None


class HostedSampler:
    """The samplers of all hosts of a trial as one. Of a host that is lost nothing more comes."""

    def __init__(self, places: HostedPlaces, url: str) -> None:
        self._places = places
        parts = urlsplit(url)
        self._address = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._gathered = {one.name: Gathered() for one in places.hosts}
        self.window_ns: tuple[float, float] | None = None
        self._ended = threading.Event()
        self._clocks = threading.Thread(target=self._compare_clocks, name="clocks", daemon=True)

    def of(self, name: str) -> Gathered:
        """What was sampled of the host of this name."""
        return self._gathered[name]

    def __enter__(self) -> HostedSampler:
        places = self._places
        serves = places.server
        links = {}
        for one in places.hosts:
            to = (one.attached.reached_at, None) if one is serves else (self._address, self._port)
            links[one.name] = one.begin("link", *to, one.host.keys.link)
        for one in places.hosts:
            own = self._gathered[one.name]
            own.link = one.end(links[one.name], "link")
            own.interface = None if own.link is None else own.link.interface
        self._all("sample", lambda one: (cpus_of(one), self._gathered[one.name].interface, self._port))
        self._clocks.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._clocks.join()
        self._all("stop_sampling", lambda _one: ())

    def watch(self, name: str, read: Callable[[], ProcessSample | None]) -> None:
        """Nothing of this host: the server's own host watches it."""

    def mark(self) -> float:
        self._places.now_measured()
        self._all("mark", lambda _one: ())
        return time.monotonic()

    def series(self, start_monotonic_s: float = 0.0) -> tuple[HostRow, ...]:
        rows = self._all("series", lambda one: (one.host_s(start_monotonic_s),))
        for name, found in rows.items():
            self._gathered[name].rows = found
        return merged_rows(
            self._rows(self._places.server), [self._rows(one) or () for one in self._places.loads]
        )

    def _rows(self, one: Reached | None) -> tuple[HostRow, ...] | None:
        return None if one is None else self._gathered[one.name].rows

    def window(self, open_monotonic_s: float, close_monotonic_s: float) -> HostWindow:
        self.window_ns = (open_monotonic_s * 1e9, close_monotonic_s * 1e9)
        sampled: dict[str, Sampled] = self._all(
            "window", lambda one: (one.host_s(open_monotonic_s), one.host_s(close_monotonic_s))
        )
        for name, found in sampled.items():
            own = self._gathered[name]
            own.sampled = found
            if own.link is not None:
                own.link = own.link.model_copy(update={"round_trip_load_ms": found.round_trip_load_ms})
        server = self._places.server
        loads = [sampled[one.name].window for one in self._places.loads if one.name in sampled]
        own_window = sampled[server.name].window if server is not None and server.name in sampled else None
        merged = merged_window(own_window, loads)
        return merged or HostWindow(wall_s=close_monotonic_s - open_monotonic_s)

    def _all(self, method: str, args: Callable[[Reached], tuple[Any, ...]]) -> dict[str, Any]:
        """The method of each host's actor at once; a host that is lost, or never was sampled, is left out."""
        begun: list[tuple[Reached, Future[Any]]] = []
        for one in self._places.hosts:
            with suppress(EnvironmentFault):
                begun.append((one, one.begin(method, *args(one))))
        found = {}
        for one, future in begun:
            with suppress(EnvironmentFault):
                found[one.name] = one.end(future, method)
        return found

    def _compare_clocks(self) -> None:
        """One round trip with each host, again and again."""
        while not self._ended.wait(EVERY_S):
            for one in self._places.hosts:
                asked_ns = time.monotonic_ns()
                future = one.begin("now_ns")
                future.add_done_callback(_taking(one, asked_ns))


def _taking(one: Reached, asked_ns: int) -> Callable[[Future[int]], None]:
    def take(future: Future[int]) -> None:
        answered_ns = time.monotonic_ns()
        if not future.cancelled() and future.exception() is None:
            one.take(RoundTrip(asked_ns, future.result(), answered_ns))

    return take


def merged_window(server: HostWindow | None, loads: Sequence[HostWindow]) -> HostWindow | None:
    """The server's host with the client's side of the busiest load host; without a server's host that one."""
    busiest = max(loads, key=_busy, default=None)
    if server is None or busiest is None:
        return server or busiest
    others = [window.others_on_client_cpus for window in loads]
    changed = [window.sysctls_changed for window in (server, *loads)]
    return server.model_copy(
        update={
            "others_on_client_cpus": None
            if None in others
            else max(one for one in others if one is not None),
            "sysctls_changed": None
            if None in changed
            else tuple(sorted({name for names in changed for name in names or ()})),
        }
    )


def _busy(window: HostWindow) -> float:
    return fmean(cpu.busy for cpu in window.cpus) if window.cpus else 0.0


def merged_rows(
    server: tuple[HostRow, ...] | None, loads: Sequence[tuple[HostRow, ...]]
) -> tuple[HostRow, ...]:
    """The server's host second by second, with the client's CPUs of the load host that was busiest then;
    without a server's host the rows of the first load host.
    """
    base = server if server is not None else next((rows for rows in loads if rows), ())
    return tuple(
        row.model_copy(
            update={
                "client_cpus_busy": max(
                    (
                        near.client_cpus_busy
                        for rows in loads
                        if (near := _nearest(rows, row)) is not None and near.client_cpus_busy is not None
                    ),
                    default=row.client_cpus_busy,
                )
            }
        )
        for row in base
    )


def _nearest(rows: Sequence[HostRow], row: HostRow) -> HostRow | None:
    at = bisect_left(rows, row.t_ms, key=lambda one: one.t_ms)
    near = min(rows[max(0, at - 1) : at + 1], key=lambda one: abs(one.t_ms - row.t_ms), default=None)
    return None if near is None or abs(near.t_ms - row.t_ms) > row.duration_ms else near
