"""ab's times and lengths from the engine's request log: a row per request, as ab keeps them itself."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from prony.load.request_log import LoggedRequest
from prony_frontends.ab.figures import AbFigures, AbTimes, TimeDistribution

NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class LoggedTimes:
    """What ab keeps of a request that was answered; times in ms."""

    start_unix_s: float
    """When its connection was begun, or when it was sent on one that was open."""
    connect_ms: float
    processing_ms: float
    waiting_ms: float
    body_bytes: int

    @property
    def total_ms(self) -> float:
        """From the begin of the connection to the last byte."""
        return self.connect_ms + self.processing_ms


def kept(rows: Iterable[LoggedRequest]) -> list[LoggedTimes]:
    """The answered requests in the order of the log."""
    found: list[LoggedTimes] = []
    for row in rows:
        if row.status is None:
            continue
        connect_ms = ((row.connect_ns or 0) + (row.tls_ns or 0)) / NS_PER_MS
        processing_ms = row.service_ns / NS_PER_MS
        first_ns = row.service_ns if row.first_byte_ns is None else row.first_byte_ns
        found.append(
            LoggedTimes(
                start_unix_s=(row.start_unix_ms - connect_ms) / 1000,
                connect_ms=connect_ms,
                processing_ms=processing_ms,
                waiting_ms=first_ns / NS_PER_MS,
                body_bytes=row.body_bytes,
            )
        )
    return found


def times(requests: list[LoggedTimes]) -> AbTimes | None:
    """ab's four lines; None when nothing was answered."""
    if not requests:
        return None
    return AbTimes(
        connect=TimeDistribution.of([one.connect_ms for one in requests]),
        processing=TimeDistribution.of([one.processing_ms for one in requests]),
        waiting=TimeDistribution.of([one.waiting_ms for one in requests]),
        total=TimeDistribution.of([one.total_ms for one in requests]),
    )


def with_lengths(figures: AbFigures, requests: list[LoggedTimes], any_length: bool, lost: int) -> AbFigures:
    """The lengths as ab sees them: the first response's is the right one. `lost`: requests without a
    response, which have no length either.
    """
    if not requests:
        return figures
    first = requests[0].body_bytes
    other = 0 if any_length else sum(one.body_bytes != first for one in requests)
    return replace(
        figures,
        document_bytes=first,
        length_failed=lost + other,
        body_bytes=sum(one.body_bytes for one in requests),
    )


def gnuplot(requests: list[LoggedTimes]) -> Iterator[str]:
    """-g: a line per request, the quickest first, times in whole ms."""
    yield "starttime\tseconds\tctime\tdtime\tttime\twait"
    for one in sorted(requests, key=lambda one: one.total_ms):
        began = time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(one.start_unix_s))
        columns = (one.connect_ms, one.processing_ms, one.total_ms, one.waiting_ms)
        yield "\t".join([began, str(int(one.start_unix_s)), *(f"{int(ms + 0.5)}" for ms in columns)])
