"""Tests of wording: whole texts, as files of `tests/report/screens/`. After a change of words `make wording`
writes them anew; read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "report" / "screens"


def assert_as_written(name: str, text: str) -> None:
    """Compares a text with its file; with WORDING=write it becomes the file."""
    file = FOLDER / f"{name}.txt"
    if os.environ.get("WORDING") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"reworded? make wording, and read {file.name}"
