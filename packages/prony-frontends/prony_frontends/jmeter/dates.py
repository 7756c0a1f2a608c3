"""Dates in JMeter's functions: Java's patterns as the engine's `${date …}`, or a constant text."""

from __future__ import annotations

import re
import time
from datetime import UTC, date, datetime, timedelta, timezone

from prony_frontends.jmeter.functions import Call, Text

NAMED = {"YMD": "yyyyMMdd", "HMS": "HHmmss", "YMDHMS": "yyyyMMdd-HHmmss"}
"""JMeter's time.YMD and others."""
LETTERS = {
    "yyyy": ("[year]", "%Y"), "y": ("[year]", "%Y"), "uuuu": ("[year]", "%Y"),
    "yy": ("[year repr:last_two]", "%y"), "MMMM": ("[month repr:long]", "%B"),
    "MMM": ("[month repr:short]", "%b"), "MM": ("[month]", "%m"), "M": ("[month padding:none]", "%m"),
    "dd": ("[day]", "%d"), "d": ("[day padding:none]", "%d"), "DDD": ("[ordinal]", "%j"),
    "EEEE": ("[weekday]", "%A"), "EEE": ("[weekday repr:short]", "%a"), "EE": ("[weekday repr:short]", "%a"),
    "E": ("[weekday repr:short]", "%a"), "HH": ("[hour]", "%H"), "H": ("[hour padding:none]", "%H"),
    "hh": ("[hour repr:12]", "%I"), "h": ("[hour repr:12 padding:none]", "%I"), "a": ("[period]", "%p"),
    "mm": ("[minute]", "%M"), "m": ("[minute padding:none]", "%M"), "ss": ("[second]", "%S"),
    "s": ("[second padding:none]", "%S"), "SSS": ("[subsecond digits:3]", "%f"),
    "S": ("[subsecond digits:3]", "%f"), "Z": ("[offset_hour sign:mandatory][offset_minute]", "%z"),
    "XXX": ("[offset_hour sign:mandatory]:[offset_minute]", "%z"),
}  # fmt: skip
"""Letters in Java's patterns -> the engine's and Python's directives."""
PART = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^'A-Za-z]+", re.DOTALL)
DURATION = re.compile(
    r"(?P<sign>[+-])?P(?:(?P<days>[+-]?\d{1,6})D)?"
    r"(?:T(?:(?P<hours>[+-]?\d{1,6})H)?(?:(?P<minutes>[+-]?\d{1,8})M)?(?:(?P<seconds>[+-]?\d{1,9})S)?)?",
    re.IGNORECASE,
)
"""java.time.Duration, in whole seconds."""
EPOCH_MS = "[unix_timestamp precision:millisecond]"


def _pattern(call: Call, pattern: str) -> list[tuple[str, str]]:
    """Parts of a Java pattern as engine and Python directives. Raises Refused."""
    directives: list[tuple[str, str]] = []
    at = 0
    for match in PART.finditer(pattern):
        if match.start() != at:
            break
        at = match.end()
        if match.group(2) is None:
            text = match.group(0) if match.group(1) is None else match.group(1).replace("''", "'") or "'"
            if re.search(r"[\[\]{}|\\]", text):
                raise call.refused(f"the format '{pattern}'", "leave out brackets, |, and \\")
            directives.append((text, text.replace("%", "%%")))
        elif match.group(0) in LETTERS:
            directives.append(LETTERS[match.group(0)])
        else:
            raise call.refused(f"'{match.group(0)}' in the format '{pattern}'", f"use {', '.join(LETTERS)}")
    if at != len(pattern):
        raise call.where.wrong(f"a date format in {call.name}, found '{pattern}'")
    return directives


def _offset_s() -> int:
    """This host's offset from UTC in s."""
    return time.localtime().tm_gmtoff


def written(call: Call, pattern: str, shift_s: int = 0) -> Text:
    """The time at rendering plus `shift_s`, in Java's pattern; ms since 1970 for an empty pattern."""
    parts = _pattern(call, pattern) if pattern else [(EPOCH_MS, "")]
    if call.once:
        when = datetime.now(timezone(timedelta(seconds=_offset_s()))) + timedelta(seconds=shift_s)
        return Text.of(_text(when, parts) if pattern else str(int(when.timestamp() * 1000)))
    options = "".join(
        f"{name}={value} " for name, value in (("offset_s", _offset_s()), ("shift_s", shift_s)) if value
    )
    return Text.placeholder(f"date {options}" + "".join(engine for engine, _ in parts))


