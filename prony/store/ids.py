"""Ids of experiments: short, sortable by time, easy to type."""

from __future__ import annotations

from datetime import UTC, datetime

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no i, l, o, u, in ASCII order, so that text order is numeric order."""

LETTERS = 4
_PER_DAY = len(ALPHABET) ** LETTERS
_DAY_S = 86_400
_MISTYPED = str.maketrans("ilo", "110")


def experiment_id(moment: datetime, later: int = 0) -> str:
    """`261121-9k3f`: date and time of day (UTC, 82 ms steps). `later`: steps to add if taken."""
    utc = moment.astimezone(UTC)
    seconds = utc.hour * 3600 + utc.minute * 60 + utc.second + utc.microsecond / 1e6
    step = min(int(seconds / _DAY_S * _PER_DAY) + later, _PER_DAY - 1)
    letters = ""
    for _ in range(LETTERS):
        step, digit = divmod(step, len(ALPHABET))
        letters = ALPHABET[digit] + letters
    return f"{utc:%y%m%d}-{letters}"


def as_typed(text: str) -> str:
    """A typed id normalised: lower case, with look-alike letters as digits."""
    return text.strip().lower().translate(_MISTYPED)


def looks_like_id(text: str) -> bool:
    date, dash, letters = as_typed(text).partition("-")
    return bool(dash) and len(date) == 6 and date.isdecimal() and len(letters) == LETTERS
