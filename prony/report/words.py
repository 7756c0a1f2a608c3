"""Lists of names, and what people say of a result. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from prony.report.result import ResultView


def join(words: Sequence[str]) -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""


def label_lines(view: ResultView) -> list[str]:
    """What people say of it, a line each: its tags, and every note with its time and author."""
    tags = [f"tags: {', '.join(view.tags)}"] if view.tags else []
    return tags + [
        f"note of {note.made.astimezone(UTC):%Y-%m-%d %H:%M} UTC by {note.by}: {note.text}"
        for note in view.notes
    ]
