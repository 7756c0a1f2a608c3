"""Parsers and checks of option values, shared by the commands."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import ValidationError
from typer import Argument, Option

from prony.errors import UsageError

Which = Annotated[str, Argument(metavar="ID", help="An id or its beginning, a tag, or 'latest'.")]
Db = Annotated[str | None, Option("--db", help="Result store: a file or an SQLAlchemy URL.")]
Json = Annotated[bool, Option("--json", help="Print JSON instead of tables.")]
Report = Annotated[Path | None, Option("--report", help="Write a self-contained HTML report to this file.")]
Details = Annotated[
    bool, Option("--details", help="Also print every table, check and trial behind the answer.")
]
Limits = Annotated[
    list[str] | None,
    Option("--limits", metavar="KEY=VALUE|FILE", help="Limits of the checks instead of the defaults "
           "(docs/method.md), or a YAML file of them. Repeatable."),
]  # fmt: skip

MAX_USERS = 1_000_000
MAX_TRIALS = 1_000
MAX_RATE_PER_S = 10_000_000.0
MAX_SECONDS = 7 * 24 * 3600.0

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def _up_to(most: int, value: int, refusal: str, shown: str = "") -> int:
    if not 1 <= value <= most:
        raise UsageError(f"{refusal}; expected 1 to {shown or f'{most:,}'}")
    return value


def users(value: int) -> int:
    """A number of users, 1 to a million."""
    return _up_to(MAX_USERS, value, f"{value} users requested")


def max_users(value: int) -> int:
    """Maximum concurrent requests of an open loop."""
    return _up_to(MAX_USERS, value, f"--max-users is {value}")


def trials(value: int) -> int:
    """A number of trials per server, 1 to a thousand."""
    return _up_to(MAX_TRIALS, value, f"{value} trials requested")


def requests(value: int) -> int:
    """A total of requests."""
    return _up_to(10**12, value, f"{value} requests requested", "10^12")


def rate(value: float) -> float:
    """Arrivals per second of an open loop."""
    if not 0.001 <= value <= MAX_RATE_PER_S:
        raise UsageError(f"--rate is {value:g}; expected 0.001 to {MAX_RATE_PER_S:,.0f} requests per second")
    return value


def seconds(text: str, what: str, *, at_least_s: float = 0.0) -> float:
    """A time such as `30`, `30s`, `1.5m`, `2h`, `500ms`, in seconds."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)?\s*", text)
    if match is None:
        raise UsageError(f"{what} is '{text}'; expected a time such as 30s, 1.5m or 500ms")
    value = float(match[1]) * _UNITS_S[match[2] or "s"]
    if not at_least_s <= value <= MAX_SECONDS:
        raise UsageError(f"{what} is {text}; expected {at_least_s:g} s to 7 days")
    return value


_UNITS_OF_AGE = {"h": "hours", "d": "days", "w": "weeks"}


def age(text: str, what: str) -> timedelta:
    """How far back, such as `12h`, `30d` or `8w`."""
    match = re.fullmatch(r"\s*(\d{1,5})\s*([hdw])\s*", text)
    if match is None:
        raise UsageError(f"{what} is '{text}'; expected hours, days or weeks such as 12h, 30d or 8w")
    return timedelta(**{_UNITS_OF_AGE[match[2]]: int(match[1])})


def moment(text: str, what: str) -> datetime:
    """A point in time: an age (`30d`), a date (local midnight), or ISO 8601."""
    if re.fullmatch(r"\s*\d+\s*[a-z]\s*", text):
        return datetime.now(UTC) - age(text, what)
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{what} is '{text}'; expected how long ago (30d, 8w, 12h), a date (2026-11-22) or a time "
            "(2026-11-22T14:30)"
        ) from None


def share(text: str, what: str) -> float:
    """A share above 0 and below 1, such as `2%` or `0.02`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    value = None if match is None else float(match[1]) / (100 if match[2] else 1)
    if value is None or not 0 < value < 1:
        raise UsageError(f"{what} is '{text}'; expected a share such as 2% or 0.02, above 0 and below 1")
    return value


def one_of(value: str, what: str, known: tuple[str, ...]) -> str:
    """A known word."""
    if value not in known:
        raise UsageError(f"{what} is '{value}'; expected {', '.join(known[:-1])} or {known[-1]}")
    return value


def settings(given: list[str]) -> dict[str, float]:
    """Settings of a workload such as `delay_ms=50`, name -> value."""
    values: dict[str, float] = {}
    for text in given:
        name, equals, value = text.partition("=")
        try:
            values[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise UsageError(f"--set is '{text}'; expected a name and a number, such as delay_ms=50")
    return values


def limits(given: Sequence[str] | None) -> dict[str, Any]:
    """Limits of checks by key, from `key=value` and files: a mapping of keys, or a plan file with `limits:`.
    What stands later replaces what stands earlier. Raises UsageError.
    """
    from prony.judge.limits import CheckLimits
    from prony.plan.yamlfile import nearest, read_mapping, validate

    numbers: dict[str, Any] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals:
            path = Path(text)
            read, lines = read_mapping(path)
            inner = read.get("limits", read)
            if not isinstance(inner, dict):
                raise UsageError(
                    f"{path}: 'limits' is not a mapping; expected lines such as errors_share_max: 0.05"
                )
            below = {where[1:]: line for where, line in lines.items() if where[0] == "limits"}
            validate(CheckLimits, inner, path, below if inner is not read else lines)
            numbers |= inner
            continue
        known = CheckLimits.model_fields
        if key not in known:
            raise UsageError(
                f"--limits: unknown limit '{key}'{nearest(key, list(known)) or '; docs/method.md lists them'}"
            )
        try:
            number = float(value)
            CheckLimits.model_validate({key: number})
        except ValueError as fault:  # a ValidationError is one
            message = fault.errors()[0]["msg"] if isinstance(fault, ValidationError) else "expected a number"
            raise UsageError(f"--limits: {key} is '{value}': {message}") from fault
        numbers[key] = number
    return numbers


def seed(value: int | None) -> int:
    """The given seed, or a random one (recorded with the results)."""
    if value is None:
        return secrets.randbelow(2**31)
    if not 0 <= value < 2**63:
        raise UsageError(f"the seed is {value}; expected 0 to 2^63 - 1")
    return value


def writable(file: Path, option: str = "--report") -> None:
    """Raises UsageError when a report could not be written here, before any time is spent on measuring."""
    if file.is_dir():
        raise UsageError(
            f"{option} names {file}, which is a folder; name a file, such as {file / 'report.html'}"
        )
    if not file.parent.is_dir():
        raise UsageError(f"{option}: no directory {file.parent} for {file}; create it first")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise UsageError(f"{option} names {file}, where you may not write; name another file")
