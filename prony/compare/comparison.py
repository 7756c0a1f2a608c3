"""All pairs of one figure: which trials count, the verdict of each pair and its interval. Must not know
evidence.

Invalid trials are excluded and named with their cause. Never best of N, never an average of percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from prony.compare.exclusion import undecided_because
from prony.compare.family import holm_levels, more_trials
from prony.compare.position import PositionEffect, effect_of, places_later
from prony.compare.ratio import RatioResult, Verdict, ratio, repeated_ratio, verdict
from prony.compare.samples import Sample, ServerValues, confounded, gather
from prony.compare.sentence import sentence
from prony.compare.sequential import Looks
from prony.judge.figures import FIGURE

BALANCED = 1e-6
"""Servers whose mean places differ by less stood equally late."""
BAND = 0.02
"""The practical band: ratios closer to 1 than this make no difference in practice."""


@dataclass(frozen=True, slots=True)
class Pair:
    """a against b. `low` and `high` are None without an interval; so is `ratio` when a side has no valid
    trial.
    """

    a: str
    b: str
    figure: str
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float | None
    """Of this pair's own interval, from Holm's level (with repeated looks its equal share): at least the
    family's.
    """
    verdict: Verdict
    sentence: str
    least_more_trials: int | None = None
    """Further trials per server at the lower end of the spread's interval; `more_trials` at the upper end."""
    more_trials: int | None = None
    method: str = ""
    n: int = 0
    p_value: float | None = None
    moved_by_position: float | None = None
    """The factor by which an effect of position that was found moves the ratio; None where it cancels, or
    none was found.
    """


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure over all servers."""

    figure: str
    band: float
    confidence: float
    family: int
    """Number of pairs tested together."""
    servers: tuple[ServerValues, ...]
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]
    """Trials that were excluded, and why."""
    looks: Looks | None
    """Set when trials were added until the pairs were settled."""
    position: PositionEffect | None = None
    """The effect of a trial's place in its block; None where it cannot be told."""