def _text(when: datetime, parts: list[tuple[str, str]]) -> str:
    shown = []
    for engine, python in parts:
        formatted = when.strftime(python)
        if python == "%f":
            formatted = formatted[:3]
        elif python == "%z" and ":" in engine:
            formatted = f"{formatted[:3]}:{formatted[3:5]}"
        elif "padding:none" in engine:
            formatted = formatted.lstrip("0") or "0"
        shown.append(formatted)
    return "".join(shown)


def _read(call: Call, text: str, parts: list[tuple[str, str]]) -> datetime:
    """A constant date. Raises UsageError."""
    pattern = "".join(python for _, python in parts)
    try:
        parsed = datetime.strptime(text.strip(), pattern)
    except ValueError as fault:
        raise call.where.wrong(f"a date in its format in {call.name}, found '{text}'") from fault
    return (
        parsed
        if parsed.tzinfo is not None
        else parsed.replace(tzinfo=timezone(timedelta(seconds=_offset_s())))
    )


def day(call: Call, text: str, pattern: str) -> date:
    """A constant day in Java's pattern. Raises Refused and UsageError."""
    return _read(call, text, _pattern(call, pattern)).date()


def day_text(call: Call, when: date, pattern: str) -> str:
    """The day in Java's pattern."""
    return _text(datetime(when.year, when.month, when.day, tzinfo=UTC), _pattern(call, pattern))


def _shift_s(call: Call, text: str) -> int:
    if not text.strip():
        return 0
    match = DURATION.fullmatch(text.strip())
    if match is None or not any(match.group(unit) for unit in ("days", "hours", "minutes", "seconds")):
        raise call.where.wrong(f"a duration such as P2D or -PT1H30M in {call.name}, found '{text}'")
    given = {unit: int(value) for unit, value in match.groupdict("0").items() if unit != "sign"}
    seconds = int(timedelta(**given).total_seconds())
    return -seconds if match.group("sign") == "-" else seconds


def milliseconds(call: Call) -> Text:
    """ms since 1970 at rendering."""
    return Text.of(str(time.time_ns() // 1_000_000)) if call.once else Text.placeholder("time")


def now(call: Call) -> Text:
    """`__time`, `__time(yyyy-MM-dd)`, `__time(/1000)`, with a variable."""
    given = call.constants(0, 2)
    pattern = given[0] if given else ""
    divided = re.fullmatch(r"/(\d{1,15})", pattern)
    if pattern in ("", "/1000") and not call.once:
        return call.stored(Text.placeholder("time s" if pattern else "time"), given[1:])
    now_ms = time.time_ns() // 1_000_000
    if divided is not None:
        if not call.once or not int(divided.group(1)):
            raise call.refused(f"the format '{pattern}'", "use ${__time()} or ${__time(/1000)}")
        return call.stored(Text.of(str(now_ms // int(divided.group(1)))), given[1:])
    full_pattern = call.values.properties.get(f"time.{pattern}", NAMED.get(pattern, pattern))
    return call.stored(written(call, full_pattern), given[1:])


def shifted(call: Call) -> Text:
    """`__timeShift(format,date,shift,locale,variable)`."""
    given = [*call.constants(1, 5), "", "", "", ""]
    pattern, date, locale = given[0].strip(), given[1].strip(), given[3].strip()
    shift_s = _shift_s(call, given[2])
    if locale and not locale.lower().startswith("en"):
        raise call.refused(f"the locale {locale}", "leave it empty")
    if not date:
        return call.stored(written(call, pattern, shift_s), given[4:5])
    parts = _pattern(call, pattern)
    if pattern:
        when = _read(call, date, parts) + timedelta(seconds=shift_s)
        return call.stored(Text.of(_text(when, parts)), given[4:5])
    if not re.fullmatch(r"-?\d{1,15}", date):
        raise call.where.wrong(f"a date in milliseconds since 1970 in {call.name}, found '{date}'")
    return call.stored(Text.of(str(int(date) + 1000 * shift_s)), given[4:5])


def converted(call: Call) -> Text:
    """`__dateTimeConvert(date,format,format,variable)`."""
    given = [*call.constants(3, 4), ""]
    date, source, wanted = (text.strip() for text in given[:3])
    if source:
        when = _read(call, date, _pattern(call, source))
    elif re.fullmatch(r"-?\d{1,15}", date):
        when = datetime.fromtimestamp(int(date) / 1000, UTC)
    else:
        raise call.where.wrong(f"a date in milliseconds since 1970 in {call.name}, found '{date}'")
    if not wanted:
        raise call.where.wrong(f"the output format in {call.name}")
    here = when.astimezone(timezone(timedelta(seconds=_offset_s())))
    return call.stored(Text.of(_text(here, _pattern(call, wanted))), given[3:4])
