"""One sentence per pair. Must not decide anything; it rounds so that no printed number contradicts the
verdict.
"""

from __future__ import annotations

import math

from prony.compare.family import MoreTrials
from prony.compare.ratio import MIN_TRIALS, RatioResult, Verdict
from prony.judge.figures import FIGURE

FULL_TRIALS = 5
"""With fewer trials per server every line says *quick*."""
RATE_FIGURES = ("requests_per_s", "published_requests_per_s")
MOST_DIGITS = 6
SMALL = 0.2
"""A smaller ratio has more than two decimals."""


def sentence(
    a: str,
    b: str,
    figure: str,
    result: RatioResult,
    verdict: Verdict,
    *,
    band: float,
    confidence: float,
    family: int,
    more: MoreTrials | None,
    doubt: str = "",
    moved: float | None = None,
    without_suspects: RatioResult | None = None,
) -> str:
    """The verdict in one sentence; the better server comes first."""
    if result.looks is not None and result.low is None:
        return (
            f"{a} and {b}: {result.n} complete {'block' if result.n == 1 else 'blocks'}, first look "
            f"after {result.looks.first}; ratio so far {result.ratio:.2f}x"
        )
    if result.low is None or result.high is None:
        return (
            f"{a} and {b}: {result.n} valid {_trials(result.n)}, too few for an interval "
            f"(needs {MIN_TRIALS}); ratio so far {result.ratio:.2f}x"
        )
    swap = _second_first(result, verdict, figure)
    first, second = (b, a) if swap else (a, b)
    value, low, high = (
        (1 / result.ratio, 1 / result.high, 1 / result.low)
        if swap
        else (result.ratio, result.low, result.high)
    )
    found = numbers(value, low, high, band)
    rests_on = f"({basis(result, confidence, family)})"
    label = FIGURE[figure].label if figure in FIGURE else figure
    if verdict is Verdict.EQUIVALENT:
        where = f"within {band * 100:g} %{_in(figure, label)}"
        text = f"{first} and {second} are equivalent {where}: {found} {rests_on}"
    elif verdict is Verdict.INCONCLUSIVE:
        text = f"{first} vs {second} is inconclusive{_in(figure, label)}: {found} {rests_on}"
        text += f"; {doubt}" if doubt else _further(result, more, band)
    elif figure in RATE_FIGURES:
        text = f"{first} is faster than {second}: {found} {rests_on}"
    else:
        text = f"{first} has a {'higher' if value > 1 else 'lower'} {label} than {second}: {found} {rests_on}"
    if moved is not None:
        by = (1 / moved if swap else moved) - 1
        text += f"; suspect: the effect of position moves it by {by * 100:+.1f} %"
    return text + _alone(without_suspects, swap, band)


def _alone(result: RatioResult | None, swap: bool, band: float) -> str:
    """The ratio without suspect trials, where it differs."""
    if result is None:
        return ""
    if result.low is None or result.high is None:
        value = 1 / result.ratio if swap else result.ratio
        return f"; without suspect trials {value:.2f}x, too few for an interval"
    sides = (result.ratio, result.low, result.high)
    value, low, high = (1 / sides[0], 1 / sides[2], 1 / sides[1]) if swap else sides
    return f"; without suspect trials {numbers(value, low, high, band)}"


def _further(result: RatioResult, more: MoreTrials | None, band: float) -> str:
    """The number of further trials, as a range: the spread of a few trials is known to within a factor of two
    at best.
    """
    apart = f"detecting a {band * 100:g} % difference"
    if more is None:
        return ""
    if more.most is None:
        planned = "" if result.looks is None else f" the planned {result.looks.most} blocks may not be enough"
        least = f" at least {more.least} more trials per server"
        return f"; {apart} would take{least}" if not planned else f";{planned}"
    if more.most == 0:
        return f"; the trials suffice for {apart}: the ratio is near the edge of the band"
    count = f"about {more.least} to {more.most}" if more.least < more.most else f"about {more.most}"
    count = f"at most {more.most}" if more.least == 0 else count
    follow = "" if result.looks is not None else ": --until-clear adds them and stops as soon as it is clear"
    return f"; {apart} takes {count} more {_trials(more.most)} per server{follow}"


def _second_first(result: RatioResult, verdict: Verdict, figure: str) -> bool:
    """The better server is named first; without a direction the one with the larger value."""
    if verdict is Verdict.FASTER:
        return False
    if verdict is Verdict.SLOWER:
        return True
    better_is_higher = FIGURE[figure].higher_is_better is not False if figure in FIGURE else True
    return (result.ratio < 1) if better_is_higher else (result.ratio > 1)


def _in(figure: str, label: str) -> str:
    return "" if figure in RATE_FIGURES else f" in {label}"


def _trials(count: int) -> str:
    return "trial" if count == 1 else "trials"


def basis(result: RatioResult, confidence: float, family: int) -> str:
    """What an interval rests on, as a sentence has it in its brackets: level, trials, family."""
    each = (
        f"{result.n} {_trials(result.n)} each"
        if result.n_a == result.n_b == result.n
        else f"{result.n} blocks"
        if result.paired
        else f"{result.n_a} and {result.n_b} trials"
    )
    quick = f", quick: fewer than {FULL_TRIALS}" if result.n < FULL_TRIALS else ""
    if result.looks is None:
        holm = f", Holm over {family} pairs" if family > 1 else ""
        return f"{confidence * 100:g} %, {each}{quick}{holm}"
    pairs = f" and all {family} pairs" if family > 1 else ""
    looks = f"looks after {result.looks.first} to {result.looks.most} blocks"
    return f"{confidence * 100:g} % over all {looks}{pairs}, {each}{quick}"


def numbers(value: float, low: float, high: float, band: float) -> str:
    """Two decimals, or as many as it takes to show on which side of 1 and of the band's edges each bound
    lies, and of a small ratio its first three digits.
    """
    edges = (1.0, 1 + band, 1 / (1 + band))
    digits = 2 if value >= SMALL or value <= 0 else 2 - math.floor(math.log10(value))
    while digits < MOST_DIGITS and any(
        (round(bound, digits) > edge) != (bound > edge) or (round(bound, digits) < edge) != (bound < edge)
        for bound in (low, high)
        for edge in edges
    ):
        digits += 1
    return f"{value:.{digits}f}x [{low:.{digits}f}, {high:.{digits}f}]"
