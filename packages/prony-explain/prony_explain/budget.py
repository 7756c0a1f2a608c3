"""CPU time per request by part: the measured cost × the profile's shares. Pure.

The cost comes from the measured trials, which run without a profiler; the shares come from the profiled
trial. Intervals: a share is a ratio estimate over the profile's slices (Cochran, Sampling Techniques, 3rd
edition, chapter 6), with Student's t for the number of slices, never narrower than that of independent
samples with Agresti and Coull's correction (The American Statistician 52, 1998). Cost and share are
independent: relative variances add (delta method), with Welch and Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special as untyped_special

from prony.evidence.profile import Sampling
from prony_explain.rules import Part, Place, Rules

special: Any = untyped_special

CONFIDENCE = 0.95
MIN_TRIALS = 3
"""With fewer measured trials there is no interval."""
MIN_SLICES = 4
"""With fewer slices shares have no interval."""
UNSEEN = Place(Part.UNATTRIBUTED, "not seen by the profiler")
"""CPU time of the server without samples."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error; `error` None: no interval."""

    value: float
    error: float | None = None
    freedom: float = math.inf

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """Two-sided, Student's t."""
        if self.error is None or self.freedom <= 0:
            return None
        half = float(special.stdtrit(self.freedom, 0.5 + confidence / 2)) * self.error
        return self.value - half, self.value + half

    def times(self, other: Estimate) -> Estimate:
        """The product of two independent estimates."""
        if self.error is None or other.error is None:
            return Estimate(self.value * other.value)
        parts = ((other.value * self.error) ** 2, (self.value * other.error) ** 2)
        return Estimate(
            self.value * other.value, math.sqrt(sum(parts)), _freedom(parts, (self.freedom, other.freedom))
        )

    def minus(self, other: Estimate) -> Estimate:
        """The difference of two independent estimates."""
        if self.error is None or other.error is None:
            return Estimate(self.value - other.value)
        parts = (self.error**2, other.error**2)
        return Estimate(
            self.value - other.value, math.sqrt(sum(parts)), _freedom(parts, (self.freedom, other.freedom))
        )


def _freedom(variances: Sequence[float], freedoms: Sequence[float]) -> float:
    """Welch and Satterthwaite's degrees of freedom."""
    below = sum(v**2 / f for v, f in zip(variances, freedoms, strict=True) if math.isfinite(f))
    return sum(variances) ** 2 / below if below > 0 else math.inf


@dataclass(frozen=True, slots=True)
class NamedCost:
    """A package or subsystem within a part."""

    name: str
    us: float
    share: float


@dataclass(frozen=True, slots=True)
class PartCost:
    """A part of the budget. `low_us`, `high_us`: 95 % interval; None with too few trials or slices."""

    part: Part
    us: float
    share: float
    low_us: float | None
    high_us: float | None
    share_low: float | None
    share_high: float | None
    names: tuple[NamedCost, ...] = ()
    """Descending by cost; they add up to the part."""


@dataclass(frozen=True, slots=True)
class Budget:
    """CPU time per request by part; the parts add up to `cpu_us`."""

    cpu_us: float
    """Mean of the measured trials."""
    low_us: float | None
    high_us: float | None
    trials: int
    parts: tuple[PartCost, ...]
    """In the order of `Part`; parts without a sample are left out."""
    samples: int
    slices: int
    seen_share: float | None
    """Sampled ÷ accounted CPU time of the process; None: unknown. The rest is `not attributed`."""
    profiler_share: float
    """The profiler's own share of the samples; excluded."""

    def share(self, part: Part) -> float:
        """A part's share of the cost."""
        return next((cost.share for cost in self.parts if cost.part is part), 0.0)


@dataclass(frozen=True, slots=True)
class Shares:
    """A profile's shares with their standard errors."""

    parts: Mapping[Part, Estimate]
    names: Mapping[Place, float]
    samples: int
    slices: int
    seen_share: float | None
    profiler_share: float


def cost(values_us: Sequence[float]) -> Estimate:
    """Mean cost of the measured trials. Raises ValueError without trials."""
    if not values_us:
        raise ValueError("no measured cost: no trial counts")
    mean = float(np.mean(values_us))
    if len(values_us) < MIN_TRIALS:
        return Estimate(mean)
    error = float(np.std(values_us, ddof=1)) / math.sqrt(len(values_us))
    return Estimate(mean, error, len(values_us) - 1)


