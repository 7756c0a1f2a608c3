"""Placeholders and captures of the preflight and of the conformance suite. The engine renders what is
measured; this follows its rules (docs/engine.md) closely enough for single requests.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import random
import re
import time
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import quote, quote_plus

from prony.errors import UsageError
from prony.plan.response import Capture, at_pointer
from prony.plan.workload import Feeder

PART = re.compile(r"\$\$\{|\$\{([^}]*)\}")
LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
IN_A_PATH = "!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


class Values:
    """What placeholders stand for, step after step. A sequence gives the number before its first, so that the
    preflight takes nothing away from the load. `known` are values that are there from the start.
    """

    def __init__(self, feeders: Mapping[str, Feeder], known: Mapping[str, str] | None = None) -> None:
        self._known: dict[str, str] = dict(known or {})
        for name, feeder in feeders.items():
            self._known |= {f"{name}.{column}": value for column, value in _first_row(name, feeder).items()}

    def render(self, text: str, *, path: bool = False) -> str:
        """The text with its placeholders filled in. Raises UsageError for one that is not known."""

        def one(match: re.Match[str]) -> str:
            inside = match[1]
            if inside is None:
                return "${"
            value = self._value(inside)
            return quote(value, safe=IN_A_PATH) if path else value

        return PART.sub(one, text)

    def take(
        self, captures: Mapping[str, Capture], status: int, headers: Mapping[str, str], body: bytes
    ) -> str | None:
        """Keep what the step captures; None, or which value was not there. `headers` has lower-case names."""
        for name, capture in captures.items():
            if not capture.in_preflight:
                continue
            found = _found(capture, status, headers, body)
            if capture.match == -1:
                self._known[f"{name}_matchNr"] = str(len(found))
                self._known |= {f"{name}_{number}": value for number, value in enumerate(found, 1)}
                if found:
                    continue
            place = max(capture.match, 1)
            value = found[place - 1] if len(found) >= place else capture.default
            if value is None and not capture.optional:
                return f"there is nothing to capture as '{name}'"
            if value is not None:
                self._known[name] = value
        return None

    def _value(self, inside: str) -> str:
        words, *filters = inside.split("|")
        value = self._generated(words.split())
        for wanted in filters:
            value = _filtered(value, wanted.strip())
        return value

    def _generated(self, words: list[str]) -> str:
        match words:
            case ["sequence", *options]:
                numbers = dict(option.split("=", 1) for option in options if "=" in option)
                return str(int(numbers.get("start", "1")) - int(numbers.get("step", "1")))
            case ["uuid"]:
                return str(uuid.uuid4())
            case ["random", "int", low, high]:
                return str(random.randint(int(low), int(high)))
            case ["random", "string", length]:
                return "".join(random.choices(LETTERS, k=int(length)))
            case ["random", "string", length, alphabet]:
                return "".join(random.choices(alphabet, k=int(length)))
            case ["time"]:
                return str(time.time_ns() // 1_000_000)
            case ["time", "s"]:
                return str(int(time.time()))
            case ["date", _, *_]:
                return _date(words[1:])
            case ["user" | "iteration"]:
                return "1"
            case ["next", _]:
                return ""  # of a row that is not the load's
            case ["random", "choice", *choices] if choices:
                return random.choice(choices)
            case [name] if name in self._known:
                return self._known[name]
        known = ", ".join(self._known) or "none"
        raise UsageError(
            f"the placeholder ${{{' '.join(words)}}} is not known; known names: {known}; "
            "and sequence, uuid, random, time, date, user, iteration"
        )


def _filtered(value: str, wanted: str) -> str:
    match wanted:
        case "json":
            return json.dumps(value, ensure_ascii=False)[1:-1]
        case "url":
            return quote(value, safe="-._~")
        case "form":
            return quote_plus(value, safe="*-._").replace("~", "%7E")
        case "upper":
            return value.upper()
        case "lower":
            return value.lower()
        case "base64":
            return base64.b64encode(value.encode()).decode()
        case "md5" | "sha1" | "sha256" | "sha384" | "sha512":
            return hashlib.new(wanted, value.encode(), usedforsecurity=False).hexdigest()
    word, _, number = wanted.partition(" ")
    match word:
        case "digits" if number.isdigit():
            return value.zfill(int(number) + value.startswith("-"))
        case "plus" if re.fullmatch(r"[+-]?\d+", value):
            return str(int(value) + int(number))
    return value


DATE_PARTS = {
    "year": "%Y", "year repr:last_two": "%y", "month": "%m", "month repr:short": "%b",
    "month repr:long": "%B", "day": "%d", "ordinal": "%j", "weekday": "%A", "weekday repr:short": "%a",
    "hour": "%H", "hour repr:12": "%I", "period": "%p", "minute": "%M", "second": "%S",
}  # fmt: skip
"""Of the engine's dates (docs/engine.md) -> Python's."""


def _date(words: list[str]) -> str:
    options = {"offset_s": 0, "shift_s": 0}
    while words and (found := re.fullmatch(r"(offset_s|shift_s)=(-?\d+)", words[0])):
        options[found.group(1)] = int(found.group(2))
        words = words[1:]
    zone = timezone(timedelta(seconds=options["offset_s"]))
    when = datetime.now(zone) + timedelta(seconds=options["shift_s"])
    zone_text = when.strftime("%z")

    def part(match: re.Match[str]) -> str:
        name, _, plain = match.group(1).partition(" padding:")
        if name.startswith("subsecond"):
            return f"{when.microsecond:06}"[: int(name[-1])]
        if name.startswith("unix_timestamp"):
            return str(int(when.timestamp() * (1000 if name.endswith("millisecond") else 1)))
        if name.startswith("offset_hour"):
            return zone_text[:3]
        if name == "offset_minute":
            return zone_text[3:5]
        shown = when.strftime(DATE_PARTS.get(name, match.group(0)))
        return shown.lstrip("0") or "0" if plain == "none" else shown

    return re.sub(r"\[([^\]]*)\]", part, " ".join(words))


def _first_row(name: str, feeder: Feeder) -> dict[str, str]:
    if feeder.file is None:
        return dict(zip(feeder.columns, feeder.rows[0], strict=True))
    try:
        with Path(feeder.file).open(encoding="utf-8", newline="") as file:
            columns = feeder.columns or None
            reader = csv.DictReader(
                file, columns, delimiter=feeder.delimiter, quotechar='"' if feeder.quotes else None
            )
            row = next(reader, None)
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"the feeder '{name}' cannot be read: {fault}") from fault
    if row is None:
        raise UsageError(f"the feeder '{name}' ({feeder.file}) has no row of values")
    return {column.strip(): value or "" for column, value in row.items() if column is not None}


def _found(capture: Capture, status: int, headers: Mapping[str, str], body: bytes) -> list[str]:
    """Everything that is found, in its order."""
    if capture.status:
        return [str(status)]
    if capture.header is not None:
        value = headers.get(capture.header.lower())
        return [] if value is None else [value]
    if capture.cookie is not None:
        # The values of a repeated header are joined.
        pattern = rf"(?:^|,\s*){re.escape(capture.cookie)}=([^;,]*)"
        return re.findall(pattern, headers.get("set-cookie", ""))
    text = body.decode(errors="replace")
    if capture.regex is not None:
        matches = list(re.finditer(capture.regex, text))
        group = capture.group
        return [
            str(match[number])
            for match in matches
            if match[number := min(1, match.re.groups) if group is None else group] is not None
        ]
    if capture.boundary is not None:
        left, right = re.escape(capture.boundary.left), re.escape(capture.boundary.right)
        found = re.findall(rf"(?s){left or '^'}(.*?)(?={right or '$(?!.)'})", text)
        return found if left and right else found[:1]
    try:
        value = at_pointer(json.loads(body), capture.json_pointer or "")
    except (ValueError, LookupError):
        return []
    if value is None:
        return []
    return [value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)]
