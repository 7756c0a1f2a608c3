"""The sections before and after of a script: what one user walks before the load, or after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from prony.plan.step import Block, Entry, calls
from prony.plan.workload import Feeder
from prony_frontends.artillery.flow import TranslatedScenario, before_name, walked
from prony_frontends.artillery.hooks import captured, referred
from prony_frontends.artillery.requests import ScriptSettings
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import NameScope

WALKED = ("before", "scenarios", "after")


@dataclass(frozen=True, slots=True)
class Section:
    """What one user walks before or after the load."""

    steps: tuple[Entry, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """What is known after it: name in the script -> name in the plan."""
    kept: frozenset[str] = frozenset()
    """Of these, the names of values that are kept as JSON."""
    notes: tuple[str, ...] = ()
    feeders: Mapping[str, Feeder] = field(default_factory=dict)


def lists_of(sections: Sequence[Section | TranslatedScenario]) -> dict[str, Feeder]:
    """Lists of which the users of some section draw values."""
    return {name: rows for section in sections for name, rows in section.feeders.items()}


def section(
    root: ScriptNode, key: str, scope: NameScope, settings: ScriptSettings, defaults: ScriptNode | None
) -> Section:
    node = root.get(key)
    if node is None:
        return Section()
    others = [other.value for one in WALKED if one != key and (other := root.get(one)) is not None]
    alone = replace(settings, hook=True, elsewhere=frozenset(referred(others)))
    found = walked(node, 0, scope, alone, defaults, prefix=key)
    acts = bool(found.steps) or any(True for _ in calls(found.alone))
    if not acts:
        return Section(notes=found.notes)
    again = [found.captured[name] for name in dict.fromkeys(captured(others)) if name in found.captured]
    last = (
        (Block(set={before_name(name): f"${{{name}}}" for name in again}),)
        if again and key == "before"
        else ()
    )
    return Section((*found.alone, *last), found.captured, found.kept, found.notes, found.feeders)
