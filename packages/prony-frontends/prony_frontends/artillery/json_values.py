"""Which captured values a script needs as JSON: those that it loops over, takes apart, or puts into JSON as
they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import TOKEN, words_of

ALONE = re.compile(r"\{\{\{?\s*([\w$-]+)\s*\}\}\}?")
"""A text that is one value and nothing else."""


def names_kept_as_json(root: ScriptNode) -> frozenset[str]:
    """The names, wherever in the script they are captured; those of other values do no harm."""
    found: set[str] = set()
    for key in ("before", "scenarios", "after"):
        node = root.children.get(key)
        if node is not None:
            found |= set(_needed(node.value, False))
    return frozenset(found)


def _needed(value: Any, in_json: bool) -> Iterator[str]:
    """`in_json`: it stands within the json of a request, or is the value of a match."""
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
    """Captures of all that is found: they are lists."""
    for one in captures if isinstance(captures, list) else [captures]:
        if isinstance(one, dict) and one.get("multiple") is False and isinstance(one.get("as"), str):
            yield one["as"]
