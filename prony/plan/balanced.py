"""Order of servers within blocks: random, and balanced for position and predecessor. A random order may be
confounded with position, a fixed balanced one with anything periodic.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise


def drawn_orders(items: int, source: random.Random) -> Iterator[tuple[int, ...]]:
    """Endless orders of range(items), one per block; each group of blocks is drawn anew.

    A group has one block per row of a Williams square (`items`, or twice that if odd): every item has every
    position, and follows every other within blocks, equally often (Williams 1949, Australian Journal of
    Scientific Research A 2). Groups are independent, so periodic events fall on items by chance, and so do
    neighbours across blocks, which comparisons allow for (`prony.compare.shared`).
    """
    while True:
        yield from _rows_of(_square(items, source), lambda _row: 0)


def balanced_orders(items: int, source: random.Random) -> Iterator[tuple[int, ...]]:
    """As `drawn_orders`, with predecessors balanced across blocks and groups too: each item follows each
    other one, and itself, about equally often. For the loads of a process, which leave effects (a grown heap,
    compiled code). Two items alternate as 0 1, 1 0, 0 1, 1 0 or the reverse.
    """
    followed: Counter[tuple[int, int]] = Counter()
    ran = [-1]  # no predecessor

    def followed_last(row: tuple[int, ...]) -> int:
        return followed[ran[-1], row[0]]

    while True:
        for order in _rows_of(_square(items, source), followed_last):
            followed.update(pairwise((ran[-1], *order)))
            ran.append(order[-1])
            yield order


def _square(items: int, source: random.Random) -> list[tuple[int, ...]]:
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
    """The rows, ordered so that the first blocks balance positions; ties by `less`, then as drawn."""
    seen: list[tuple[int, ...]] = []
    while left:
        order = min(left, key=lambda row: (_repeats(row, seen), less(row)))
        left.remove(order)
        seen.append(order)
        yield order


def williams_square(items: int) -> list[tuple[int, ...]]:
    """`items` rows, or twice as many if odd: the second half mirrors the first."""
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
