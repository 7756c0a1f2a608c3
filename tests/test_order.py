"""The order in which workers get the tests: what starts programs is dealt out and comes first."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from tests.order import dealt

FILES = {
    "cli/a.py": 2, "e2e/b.py": 4, "frontends/c.py": 3, "judge/d.py": 9, "report/e.py": 3, "report/f.py": 2,
}  # fmt: skip
ITEMS = [(PurePath(file), f"{file[-4]}{n}") for file, count in FILES.items() for n in range(count)]


@pytest.mark.parametrize("workers", [0, 1, 2, 3, 40])
def test_every_test_is_dealt_once(workers: int) -> None:
    assert sorted(dealt(ITEMS, workers)) == sorted(item for _, item in ITEMS)


def test_shares_are_equal_and_begin_with_what_starts_programs() -> None:
    order = " ".join(dealt(ITEMS, 2))
    # After seven single tests the second share is the smaller one, and has the whole file a.
    first = "b0 b2 c0 c2 e0 e1 e2 d0 d2 d4 d6 d8"
    second = "b1 b3 c1 a0 a1 f0 f1 d1 d3 d5 d7"
    assert order == f"{first} {second}"
