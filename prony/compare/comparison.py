"""All pairs of a figure at the worst case. Never the best of N, never an average of percentiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from prony.compare.assumptions import assumptions
from prony.compare.bias import DRIFT, ORDER, Source, sources, total, widened
from prony.compare.claim import (
    MARGINS,
    Claim,
    Ends,
    Margins,
    Settles,
    at_least,
    claim_of,
    holm_levels,
    margin_of,
    p_value,
    settles,
)
from prony.compare.position import PositionEffect, effect_of
from prony.compare.ratio import RatioResult, ratio, repeated_ratio
from prony.compare.samples import Sample, ServerValues, confounded, gather
from prony.compare.sequential import Looks
from prony.compare.summary import CONFIDENCE
from prony.judge.figures import FIGURE
from prony.steady.approach import Approach


@dataclass(frozen=True, slots=True)
class Later:
    horizon_s: float
    coming: Mapping[str, Approach | None]
    """By server, pooled over its trials; None with too few rows."""
    sign: int = 1
    """-1: the figure falls as the approach's series rises."""
    seen_s: float = 0.0
    """Seconds of level rows per trial."""

    def of(self, a: str, b: str) -> tuple[float, float]:
        """Possible fall and rise of a ÷ b on the log scale (at least 0; infinite: not bounded)."""
        mine, other = self.coming.get(a), self.coming.get(b)
        if mine is None or other is None:
            return math.inf, math.inf
        low, high = mine.less(other)
        low, high = (low, high) if self.sign > 0 else (-high, -low)
        return max(0.0, -low), max(0.0, high)


@dataclass(frozen=True, slots=True)
class Pair:
    """a compared with b. Ends are None where not bounded, and without an interval."""

    a: str
    b: str
    figure: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    """The statistical interval."""
    confidence: float | None = None
    """Of this pair's interval, by Holm's level (with repeated looks an equal share)."""
    worst_low: float | None = None
    worst_high: float | None = None
    """The interval with every source at its worst, for the window."""
    later_low: float | None = None
    later_high: float | None = None
    """The same up to the horizon after the window; None also where no plateau is claimed."""
    horizon_s: float | None = None
    claim: Claim = Claim.OPEN
    at_least: float | None = None
    """The near end of a claimed difference, as a factor above 1: later if shown there, else in the window."""
    within: float | None = None
    """The margin, as a share, of an equivalent pair."""
    settles: Settles | None = None
    """For a pair that is open, or shown for the window only."""
    sources: tuple[Source, ...] = ()
    """Sources of bias, largest first; drift to the horizon is named `steady`."""
    method: str = ""
    paired: bool = False
    n: int = 0
    n_a: int = 0
    n_b: int = 0
    why: str = ""

    @property
    def better(self) -> str | None:
        """The better side of a shown difference; None where the figure has no direction."""
        direction = FIGURE[self.figure].higher_is_better if self.figure in FIGURE else True
        if not self.differs or self.ratio is None or direction is None:
            return None
        return self.a if (self.ratio > 1) is direction else self.b

    @property
    def differs(self) -> bool:
        return self.claim in {Claim.SHOWN, Claim.SHOWN_FOR_WINDOW}


@dataclass(frozen=True, slots=True)
class Comparison:
    figure: str
    family: int
    servers: tuple[ServerValues, ...]
    pairs: tuple[Pair, ...]
    looks: Looks | None
    """Set when trials were added until the pairs were settled."""
    position: PositionEffect | None = None


