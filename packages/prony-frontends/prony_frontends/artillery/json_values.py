"""Finds the captured values that a script needs as JSON: looped over, taken apart, or inserted into JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import TOKEN, words_of

ALONE = re.compile(r"\{\{\{?\s*([\w$-]+)\s*\}\}\}?")
"""A text that is exactly one value."""


def names_kept_as_json(root: ScriptNode) -> frozenset[str]:
    """Names needed as JSON, regardless of where they are captured; other names do no harm."""
    needed: set[str] = set()
    for key in ("before", "scenarios", "after"):
        node = root.children.get(key)
        if node is not None:
            needed |= set(_needed(node.value, False))
    return frozenset(needed)


def _needed(value: Any, in_json: bool) -> Iterator[str]:
    """`in_json`: the value is inside a request's json, or is the value of a match."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "over" and isinstance(inner, str) and not in_json:
                yield from words_of(inner)[:1]
            if key == "capture" and not in_json:
                yield from _lists(inner)
            yield from _needed(str(key), False)
            yield from _needed(inner, in_json or key in ("json", "value"))
    elif isinstance(value, list):
        for inner in value:
            yield from _needed(inner, in_json)
    elif isinstance(value, str):
        alone = ALONE.fullmatch(value) if in_json else None
        if alone is not None:
            yield alone[1]
        for match in TOKEN.finditer(value):
            first, *rest = words_of(match[1]) or [""]
            if rest and not match[1].startswith("$"):
                yield first


def _lists(captures: Any) -> Iterator[str]:
    """Names of captures with all matches, which are lists."""
    for capture in captures if isinstance(captures, list) else [captures]:
        if (
            isinstance(capture, dict)
            and capture.get("multiple") is False
            and isinstance(capture.get("as"), str)
        ):
            yield capture["as"]
