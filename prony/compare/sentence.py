"""A sentence per pair, from its numbers and codes."""

from __future__ import annotations

import math

from prony.compare.bias import CORRELATION, DRIFT, MISSING, ORDER, POSITION, TREND
from prony.compare.claim import Claim, Settles
from prony.compare.comparison import Pair
from prony.compare.summary import CONFIDENCE
from prony.judge.figures import FIGURE
from prony.numbers import IN_TIMES

FULL_TRIALS = 5
"""Trials per server below which every line says *quick*."""
RATE_FIGURES = ("requests_per_s", "published_requests_per_s")
MOST_DIGITS = 6
LATER = ". Later: "
"""Between the claim and what is open beyond the window."""
SMALL = 0.2
"""Ratios below get more than two decimals."""
OBSTACLES = {  # by check; of some also by check and code
    "isolation": "other work on the server's CPUs",
    "isolation shared_cpus": "the load generator on the server's CPUs",
    "isolation steal": "other guests of the hypervisor",
    "isolation throttled": "the server's CPU quota",
    "isolation soft_interrupts": "other network traffic",
    "client": "the load generator",
    "host": "the CPU clock",
    "warm": "JIT compilation",
    "network": "TCP timers",
    "stall": "stalls",
    "errors": "failed requests",
    "content": "wrong responses",
    "schedule": "late sends",
    "connections": "unplanned connections",
    "streams": "waits for HTTP/2 streams",
    "deferred": "work after the load",
    MISSING: "trials without a figure",
    POSITION: "the position of a trial in its block",
    ORDER: "the order of trials or loads",
    TREND: "a trend from block to block",
    CORRELATION: "correlated blocks",
    DRIFT: "residual drift",
}


def sentence(pair: Pair) -> str:
    """The claim as a sentence, or two where the claim beyond the window differs."""
    if pair.claim is Claim.SHOWN_FOR_WINDOW and pair.horizon_s is not None:
        return f"{for_window(pair)}{LATER}{_later(pair)}"
    return for_window(pair)


def for_window(pair: Pair) -> str:
    if pair.ratio is None:
        return f"{pair.a} and {pair.b}: no comparison, a server has no trial with a figure"
    if pair.why == "other_host":
        return f"{pair.a} and {pair.b} were measured on different hosts: {pair.ratio:.2f}x, not comparable"
    (first, second), (value, low, high) = sides(pair), ends(pair)
    if pair.low is None or pair.high is None:
        return f"{first} against {second} is open: {value:.2f}x{_in(pair)} so far{_remedy(pair)}"
    if pair.claim is Claim.EQUIVALENT:
        within = percent_up(pair.within or 0.0)
        return f"{pair.a} and {pair.b} are equivalent{_in(pair)} within {within}: {pair.ratio:.3g}x"
    if pair.claim is Claim.OPEN:
        return f"{first} against {second} is open{_in(pair)}: {numbers(value, low, high)}{_remedy(pair)}"
    value = max(pair.ratio, 1 / pair.ratio)
    least = floor(pair.at_least or 1.0)
    difference = f"{_difference(pair)}: {max(value, pair.at_least or 1.0):.2f}x"
    if pair.claim is Claim.SHOWN:
        return f"{difference}; at least {least} in the worst case"
    if pair.horizon_s is None:
        return f"{difference}; at least {least}, shown for this protocol"
    return f"{difference}; at least {least}, shown for this window"


def percent_up(share: float) -> str:
    return f"{math.ceil(share * 1000 - 1e-9) / 10:g} %"


def floor(factor: float) -> str:
    """A factor rounded down, with enough digits to show that it is above 1."""
    digits = 2
    while digits < MOST_DIGITS and math.floor(factor * 10**digits) <= 10**digits:
        digits += 1
    return f"{math.floor(factor * 10**digits + 1e-9) / 10**digits:.{digits}f}x"


def _difference(pair: Pair) -> str:
    larger, smaller = (pair.a, pair.b) if (pair.ratio or 1.0) > 1 else (pair.b, pair.a)
    if pair.figure in RATE_FIGURES:
        return f"{larger} carries more than {smaller}"
    return f"{larger} has a higher {_label(pair)} than {smaller}"


