"""ab's times and lengths from the engine's request log."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from prony_frontends.ab.figures import AbFigures, AbTimes, TimeDistribution
from prony_frontends.request_log import LoggedRequest

NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class LoggedTimes:
    """ab's record of a response; times in ms."""

    start_unix_s: float
    """Start of its connection, or the send on an open connection."""
    connect_ms: float
    processing_ms: float
    waiting_ms: float
    body_bytes: int

    @property
    def total_ms(self) -> float:
        """From the start of the connection to the last byte."""
        return self.connect_ms + self.processing_ms


def kept(rows: Iterable[LoggedRequest]) -> list[LoggedTimes]:
    """Requests with a response, in the log's order."""
    answered: list[LoggedTimes] = []
    for row in rows:
        if row.status is None:
            continue
        connect_ms = ((row.connect_ns or 0) + (row.tls_ns or 0)) / NS_PER_MS
        processing_ms = row.service_ns / NS_PER_MS
        first_ns = row.service_ns if row.first_byte_ns is None else row.first_byte_ns
        answered.append(
            LoggedTimes(
                start_unix_s=(row.start_unix_ms - connect_ms) / 1000,
                connect_ms=connect_ms,
                processing_ms=processing_ms,
                waiting_ms=first_ns / NS_PER_MS,
                body_bytes=row.body_bytes,
            )
        )
    return answered


def times(requests: list[LoggedTimes]) -> AbTimes | None:
    """ab's four lines; None without a response."""
    if not requests:
        return None
    return AbTimes(
        connect=TimeDistribution.of([request.connect_ms for request in requests]),
        processing=TimeDistribution.of([request.processing_ms for request in requests]),
        waiting=TimeDistribution.of([request.waiting_ms for request in requests]),
        total=TimeDistribution.of([request.total_ms for request in requests]),
    )


def with_lengths(figures: AbFigures, requests: list[LoggedTimes], any_length: bool, lost: int) -> AbFigures:
    """The first response's length is expected. `lost`: requests without a response, which have no length."""
    if not requests:
        return figures
    first = requests[0].body_bytes
    other = 0 if any_length else sum(request.body_bytes != first for request in requests)
    return replace(
        figures,
        document_bytes=first,
        length_failed=lost + other,
        body_bytes=sum(request.body_bytes for request in requests),
    )


def gnuplot(requests: list[LoggedTimes]) -> Iterator[str]:
    """Output of -g: a line per request, fastest first, in whole ms."""
    yield "starttime\tseconds\tctime\tdtime\tttime\twait"
    for request in sorted(requests, key=lambda request: request.total_ms):
        began = time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(request.start_unix_s))
        columns = (request.connect_ms, request.processing_ms, request.total_ms, request.waiting_ms)
        yield "\t".join([began, str(int(request.start_unix_s)), *(f"{int(ms + 0.5)}" for ms in columns)])
