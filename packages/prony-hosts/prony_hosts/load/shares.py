"""Splits a load over several engines by weight: pure functions.

Each engine gets the whole load and its own slots, and numbers its users, arrivals, rows and sequences as it
does over threads. So sums are exact for any weights, nothing is doubled, and constant arrivals stay evenly
spaced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from prony.errors import UsageError
from prony.load.contract import EngineLoad, Share
from prony.plan.load import ClosedLoad

MOST_SLOTS = 10_000
"""Bounds the number of slots: weights are met to within 1/10,000."""


def shared(load: EngineLoad, weights: Sequence[float]) -> tuple[EngineLoad | None, ...]:
    """Loads by weight; None with fewer users than engines. Raises UsageError if it cannot be split."""
    if not weights or not all(math.isfinite(weight) and weight > 0 for weight in weights):
        given = ", ".join(f"{weight:g}" for weight in weights)
        raise UsageError(f"weights of the load hosts are [{given}]: expected at least one, all above 0")
    _refuse(load)
    together = [load.model_copy(update={"share": share, "start": "commanded"}) for share in slots(weights)]
    return tuple(
        part if part.share is not None and _takes_part(part, part.share) else None for part in together
    )


def slots(weights: Sequence[float]) -> tuple[Share, ...]:
    """Slots per weight: proportional, and spread as evenly as whole numbers allow."""
    counts = _whole(weights)
    of = sum(counts)
    owners: list[list[int]] = [[] for _ in counts]
    # Smooth weighted round robin: per turn each earns its count, and the richest pays for the slot.
    earned = [0] * len(counts)
    for slot in range(of):
        earned = [have + count for have, count in zip(earned, counts, strict=True)]
        owner = max(range(len(counts)), key=lambda place: (earned[place], -place))
        earned[owner] -= of
        owners[owner].append(slot)
    return tuple(Share(slots=tuple(own), of=of) for own in owners)


def _whole(weights: Sequence[float]) -> list[int]:
    """The smallest whole numbers in the ratio of the weights, at most MOST_SLOTS in sum."""
    exact = [Fraction(str(weight)) for weight in weights]
    common = math.lcm(*(fraction.denominator for fraction in exact))
    counts = [int(fraction * common) for fraction in exact]
    divisor = math.gcd(*counts)
    counts = [count // divisor for count in counts]
    total = sum(counts)
    if total <= MOST_SLOTS:
        return counts
    return [max(1, round(count * MOST_SLOTS / total)) for count in counts]


def _takes_part(load: EngineLoad, share: Share) -> bool:
    """Whether this engine gets any users."""
    whole = load.load
    if load.total_requests is not None and share.count(load.total_requests) == 0:
        return False
    if isinstance(whole, ClosedLoad):
        return share.count(whole.users) > 0
    return share.count(whole.user_cap) > 0


def _refuse(load: EngineLoad) -> None:
    """Raises UsageError for a load that cannot be split."""
    for given, what, instead in (
        (load.script is not None, "a script in Lua", "write the load as a workload"),
        (load.rate_groups is not None, "the rates of wrk's threads", "use `prony load`"),
        (load.log is not None, "a request log", "leave it out, or measure from one host"),
    ):
        if given:
            raise UsageError(f"{what} cannot be split over several load hosts: {instead}")
