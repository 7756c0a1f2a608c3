"""What a front end refuses and notes, compared by code and the values named, not by the sentence."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from prony_frontends.base import Note, Reason, Refused


def refuses(code: Reason = "unsupported", *values: str, line: int | None = None) -> pytest.RaisesExc[Refused]:
    """Expects a refusal of this kind that names these values (its element, what it found, the remedy)."""

    def check(fault: Refused) -> bool:
        named = f"{fault.element}: {fault.found}; {fault.instead}"
        at = line is None or fault.line == line
        return fault.code == code and at and all(value in named for value in values)

    return pytest.raises(Refused, check=check)


def noted(notes: Iterable[Note], code: str, *values: str) -> bool:
    """Whether a note of this kind names these values."""
    return any(note.code == code and all(value in str(note) for value in values) for note in notes)
