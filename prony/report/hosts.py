"""The hosts of a trial and their links, each with its own figures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from prony.evidence.hosts import HostEvidence
from prony.judge.links import rate
from prony.judge.times import plain_times
from prony.report.blocks import Block, plain
from prony.report.cell_view import TrialView
from prony.report.out import filled
from prony.report.trial_tables import Times, middle_time, times
from prony.report.wording import ABSENT, number, significant

OF_LINK = ("interface", "speed_bits_per_s", "round_trip_idle_ms", "round_trip_load_ms")
HOST_HEAD = ("host", "role", "requests/s", "failed", "p50, ms", "p99, ms", "CPU")
LINK_HEAD = (
    *("host", "link", "sent", "received", "dropped"),
    *("round trip idle, ms", "under load, ms", "clock, ms"),
)


@dataclass(frozen=True, slots=True)
class HostLine:
    """A host over a window; None where unreadable."""

    name: str
    role: Literal["server", "load"]
    weight: float
    fingerprint: str | None
    requests_per_s: float | None
    """Of a load host, by its own engine."""
    failed: int | None
    times: Times
    """Service times, by its own engine."""
    cpu_share: float | None
    """Busiest engine thread ÷ wall time; of the server's host, the mean of the CPUs that were granted."""
    interface: str | None
    speed_bits_per_s: float | None
    speed_declared: bool
    sent_bits_per_s: float | None
    received_bits_per_s: float | None
    dropped: int | None
    retransmitted: int | None
    round_trip_idle_ms: float | None
    round_trip_load_ms: float | None
    """At most: TCP's smoothed round trip of the load's connections."""
    skew_ms: float | None
    """Error at most of its instants."""
    opened_late_ms: float | None
    lost: str | None


def hosts_of(trial: TrialView) -> list[HostLine]:
    """Of a trial, the server's host first; empty on a single host."""
    hosts = sorted(trial.record.evidence.hosts, key=lambda host: host.role == "load")
    return [_line(host, trial.conforms) for host in hosts]


def _line(host: HostEvidence, printed: bool) -> HostLine:
    window = host.engine.window if host.engine is not None and printed else None
    link, use, clock = host.link, host.network, host.clock
    return filled(
        HostLine,
        host,
        failed=getattr(window, "failed", None),
        **{name: getattr(link, name, None) for name in OF_LINK},
        **{name: getattr(use, name, None) for name in ("dropped", "retransmitted")},
        fingerprint=None if host.fingerprint is None else host.fingerprint.key,
        requests_per_s=None if window is None else window.completed / window.duration_s,
        times=times(None if window is None else plain_times(window.service_time)),
        cpu_share=_cpu_share(host),
        speed_declared=link is not None and link.speed_declared,
        sent_bits_per_s=_bits(None if use is None else use.sent_bytes_per_s),
        received_bits_per_s=_bits(None if use is None else use.received_bytes_per_s),
        skew_ms=None if clock is None else clock.skew_s * 1000,
        opened_late_ms=None if host.opened_late_s is None else host.opened_late_s * 1000,
    )


def _bits(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else bytes_per_s * 8


def _cpu_share(host: HostEvidence) -> float | None:
    if host.role == "load":
        window = host.engine.window if host.engine is not None else None
        shares = [thread.busy_share for thread in window.threads] if window is not None else []
        known = [share for share in shares if share is not None]
        return max(known) if known and len(known) == len(shares) else None
    cpus = host.host_window.cpus if host.host_window is not None else ()
    return sum(cpu.busy for cpu in cpus) / len(cpus) if cpus else None


def host_blocks(trials: Iterable[TrialView]) -> list[Block]:
    """A row per host and per link, median over trials; a load host has a link to each server's host."""
    groups: dict[str, dict[str, list[HostLine]]] = {}
    for trial in trials:
        lines = hosts_of(trial)
        server = next((line.name for line in lines if line.role == "server"), "")
        for line in lines:
            groups.setdefault(server, {}).setdefault(line.name, []).append(line)
    several = len(groups) > 1
    by_host = {
        f"{name} to {server}" if several and server and lines[0].role == "load" else name: lines
        for server, hosts in groups.items()
        for name, lines in hosts.items()
    }
    if not by_host:
        return []
    note = "each by its own engine and counters" + (
        ", median over trials" if any(len(lines) > 1 for lines in by_host.values()) else ""
    )
    return [
        plain(HOST_HEAD, [_host_row(name, lines) for name, lines in by_host.items()], "Hosts", note),
        plain(
            LINK_HEAD,
            [_link_row(name, lines) for name, lines in by_host.items()],
            "Links",
            "round trip before the load; under load, and the error of the clock, at most",
        ),
    ]


def _host_row(name: str, lines: Sequence[HostLine]) -> tuple[str, ...]:
    weight = f", weight {lines[0].weight:g}" if lines[0].weight != 1 else ""
    share = _middle([line.cpu_share for line in lines])
    return (
        name,
        f"{lines[0].role}{weight}",
        number(_middle([line.requests_per_s for line in lines])),
        number(_sum([line.failed for line in lines])),
        significant(middle_time([line.times.p50_ms for line in lines]), 3),
        significant(middle_time([line.times.p99_ms for line in lines]), 3),
        ABSENT if share is None else f"{significant(share * 100, 3)} %",
    )


def _link_row(name: str, lines: Sequence[HostLine]) -> tuple[str, ...]:
    speed = lines[0].speed_bits_per_s
    known = "speed unknown" if speed is None else rate(speed)
    declared = " (declared)" if lines[0].speed_declared else ""
    return (
        name,
        f"{lines[0].interface}, {known}{declared}" if lines[0].interface is not None else ABSENT,
        *(
            ABSENT if bits is None else rate(bits)
            for bits in (
                _middle([line.sent_bits_per_s for line in lines]),
                _middle([line.received_bits_per_s for line in lines]),
            )
        ),
        number(_sum([line.dropped for line in lines])),
        significant(_middle([line.round_trip_idle_ms for line in lines]), 3),
        significant(_middle([line.round_trip_load_ms for line in lines]), 3),
        significant(_middle([line.skew_ms for line in lines]), 3),
    )


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
