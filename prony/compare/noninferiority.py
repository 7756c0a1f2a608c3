"""Is a candidate no worse than its base: a ratio against a margin (Piaggio et al. 2012, CONSORT)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from prony.compare.assumptions import assumptions
from prony.compare.bias import Source, sources, total, widened
from prony.compare.comparison import Later
from prony.compare.position import effect_of
from prony.compare.ratio import RatioResult, repeated_ratio
from prony.compare.samples import Sample, ServerValues, confounded, gather
from prony.compare.sequential import Looks, boundaries
from prony.compare.summary import CONFIDENCE
from prony.special import special

MOST_MISSING = 0.2
"""Share of a side's planned trials that may lack a figure before the rest cannot decide."""
POWER = 0.8
"""Chance that an unchanged candidate is called no worse at `smallest_margin`."""


class Change(StrEnum):
    """Result for the candidate, of a figure or of all."""

    NO_WORSE = "no worse"
    WORSE = "worse"
    CANNOT_TELL = "cannot tell"
    NOT_MEASURABLE = "not measurable"
    """Further trials would not help: see `why`."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure of the candidate ÷ that of the base. Without an interval `low` and `high` are None."""

    figure: str
    change: Change
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float | None
    """Of this interval, by Holm's level, over all looks."""
    limit: float
    """The margin as a ratio: 1 + margin where less is better, else 1 ÷ (1 + margin)."""
    n: int
    """Complete blocks; with a stored baseline, trials of the candidate."""
    worst_low: float | None = None
    worst_high: float | None = None
    """The interval with every source at its worst, which decides. None: not bounded."""
    sources: tuple[Source, ...] = ()
    why: str = ""
    """Why it is not decided or not measurable; the end of a sentence."""
    smallest_margin: float | None = None
    """The smallest margin (a share) that an unchanged candidate is likely to hold within all planned blocks:
    the resolution of this host. None where the spread is not known.
    """


@dataclass(frozen=True, slots=True)
class Changes:
    change: Change
    figures: tuple[FigureChange, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MarginTest:
    """The question; `directions`: figure -> whether more is better."""

    base: str
    candidate: str
    directions: Mapping[str, bool]
    margin: float
    margins: Mapping[str, float] = field(default_factory=dict)

    def limit(self, figure: str) -> float:
        """The margin as a ratio, at the same log distance from 1 in either direction."""
        margin = self.margins.get(figure, self.margin)
        return 1 / (1 + margin) if self.directions[figure] else 1 + margin

    def side(self, figure: str, low: float | None, high: float | None) -> Change:
        """Side of the margin on which an interval of candidate ÷ base lies; None: not bounded."""
        limit = self.limit(figure)
        above = low is not None and low > limit
        if not above and (high is None or high >= limit):
            return Change.CANNOT_TELL
        return Change.NO_WORSE if above is self.directions[figure] else Change.WORSE


Measure = Callable[[float], RatioResult]


def changes(
    samples: Mapping[str, Sequence[Sample]],
    test: MarginTest,
    looks: Looks,
    *,
    later: Callable[[str], Later | None] = lambda _figure: None,
    ended: bool = False,
) -> Changes:
    """From round-robin trials of both, after any block. `samples`: by figure, in block order.

    `later`: residual drift of a figure; a candidate shown to move away from its base across the margin does
    not pass. `ended`: no further trials follow.
    """
    gathered = {figure: _two(samples[figure], test) for figure in test.directions}

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
    results = settled(measured, test, 1 - CONFIDENCE)
    each = []
    for figure, sides in gathered.items():
        change = _figure(figure, test, results.get(figure), sides, later)
        if blocked[figure] and change.change is not Change.WORSE:
            change = replace(change, change=Change.NOT_MEASURABLE, why=blocked[figure])
        each.append(change)
    notes = dict.fromkeys(
        f"{side.server}: {cause}" for sides in gathered.values() for side in sides for cause in side.missing
    )
    return Changes(together([change.change for change in each]), tuple(each), tuple(notes))


def changes_from_earlier(
    samples: Mapping[str, Sequence[Sample]],
    test: MarginTest,
    experiments: Mapping[str, Sequence[Sequence[float]]],
) -> Changes:
    """`experiments`: figure -> values per experiment of the base; the experiment is the sample."""
    gathered = {figure: _two(samples[figure], test)[1] for figure in test.directions}

    def measure(figure: str, candidate: ServerValues) -> Measure:
        earlier = experiments[figure]
        return lambda confidence: against_earlier(candidate.values, earlier, confidence=confidence)

    measured = {
        figure: measure(figure, side)
        for figure, side in gathered.items()
        if side.values and any(experiments[figure])
    }
    results = settled(measured, test, 1 - CONFIDENCE)
    each = []
    for figure, side in gathered.items():
        if side.values and len(side.missing) > MOST_MISSING * side.trials:
            why = f"{len(side.missing)} of {side.trials} trials of {side.server} have no figure"
        elif not side.values:
            why = str(side.missing[0]) if side.missing else f"no trial of {side.server}"
        else:
            why = "" if any(experiments[figure]) else f"no stored trial of {test.base} has this figure"
        result = results.get(figure)
        if why or result is None:
            each.append(_none(figure, test, Change.NOT_MEASURABLE, why))
            continue
        each.append(_of(figure, test, result, ()))
    notes = dict.fromkeys(f"{side.server}: {cause}" for side in gathered.values() for cause in side.missing)
    return Changes(together([change.change for change in each]), tuple(each), tuple(notes))


def settled(measured: Mapping[str, Measure], test: MarginTest, alpha: float) -> dict[str, RatioResult]:
    """Holm's step-down over the figures, each against the margin from both sides, with its last interval."""
    left = list(measured)
    results: dict[str, RatioResult] = {}
    while left:
        level = alpha / len(left)
        now = {figure: measured[figure](1 - level) for figure in left}
        results |= now
        undecided = [
            figure
            for figure, result in now.items()
            if result.low is None or test.side(figure, result.low, result.high) is Change.CANNOT_TELL
        ]
        if len(undecided) == len(left):
            break
        left = undecided
    return results


def together(each: Sequence[Change]) -> Change:
    for decisive in (Change.WORSE, Change.NOT_MEASURABLE, Change.CANNOT_TELL):
        if decisive in each:
            return decisive
    return Change.NO_WORSE


def smallest_margin(result: RatioResult, level: float) -> float | None:
    """As a share, at which an unchanged candidate passes with POWER after the last look."""
    if result.looks is None or not result.error or result.n < 2:
        return None
    last = result.looks.most
    spread = result.error * math.sqrt(result.n)
    room = boundaries(result.looks, level)[last] + float(special.stdtrit(last - 1, POWER))
    return math.expm1(room * spread / math.sqrt(last))


def _two(samples: Sequence[Sample], test: MarginTest) -> tuple[ServerValues, ServerValues]:
    base, candidate, *_ = gather(samples, (test.base, test.candidate))
    return base, candidate


def _unmeasurable(base: ServerValues, candidate: ServerValues, looks: Looks, ended: bool) -> str:
    if base.values and candidate.values and confounded(base, candidate):
        return "the two were measured on different hosts"
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
    test: MarginTest,
    result: RatioResult | None,
    sides: tuple[ServerValues, ServerValues],
    later: Callable[[str], Later | None],
) -> FigureChange:
    base, candidate = sides
    if result is None:
        return _none(figure, test, Change.CANNOT_TELL, "")
    more = assumptions(candidate, base, result)
    bends = sources(candidate, base, result, effect_of(sides), test.directions[figure], *more)
    change = _of(figure, test, result, bends)
    coming = later(figure) if change.change is Change.NO_WORSE else None
    if coming is not None and _moves_across(change, test, coming):
        why = f"{test.candidate} is still moving away from {test.base}: warm up longer"
        return replace(change, change=Change.CANNOT_TELL, why=why)
    return change


