"""Shares out one load over several engines by weight: pure functions.

A load is not cut into smaller loads: each engine is given the whole of it and which slots are its own, and
numbers its users, arrivals, rows and sequences as it does over its threads. So sums are exact whatever the
weights, nothing is doubled, and constant arrivals of all engines are those of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from prony.errors import UsageError
from prony.load.contract import EngineLoad, Share
from prony.plan.load import ClosedLoad

MOST_SLOTS = 10_000
"""Weights that need more slots are not met more closely: an error of a ten-thousandth."""


def shared(load: EngineLoad, weights: Sequence[float]) -> tuple[EngineLoad | None, ...]:
    """The load of each engine, in the order of the weights; None for one that has no part in it (there are
    fewer users than engines). Raises UsageError for a load that several engines cannot offer.
    """
    if not weights or not all(math.isfinite(weight) and weight > 0 for weight in weights):
        given = ", ".join(f"{weight:g}" for weight in weights)
        raise UsageError(f"weights of the load hosts are [{given}]: expected one or more, each above 0")
    _refuse(load)
    together = [load.model_copy(update={"share": share, "start": "commanded"}) for share in slots(weights)]
    return tuple(one if one.share is not None and _takes_part(one, one.share) else None for one in together)


def slots(weights: Sequence[float]) -> tuple[Share, ...]:
    """The slots of each weight: as many as its part of the sum, spread as evenly as whole numbers allow."""
    counts = _whole(weights)
    of = sum(counts)
    owners: list[list[int]] = [[] for _ in counts]
    # Smooth weighted round robin: in each turn all earn their count, and the richest pays for the slot.
    earned = [0] * len(counts)
    for slot in range(of):
        earned = [have + count for have, count in zip(earned, counts, strict=True)]
        owner = max(range(len(counts)), key=lambda place: (earned[place], -place))
        earned[owner] -= of
        owners[owner].append(slot)
    return tuple(Share(slots=tuple(own), of=of) for own in owners)


def _whole(weights: Sequence[float]) -> list[int]:
    """The smallest whole numbers in the ratio of the weights, MOST_SLOTS together at most."""
    exact = [Fraction(str(weight)) for weight in weights]
    common = math.lcm(*(one.denominator for one in exact))
    counts = [int(one * common) for one in exact]
    divisor = math.gcd(*counts)
    counts = [count // divisor for count in counts]
    total = sum(counts)
    if total <= MOST_SLOTS:
        return counts
    return [max(1, round(count * MOST_SLOTS / total)) for count in counts]


def _takes_part(load: EngineLoad, share: Share) -> bool:
    """Whether this engine has anybody."""
    whole = load.load
    if load.total_requests is not None and share.count(load.total_requests) == 0:
        return False
    if isinstance(whole, ClosedLoad):
        return share.count(whole.users) > 0
    return share.count(whole.user_cap) > 0


def _refuse(load: EngineLoad) -> None:
    """What cannot be shared out."""
    for given, what, instead in (
        (load.script is not None, "a script in Lua", "write the load as a workload"),
        (load.rate_groups is not None, "the rates of wrk's threads", "use `prony load`"),
        (load.log is not None, "a request log", "leave it out, or measure from one host"),
    ):
        if given:
            raise UsageError(f"{what} cannot be shared out over several load hosts: {instead}")