def _later(pair: Pair) -> str:
    drift = next((source for source in pair.sources if source.name == DRIFT), None)
    if drift is None or math.isinf(drift.down) or math.isinf(drift.up):
        text = "open, as residual drift is not bounded"
    else:
        turned = (pair.ratio or 1.0) < 1
        down, up = (drift.up, drift.down) if turned else (drift.down, drift.up)
        low, high = 100 * (1 - math.exp(-down)), 100 * math.expm1(up)
        most = math.exp(max(down, up))
        by = f"−{_per_cent(low)} / +{_per_cent(high)} %" if most < IN_TIMES else _factor(most)
        text = f"open, as within {pair.horizon_s:g} s it may change by {by}"
    seconds = None if pair.settles is None else pair.settles.seconds
    return text if seconds is None else f"{text}; {span(seconds)} more of load per trial would settle it"


def _factor(factor: float) -> str:
    return f"up to {factor:.2g}x" if factor < 100 else "more than 100x"


def _per_cent(value: float) -> str:
    return f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"


def _remedy(pair: Pair) -> str:
    settles = pair.settles
    if settles is None:
        return "; no practical number of blocks would settle it" if pair.low is not None else ""
    return f"; {remedy(settles)}"


def remedy(settles: Settles) -> str:
    if settles.what != "blocks":
        return f"the obstacle is {OBSTACLES.get(settles.what, settles.what)}"
    count = settles.blocks or 1
    takes = "" if settles.seconds is None else f", {span(settles.seconds)},"
    return f"{count} more block{'s' if count > 1 else ''}{takes} should settle it"


def span(seconds: float) -> str:
    """45 s, 4 min, 1.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.2g} h"


def sides(pair: Pair) -> tuple[str, str]:
    """(better server, other); without a direction the larger value first."""
    return (pair.b, pair.a) if _swapped(pair) else (pair.a, pair.b)


def ends(pair: Pair) -> tuple[float, float, float]:
    """Ratio and statistical interval, in the order of `sides`."""
    ratio, low, high = pair.ratio or 1.0, pair.low or 0.0, pair.high or math.inf
    return (1 / ratio, 1 / high, 1 / low if low else math.inf) if _swapped(pair) else (ratio, low, high)


def _swapped(pair: Pair) -> bool:
    better_is_higher = FIGURE[pair.figure].higher_is_better is not False if pair.figure in FIGURE else True
    ratio = pair.ratio or 1.0
    return (ratio < 1) if better_is_higher else (ratio > 1)


def _label(pair: Pair) -> str:
    return FIGURE[pair.figure].label if pair.figure in FIGURE else pair.figure


def _in(pair: Pair) -> str:
    return "" if pair.figure in RATE_FIGURES else f" in {_label(pair)}"


def basis(pair: Pair, family: int, *, duet: bool = False) -> str:
    each = (
        f"{pair.n} trials each"
        if pair.n_a == pair.n_b == pair.n
        else f"{pair.n} blocks"
        if pair.paired
        else f"{pair.n_a} and {pair.n_b} trials"
    )
    quick = f", quick: fewer than {FULL_TRIALS}" if pair.n < FULL_TRIALS else ""
    holm = f", Holm over {family} pairs" if family > 1 else ""
    turns = " in turns" if duet else ""
    return f"{CONFIDENCE * 100:g} %, {each}{turns}{quick}{holm}"


def numbers(value: float, low: float, high: float) -> str:
    """Two decimals, or as many as show the side of 1 of each end; a small ratio has three digits."""
    digits = 2 if value >= SMALL or value <= 0 else 2 - math.floor(math.log10(value))
    while digits < MOST_DIGITS and any(
        (round(end, digits) > 1) != (end > 1) or (round(end, digits) < 1) != (end < 1) for end in (low, high)
    ):
        digits += 1
    return f"{value:.{digits}f}x [{low:.{digits}f}, {high:.{digits}f}]"
