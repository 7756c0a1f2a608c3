"""The two-pass protocol: how much each server carries, then how fast it is at a share of that. Pure.

Must not run trials.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prony.errors import EnvironmentFault
from prony.plan.load import OpenLoad
from prony.plan.spec import ExperimentPlan

SHARE = 0.7
"""Of the capacity: busy, and not yet a queue that grows with every accident."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What is offered in the second pass, in requests per second."""

    own: Mapping[str, float]
    """70 % of each server's own capacity."""
    common: float
    """70 % of the lowest capacity: a rate that all can carry."""


def rates(capacities: Mapping[str, Sequence[float]], servers: Sequence[str]) -> Rates:
    """From the requests per second of the closed-loop trials that count; a capacity is their geometric mean.

    Raises EnvironmentFault when a server has none: a share of an unknown capacity is no load.
    """
    bare = [server for server in servers if not capacities.get(server)]
    if bare:
        raise EnvironmentFault(
            f"the second pass needs the capacity of {' and '.join(bare)}, of which no trial counts; "
            "the findings of the first pass, which is stored, say what to mend"
        )
    own = {
        server: _rounded(SHARE * math.exp(sum(math.log(v) for v in values) / len(values)))
        for server, values in ((server, capacities[server]) for server in servers)
    }
    return Rates(own, min(own.values()))


def _rounded(rate: float) -> float:
    """Three significant digits, downwards: rates that people can repeat."""
    unit = 10.0 ** (math.floor(math.log10(rate)) - 2)
    return round(math.floor(rate / unit + 1e-9) * unit, 6)


def second_pass(first: ExperimentPlan, found: Rates) -> tuple[ExperimentPlan, ExperimentPlan]:
    """The plans at each server's own rate, and at the common one: as the first, in an open loop."""
    trial = first.trial.model_copy(
        update={"load": OpenLoad(rate_per_s=found.common), "published_requests": None}
    )
    plain = {"trial": trial, "controls": 0, "until_clear": None}
    own = {
        **plain,
        "title": f"{first.title}, at 70 % of each server's capacity",
        "own_loads": {server: OpenLoad(rate_per_s=rate) for server, rate in found.own.items()},
    }
    common = {**plain, "title": f"{first.title}, at {found.common:g} requests/s"}
    return first.model_copy(update=own), first.model_copy(update=common)
