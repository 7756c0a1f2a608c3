"""The samplers of all hosts of a trial as one: `prony.trial.surroundings.Sampler` over their actors."""

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


def cpus_of(one: Reached) -> tuple[int, ...]:
    """Those that hosts.yaml names, else all that its worker may use."""
    named = one.host.keys.cpus
    return one.facts.cpus if named is None else tuple(parse_cpus(named))


class Gathered:
    """What was sampled of one host."""

    link: Link | None = None
    interface: str | None = None
    rows: tuple[HostRow, ...] = ()
    sampled: Sampled | None = None


class HostedSampler:
    """The samplers of all hosts of a trial as one. Of a host that is lost nothing more comes."""

    def __init__(
        self, server: Reached | None, loads: Sequence[Reached], url: str, on_mark: Callable[[], None]
    ) -> None:
        self._server, self._loads, self._on_mark = server, tuple(loads), on_mark
        parts = urlsplit(url)
        self._address = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._gathered = {one.name: Gathered() for one in self._hosts}
        self.window_ns: tuple[float, float] | None = None

    @property
    def _hosts(self) -> tuple[Reached, ...]:
        return self._loads if self._server is None else (self._server, *self._loads)

    def of(self, name: str) -> Gathered:
        """What was sampled of the host of this name."""
        return self._gathered[name]

    def __enter__(self) -> HostedSampler:
        links = {}
        for one in self._hosts:
            to = (one.attached.reached_at, None) if one is self._server else (self._address, self._port)
            links[one.name] = one.begin("link", *to, one.host.keys.link)
        for one in self._hosts:
            own = self._gathered[one.name]
            own.link = one.end(links[one.name], "link")
            own.interface = None if own.link is None else own.link.interface
        self._all("sample", lambda one: (cpus_of(one), self._gathered[one.name].interface, self._port))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._all("stop_sampling", lambda _one: ())

    def watch(self, name: str, read: Callable[[], ProcessSample | None]) -> None:
        """Nothing of this host: the server's own host watches it."""

    def mark(self) -> float:
        self._on_mark()
        self._all("mark", lambda _one: ())
        return time.monotonic()

    def series(self, start_monotonic_s: float = 0.0) -> tuple[HostRow, ...]:
        rows = self._all("series", lambda one: (one.host_s(start_monotonic_s),))
        for name, found in rows.items():
            self._gathered[name].rows = found
        return merged_rows(self._rows(self._server), [self._rows(one) or () for one in self._loads])

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
        server = self._server
        loads = [sampled[one.name].window for one in self._loads if one.name in sampled]
        own_window = sampled[server.name].window if server is not None and server.name in sampled else None
        merged = merged_window(own_window, loads)
        return merged or HostWindow(wall_s=close_monotonic_s - open_monotonic_s)

    def _all(self, method: str, args: Callable[[Reached], tuple[Any, ...]]) -> dict[str, Any]:
        """The method of each host's actor at once; a host that is lost, or never was sampled, is left out."""
        begun: list[tuple[Reached, Future[Any]]] = []
        for one in self._hosts:
            with suppress(EnvironmentFault):
                begun.append((one, one.begin(method, *args(one))))
        found = {}
        for one, future in begun:
            with suppress(EnvironmentFault):
                found[one.name] = one.end(future, method)
        return found


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