def _moves_across(made: FigureChange, test: MarginTest, later: Later) -> bool:
    mine, other = later.coming.get(test.candidate), later.coming.get(test.base)
    if mine is None or other is None or made.ratio is None:
        return False
    low, high = mine.less(other)
    if low <= 0 <= high:
        return False
    change = (mine.remaining - other.remaining) * later.sign
    then = made.ratio * math.exp(change)
    return test.side(made.figure, then, then) is not Change.NO_WORSE


def _of(figure: str, test: MarginTest, result: RatioResult, bends: tuple[Source, ...]) -> FigureChange:
    low = high = None
    change = Change.CANNOT_TELL
    if result.low is not None and result.high is not None:
        low, high = widened(result.low, result.high, *total(bends))
        change = test.side(figure, low, high)
    return FigureChange(
        figure=figure,
        change=change,
        ratio=result.ratio,
        low=result.low,
        high=result.high,
        confidence=result.confidence,
        limit=test.limit(figure),
        n=result.n,
        worst_low=low,
        worst_high=high,
        sources=bends,
        smallest_margin=smallest_margin(result, 1 - result.confidence),
    )


def _none(figure: str, test: MarginTest, change: Change, why: str) -> FigureChange:
    return FigureChange(figure, change, None, None, None, None, test.limit(figure), 0, why=why)


FEWEST_EXPERIMENTS = 3
METHOD = "prediction from experiments"


def against_earlier(
    values: Sequence[float], experiments: Sequence[Sequence[float]], *, confidence: float = 0.95
) -> RatioResult:
    """`values` ÷ those of earlier experiments, with the interval of a further one.

    m̄ ± t s √(1 + 1/k) over the k mean logarithms (Hahn & Meeker 1991, section 4.3), and the variance of
    fewer trials. Raises ValueError for a side without a value, or a value without a logarithm.
    """
    earlier = [list(series) for series in experiments if series]
    if not values or not earlier:
        raise ValueError("a ratio needs at least one trial on each side")
    if any(not math.isfinite(value) or value <= 0 for series in (list(values), *earlier) for value in series):
        raise ValueError("a ratio needs positive, finite values: exclude the others and report why")
    means = np.asarray([np.log(series).mean() for series in earlier])
    centre = float(np.log(values).mean() - means.mean())
    count = len(earlier)
    trials = sum(len(series) for series in earlier)
    if count < FEWEST_EXPERIMENTS:
        return RatioResult(math.exp(centre), None, None, confidence, METHOD, len(values), len(values), trials)
    variance = float(means.var(ddof=1)) * (1 + 1 / count) + _fewer(len(values), earlier)
    error = math.sqrt(variance)
    half = float(special.stdtrit(count - 1, 0.5 + confidence / 2)) * error
    return RatioResult(
        ratio=math.exp(centre),
        low=math.exp(centre - half),
        high=math.exp(centre + half),
        confidence=confidence,
        method=METHOD,
        n=len(values),
        n_a=len(values),
        n_b=trials,
        error=error,
        freedom=count - 1,
    )


def _fewer(count: int, experiments: Sequence[Sequence[float]]) -> float:
    freedom = sum(len(series) - 1 for series in experiments)
    if not freedom:
        return 0.0
    squares = sum(float(((np.log(series) - np.log(series).mean()) ** 2).sum()) for series in experiments)
    usual = len(experiments) / sum(1 / len(series) for series in experiments)
    return max(0.0, squares / freedom * (1 / count - 1 / usual))
