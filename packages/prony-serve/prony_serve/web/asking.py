"""Parsing of query strings. Raises Refusal with the invalid value and the expected one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from prony.store import Search
from prony_serve.web.refusal import Refusal

FIELDS = ("q", "server", "workload", "command", "conforming", "tag", "host", "since", "until")
YES_OR_NO = ("yes", "no")
MOST_CHARACTERS = 200
PAGE_ROWS = 50
MOST_ROWS = 500
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def fields(query: Mapping[str, str]) -> dict[str, str]:
    """The non-empty fields of a search: parameters of their own, or `name:value` among the words of `q`."""
    fields = {name: query.get(name, "").strip() for name in FIELDS}
    for name, value in fields.items():
        if len(value) > MOST_CHARACTERS:
            raise Refusal(400, f"'{name}' has {len(value)} characters; expected at most {MOST_CHARACTERS}")
        if "\0" in value:
            raise Refusal(400, f"'{name}' has a NUL character, which nothing stored has")
    texts: list[str] = []
    for word in _words(fields.pop("q")):
        name, colon, value = word.partition(":")
        if colon and value and name in fields:
            fields[name] = value
        else:
            texts.append(word)
    fields["q"] = " ".join(texts)
    return {name: value for name, value in fields.items() if value}


def _words(text: str) -> list[str]:
    """Words; one in double quotes may have blanks."""
    return [
        f"{name}{quoted or plain}" for name, quoted, plain in re.findall(r'(\w+:)?(?:"([^"]*)"|(\S+))', text)
    ]


def box(fields: Mapping[str, str]) -> str:
    """The fields as the words of one search box; `fields` reads them."""
    named = (
        f'{name}:"{value}"' if " " in value else f"{name}:{value}"
        for name, value in fields.items()
        if name != "q"
    )
    return " ".join(filter(None, (fields.get("q", ""), *named)))


def search(fields: Mapping[str, str], now: datetime | None = None) -> Search:
    """The store's search for these fields."""
    conforming = fields.get("conforming")
    if conforming not in (None, *YES_OR_NO):
        raise Refusal(400, f"conforming is '{conforming}'; expected yes or no")
    return Search(
        text=fields.get("q"),
        server=_glob(fields.get("server")),
        workload=_glob(fields.get("workload")),
        command=fields.get("command"),
        conforming=None if conforming is None else conforming == "yes",
        tag=fields.get("tag"),
        fingerprint_key=fields.get("host"),
        since=moment("since", fields.get("since"), now),
        until=moment("until", fields.get("until"), now),
    )


def _glob(word: str | None) -> str | None:
    """A word without a wildcard matches any part of a name."""
    return word if word is None or "*" in word or "?" in word else f"*{word}*"


def moment(name: str, text: str | None, now: datetime | None = None) -> datetime | None:
    """A date or time (UTC unless it has a zone), or an age such as 30d, 12h or 4w."""
    if text is None:
        return None
    ago = re.fullmatch(r"(\d{1,5})([hdw])", text)
    try:
        if ago is not None:
            return (now or datetime.now(UTC)) - int(ago[1]) * _UNITS[ago[2]]
        parsed = datetime.fromisoformat(text)
        return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Refusal(400, f"{name} is '{text}'; expected a date, or a time ago as 30d") from None


def whole(query: Mapping[str, str], name: str, default: int, most: int, least: int = 0) -> int:
    """An integer of the query, within bounds."""
    text = query.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or len(text) > 9 or not least <= int(text) <= most:
        raise Refusal(400, f"{name} is '{text[:40]}'; expected a whole number from {least} to {most}")
    return int(text)


def needed(query: Mapping[str, str], *names: str) -> list[str]:
    """The values of required fields."""
    missing = [name for name in names if not query.get(name)]
    if missing:
        raise Refusal(400, f"the address lacks {', '.join(missing)}")
    return [query[name] for name in names]
