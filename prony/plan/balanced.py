"""The order of servers within blocks: drawn, and balanced for position and for what came before.

An order that is merely drawn lets one of two servers go first in all of three blocks with a chance of one in
four, and whatever goes first on this host is then taken for the server. One that is merely balanced is always
the same, and what comes round as often as it does is then taken for the server.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise


def drawn_orders(items: int, source: random.Random) -> Iterator[tuple[int, ...]]:
    """Orders of range(items), without end: a block takes one, and each group of blocks is drawn anew.

    A group has as many blocks as a Williams square has rows (`items`, twice that where it is odd). In it
    every item has every place equally often, and within blocks follows every other equally often (Williams
    1949, Australian Journal of Scientific Research A 2). Which item has which place in the square is drawn,
    and so is the order of its rows, as far as the first `items` of them have every item once at every place.
    Of two items a group is 0 1, 1 0 or 1 0, 0 1, with equal chance.

    Groups know nothing of each other: what comes round every so many trials (a cron job, a collection) falls
    on an item by chance and not by the order. So does what follows what from one block to the next, which
    comparisons allow for (`prony.compare.carry_over`).
    """
    while True:
        yield from _rows_of(_square(items, source), lambda _row: 0)


def balanced_orders(items: int, source: random.Random) -> Iterator[tuple[int, ...]]:
    """As `drawn_orders`, but what follows what is balanced across blocks and groups too: each item follows
    each other one, and itself, about as often. So the loads of a process come, of which each leaves something
    behind (a grown heap, compiled code). Two items take turns as 0 1, 1 0, 0 1, 1 0 or the other way round,
    and nothing else is drawn of them.
    """
    followed: Counter[tuple[int, int]] = Counter()
    ran = [-1]  # nobody

    def followed_last(row: tuple[int, ...]) -> int:
        return followed[ran[-1], row[0]]

    while True:
        for order in _rows_of(_square(items, source), followed_last):
            followed.update(pairwise((ran[-1], *order)))
            ran.append(order[-1])
            yield order


def _square(items: int, source: random.Random) -> list[tuple[int, ...]]:
    """A Williams square with drawn items, its rows in drawn order."""
    if items < 1:
        raise ValueError(f"{items} items; expected at least 1")
    names = list(range(items))
    source.shuffle(names)
    rows = [tuple(names[place] for place in row) for row in williams_square(items)]
    source.shuffle(rows)
    return rows


def _rows_of(
    left: list[tuple[int, ...]], less: Callable[[tuple[int, ...]], int]
) -> Iterator[tuple[int, ...]]:
    """The rows of a square so that the first blocks are as near to balance of places as their number allows;
    of rows that are equally good the one that has least of `less`, then the one that was drawn first.
    """
    seen: list[tuple[int, ...]] = []
    while left:
        order = min(left, key=lambda row: (_repeats(row, seen), less(row)))
        left.remove(order)
        seen.append(order)
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
