"""Is a candidate no worse than its base, figure by figure? By the interval of the ratio against a margin, at
every look, with Holm over the figures.

The question is not "is there a significant difference" (too few trials never find one) but "is it shown that
the loss is smaller than the margin". Source: non-inferiority by the confidence interval, Piaggio et al. 2012,
JAMA 308 (the CONSORT statement).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from scipy import special as untyped_special

from prony.compare.comparison import Later
from prony.compare.earlier import against_earlier
from prony.compare.position import effect_of
from prony.compare.ratio import RatioResult, repeated_ratio
from prony.compare.samples import Sample, ServerValues, confounded, gather
from prony.compare.sequential import Looks, boundaries
from prony.compare.summary import CONFIDENCE
from prony.compare.worst import Source, sources, total, widened

special: Any = untyped_special

MOST_MISSING = 0.2
"""Share of the planned trials of a side that may have no figure: beyond it no block that is left can help."""
POWER = 0.8
"""Chance that an unchanged candidate is called no worse at the margin that `smallest_margin` gives."""


class Change(StrEnum):
    """What is shown of the candidate, of one figure or of all."""

    NO_WORSE = "no worse"
    """The loss is smaller than the margin."""
    WORSE = "worse"
    """The loss is larger than the margin."""
    CANNOT_TELL = "cannot tell"
    NOT_MEASURABLE = "not measurable"
    """No further trial would help: see `why`."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """One figure of the candidate ÷ that of the base. Without an interval `low` and `high` are None."""

    figure: str
    change: Change
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float | None
    """Of this interval, by Holm's level: at least the family's, over all looks."""
    limit: float
    """The ratio at which the margin lies: 1 + margin where less is better, else 1 ÷ (1 + margin)."""
    n: int
    """Complete blocks; of a baseline trials of the candidate."""
    worst_low: float | None = None
    worst_high: float | None = None
    """The interval with every source at its worst: what the change is judged by. None: not bounded."""
    sources: tuple[Source, ...] = ()
    """What may bend the ratio, the largest first."""
    why: str = ""
    """Why nothing is decided, or can be measured; the end of a sentence."""
    smallest_margin: float | None = None
    """The smallest margin that an unchanged candidate is likely to hold within all planned blocks, as a
    share: what this host can see. None where its spread is not known.
    """


@dataclass(frozen=True, slots=True)
class Changes:
    """All figures, and what they come to."""

    change: Change
    figures: tuple[FigureChange, ...]
    notes: tuple[str, ...]
    """Trials without a figure, and why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked: figure -> whether more is better."""

    base: str
    candidate: str
    directions: Mapping[str, bool]
    margin: float
    margins: Mapping[str, float] = field(default_factory=dict)
    """Of figures that have one of their own."""

    def limit(self, figure: str) -> float:
        """The ratio at which the margin lies; the same distance from 1 on the log scale either way."""
        margin = self.margins.get(figure, self.margin)
        return 1 / (1 + margin) if self.directions[figure] else 1 + margin

    def side(self, figure: str, low: float | None, high: float | None) -> Change:
        """On which side of the margin an interval of candidate ÷ base lies; None: not bounded there."""
        limit = self.limit(figure)
        above = low is not None and low > limit
        if not above and (high is None or high >= limit):
            return Change.CANNOT_TELL
        return Change.NO_WORSE if above is self.directions[figure] else Change.WORSE


Measure = Callable[[float], RatioResult]
"""The ratio of one figure with its interval at a confidence."""


def changes(
    samples: Mapping[str, Sequence[Sample]],
    asked: Asked,
    looks: Looks,
    *,
    later: Callable[[str], Later | None] = lambda _figure: None,
    ended: bool = False,
) -> Changes:
    """Of round-robin trials of both. `samples`: by figure, in the order of blocks.

    Every interval covers at all of `looks` at once, so that this may be asked after each block and the trials
    ended by any outcome, or by the clock. `later`: of a figure, residual drift: a candidate that is
    shown to move away from its base across the margin is not let pass. `ended`: no further trial will come.
    """
    gathered = {figure: _two(samples[figure], asked) for figure in asked.directions}

    def measure(base: ServerValues, candidate: ServerValues) -> Measure:
        return lambda confidence: repeated_ratio(
            candidate.values, base.values, candidate.blocks, base.blocks, looks, confidence=confidence
        )

    blocked = {figure: _unmeasurable(*sides, looks, ended) for figure, sides in gathered.items()}
    measured = {
        figure: measure(*sides)
        for figure, sides in gathered.items()
        if sides[0].values and sides[1].values and not confounded(*sides)
    }
    found = settled(measured, asked, 1 - CONFIDENCE)
    made = []
    for figure, sides in gathered.items():
        one = _figure(figure, asked, found.get(figure), sides, later)
        if blocked[figure] and one.change is not Change.WORSE:
            one = replace(one, change=Change.NOT_MEASURABLE, why=blocked[figure])
        made.append(one)
    notes = dict.fromkeys(
        f"{side.server}: {cause}" for sides in gathered.values() for side in sides for cause in side.missing
    )
    return Changes(together([one.change for one in made]), tuple(made), tuple(notes))


def changes_from_earlier(
    samples: Mapping[str, Sequence[Sample]],
    asked: Asked,
    experiments: Mapping[str, Sequence[Sequence[float]]],
) -> Changes:
    """Of trials of the candidate alone against earlier experiments of the base (figure -> the values of each
    experiment): the experiment is the sample, see `prony.compare.earlier`.
    """
    gathered = {figure: _two(samples[figure], asked)[1] for figure in asked.directions}

    def measure(figure: str, candidate: ServerValues) -> Measure:
        earlier = experiments[figure]
        return lambda confidence: against_earlier(candidate.values, earlier, confidence=confidence)

    measured = {
        figure: measure(figure, side)
        for figure, side in gathered.items()
        if side.values and any(experiments[figure])
    }
    found = settled(measured, asked, 1 - CONFIDENCE)
    made = []
    for figure, side in gathered.items():
        if side.values and len(side.missing) > MOST_MISSING * side.trials:
            why = f"{len(side.missing)} of {side.trials} trials of {side.server} have no figure"
        elif not side.values:
            why = str(side.missing[0]) if side.missing else f"no trial of {side.server}"
        else:
            why = "" if any(experiments[figure]) else f"no stored trial of {asked.base} has it"
        result = found.get(figure)
        if why or result is None:
            made.append(_none(figure, asked, Change.NOT_MEASURABLE, why))
            continue
        made.append(_of(figure, asked, result, ()))
    notes = dict.fromkeys(f"{side.server}: {cause}" for side in gathered.values() for cause in side.missing)
    return Changes(together([one.change for one in made]), tuple(made), tuple(notes))


def settled(measured: Mapping[str, Measure], asked: Asked, alpha: float) -> dict[str, RatioResult]:
    """Holm's step-down over the figures, each tested against the margin from both sides: with r figures left
    those whose interval at 1 - alpha / r excludes the margin are decided and leave; the others are tried
    again at the next level. The interval of each figure is the one by which it was decided, or the last.
    """
    left = list(measured)
    found: dict[str, RatioResult] = {}
    while left:
        level = alpha / len(left)
        now = {figure: measured[figure](1 - level) for figure in left}
        found |= now
        undecided = [
            figure
            for figure, one in now.items()
            if one.low is None or asked.side(figure, one.low, one.high) is Change.CANNOT_TELL
        ]
        if len(undecided) == len(left):
            break
        left = undecided
    return found


def together(each: Sequence[Change]) -> Change:
    """Worse as soon as one figure is; no worse only where all are; not measurable where one is not."""
    for decisive in (Change.WORSE, Change.NOT_MEASURABLE, Change.CANNOT_TELL):
        if decisive in each:
            return decisive
    return Change.NO_WORSE


def smallest_margin(result: RatioResult, level: float) -> float | None:
    """The margin at which an unchanged candidate is called no worse with POWER after the last look, as a
    share, at the spread that was seen: boundary and power's quantile times the standard error then.
    """
    if result.looks is None or not result.error or result.n < 2:
        return None
    last = result.looks.most
    spread = result.error * math.sqrt(result.n)
    room = boundaries(result.looks, level)[last] + float(special.stdtrit(last - 1, POWER))
    return math.expm1(room * spread / math.sqrt(last))


def _two(samples: Sequence[Sample], asked: Asked) -> tuple[ServerValues, ServerValues]:
    base, candidate, *_ = gather(samples, (asked.base, asked.candidate))
    return base, candidate


def _unmeasurable(base: ServerValues, candidate: ServerValues, looks: Looks, ended: bool) -> str:
    """Why no further block can decide it; empty where one may."""
    if base.values and candidate.values and confounded(base, candidate):
        return "both were measured on different hosts"
    for side in (base, candidate):
        if side.missing and not side.values and len(side.missing) >= looks.first:
            return f"no trial of {side.server} has a figure: {side.missing[0].why}"
        gone = len(side.missing)
        if gone > MOST_MISSING * looks.most:
            return f"{gone} trials of {side.server} have no figure: {side.missing[0].why}"
    complete = len(set(base.blocks) & set(candidate.blocks))
    lacking = next((side for side in (candidate, base) if side.missing), None)
    if ended and complete < looks.first and lacking is not None:
        return (
            f"{complete} complete {'block' if complete == 1 else 'blocks'}, the first look is after "
            f"{looks.first}: {lacking.missing[0].why}"
        )
    return ""


def _figure(
    figure: str,
    asked: Asked,
    result: RatioResult | None,
    sides: tuple[ServerValues, ServerValues],
    later: Callable[[str], Later | None],
) -> FigureChange:
    base, candidate = sides
    if result is None:
        return _none(figure, asked, Change.CANNOT_TELL, "")
    bends = sources(candidate, base, result, effect_of(sides), asked.directions[figure])
    made = _of(figure, asked, result, bends)
    coming = later(figure) if made.change is Change.NO_WORSE else None
    if coming is not None and _moves_across(made, asked, coming):
        why = f"{asked.candidate} is still moving away from {asked.base}: warm up longer"
        return replace(made, change=Change.CANNOT_TELL, why=why)
    return made


def _moves_across(made: FigureChange, asked: Asked, later: Later) -> bool:
    """Whether the two are shown to move apart, and by the best estimate across the margin by the horizon."""
    mine, other = later.coming.get(asked.candidate), later.coming.get(asked.base)
    if mine is None or other is None or made.ratio is None:
        return False
    low, high = mine.less(other)
    if low <= 0 <= high:
        return False
    change = (mine.remaining - other.remaining) * later.sign
    then = made.ratio * math.exp(change)
    return asked.side(made.figure, then, then) is not Change.NO_WORSE


def _of(figure: str, asked: Asked, result: RatioResult, bends: tuple[Source, ...]) -> FigureChange:
    low = high = None
    change = Change.CANNOT_TELL
    if result.low is not None and result.high is not None:
        low, high = widened(result.low, result.high, *total(bends))
        change = asked.side(figure, low, high)
    return FigureChange(
        figure=figure,
        change=change,
        ratio=result.ratio,
        low=result.low,
        high=result.high,
        confidence=result.confidence,
        limit=asked.limit(figure),
        n=result.n,
        worst_low=low,
        worst_high=high,
        sources=bends,
        smallest_margin=smallest_margin(result, 1 - result.confidence),
    )


def _none(figure: str, asked: Asked, change: Change, why: str) -> FigureChange:
    return FigureChange(figure, change, None, None, None, None, asked.limit(figure), 0, why=why)
