"""All pairs of one figure: which trials count, the verdict of each pair and its interval. Must not know
evidence.

Invalid trials are excluded and named with their cause. Never best of N, never an average of percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from prony.compare.doubt import Holds, doubt, drifting, without_suspects
from prony.compare.family import holm_levels, more_trials
from prony.compare.position import PositionEffect, effect_of, places_later
from prony.compare.ratio import RatioResult, Verdict, ratio, repeated_ratio, verdict
from prony.compare.samples import Sample, ServerValues, confounded, gather
from prony.compare.sentence import basis, sentence
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
    basis: str = ""
    """What the interval rests on, as the sentence has it in brackets; empty without an interval."""
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

    def gives(self, decided: Verdict) -> Holds:
        """Whether an interval gives this verdict."""
        return lambda low, high: self.verdict(low, high) is decided


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
    why = _doubt(a, b, asked, found, decided) if decided is not Verdict.INCONCLUSIVE else ""
    if why:
        decided = Verdict.INCONCLUSIVE
    moved = _moved(a, b, asked, found)
    more = more_trials(found, asked.band, level) if decided is Verdict.INCONCLUSIVE and not why else None
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
            doubt=why,
            moved=moved,
            without_suspects=without_suspects(
                a, b, found, asked.gives(asked.verdict(found.low, found.high)), asked.band
            ),
        ),
        basis="" if found.low is None else basis(found, asked.confidence, family),
        least_more_trials=None if more is None else more.least,
        more_trials=None if more is None else more.most,
        method=found.method,
        n=found.n,
        p_value=found.p_value,
        moved_by_position=moved,
    )


def _doubt(a: ServerValues, b: ServerValues, asked: _Asked, found: RatioResult, decided: Verdict) -> str:
    """Why a verdict that the interval gives is not said, as the end of a sentence; empty where it is."""
    wide = drifting(a, b, asked.drift, asked.band, decided) if decided is Verdict.EQUIVALENT else ""
    return doubt(a, b, found, asked.gives(decided), asked.position, wide)


def _moved(a: ServerValues, b: ServerValues, asked: _Asked, found: RatioResult) -> float | None:
    """The factor by which an effect of position moves the ratio; None where none was found, or the order was
    balanced.
    """
    if asked.position is None or not asked.position.found:
        return None
    places = places_later(a, b, paired=found.paired)
    return None if abs(places) < BALANCED else asked.position.ratio**places


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
