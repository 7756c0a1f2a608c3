"""The claim about a pair at the worst case, and what settles an open pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from prony.compare.bias import Source, total
from prony.compare.ratio import RatioResult
from prony.compare.sequential import boundaries
from prony.special import special


def holm_levels(p_values: Sequence[float], alpha: float = 0.05) -> tuple[float, ...]:
    """Per pair the significance level at which Holm's procedure decided: alpha / (k - r + 1) for the r-th."""
    count = len(p_values)
    levels = [0.0] * count
    level = alpha
    stopped = False
    for rank, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        if not stopped:
            level = alpha / (count - rank)
            stopped = p_values[index] > level
        levels[index] = level
    return tuple(levels)


EQUIVALENT_WITHIN = 0.05
"""Widest worst-case interval about 1 of an *equivalent* pair; the printed margin is the interval's own."""
MOST_BLOCKS = 50
"""Most further blocks worth proposing."""
BAND = 0.02
"""The practical band: ratios nearer to 1 do not matter in practice."""
POWER = 0.8
"""Power: chance that the proposed blocks suffice at the measured ratio."""


class Claim(StrEnum):
    """The claim about a pair at the worst case."""

    SHOWN = "shown"
    """A difference in the window and up to the horizon after it."""
    SHOWN_FOR_WINDOW = "shown_for_window"
    """A difference in the window; later is open, or not claimed (a fixed protocol)."""
    EQUIVALENT = "equivalent"
    """In the window a difference of no more than a margin."""
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Settles:
    """The quickest remedy for an open claim."""

    what: str
    """`blocks`, `load` (longer), or the source whose bound is the obstacle (a check's name)."""
    seconds: float | None
    blocks: int | None = None


Ends = tuple[float | None, float | None]


def margin_of(ends: Ends) -> float | None:
    """The smallest x with the interval within [1 ÷ (1 + x), 1 + x]; None where a side is open."""
    low, high = ends
    return None if low is None or high is None or low <= 0 else max(high, 1 / low) - 1


@dataclass(frozen=True, slots=True)
class Margins:
    """Margins of practical difference, as shares of the ratio."""

    band: float = BAND
    """Worst-case interval about 1 of an equivalent pair, even where it excludes 1."""
    least: float = 0.01
    """Smallest difference that is claimed: less would be printed as *at least 1.00x*."""


MARGINS = Margins()


def apart(ends: Ends, least: float) -> bool:
    """Whether the whole interval is on one side of 1 by more than `least` (a share)."""
    near = at_least(ends)
    return near is not None and near > 1 + least


def claim_of(window: Ends, later: Ends | None, margins: Margins = MARGINS) -> Claim:
    """The claim for worst-case intervals; `later` None: no plateau is claimed."""
    margin = margin_of(window)
    if margin is not None and margin <= margins.band:
        return Claim.EQUIVALENT
    if apart(window, margins.least):
        shown = later is not None and apart(later, margins.least)
        return Claim.SHOWN if shown else Claim.SHOWN_FOR_WINDOW
    if margin is not None and margin <= EQUIVALENT_WITHIN:
        return Claim.EQUIVALENT
    return Claim.OPEN


def at_least(ends: Ends) -> float | None:
    """The near end as a factor above 1; None where the interval does not exclude 1."""
    low, high = ends
    if low is not None and low > 1:
        return low
    return 1 / high if high is not None and 0 < high < 1 else None


def p_value(ratio: RatioResult, bends: Sequence[Source]) -> float | None:
    """Two-sided, of the hypothesis that the ratio is within the worst case of 1; None without a test."""
    if ratio.p_value is None or ratio.error is None or ratio.freedom is None:
        return None
    down, up = total(bends)
    centre = math.log(ratio.ratio)
    beyond = centre - down if centre > 0 else -centre - up
    if beyond <= 0 or math.isinf(beyond):
        return 1.0
    if ratio.error <= 0:
        return 0.0
    return 2 * float(special.stdtr(ratio.freedom, -beyond / ratio.error))


def settles(
    ratio: RatioResult, bends: Sequence[Source], level: float, margins: Margins, block_s: float | None
) -> Settles | None:
    """More blocks where noise is the obstacle, else the largest source; None where neither settles it."""
    down, up = total(bends)
    centre = math.log(ratio.ratio)
    against = down if centre > 0 else up
    # Room for chance that leaves a difference, or an equivalence.
    differ = abs(centre) - against - math.log1p(margins.least)
    alike = math.log1p(max(margins.band, EQUIVALENT_WITHIN)) - max(up + centre, down - centre)
    room = max(differ, alike)
    if bends and room <= 0 < against:
        side = [(source.down if centre > 0 else source.up, source.name) for source in bends]
        return Settles(max(side)[1], None)
    if ratio.error is None or not ratio.error or ratio.n < 2:
        return Settles(
            "blocks", None if block_s is None else block_s * max(1, 3 - ratio.n), max(1, 3 - ratio.n)
        )
    if room <= 0:
        return None
    spread = ratio.error * math.sqrt(ratio.n)
    last = ratio.n + MOST_BLOCKS if ratio.looks is None else ratio.looks.most
    blocks = np.arange(ratio.n + 1, last + 1)
    freedom = (1 if ratio.paired else 2) * (blocks - 1)
    if ratio.looks is None:
        critical = special.stdtrit(freedom, 1 - level / 2)
    else:
        limits = boundaries(ratio.looks, level)
        critical = np.asarray([limits.get(int(count), math.inf) for count in blocks])
    enough = np.flatnonzero((critical + special.stdtrit(freedom, POWER)) * spread / np.sqrt(blocks) <= room)
    if not enough.size:
        return None
    more = int(blocks[enough[0]]) - ratio.n
    return Settles("blocks", None if block_s is None else more * block_s, more)
