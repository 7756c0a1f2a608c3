"""What java.net.URI accepts: for a URL that it refuses JMeter sends nothing and writes a failed sample."""

from __future__ import annotations

import re
from dataclasses import dataclass

from prony.plan.blocks import Condition
from prony_frontends.jmeter import rows
from prony_frontends.jmeter.functions import KnownValues, Text, TextPart
from prony_frontends.jmeter.outline import BETWEEN

CLEAN = frozenset({"sequence", "uuid", "time", "user", "iteration", "next"})
"""Kinds of placeholders with values of letters and digits."""
_OTHER = r"\x80-\U0010ffff"
_CHARACTER = rf"[A-Za-z0-9_.!~*'()\-;:@&=+$,/{_OTHER}]|%[0-9A-Fa-f]{{2}}"
PATH = re.compile(rf"(?:{_CHARACTER})*")
QUERY = re.compile(rf"(?:{_CHARACTER}|[?\[\]])*")
FAULTY_IN_QUERY = r"""[\x00-\x1f"<>\\^`{|}\x7f]|%(?:[^0-9A-Fa-f]|[0-9A-Fa-f](?:[^0-9A-Fa-f]|$)|$)"""
"""Regexes for the engine, found in a value with which nothing is sent. JMeter escapes spaces of a path,"""
FAULTY_IN_PATH = FAULTY_IN_QUERY + r"|^[^?#]*[\[\]]"
FAULTY_IN_PARAMETER = FAULTY_IN_QUERY.replace(r"\x1f", r"\x20", 1)
"""and none of an unencoded parameter."""


@dataclass(frozen=True, slots=True)
class Faulty:
    """A request that changing values may keep from being sent."""

    where: Condition
    """When it is not sent."""
    url: str
    """Its URL in the engine's syntax, with its parameters after a second `BETWEEN`."""


def faulty(url: Text, parameters: Text, values: KnownValues) -> Faulty | None:
    """None where every value makes a URI. `url`: without parameters."""
    conditions: list[Condition] = []
    in_query = False
    for part in url.parts:
        in_query |= not part.dynamic and "?" in part.text
        conditions += _faulty(part, FAULTY_IN_QUERY if in_query else FAULTY_IN_PATH, values)
    for part in parameters.parts:
        conditions += _faulty(part, FAULTY_IN_PARAMETER, values)
    if not conditions:
        return None
    where = conditions[0] if len(conditions) == 1 else Condition(any=tuple(conditions))
    return Faulty(where, f"{url.engine}{BETWEEN}{parameters.engine}")


def _faulty(part: TextPart, pattern: str, values: KnownValues) -> list[Condition]:
    encoded = {"form", "url", "base64"} & set(part.text.split(" | ")[1:])
    if not part.dynamic or encoded or not may_match(part, pattern, values):
        return []
    return [Condition(left="${" + part.text + "}", op="matches", right=pattern)]


def may_match(part: TextPart, pattern: str, values: KnownValues) -> bool:
    """Whether a changing value may match a regex, which letters and digits do not."""
    source = part.text.partition(" | ")[0]
    kind, _, options = source.partition(" ")
    if kind in CLEAN or source.startswith("random int") or source in values.clean:
        return False
    feeder, _, column = source.partition(".")
    if kind == "random" and not re.search(pattern, options.replace(" ", "")):
        return False
    if not column or feeder not in values.feeders:
        return True
    return any(re.search(pattern, value) for value in rows.column(values.feeders[feeder], column))


def fault(url: str) -> str | None:
    """Java's message for a URL that makes no URI; None for others."""
    authority = url.find("://") + 3
    start = re.search(r"[/?#]", url[authority:])
    at = len(url) if start is None else authority + start.start()
    brace = re.search(r"[\s\"<>\\^`{|}]", url[authority:at])
    if brace is not None:
        return f"Illegal character in authority at index {authority}: {url}"
    whole, _, _ = url.partition("#")
    question = whole.find("?", at)
    end = len(whole) if question < 0 else question
    for part, legal, begin, stop in (("path", PATH, at, end), ("query", QUERY, end + 1, len(whole))):
        match = legal.match(whole, begin, stop)
        if match is not None and match.end() < stop:
            if whole[match.end()] == "%":
                return f"Malformed escape pair at index {match.end()}: {url}"
            return f"Illegal character in {part} at index {match.end()}: {url}"
    return None
