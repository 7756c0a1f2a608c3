"""Samplers on all hosts of a trial as one `prony.trial.surroundings.Sampler`."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from statistics import fmean
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from prony.errors import EnvironmentFault
from prony.evidence.host import HostRow, HostWindow
from prony.evidence.hosts import Link
from prony.evidence.server import ProcessSample
from prony.host.proc import parse_cpus
from prony_hosts.actors import Sampled
from prony_hosts.reach import Reached


def cpus_of(reached: Reached) -> tuple[int, ...]:
    """CPUs named in hosts.yaml, else all that its worker may use."""
    named = reached.host.keys.cpus
    return reached.facts.cpus if named is None else tuple(parse_cpus(named))


class Gathered:
    """Samples of one host."""

    link: Link | None = None
    interface: str | None = None
    rows: tuple[HostRow, ...] = ()
    sampled: Sampled | None = None


class HostedSampler:
    """Samplers on all hosts of a trial; a lost host adds nothing more."""

    def __init__(
        self, server: Reached | None, loads: Sequence[Reached], url: str, on_mark: Callable[[], None]
    ) -> None:
        self._server, self._loads, self._on_mark = server, tuple(loads), on_mark
        parts = urlsplit(url)
        self._address = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._gathered = {host.name: Gathered() for host in self._hosts}
        self.window_ns: tuple[float, float] | None = None

    @property
    def _hosts(self) -> tuple[Reached, ...]:
        return self._loads if self._server is None else (self._server, *self._loads)

    def of(self, name: str) -> Gathered:
        """Samples of the host with this name."""
        return self._gathered[name]

    def __enter__(self) -> HostedSampler:
        links = {}
        for host in self._hosts:
            to = (host.attached.reached_at, None) if host is self._server else (self._address, self._port)
            links[host.name] = host.begin("link", *to, host.host.keys.link)
        for host in self._hosts:
            own = self._gathered[host.name]
            own.link = host.end(links[host.name], "link")
            own.interface = None if own.link is None else own.link.interface
        self._all("sample", lambda host: (cpus_of(host), self._gathered[host.name].interface, self._port))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._all("stop_sampling", lambda _one: ())

    def watch(self, name: str, read: Callable[[], ProcessSample | None]) -> None:
        """No-op: the server's own host watches it."""

    def mark(self) -> float:
        self._on_mark()
        self._all("mark", lambda _one: ())
        return time.monotonic()

    def series(self, start_monotonic_s: float = 0.0) -> tuple[HostRow, ...]:
        rows = self._all("series", lambda host: (host.host_s(start_monotonic_s),))
        for name, host_rows in rows.items():
            self._gathered[name].rows = host_rows
        return merged_rows(self._rows(self._server), [self._rows(host) or () for host in self._loads])

    def _rows(self, host: Reached | None) -> tuple[HostRow, ...] | None:
        return None if host is None else self._gathered[host.name].rows

    def window(self, open_monotonic_s: float, close_monotonic_s: float) -> HostWindow:
        self.window_ns = (open_monotonic_s * 1e9, close_monotonic_s * 1e9)
        sampled: dict[str, Sampled] = self._all(
            "window", lambda host: (host.host_s(open_monotonic_s), host.host_s(close_monotonic_s))
        )
        for name, window in sampled.items():
            own = self._gathered[name]
            own.sampled = window
            if own.link is not None:
                own.link = own.link.model_copy(update={"round_trip_load_ms": window.round_trip_load_ms})
        server = self._server
        loads = [sampled[host.name].window for host in self._loads if host.name in sampled]
        own_window = sampled[server.name].window if server is not None and server.name in sampled else None
        merged = merged_window(own_window, loads)
        return merged or HostWindow(wall_s=close_monotonic_s - open_monotonic_s)

    def _all(self, method: str, args: Callable[[Reached], tuple[Any, ...]]) -> dict[str, Any]:
        """Calls the method on each host's actor concurrently; lost and never sampled hosts are left out."""
        begun: list[tuple[Reached, Future[Any]]] = []
        for host in self._hosts:
            with suppress(EnvironmentFault):
                begun.append((host, host.begin(method, *args(host))))
        results = {}
        for host, future in begun:
            with suppress(EnvironmentFault):
                results[host.name] = host.end(future, method)
        return results


def merged_window(server: HostWindow | None, loads: Sequence[HostWindow]) -> HostWindow | None:
    """The server's host with the busiest load host's client readings; without one, that host's."""
    busiest = max(loads, key=_busy, default=None)
    if server is None or busiest is None:
        return server or busiest
    others = [window.others_on_client_cpus for window in loads]
    changed = [window.sysctls_changed for window in (server, *loads)]
    return server.model_copy(
        update={
            "others_on_client_cpus": None
            if None in others
            else max(value for value in others if value is not None),
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
    """The server's rows with the then busiest client CPUs; without a server the first host's."""
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
    at = bisect_left(rows, row.t_ms, key=lambda other: other.t_ms)
    near = min(rows[max(0, at - 1) : at + 1], key=lambda other: abs(other.t_ms - row.t_ms), default=None)
    return None if near is None or abs(near.t_ms - row.t_ms) > row.duration_ms else near