def compare(
    trials: Iterable[Sample],
    figure: str = "requests_per_s",
    *,
    margins: Margins = MARGINS,
    servers: Sequence[str] = (),
    among: Sequence[tuple[str, str]] | None = None,
    looks: Looks | None = None,
    later: Later | None = None,
    block_s: float | None = None,
    order_of: Callable[[str, str], Source] | None = None,
) -> Comparison:
    """Every pair of servers, or the pairs `among`; with Holm over the testable pairs.

    With `looks` every interval covers at all looks at once, and pairs share the error equally. `block_s`:
    duration of a block, for remedies. `order_of`: bias of a pair by the order of loads in shared processes.
    """
    gathered = gather(list(trials), servers)
    options = _PairOptions(figure, margins, effect_of(gathered), later, block_s)
    named = None if among is None else {frozenset(pair) for pair in among}
    every = [
        (a, b)
        for a, b in combinations(gathered, 2)
        if named is None or frozenset((a.server, b.server)) in named
    ]
    tested = [(a, b) for a, b in every if a.values and b.values and not confounded(a, b)]
    alpha = 1 - CONFIDENCE

    def measure(a: ServerValues, b: ServerValues, level: float) -> RatioResult:
        if looks is not None:
            return repeated_ratio(a.values, b.values, a.blocks, b.blocks, looks, confidence=1 - level)
        return ratio(a.values, b.values, a.blocks, b.blocks, confidence=1 - level)

    def biases(a: ServerValues, b: ServerValues, estimate: RatioResult) -> tuple[Source, ...]:
        more = assumptions(a, b, estimate)
        if order_of is not None:
            more = (*(source for source in more if source.name != ORDER), order_of(a.server, b.server))
        return sources(a, b, estimate, options.position, options.higher_is_better, *more)

    first_level = alpha if looks is None else alpha / max(1, len(every))
    firsts: dict[tuple[str, str], tuple[RatioResult, tuple[Source, ...]]] = {}
    chances = {}
    for a, b in tested:
        first, key = measure(a, b, first_level), (a.server, b.server)
        bends = biases(a, b, first)
        firsts[key] = first, bends
        if looks is None and (chance := p_value(first, bends)) is not None:
            chances[key] = chance
    if looks is None:
        levels = dict(zip(chances, holm_levels(list(chances.values()), alpha), strict=True))
    else:
        levels = dict.fromkeys(firsts, first_level)
    pairs = []
    for a, b in every:
        key = (a.server, b.server)
        if key not in firsts:
            pairs.append(_apart(a, b, figure))
            continue
        first, bends = firsts[key]
        level = levels.get(key, first_level)
        result = first if level == first_level else measure(a, b, level)
        bends = bends if result is first else biases(a, b, result)
        pairs.append(_pair(a, b, options, result, level, bends))
    return Comparison(figure, len(levels), tuple(gathered), tuple(pairs), looks, options.position)


@dataclass(frozen=True, slots=True)
class _PairOptions:
    figure: str
    margins: Margins
    position: PositionEffect | None
    later: Later | None
    block_s: float | None

    @property
    def higher_is_better(self) -> bool | None:
        return FIGURE[self.figure].higher_is_better if self.figure in FIGURE else None


def _pair(
    a: ServerValues,
    b: ServerValues,
    options: _PairOptions,
    ratio: RatioResult,
    level: float,
    bends: tuple[Source, ...],
) -> Pair:
    window: Ends = (None, None)
    then: Ends | None = None
    drift: tuple[Source, ...] = ()
    if options.later is not None:
        drift = (Source(DRIFT, *options.later.of(a.server, b.server)),)
        then = (None, None)
    if ratio.low is not None and ratio.high is not None:
        window = widened(ratio.low, ratio.high, *total(bends))
        if drift:
            then = widened(ratio.low, ratio.high, *total((*bends, *drift)))
        claim = claim_of(window, then, options.margins)
    else:
        claim = Claim.OPEN
    near = then if claim is Claim.SHOWN and then is not None else window
    remedy: Settles | None = None
    if claim is Claim.OPEN:
        remedy = settles(ratio, bends, level, options.margins, options.block_s)
    elif claim is Claim.SHOWN_FOR_WINDOW and options.later is not None:
        remedy = Settles("load", _more_load_s(options.later, drift[0], window, options.margins.least))
    return Pair(
        a=a.server,
        b=b.server,
        figure=options.figure,
        ratio=ratio.ratio,
        low=ratio.low,
        high=ratio.high,
        confidence=ratio.confidence,
        worst_low=window[0],
        worst_high=window[1],
        later_low=None if then is None else then[0],
        later_high=None if then is None else then[1],
        horizon_s=None if options.later is None else options.later.horizon_s,
        claim=claim,
        at_least=at_least(near) if claim in {Claim.SHOWN, Claim.SHOWN_FOR_WINDOW} else None,
        within=margin_of(window) if claim is Claim.EQUIVALENT else None,
        settles=remedy,
        sources=(*bends, *drift),
        method=ratio.method,
        paired=ratio.paired,
        n=ratio.n,
        n_a=ratio.n_a,
        n_b=ratio.n_b,
        why="" if ratio.low is not None else "too_few",
    )


SLOPE_POWER = 1.5
"""The error of a slope falls with this power of the observed time."""
LONGEST_S = 3600.0


def _more_load_s(later: Later, drift: Source, window: Ends, least: float) -> float | None:
    near = (at_least(window) or 1.0) / (1 + least)
    against = drift.down if window[0] is not None and window[0] > 1 else drift.up
    if near <= 1 or later.seen_s <= 0 or math.isinf(against):
        return None
    more_s = later.seen_s * ((against / math.log(near)) ** (1 / SLOPE_POWER) - 1)
    return more_s if 0 < more_s <= LONGEST_S else None


def _apart(a: ServerValues, b: ServerValues, figure: str) -> Pair:
    seen: float | None = None
    why = "no_trial"
    if a.values and b.values:
        seen, why = ratio(a.values, b.values).ratio, "other_host"
    return Pair(
        a=a.server,
        b=b.server,
        figure=figure,
        ratio=seen,
        n=min(len(a.values), len(b.values)),
        n_a=len(a.values),
        n_b=len(b.values),
        why=why,
    )
