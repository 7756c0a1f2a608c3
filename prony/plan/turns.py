"""Turns of a duet: when each of its servers is loaded, and in which order. Pure."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

from prony.plan.balanced import drawn_orders, williams_square

TURN_S = 1.0
"""Measured part of a turn: short against changes of the host's speed, long against responses."""
LEFT_OUT_S = 0.2
"""Unmeasured start of each turn, in which caches and queues fill."""
LENGTH_S = LEFT_OUT_S + TURN_S


class Turn(NamedTuple):
    """A turn of a server, s from the first turn's start; measured from `opens_s` to `ends_s`."""

    server: int
    begins_s: float
    opens_s: float
    ends_s: float

    @property
    def measured(self) -> bool:
        return self.opens_s < self.ends_s


def turns(seed: str, servers: int, window_s: float) -> list[Turn]:
    """A round of practice, then rounds of a turn for each of `servers`, in an order drawn from `seed` and
    balanced over groups of rounds (ABBA or BAAB for two). At least `window_s` of each server are measured.
    """
    orders, group = drawn_orders(servers, random.Random(seed)), len(williams_square(servers))
    rounds = group * math.ceil(round(window_s / TURN_S, 6) / group)
    practice = next(drawn_orders(servers, random.Random(f"{seed}/practice")))
    sequence = [(server, LENGTH_S) for server in practice]
    sequence += [(server, LEFT_OUT_S) for _ in range(rounds) for server in next(orders)]
    at_s = [round(place * LENGTH_S, 6) for place in range(len(sequence) + 1)]
    return [
        Turn(server, at_s[place], round(at_s[place] + left_out_s, 6), at_s[place + 1])
        for place, (server, left_out_s) in enumerate(sequence)
    ]


def extra_s(window_s: float) -> float:
    """Additional duration of a trial in turns, s."""
    return LEFT_OUT_S * window_s / TURN_S + LENGTH_S