def shares(sampling: Sampling, rules: Rules, *, seen_share: float | None = None) -> Shares:
    """Each part's share of the CPU time. `seen_share`: sampled ÷ accounted CPU time, None if unknown; above 1
    it is sampling noise. Raises ValueError without a sample.
    """
    places = rules.places(sampling)
    every = list(dict.fromkeys(places))
    column = {place: at for at, place in enumerate(every)}
    counts = np.zeros((len(sampling.slices), len(every)))
    for row, piece in enumerate(sampling.slices):
        for node, weight in piece.weights.items():
            counts[row, column[places[node]]] += weight
    own = np.asarray([place.part is Part.PROFILER for place in every], dtype=bool)
    everything = float(counts.sum())
    kept = counts[:, ~own]
    total = float(kept.sum())
    if total <= 0:
        raise ValueError("the profile holds no sample of the server")
    seen = 1.0 if seen_share is None else min(1.0, seen_share)
    left = [place for place in every if place.part is not Part.PROFILER]
    named = {place: float(kept[:, at].sum()) / total * seen for at, place in enumerate(left)}
    if seen < 1:
        named[UNSEEN] = named.get(UNSEEN, 0.0) + 1 - seen
    parts: dict[Part, Estimate] = {}
    totals = kept.sum(axis=1)
    for part in Part:
        of = [at for at, place in enumerate(left) if place.part is part]
        if of and float(kept[:, of].sum()) > 0:
            estimate = _share(kept[:, of].sum(axis=1), totals)
            parts[part] = Estimate(
                estimate.value * seen,
                None if estimate.error is None else estimate.error * seen,
                estimate.freedom,
            )
    if seen < 1:
        unattributed = parts.get(Part.UNATTRIBUTED, Estimate(0.0, 0.0))
        parts[Part.UNATTRIBUTED] = Estimate(
            unattributed.value + 1 - seen, unattributed.error, unattributed.freedom
        )
    return Shares(
        {part: parts[part] for part in Part if part in parts},
        named,
        round(total),
        int(np.count_nonzero(totals)),
        seen_share,
        1 - total / everything,
    )


def _share(counts: np.ndarray[Any, Any], totals: np.ndarray[Any, Any]) -> Estimate:
    """Ratio of two totals over slices, with its standard error."""
    kept = totals > 0
    counts, totals = counts[kept], totals[kept]
    slices, total = int(kept.sum()), float(totals.sum())
    share = float(counts.sum()) / total
    if slices < MIN_SLICES:
        return Estimate(share)
    residual = counts - share * totals
    between = float((residual**2).sum()) * slices / (slices - 1) / total**2
    z2 = float(special.stdtrit(slices - 1, 0.5 + CONFIDENCE / 2)) ** 2
    adjusted = (share * total + z2 / 2) / (total + z2)
    within = adjusted * (1 - adjusted) / (total + z2)
    return Estimate(share, math.sqrt(max(between, within)), slices - 1)


def budget(values_us: Sequence[float], profile: Shares) -> Budget:
    """The measured cost (µs of CPU time per request, one value per trial) by part."""
    measured = cost(values_us)
    ends = measured.interval()
    parts: list[PartCost] = []
    for part, share in profile.parts.items():
        product = measured.times(share)
        us, shared = product.interval(), share.interval()
        names = sorted(
            (
                NamedCost(place.name, measured.value * value, value)
                for place, value in profile.names.items()
                if place.part is part and value > 0
            ),
            key=lambda name: -name.us,
        )
        parts.append(
            PartCost(
                part,
                product.value,
                share.value,
                max(0.0, us[0]) if us is not None else None,
                us[1] if us is not None else None,
                max(0.0, shared[0]) if shared is not None else None,
                min(1.0, shared[1]) if shared is not None else None,
                tuple(names),
            )
        )
    return Budget(
        measured.value,
        ends[0] if ends is not None else None,
        ends[1] if ends is not None else None,
        len(values_us),
        tuple(parts),
        profile.samples,
        profile.slices,
        profile.seen_share,
        profile.profiler_share,
    )
