"""ab's figures from a stored run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prony.evidence.counts import ResponseCount
from prony.evidence.engine import Counters, Histogram, Window
from prony.judge.histogram import decode
from prony_frontends.ab.arguments import AbArguments
from prony_frontends.counted import body_bytes

CONNECT_KINDS = ("connect_refused", "connect_timeout", "connect_other", "tls", "address_unavailable",
                 "descriptors")  # fmt: skip
RECEIVE_KINDS = ("read", "timeout")
LENGTH_KINDS = ("premature_close",)
EXCEPTION_KINDS = ("protocol", "header_too_long", "client", "answer_memory")
FINE_BINS = 2048
"""Resolution for adding two distributions: finer than ab's milliseconds."""
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimeDistribution:
    """Ascending times in ms with their counts."""

    values_ms: Array
    counts: Array

    @classmethod
    def of(
        cls, values_ms: Sequence[float] | Array, counts: Sequence[float] | Array | None = None
    ) -> TimeDistribution:
        """From values, optionally with counts, in any order."""
        values = np.asarray(values_ms, dtype=np.float64)
        many = np.ones_like(values) if counts is None else np.asarray(counts, dtype=np.float64)
        order = np.argsort(values, kind="stable")
        return cls(values[order], many[order])

    @property
    def count(self) -> float:
        """How many requests."""
        return float(self.counts.sum())

    @property
    def mean(self) -> float:
        """Mean in ms."""
        return float(np.dot(self.values_ms, self.counts) / self.count)

    @property
    def deviation(self) -> float:
        """Sample standard deviation (n - 1) in ms; 0 for a single value."""
        if self.count < 2:
            return 0.0
        squares = np.dot((self.values_ms - self.mean) ** 2, self.counts)
        return float(np.sqrt(squares / (self.count - 1)))

    @property
    def least(self) -> float:
        """Minimum in ms."""
        return float(self.values_ms[0])

    @property
    def most(self) -> float:
        """Maximum in ms."""
        return float(self.values_ms[-1])

    def at(self, index: float) -> float:
        """Value at a 0-based index of the sorted requests, in ms."""
        place = int(np.searchsorted(np.cumsum(self.counts), min(index, self.count - 1), side="right"))
        return float(self.values_ms[min(place, self.values_ms.size - 1)])

    @property
    def median(self) -> float:
        """Median in ms."""
        return self.at(int(self.count) // 2)

    def plus(self, other: TimeDistribution) -> TimeDistribution:
        """Distribution of the sum of independent values; the count is this one's."""
        mine, theirs = self._coarse(), other._coarse()
        values = np.add.outer(mine.values_ms, theirs.values_ms).ravel()
        counts = np.multiply.outer(mine.counts, theirs.counts / theirs.count).ravel()
        return TimeDistribution.of(values, counts)

    def _coarse(self) -> TimeDistribution:
        if self.values_ms.size <= FINE_BINS:
            return self
        groups = np.array_split(np.arange(self.values_ms.size), FINE_BINS)
        return TimeDistribution(
            np.asarray([np.average(self.values_ms[g], weights=self.counts[g]) for g in groups]),
            np.asarray([self.counts[g].sum() for g in groups]),
        )


@dataclass(frozen=True, slots=True)
class AbTimes:
    """ab's four lines: connect, processing, waiting and total."""

    connect: TimeDistribution
    processing: TimeDistribution
    waiting: TimeDistribution
    total: TimeDistribution


@dataclass(frozen=True, slots=True)
class AbFigures:
    """ab's counts for a run."""

    seconds: float
    complete: int
    connect_failed: int
    receive_failed: int
    length_failed: int
    exceptions: int
    write_errors: int
    other_status: int
    """Non-2xx responses."""
    kept_alive: int
    document_bytes: int
    transferred_bytes: int
    sent_bytes: int
    body_bytes: int

    @property
    def failed(self) -> int:
        """All kinds together."""
        return self.connect_failed + self.receive_failed + self.length_failed + self.exceptions

    @property
    def per_s(self) -> float:
        """Requests per second."""
        return self.complete / self.seconds


def figures(args: AbArguments, window: Window, totals: Counters) -> AbFigures:
    """Counts as ab defines them. With `-l` any length is valid."""
    document = _document_bytes(totals.answers)
    other_length = sum(a.count for a in totals.answers if a.body_bytes != document) + totals.answers_other
    # With -r ab continues after a refusal and counts it as a read error.
    refused = totals.errors.get("connect_refused", 0) if args.carry_on else 0
    return AbFigures(
        seconds=max(window.duration_s, 1e-6),
        complete=totals.completed + lost(totals) + refused,
        connect_failed=_sum(totals.errors, CONNECT_KINDS) - refused,
        receive_failed=_sum(totals.errors, RECEIVE_KINDS) + refused,
        length_failed=length_lost(totals) + (0 if args.any_length else other_length),
        exceptions=_sum(totals.errors, EXCEPTION_KINDS),
        write_errors=totals.errors.get("write", 0),
        other_status=sum(n for code, n in totals.status.items() if not code.startswith("2")),
        kept_alive=kept_alive(totals),
        document_bytes=document,
        transferred_bytes=totals.bytes_received or 0,
        sent_bytes=totals.bytes_sent or 0,
        body_bytes=body_bytes(totals),
    )


def lost(totals: Counters) -> int:
    """Requests sent without a complete response; ab counts them as complete."""
    return _sum(totals.errors, (*RECEIVE_KINDS, *LENGTH_KINDS, "write"))


def length_lost(totals: Counters) -> int:
    """Truncated responses; ab counts them as length errors."""
    return _sum(totals.errors, LENGTH_KINDS)


def kept_alive(totals: Counters) -> int:
    """Responses after which the connection stayed open: all but the last of each closed connection."""
    return max(0, totals.completed - (totals.connections_closed_by_server or 0))


def _document_bytes(responses: Sequence[ResponseCount]) -> int:
    """The most frequent length; ab takes the first response's."""
    return max(responses, key=lambda response: response.count).body_bytes if responses else 0


def _sum(errors: Mapping[str, int], kinds: Sequence[str]) -> int:
    return sum(errors.get(kind, 0) for kind in kinds)


def times_of(window: Window, totals: Counters) -> AbTimes | None:
    """From histograms; None without a response. Without total times, connect + processing as independent."""
    processing = _spread(window.service_time)
    if processing is None:
        return None
    connect = _connecting(totals, processing.count)
    total = _spread(window.response_time) or processing.plus(connect)
    return AbTimes(connect, processing, processing, total)


def _connecting(totals: Counters, requests: float) -> TimeDistribution:
    """Connect and TLS handshake times; 0 for requests on an open connection."""
    opened = _spread(totals.connect_time)
    if opened is None:
        return TimeDistribution.of([0.0], [requests])
    handshake = _spread(totals.tls_time)
    whole = opened if handshake is None else opened.plus(handshake)
    share = whole.counts * min(1.0, requests / whole.count)
    without = max(0.0, requests - float(share.sum()))
    return TimeDistribution.of(
        np.concatenate([whole.values_ms, [0.0]]) if without else whole.values_ms,
        np.concatenate([share, [without]]) if without else share,
    )


def _spread(histogram: Histogram | None) -> TimeDistribution | None:
    if histogram is None or not histogram.count:
        return None
    decoded = decode(histogram)
    return TimeDistribution.of(decoded.middle_ns / 1e6, decoded.counts)
