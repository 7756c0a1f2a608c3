"""In which order the tests are given to several workers. Must not know what a test does beyond its place.

Each worker begins with its share of the tests that start programs, which take longest, and ends with what
is quick and can be handed to a worker that has nothing left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TypeVar

LONGEST = ("e2e", "frontends")
WHOLE = ("cli", "conformance", "hosts", "peers", "report", "server", "store", "trial")
"""Where tests of a file share what takes long to make, or each takes many processes."""

Item = TypeVar("Item")


def dealt(items: Iterable[tuple[PurePath, Item]], workers: int) -> list[Item]:
    """Of (file below tests/, test): one share for each worker after the other, as many tests in each.

    Of `WHOLE`, whole files are dealt; the rest, test by test, makes the shares equal.
    """
    listed = list(items)
    hands = [[item] for file, item in listed if _in(file, LONGEST)]
    by_file: dict[PurePath, list[Item]] = {}
    for file, item in listed:
        if _in(file, WHOLE):
            by_file.setdefault(file, []).append(item)
    hands += by_file.values()
    hands += [[item] for file, item in listed if not _in(file, (*LONGEST, *WHOLE))]
    shares: list[list[Item]] = [[] for _ in range(max(1, workers))]
    for hand in hands:
        min(shares, key=len).extend(hand)
    return [item for share in shares for item in share]


def _in(file: PurePath, folders: Sequence[str]) -> bool:
    return any(file.is_relative_to(folder) for folder in folders)
