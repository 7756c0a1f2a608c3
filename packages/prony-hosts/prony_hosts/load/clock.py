"""Offset and drift between a host's monotonic clock and the laboratory's, estimated from round trips. Pure.

A round trip reads the laboratory's clock, the host's, and the laboratory's again. The offset is known to
within half of the round trip, however asymmetric the path is (RFC 5905, section 8). Long round trips say
little, so only the shortest of each stretch of time counts (a minimum filter); a line through them gives
offset and drift.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from prony.evidence.hosts import Clock

STRETCHES = 32
"""Stretches of time, each with its shortest round trip; more of them do not improve the drift."""
LONGEST_STRETCH_NS = 16e9
"""Older data is dropped after eight and a half minutes: drift over hours fits no line."""
LARGEST_DRIFT = 100e-6
"""Bound on the drift between two clocks; typically below 20 ppm."""
DRIFT_KNOWN = 10e-6
"""Above this standard error the drift cannot be distinguished from path noise and is taken as 0."""
LEAST_TRIPS = 4
"""Fewer give no useful standard error."""


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """Three readings in nanoseconds: the laboratory's clock, the host's, the laboratory's."""

    sent_ns: int
    host_ns: int
    received_ns: int

    @property
    def length_ns(self) -> int:
        """There and back."""
        return self.received_ns - self.sent_ns

    @property
    def middle_ns(self) -> float:
        """The laboratory's time at which the host's clock was read, for a symmetric path."""
        return self.sent_ns + self.length_ns / 2

    @property
    def offset_ns(self) -> float:
        """Host minus laboratory, ± half of the length."""
        return self.host_ns - self.middle_ns


@dataclass(frozen=True, slots=True)
class ClockEstimate:
    """A line: the offset at an instant, and the drift."""

    at_ns: float
    """On the laboratory's clock."""
    offset_ns: float
    """Host minus laboratory at that instant."""
    drift: float
    """Change of the offset per unit of the laboratory's time; dimensionless."""
    uncertainty_ns: float
    round_trips: int
    drift_uncertainty: float = 0.0
    """Bound on the error of the drift, for instants away from `at_ns`."""

    def offset_at_ns(self, lab_ns: float) -> float:
        """Host minus laboratory at `lab_ns`."""
        return self.offset_ns + self.drift * (lab_ns - self.at_ns)

    def host_ns(self, lab_ns: float) -> int:
        """The host's clock at `lab_ns`."""
        return round(lab_ns + self.offset_at_ns(lab_ns))

    def lab_ns(self, host_ns: float) -> int:
        """The laboratory's clock at `host_ns`."""
        return round(self.at_ns + (host_ns - self.at_ns - self.offset_ns) / (1 + self.drift))

    def uncertainty_at_ns(self, lab_ns: float) -> float:
        """Uncertainty of the offset at `lab_ns`."""
        return self.uncertainty_ns + self.drift_uncertainty * abs(lab_ns - self.at_ns)

    def kept_from(self, at_ns: float) -> ClockEstimate:
        """The estimate for data cut by the host's own clock from `at_ns` on, whatever its drift."""
        return replace(
            self,
            at_ns=at_ns,
            offset_ns=self.offset_at_ns(at_ns),
            uncertainty_ns=self.uncertainty_at_ns(at_ns),
            drift=0.0,
            drift_uncertainty=abs(self.drift) + self.drift_uncertainty,
        )

    def evidence(
        self,
        *used: ClockEstimate,
        between_ns: tuple[float, float] | None = None,
        known: Iterable[ClockEstimate] = (),
        seen: Iterable[RoundTrip] = (),
    ) -> Clock:
        """The stored form. `used`: estimates that converted instants during the load; their largest error
        between the two instants `between_ns` is the skew.

        At both ends the most certain estimate is the reference, `known` (earlier) ones included: a line
        through the last minutes says little about an hour ago. In between, the round trips `seen` are the
        reference within their own uncertainty.
        """
        ends = between_ns or (self.at_ns, self.at_ns)
        best = [(_most_certain((self, *used, *known), end), end) for end in ends]
        within = [trip for trip in seen if ends[0] <= trip.middle_ns <= ends[1]]
        off = []
        for estimate in used or (self,):
            off += [
                abs(estimate.offset_at_ns(end) - line.offset_at_ns(end)) + line.uncertainty_at_ns(end)
                for line, end in best
            ]
            off += [
                abs(estimate.offset_at_ns(trip.middle_ns) - trip.offset_ns) - trip.length_ns / 2
                for trip in within
            ]
        return Clock(
            offset_s=self.offset_ns * 1e-9,
            uncertainty_s=self.uncertainty_ns * 1e-9,
            drift_per_s=self.drift,
            round_trips=self.round_trips,
            skew_s=max(off) * 1e-9,
        )


def _most_certain(lines: Iterable[ClockEstimate], at_ns: float) -> ClockEstimate:
    return min(lines, key=lambda line: line.uncertainty_at_ns(at_ns))


