"""The list of faults in the docs names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_fault_has_a_test_that_exists() -> None:
    lines = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| ")][2:]
    assert len(rows) >= 25
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "engine").rglob("*.rs"))
    known = {name for text in sources for name in re.findall(r"#\[test\]\s+fn (\w+)\(\)", text)}
    for row in rows:
        named = re.findall(r"`(\w+)`", row[3])
        assert named, row[1]
        assert set(named) <= known, (row[1], set(named) - known)
