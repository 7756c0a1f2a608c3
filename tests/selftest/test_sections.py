"""docs/truth.md has a place for the tables of every section."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.selftest.__main__ import SECTIONS, marks
from prony.selftest.tables import replace_between

TRUTH = Path(__file__).resolve().parents[2] / "docs" / "truth.md"


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_has_its_marks(section: str) -> None:
    changed = replace_between(TRUTH.read_text(encoding="utf-8"), *marks(section), "\nTABLE\n")
    assert changed.count("TABLE\n") == 1