@dataclass(slots=True)
class _Shortest:
    """Shortest round trip of each stretch. Stretches grow up to `longest_ns`; then the oldest is dropped."""

    longest_ns: float = math.inf
    kept: list[RoundTrip] = field(default_factory=list)
    _stretch_ns: float = 1e9
    _first_ns: float | None = None

    def add(self, trip: RoundTrip) -> None:
        if self._first_ns is None:
            self._first_ns = trip.middle_ns
        self._keep(trip)
        oldest_ns = trip.middle_ns - STRETCHES * self.longest_ns
        self.kept = [other for other in self.kept if other.middle_ns >= oldest_ns]
        while len(self.kept) > STRETCHES:
            if self._stretch_ns >= self.longest_ns:
                self.kept.remove(min(self.kept, key=lambda other: other.middle_ns))
                continue
            self._stretch_ns *= 2
            kept, self.kept = self.kept, []
            for other in kept:
                self._keep(other)

    def _keep(self, trip: RoundTrip) -> None:
        here = self._stretch_of(trip)
        for place, other in enumerate(self.kept):
            if self._stretch_of(other) == here:
                if trip.length_ns < other.length_ns:
                    self.kept[place] = trip
                return
        self.kept.append(trip)

    def _stretch_of(self, trip: RoundTrip) -> int:
        return int((trip.middle_ns - (self._first_ns or 0.0)) // self._stretch_ns)


@dataclass(slots=True)
class ClockEstimator:
    """The shortest round trip of each stretch: of the last minutes, and coarser of the whole time."""

    _latest: _Shortest = field(default_factory=lambda: _Shortest(LONGEST_STRETCH_NS))
    _whole: _Shortest = field(default_factory=_Shortest)
    _count: int = 0

    def add(self, trip: RoundTrip) -> None:
        """Adds a round trip; ignored when the laboratory's clock went backwards in it."""
        if trip.length_ns < 0:
            return
        self._count += 1
        self._latest.add(trip)
        self._whole.add(trip)

    @property
    def seen(self) -> tuple[RoundTrip, ...]:
        """The shortest of the whole time, a few dozen."""
        return tuple(self._whole.kept)

    def estimate(self) -> ClockEstimate:
        """The line through the last minutes. Raises ValueError without a round trip."""
        return fitted(self._latest.kept, count=self._count)


def fitted(trips: Iterable[RoundTrip], *, count: int | None = None) -> ClockEstimate:
    """Least-squares line through the offsets, weighted by 1 ÷ length² (errors are bounded by half of the
    length). Raises ValueError without a round trip.

    The uncertainty is half of the shortest round trip plus the largest excess of a round trip over its own
    bound: clocks that were set, or whose drift changed, do not fit a line. A slope with a standard error
    above DRIFT_KNOWN becomes 0, with the bound on drift as its uncertainty.
    """
    kept = sorted(trips, key=lambda trip: trip.middle_ns)
    if not kept:
        raise ValueError("no round trips: the clocks cannot be compared")
    best = min(kept, key=lambda trip: trip.length_ns)
    origin, base = best.middle_ns, best.offset_ns
    drift, level, drift_uncertainty = 0.0, 0.0, LARGEST_DRIFT
    if len(kept) >= LEAST_TRIPS:
        weights = [(best.length_ns + 1.0) ** 2 / (trip.length_ns + 1.0) ** 2 for trip in kept]
        whole = sum(weights)
        times = [trip.middle_ns - origin for trip in kept]
        offsets = [trip.offset_ns - base for trip in kept]
        mean_time = sum(w * t for w, t in zip(weights, times, strict=True)) / whole
        mean_offset = sum(w * o for w, o in zip(weights, offsets, strict=True)) / whole
        spread = sum(w * (t - mean_time) ** 2 for w, t in zip(weights, times, strict=True))
        if spread > 0:
            cross = (
                w * (t - mean_time) * (o - mean_offset)
                for w, t, o in zip(weights, times, offsets, strict=True)
            )
            slope = sum(cross) / spread
            left = (
                w * (o - mean_offset - slope * (t - mean_time)) ** 2
                for w, t, o in zip(weights, times, offsets, strict=True)
            )
            error = math.sqrt(sum(left) / (len(kept) - 2) / spread)
            if error <= DRIFT_KNOWN and abs(slope) <= LARGEST_DRIFT + 2 * error:
                drift, drift_uncertainty = slope, 2 * error
                level = mean_offset - drift * mean_time
    line = ClockEstimate(origin, base + level, drift, 0.0, len(kept) if count is None else count)
    outside = (abs(trip.offset_ns - line.offset_at_ns(trip.middle_ns)) - trip.length_ns / 2 for trip in kept)
    uncertainty_ns = best.length_ns / 2 + max(0.0, *outside)
    return replace(line, uncertainty_ns=uncertainty_ns, drift_uncertainty=drift_uncertainty)
