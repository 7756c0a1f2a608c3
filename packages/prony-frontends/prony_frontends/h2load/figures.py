"""What h2load prints, as numbers out of a stored run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from prony.evidence.engine import Counters, EngineReport, Histogram, Window
from prony.judge.histogram import decode
from prony.load.request_log import LoggedRequest
from prony_frontends.counted import CountedValues

FIELD_BYTES = 32
"""What RFC 9113 (section 6.5.2) adds to name and value of each field; h2load does not."""
NOTHING = CountedValues.of([])


@dataclass(frozen=True, slots=True)
class H2loadTimes:
    """The table's four rows: seconds, and requests per second of a client."""

    request_s: CountedValues = NOTHING
    connect_s: CountedValues = NOTHING
    first_byte_s: CountedValues = NOTHING
    per_s: CountedValues = NOTHING


@dataclass(frozen=True, slots=True)
class H2loadFigures:
    """Everything that h2load prints of a run, times apart."""

    elapsed_s: float
    """Until the last client had ended, warm-up included."""
    measured_s: float
    total: int
    started: int
    answered: int
    errored: int
    """Without a whole response."""
    timed_out: int
    statuses: dict[int, int]
    """Hundred of the code -> responses."""
    total_bytes: int
    head_bytes: int
    head_list_bytes: int
    """Names and values before compression; 0: there is none."""
    body_bytes: int

    @property
    def succeeded(self) -> int:
        """Responses with 2xx or 3xx."""
        return self.statuses.get(2, 0) + self.statuses.get(3, 0)

    @property
    def failed(self) -> int:
        """Other responses, and requests without one."""
        return self.answered - self.succeeded + self.errored

    @property
    def savings(self) -> float:
        """The share of the names and values that compression took away, in percent."""
        if not self.head_list_bytes:
            return 0.0
        return 100 * (1 - self.head_bytes / self.head_list_bytes)


def figures(report: EngineReport, window: Window, asked: int | None, warmed: bool = False) -> H2loadFigures:
    """The counts in h2load's sense. `asked`: requests that there were to be; None: time ended the run.
    `warmed`: what came before the measured part is left out.
    """
    counts: Counters = window if warmed else report.totals
    errors = counts.errors.items()
    errored = sum(n for kind, n in errors if not kind.startswith("expect_") and kind != "capture")
    timed_out = counts.errors.get("timeout", 0)
    if asked is not None:  # What -T cut off has failed.
        cut = max(0, asked - counts.completed - errored)
        errored, timed_out = errored + cut, timed_out + cut
    hundreds: dict[int, int] = {}
    for code, count in counts.status.items():
        hundreds[int(code) // 100] = hundreds.get(int(code) // 100, 0) + count
    body, total = _body_bytes(counts), counts.bytes_received or 0
    head, head_list = _heads(counts, report.totals.first_head, total - body)
    return H2loadFigures(
        elapsed_s=report.elapsed_ms / 1000,
        measured_s=max(window.duration_s, 1e-6),
        total=counts.completed if asked is None else asked,
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


def _body_bytes(counts: Counters) -> int:
    listed = sum(response.count * response.body_bytes for response in counts.answers)
    counted = sum(response.count for response in counts.answers)
    if not counted or not counts.answers_other:
        return listed
    return round(listed * (counted + counts.answers_other) / counted)


def _heads(counts: Counters, first_head: str | None, without_bodies: int) -> tuple[int, int]:
    """Bytes of heads as they came, and of their names and values: HTTP/1.1 does not compress, and h2load
    counts names and values alone.
    """
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
    """From histograms: of very many requests, or of as many as come in a time. When the first byte of a
    connection came is not in them.
    """
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
    """The distribution of the sum, taken as if both were independent; as many as the first."""
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
    """What h2load keeps of each request, out of the engine's rows."""

    clients: int
    threads: int
    request_ns: list[int] = field(default_factory=list)
    by_client: dict[int, _Client] = field(default_factory=dict)

    def add(self, row: LoggedRequest) -> None:
        """One more, in any order."""
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
        """The table's rows. `connected`: times to connect that no row has, of connections that were opened
        before there was anything to send.
        """
        clients = self.by_client.values()
        connect = _seconds(one.connect_ns for one in clients)
        return H2loadTimes(
            request_s=_seconds(self.request_ns),
            connect_s=connect if connected is None else connected,
            first_byte_s=_seconds(one.first_byte_ns for one in clients),
            per_s=_each(
                1e9 * one.answered / (one.ends_ns - one.begins_ns) if one.answered else 0.0 for one in clients
            ),
        )


def client_of(user: int, clients: int, threads: int) -> int:
    """The connection of a user: threads take users and connections in turn, and within a thread users share
    its connections in turn (docs/engine.md).
    """
    thread, place = user % threads, user // threads
    here = -(-(clients - thread) // threads)
    return place % max(1, here) * threads + thread


def _seconds(times_ns: Iterable[int | None]) -> CountedValues:
    return _each(value / 1e9 for value in times_ns if value is not None)


def _each(values: Iterable[float]) -> CountedValues:
    return CountedValues.of([(value, 1) for value in sorted(values)])


def by_hundred(statuses: Mapping[int, int]) -> list[tuple[str, int]]:
    """How many responses had a status of each hundred."""
    return [(f"{hundred}xx", statuses.get(hundred, 0)) for hundred in (2, 3, 4, 5)]
