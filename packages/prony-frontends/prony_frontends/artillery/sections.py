"""The sections before and after of a script, walked by one user."""

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
from prony_frontends.base import Note

WALKED = ("before", "scenarios", "after")


@dataclass(frozen=True, slots=True)
class Section:
    """Steps of one user before or after the load."""

    steps: tuple[Entry, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """Values known afterwards: name in the script -> name in the plan."""
    kept: frozenset[str] = frozenset()
    """Of these, names of values kept as JSON."""
    notes: tuple[Note, ...] = ()
    feeders: Mapping[str, Feeder] = field(default_factory=dict)


def lists_of(sections: Sequence[Section | TranslatedScenario]) -> dict[str, Feeder]:
    """Lists of which users of a section draw values."""
    return {name: rows for section in sections for name, rows in section.feeders.items()}


def section(
    root: ScriptNode, key: str, scope: NameScope, settings: ScriptSettings, defaults: ScriptNode | None
) -> Section:
    node = root.get(key)
    if node is None:
        return Section()
    others = [
        other.value
        for section_name in WALKED
        if section_name != key and (other := root.get(section_name)) is not None
    ]
    alone = replace(settings, hook=True, elsewhere=frozenset(referred(others)))
    scenario = walked(node, 0, scope, alone, defaults, prefix=key)
    acts = bool(scenario.steps) or any(True for _ in calls(scenario.alone))
    if not acts:
        return Section(notes=scenario.notes)
    again = [scenario.captured[name] for name in dict.fromkeys(captured(others)) if name in scenario.captured]
    last = (
        (Block(set={before_name(name): f"${{{name}}}" for name in again}),)
        if again and key == "before"
        else ()
    )
    return Section(
        (*scenario.alone, *last), scenario.captured, scenario.kept, scenario.notes, scenario.feeders
    )
