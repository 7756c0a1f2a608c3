"""The order of servers within blocks, balanced for position and for what came before. Must not know servers.

An order that is merely drawn lets one of two servers go first in all of three blocks with a chance of one in
four, and whatever goes first on this host is then taken for the server.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise


def balanced_orders(items: int, source: random.Random) -> Iterator[tuple[int, ...]]:
    """Orders of range(items), without end: a block takes one.

    Each run of as many orders as a Williams square has rows (`items` of them, twice that where it is odd)
    puts every item at every position equally often and lets each follow every other equally often (Williams
    1949, Australian Journal of Scientific Research A 2). Which item has which place in the square is drawn
    anew for each square, and the order of its rows so that the first blocks are as near to balance as their
    number allows; position then says nothing of the item. Of rows that are equally good, the one follows
    whose first item came least often after the block before: what a trial leaves behind for the next one
    then falls on all alike, also across blocks (two items take turns as 0 1, 1 0, 0 1, 1 0).
    """
    if items < 1:
        raise ValueError(f"{items} items; expected at least 1")
    followed: Counter[tuple[int, int]] = Counter()
    last = -1  # nobody
    while True:
        names = list(range(items))
        source.shuffle(names)
        left = [tuple(names[place] for place in row) for row in williams_square(items)]
        source.shuffle(left)
        seen: list[tuple[int, ...]] = []
        while left:
            order = min(left, key=lambda row: (_repeats(row, seen), followed[last, row[0]]))
            left.remove(order)
            seen.append(order)
            followed.update(pairwise((last, *order)))
            last = order[-1]
            yield order


def williams_square(items: int) -> list[tuple[int, ...]]:
    """`items` rows, or twice as many for an odd number: the second half is the first one backwards."""
    first = [0]
    low, high = 1, items - 1
    while len(first) < items:
        first.append(low if len(first) % 2 else high)
        low, high = (low + 1, high) if len(first) % 2 == 0 else (low, high - 1)
    rows = [tuple((place + shift) % items for place in first) for shift in range(items)]
    if items % 2 and items > 1:
        rows += [tuple(reversed(row)) for row in rows]
    return rows


def _repeats(row: tuple[int, ...], seen: list[tuple[int, ...]]) -> int:
    return sum(a == b for before in seen for a, b in zip(row, before, strict=True))