def compare(
    trials: Iterable[Sample],
    figure: str = "requests_per_s",
    *,
    band: float = BAND,
    confidence: float = 0.95,
    higher_is_better: bool | None = None,
    servers: Sequence[str] = (),
    looks: Looks | None = None,
    drift: Mapping[str, float] | None = None,
) -> Comparison:
    """Every pair of servers, with Holm over those that could be tested.

    With `looks` (trials are added until the pairs are clear) every interval covers at all looks at once and
    each pair of servers gets an equal share of the error, so that no look and no pair was free.

    `drift`: by server, how far its figure may still be from its plateau (a share; `prony.judge.drift`); with
    more than the band two servers are not called equivalent.

    `servers` fixes the order (else: as they first appear); `higher_is_better` overrides the direction that
    FIGURES knows. Raises ValueError for a band below 0 or a confidence outside (0, 1).
    """
    if band < 0 or not 0 < confidence < 1:
        raise ValueError("band must be at least 0 and confidence between 0 and 1")
    direction = higher_is_better
    if direction is None:
        direction = FIGURE[figure].higher_is_better if figure in FIGURE else True
    gathered = gather(list(trials), servers)
    notes = tuple(f"{s.server}: {cause}" for s in gathered for cause in s.excluded)
    asked = _Asked(figure, band, confidence, direction, effect_of(gathered), drift or {})
    if looks is not None:
        return Comparison(
            figure,
            band,
            confidence,
            math.comb(len(gathered), 2),
            tuple(gathered),
            _repeated(gathered, asked, looks),
            notes,
            looks,
            asked.position,
        )
    tested: dict[tuple[str, str], RatioResult] = {}
    first_look: dict[tuple[str, str], RatioResult] = {}
    for a, b in combinations(gathered, 2):
        if a.values and b.values and not confounded(a, b):
            found = ratio(a.values, b.values, a.blocks, b.blocks, confidence=confidence)
            (first_look if found.p_value is None else tested)[a.server, b.server] = found
    chances = [found.p_value for found in tested.values() if found.p_value is not None]
    levels = dict(zip(tested, holm_levels(chances, 1 - confidence), strict=True))
    pairs = []
    for a, b in combinations(gathered, 2):
        key = (a.server, b.server)
        if key in levels:
            level = levels[key]
            found = ratio(a.values, b.values, a.blocks, b.blocks, confidence=1 - level)
            pairs.append(_said(a, b, asked, found, level, len(levels)))
        else:
            pairs.append(_untested(a, b, asked, first_look.get(key)))
    return Comparison(
        figure, band, confidence, len(levels), tuple(gathered), tuple(pairs), notes, None, asked.position
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of every pair."""

    figure: str
    band: float
    confidence: float
    direction: bool | None
    """Whether more is better; None: neither."""
    position: PositionEffect | None
    drift: Mapping[str, float]

    def verdict(self, low: float | None, high: float | None) -> Verdict:
        """Of an interval."""
        return verdict(low, high, self.band, self.direction)


def _repeated(gathered: Sequence[ServerValues], asked: _Asked, looks: Looks) -> tuple[Pair, ...]:
    """Every pair at an equal share of the error, over all looks."""
    family = math.comb(len(gathered), 2)
    pairs = []
    for a, b in combinations(gathered, 2):
        if not (a.values and b.values) or confounded(a, b):
            pairs.append(_untested(a, b, asked, None))
            continue
        level = (1 - asked.confidence) / family
        found = repeated_ratio(a.values, b.values, a.blocks, b.blocks, looks, confidence=1 - level)
        if found.low is None:
            pairs.append(_untested(a, b, asked, found))
        else:
            pairs.append(_said(a, b, asked, found, level, family))
    return tuple(pairs)


def _said(
    a: ServerValues, b: ServerValues, asked: _Asked, found: RatioResult, level: float, family: int
) -> Pair:
    decided = asked.verdict(found.low, found.high)
    doubt = _doubt(a, b, asked, found, decided) if decided is not Verdict.INCONCLUSIVE else ""
    if doubt:
        decided = Verdict.INCONCLUSIVE
    moved = _moved(a, b, asked, found)
    more = more_trials(found, asked.band, level) if decided is Verdict.INCONCLUSIVE and not doubt else None
    return Pair(
        a=a.server,
        b=b.server,
        figure=asked.figure,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        confidence=found.confidence,
        verdict=decided,
        sentence=sentence(
            a.server,
            b.server,
            asked.figure,
            found,
            decided,
            band=asked.band,
            confidence=asked.confidence,
            family=family,
            more=more,
            doubt=doubt,
            moved=moved,
            without_suspects=_without_suspects(a, b, asked, found),
        ),
        least_more_trials=None if more is None else more.least,
        more_trials=None if more is None else more.most,
        method=found.method,
        n=found.n,
        p_value=found.p_value,
        moved_by_position=moved,
    )


def _doubt(a: ServerValues, b: ServerValues, asked: _Asked, found: RatioResult, decided: Verdict) -> str:
    """Why a verdict that the interval gives is not said, as the end of a sentence; empty where it is."""

    def holds(low: float | None, high: float | None) -> bool:
        return asked.verdict(low, high) is decided

    excluded = undecided_because(
        a.side,
        b.side,
        lambda *sides: _again(*sides, like=found, sampled=False),
        lambda other: holds(other.low, other.high),
    )
    if excluded:
        return excluded
    if decided is Verdict.EQUIVALENT and (wide := _drifting(a, b, asked)):
        return wide
    if asked.position is None or not asked.position.found or found.low is None or found.high is None:
        return ""
    factors = asked.position.moves(places_later(a, b, paired=found.paired))
    if all(holds(found.low / factor, found.high / factor) for factor in factors):
        return ""
    return "the effect of position may have made the difference"


def _drifting(a: ServerValues, b: ServerValues, asked: _Asked) -> str:
    """Which server may still be further from its plateau than the band is wide; empty where none may."""
    bounds = {side.server: asked.drift.get(side.server, 0.0) for side in (a, b)}
    server, most = max(bounds.items(), key=lambda item: item[1])
    if most <= asked.band:
        return ""
    if math.isinf(most):
        return f"the rows of {server} cannot tell how much is still to come"
    if most > 1:
        return f"how much {server} may still change cannot be bounded"
    return f"{server} may still change by {most * 100:.2g} %, too much for *equivalent*"


def _moved(a: ServerValues, b: ServerValues, asked: _Asked, found: RatioResult) -> float | None:
    """The factor by which an effect of position moves the ratio; None where none was found, or the order was
    balanced.
    """
    if asked.position is None or not asked.position.found:
        return None
    places = places_later(a, b, paired=found.paired)
    return None if abs(places) < BALANCED else asked.position.ratio**places


def _again(
    values_a: Sequence[float],
    values_b: Sequence[float],
    blocks_a: Sequence[int],
    blocks_b: Sequence[int],
    *,
    like: RatioResult,
    sampled: bool = True,
) -> RatioResult:
    """The same comparison of other values: same confidence, same looks. Where some of them were put in, as
    the most extreme ones that are possible, they are no sample of a skewed server.
    """
    if like.looks is None:
        return ratio(values_a, values_b, blocks_a, blocks_b, confidence=like.confidence)
    return repeated_ratio(
        values_a, values_b, blocks_a, blocks_b, like.looks, confidence=like.confidence, for_skewness=sampled
    )


def _without_suspects(
    a: ServerValues, b: ServerValues, asked: _Asked, found: RatioResult
) -> RatioResult | None:
    """The result without suspect trials; None when there are none, or it is the same."""
    if not any((*a.suspects, *b.suspects)):
        return None
    (values_a, blocks_a), (values_b, blocks_b) = a.without_suspects(), b.without_suspects()
    if not values_a or not values_b:
        return None
    other = _again(values_a, values_b, blocks_a, blocks_b, like=found)
    same = asked.verdict(other.low, other.high) is asked.verdict(found.low, found.high)
    near = abs(math.log(other.ratio / found.ratio)) <= math.log1p(asked.band)
    return None if same and near else other


def _untested(a: ServerValues, b: ServerValues, asked: _Asked, found: RatioResult | None) -> Pair:
    """A pair without a test: no valid trial, too few of them, or another host."""
    seen: float | None = None
    n = min(len(a.values), len(b.values))
    if found is not None:
        seen = found.ratio
        text = sentence(
            a.server,
            b.server,
            asked.figure,
            found,
            Verdict.INCONCLUSIVE,
            band=asked.band,
            confidence=asked.confidence,
            family=1,
            more=None,
        )
    elif n == 0:
        empty = " and ".join(side.server for side in (a, b) if not side.values)
        text = f"{a.server} and {b.server}: no comparison, no valid trial of {empty}"
    else:
        seen = ratio(a.values, b.values).ratio
        text = (
            f"{a.server} and {b.server} were measured on different hosts: ratio {seen:.2f}x, "
            "confounded with the host, no interval"
        )
    return Pair(a.server, b.server, asked.figure, seen, None, None, None, Verdict.INCONCLUSIVE, text, n=n)
