"""Text for a terminal that does not obey it."""

from __future__ import annotations

import re

_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Without the characters that a terminal obeys (C0 and C1 controls); lines and tabs stay."""
    return text if text.isprintable() else _OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)
