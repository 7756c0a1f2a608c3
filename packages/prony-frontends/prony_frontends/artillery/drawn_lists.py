"""Variables of config.variables that are lists: each user has one of their values, drawn when it starts. Must
not know what a scenario does with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from prony.plan.workload import Feeder
from prony_frontends.artillery.hooks import first_of
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import FeederColumn, NameScope, Rows, json_value


@dataclass(frozen=True, slots=True)
class DrawnList:
    """A list, its values as rows that are drawn at random, and what holds the user's own."""

    feeder: str
    rows: Feeder
    column: FeederColumn
    variable: FeederColumn
    """Of the user: its value is drawn once."""


def drawn_lists(node: ScriptNode, scope: NameScope) -> dict[str, DrawnList]:
    """Those that a scenario may use, by their names in the script. Not those that a loop goes over, nor those
    that a URL begins with: a server has to be known before the run.
    """
    hosts = set(_beginnings(node.value))
    found: dict[str, DrawnList] = {}
    for name, values in lists_in(node, scope).items():
        if name in hosts:
            continue
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        feeder = f"list_{plain}"
        found[name] = DrawnList(
            feeder,
            Feeder(order="random", columns=("value",), rows=tuple((json_value(value),) for value in values)),
            FeederColumn(f"{feeder}.value", False, kept=True),
            FeederColumn(f"drawn_{plain}", False, kept=True),
        )
    return found


def lists_in(node: ScriptNode, scope: NameScope) -> dict[str, list[Any]]:
    """Variables of which a user has one value: lists that are no payload and that no loop goes over."""
    text = repr(node.value)
    return {
        name: values
        for name, values in scope.constants.items()
        if isinstance(values, list) and values and not isinstance(values, Rows)
        and not name.startswith("$") and f"'over': '{name}'" not in text
    }  # fmt: skip


def _beginnings(value: Any) -> Iterator[str]:
    """The names that URLs begin with."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("url", "uri") and isinstance(inner, str):
                yield first_of(inner)
            yield from _beginnings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _beginnings(inner)
