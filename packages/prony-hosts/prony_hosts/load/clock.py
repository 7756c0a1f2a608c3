"""Two clocks side by side: how far a host's monotonic clock is from the laboratory's, from many round trips.
Pure: times come in.

A round trip is three readings: the laboratory's clock, the host's, the laboratory's again. The host's was
read somewhere between the other two, so the offset is known to within half of the round trip, whatever the
two ways take (RFC 5905, section 8). Short round trips say more than long ones: of each stretch of time only
the shortest counts (a minimum filter), and a line through them gives offset and drift.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from prony.evidence.hosts import Clock

STRETCHES = 32
"""The time is cut into so many stretches, and the shortest round trip of each is kept: more of them make the
drift no better.
"""
LONGEST_STRETCH_NS = 16e9
"""So what is older than eight and a half minutes counts no more: over hours a drift changes with temperature,
and one line does not fit.
"""
LARGEST_DRIFT = 100e-6
"""Of two clocks; as a rule it is below 20 ppm."""
DRIFT_KNOWN = 10e-6
"""Above this standard error a drift is not told from what the ways do: it is taken to be 0."""
LEAST_TRIPS = 4
"""Fewer have no standard error to speak of."""


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """Three readings in nanoseconds: the laboratory's clock, the host's, the laboratory's."""

    asked_ns: int
    host_ns: int
    answered_ns: int

    @property
    def length_ns(self) -> int:
        """There and back."""
        return self.answered_ns - self.asked_ns

    @property
    def middle_ns(self) -> float:
        """On the laboratory's clock, when the host's was read if both ways took equally long."""
        return self.asked_ns + self.length_ns / 2

    @property
    def offset_ns(self) -> float:
        """Host minus laboratory, to within half of the length."""
        return self.host_ns - self.middle_ns


@dataclass(frozen=True, slots=True)
class ClockEstimate:
    """A line: the offset at one instant, and its change."""

    at_ns: float
    """On the laboratory's clock."""
    offset_ns: float
    """Host minus laboratory at that instant."""
    drift: float
    """Change of the offset per time of the laboratory's clock; no unit."""
    uncertainty_ns: float
    round_trips: int
    drift_uncertainty: float = 0.0
    """Of the drift, at most: what an instant is off by further away from `at_ns`."""

    def offset_at_ns(self, lab_ns: float) -> float:
        """Host minus laboratory at an instant of the laboratory's clock."""
        return self.offset_ns + self.drift * (lab_ns - self.at_ns)

    def host_ns(self, lab_ns: float) -> int:
        """The reading of the host's clock at an instant of the laboratory's."""
        return round(lab_ns + self.offset_at_ns(lab_ns))

    def lab_ns(self, host_ns: float) -> int:
        """The reading of the laboratory's clock at an instant of the host's."""
        return round(self.at_ns + (host_ns - self.at_ns - self.offset_ns) / (1 + self.drift))

    def uncertainty_at_ns(self, lab_ns: float) -> float:
        """Of the offset at an instant of the laboratory's clock."""
        return self.uncertainty_ns + self.drift_uncertainty * abs(lab_ns - self.at_ns)

    def kept_from(self, at_ns: float) -> ClockEstimate:
        """What is cut by this estimate from that instant on: by the host's own clock, whatever it drifts."""
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
        """As it is stored. `used`: estimates by which instants were put on this clock while the load ran; how
        far they were off at most `between` two instants of the laboratory's clock counts as skew.

        At each of the two the most certain of all estimates, with those that were `known` before, tells: a
        line through the last minutes says little of an hour ago. Between them round trips that were `seen`,
        as far as they are certain.
        """
        ends = between_ns or (self.at_ns, self.at_ns)
        best = [(_most_certain((self, *used, *known), end), end) for end in ends]
        within = [trip for trip in seen if ends[0] <= trip.middle_ns <= ends[1]]
        off = []
        for one in used or (self,):
            off += [
                abs(one.offset_at_ns(end) - line.offset_at_ns(end)) + line.uncertainty_at_ns(end)
                for line, end in best
            ]
            off += [
                abs(one.offset_at_ns(trip.middle_ns) - trip.offset_ns) - trip.length_ns / 2 for trip in within
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
    """The shortest round trip of each stretch of time; stretches grow up to `longest_ns`, and then the oldest
    is dropped.
    """

    longest_ns: float = math.inf
    kept: list[RoundTrip] = field(default_factory=list)
    _stretch_ns: float = 1e9
    _first_ns: float | None = None

    def add(self, trip: RoundTrip) -> None:
        if self._first_ns is None:
            self._first_ns = trip.middle_ns
        self._keep(trip)
        oldest_ns = trip.middle_ns - STRETCHES * self.longest_ns
        self.kept = [one for one in self.kept if one.middle_ns >= oldest_ns]
        while len(self.kept) > STRETCHES:
            if self._stretch_ns >= self.longest_ns:
                self.kept.remove(min(self.kept, key=lambda one: one.middle_ns))
                continue
            self._stretch_ns *= 2
            kept, self.kept = self.kept, []
            for one in kept:
                self._keep(one)

    def _keep(self, trip: RoundTrip) -> None:
        here = self._stretch_of(trip)
        for place, one in enumerate(self.kept):
            if self._stretch_of(one) == here:
                if trip.length_ns < one.length_ns:
                    self.kept[place] = trip
                return
        self.kept.append(trip)

    def _stretch_of(self, trip: RoundTrip) -> int:
        return int((trip.middle_ns - (self._first_ns or 0.0)) // self._stretch_ns)


@dataclass(slots=True)
class ClockEstimator:
    """Takes round trips as they come and keeps the shortest of each stretch: of the last minutes for the
    estimate, and fewer of the whole time.
    """

    _latest: _Shortest = field(default_factory=lambda: _Shortest(LONGEST_STRETCH_NS))
    _whole: _Shortest = field(default_factory=_Shortest)
    _count: int = 0

    def add(self, trip: RoundTrip) -> None:
        """Take one more; one in which the laboratory's clock goes backwards is left out."""
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
        """The line through those of the last minutes. Raises ValueError without a round trip."""
        return fitted(self._latest.kept, count=self._count)


def fitted(trips: Iterable[RoundTrip], *, count: int | None = None) -> ClockEstimate:
    """The line of least squares through the offsets, each weighted by 1 ÷ length² (its error is bounded by
    half of its length). Raises ValueError without a round trip.

    The uncertainty is half of the shortest round trip, and the farthest that a round trip lies outside of its
    own bound about the line: clocks that were set, or whose drift changed, do not fit a line. A slope whose
    standard error is above DRIFT_KNOWN is 0, and as uncertain as clocks may drift.
    """
    kept = sorted(trips, key=lambda trip: trip.middle_ns)
    if not kept:
        raise ValueError("a clock is compared by round trips, and there is none")
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
