"""List variables of config.variables: each user draws one of the values at its start."""

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
    """A list as feeder rows, with the variable that holds the user's value."""

    feeder: str
    rows: Feeder
    column: FeederColumn
    variable: FeederColumn
    """The user's variable; its value is drawn once."""


def drawn_lists(node: ScriptNode, scope: NameScope) -> dict[str, DrawnList]:
    """Lists that a scenario draws from, by name; not those of loops or at the start of URLs."""
    hosts = set(_beginnings(node.value))
    lists: dict[str, DrawnList] = {}
    for name, values in lists_in(node, scope).items():
        if name in hosts:
            continue
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        feeder = f"list_{plain}"
        lists[name] = DrawnList(
            feeder,
            Feeder(order="random", columns=("value",), rows=tuple((json_value(value),) for value in values)),
            FeederColumn(f"{feeder}.value", False, kept=True),
            FeederColumn(f"drawn_{plain}", False, kept=True),
        )
    return lists


def lists_in(node: ScriptNode, scope: NameScope) -> dict[str, list[Any]]:
    """Lists of which a user has one value: neither payloads nor lists of loops."""
    text = repr(node.value)
    return {
        name: values
        for name, values in scope.constants.items()
        if isinstance(values, list) and values and not isinstance(values, Rows)
        and not name.startswith("$") and f"'over': '{name}'" not in text
    }  # fmt: skip


def _beginnings(value: Any) -> Iterator[str]:
    """Names at the start of URLs."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("url", "uri") and isinstance(inner, str):
                yield first_of(inner)
            yield from _beginnings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _beginnings(inner)
