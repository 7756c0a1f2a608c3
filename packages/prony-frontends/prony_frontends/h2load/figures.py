"""h2load's figures from a stored run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from prony.evidence.engine import Counters, EngineReport, Histogram, Window
from prony.judge.histogram import decode
from prony_frontends.counted import CountedValues, body_bytes
from prony_frontends.request_log import LoggedRequest

FIELD_BYTES = 32
"""Overhead per header field in RFC 9113 (section 6.5.2), which h2load does not count."""
NOTHING = CountedValues.of([])


@dataclass(frozen=True, slots=True)
class H2loadTimes:
    """The table's four rows: seconds, and requests per second per client."""

    request_s: CountedValues = NOTHING
    connect_s: CountedValues = NOTHING
    first_byte_s: CountedValues = NOTHING
    per_s: CountedValues = NOTHING


@dataclass(frozen=True, slots=True)
class H2loadFigures:
    """h2load's counts for a run."""

    elapsed_s: float
    """Until the last client ended, including warm-up."""
    measured_s: float
    total: int
    started: int
    answered: int
    errored: int
    """Requests without a complete response."""
    timed_out: int
    statuses: dict[int, int]
    """Hundreds of the status -> responses."""
    total_bytes: int
    head_bytes: int
    head_list_bytes: int
    """Size of header names and values before compression; 0: none."""
    body_bytes: int

    @property
    def succeeded(self) -> int:
        """2xx and 3xx responses."""
        return self.statuses.get(2, 0) + self.statuses.get(3, 0)

    @property
    def failed(self) -> int:
        """Other responses, and requests without a response."""
        return self.answered - self.succeeded + self.errored

    @property
    def savings(self) -> float:
        """Percentage saved by header compression."""
        if not self.head_list_bytes:
            return 0.0
        return 100 * (1 - self.head_bytes / self.head_list_bytes)


def figures(
    report: EngineReport, window: Window, requested: int | None, warmed: bool = False
) -> H2loadFigures:
    """h2load's counts. `requested`: None in a timed run. `warmed`: leave out the warm-up."""
    counts: Counters = window if warmed else report.totals
    errors = counts.errors.items()
    errored = sum(n for kind, n in errors if not kind.startswith("expect_") and kind != "capture")
    timed_out = counts.errors.get("timeout", 0)
    if requested is not None:  # requests cut off by -T have failed
        cut = max(0, requested - counts.completed - errored)
        errored, timed_out = errored + cut, timed_out + cut
    hundreds: dict[int, int] = {}
    for code, count in counts.status.items():
        hundreds[int(code) // 100] = hundreds.get(int(code) // 100, 0) + count
    body, total = body_bytes(counts), counts.bytes_received or 0
    head, head_list = _heads(counts, report.totals.first_head, total - body)
    return H2loadFigures(
        elapsed_s=report.elapsed_ms / 1000,
        measured_s=max(window.duration_s, 1e-6),
        total=counts.completed if requested is None else requested,
        started=counts.sent,
        answered=counts.completed,
        errored=errored,
        timed_out=timed_out,
        statuses=hundreds,
        total_bytes=total,
        head_bytes=head,
        head_list_bytes=head_list,
        body_bytes=body,
    )


def _heads(counts: Counters, first_head: str | None, without_bodies: int) -> tuple[int, int]:
    """Bytes of heads as received, and of names and values only, which h2load counts."""
    http2 = counts.http2
    if http2 is not None:
        names = http2.header_list_bytes_received - FIELD_BYTES * http2.header_fields_received
        return http2.header_block_bytes_received, max(0, names)
    lines = (first_head or "").split("\r\n")
    fields = [line for line in lines[1:] if line]
    around = len(lines[0]) + 4 + 4 * len(fields)
    chunked = any(line.lower().startswith("transfer-encoding:") for line in fields)
    if chunked:
        return counts.completed * sum(len(line) - 2 for line in fields), 0
    return max(0, without_bodies - around * counts.completed), 0


def times_of(report: EngineReport, window: Window) -> H2loadTimes:
    """From histograms, for timed runs and large numbers of requests. They lack the time to first byte."""
    connect = _spread(window.connect_time)
    return H2loadTimes(
        request_s=_spread(window.service_time),
        connect_s=_sum(connect, _spread(window.tls_time)),
        per_s=CountedValues.of(sorted(report.rates or ())),
    )


def _spread(histogram: Histogram | None) -> CountedValues:
    if histogram is None or not histogram.count:
        return NOTHING
    decoded = decode(histogram)
    return CountedValues(decoded.middle_ns / 1e9, decoded.counts)


def _sum(mine: CountedValues, theirs: CountedValues) -> CountedValues:
    """Distribution of the sum of independent values; the count is the first's."""
    if not mine.count or not theirs.count:
        return mine
    values = np.add.outer(mine.values, theirs.values).ravel()
    counts = np.multiply.outer(mine.counts, theirs.counts / theirs.count).ravel()
    order = np.argsort(values, kind="stable")
    return CountedValues(values[order], counts[order])


@dataclass(slots=True)
class _Client:
    begins_ns: float = math.inf
    ends_ns: float = 0.0
    answered: int = 0
    connect_ns: int | None = None
    """Of its first connection."""
    first_byte_ns: int | None = None


@dataclass(slots=True)
class Rows:
    """h2load's records per request, from the engine's log."""

    clients: int
    threads: int
    request_ns: list[int] = field(default_factory=list)
    by_client: dict[int, _Client] = field(default_factory=dict)

    def add(self, row: LoggedRequest) -> None:
        """Adds a request, in any order."""
        client = self.by_client.setdefault(client_of(row.user, self.clients, self.threads), _Client())
        connect_ns = (row.connect_ns or 0) + (row.tls_ns or 0)
        begins_ns = row.start_ns - connect_ns
        if begins_ns < client.begins_ns:
            client.begins_ns = begins_ns
            first_ns = row.first_byte_ns
            client.connect_ns = None if row.connect_ns is None else connect_ns
            client.first_byte_ns = None if first_ns is None else connect_ns + first_ns
        if row.status is not None:
            self.request_ns.append(row.service_ns)
            client.ends_ns = max(client.ends_ns, row.start_ns + row.service_ns)
            client.answered += 1

    def times(self, connected: CountedValues | None = None) -> H2loadTimes:
        """The table's rows. `connected`: connect times not in the log, of connections opened beforehand."""
        clients = self.by_client.values()
        connect = _seconds(client.connect_ns for client in clients)
        return H2loadTimes(
            request_s=_seconds(self.request_ns),
            connect_s=connect if connected is None else connected,
            first_byte_s=_seconds(client.first_byte_ns for client in clients),
            per_s=_each(
                1e9 * client.answered / (client.ends_ns - client.begins_ns) if client.answered else 0.0
                for client in clients
            ),
        )


def client_of(user: int, clients: int, threads: int) -> int:
    """Client of a user: threads take users and connections round-robin (docs/engine.md)."""
    thread, place = user % threads, user // threads
    here = -(-(clients - thread) // threads)
    return place % max(1, here) * threads + thread


def _seconds(times_ns: Iterable[int | None]) -> CountedValues:
    return _each(value / 1e9 for value in times_ns if value is not None)


def _each(values: Iterable[float]) -> CountedValues:
    return CountedValues.of([(value, 1) for value in sorted(values)])


def by_hundred(statuses: Mapping[int, int]) -> list[tuple[str, int]]:
    """Responses per hundred of the status."""
    return [(f"{hundred}xx", statuses.get(hundred, 0)) for hundred in (2, 3, 4, 5)]
