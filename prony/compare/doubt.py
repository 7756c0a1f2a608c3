"""Why a verdict that an interval gives is not said: excluded trials, a server that may still change, an
effect of position. Must not know which verdicts there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from prony.compare.exclusion import undecided_because
from prony.compare.position import PositionEffect, places_later
from prony.compare.ratio import RatioResult, ratio, repeated_ratio
from prony.compare.samples import ServerValues

Holds = Callable[[float | None, float | None], bool]
"""Whether an interval still gives the verdict that is to be said."""


def doubt(
    a: ServerValues,
    b: ServerValues,
    found: RatioResult,
    holds: Holds,
    position: PositionEffect | None,
    drift: str = "",
) -> str:
    """Why the verdict of `found` (a ÷ b) is not said, as the end of a sentence; empty where it is. `drift`:
    what `drifting` says, where the verdict is one of closeness.
    """
    excluded = undecided_because(
        a.side,
        b.side,
        lambda *sides: measured_again(*sides, like=found, sampled=False),
        lambda other: holds(other.low, other.high),
    )
    if excluded or drift:
        return excluded or drift
    if position is None or not position.found or found.low is None or found.high is None:
        return ""
    factors = position.moves(places_later(a, b, paired=found.paired))
    if all(holds(found.low / factor, found.high / factor) for factor in factors):
        return ""
    return "the effect of position may have made the difference"


def drifting(
    a: ServerValues, b: ServerValues, drift: Mapping[str, float], allowed: float, verdict: str
) -> str:
    """Which server may still be further from its plateau than is allowed for this verdict (a share); empty
    where none may. `drift`: by server (`prony.judge.drift`), of those of which it is asked.
    """
    bounds = {side.server: drift.get(side.server, 0.0) for side in (a, b)}
    server, most = max(bounds.items(), key=lambda item: item[1])
    if most <= allowed:
        return ""
    if math.isinf(most):
        return f"the rows of {server} cannot tell how much is still to come"
    if most > 1:
        return f"how much {server} may still change cannot be bounded"
    return f"{server} may still change by {most * 100:.2g} %, too much for *{verdict}*"


def measured_again(
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


def without_suspects(
    a: ServerValues, b: ServerValues, found: RatioResult, holds: Holds, near: float
) -> RatioResult | None:
    """The result without suspect trials; None when there are none, or it gives the same verdict and a ratio
    that differs by at most `near` (a share).
    """
    if not any((*a.suspects, *b.suspects)):
        return None
    (values_a, blocks_a), (values_b, blocks_b) = a.without_suspects(), b.without_suspects()
    if not values_a or not values_b:
        return None
    other = measured_again(values_a, values_b, blocks_a, blocks_b, like=found)
    close = abs(math.log(other.ratio / found.ratio)) <= math.log1p(near)
    return None if holds(other.low, other.high) and close else other
