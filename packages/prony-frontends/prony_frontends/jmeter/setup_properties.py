"""Properties that a setUp group sets to values of the run, and that later groups read."""

from __future__ import annotations

from prony.plan.blocks import Condition
from prony.plan.step import Block, Entry
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode

NOT_SET = "\x1fnot set"
"""In the engine, of a property that the group has not set."""


def given_property(name: str, values: KnownValues, where: JmxNode) -> str:
    """The engine's name for a property that a setUp group sets to a value of the run."""
    if name in values.read_properties:
        raise where.refused(f"the property '{name}' changes after it was read", "set it with -J", "varies")
    if name not in values.given:
        place = values.given[name] = values.changing(f"property_{name}", where)
        values.initial[place] = Text.of(values.properties.get(name, NOT_SET)).engine
    values.used.add(values.given[name])
    return values.given[name]


def of_property(name: str, default: str, values: KnownValues, where: JmxNode) -> Text:
    """A property's value; `default` where neither the plan's start nor a setUp group has set it."""
    if name not in values.given:
        values.read_properties.add(name)
        return Text.of(values.properties.get(name, default))
    if values.sets_up:
        raise where.refused(
            f"the property '{name}' in a setUp group, which sets it", "use the variable there", "varies"
        )
    place = values.given[name]
    if name in values.properties:
        return Text.placeholder(place)
    if (place, default) not in values.otherwise:
        values.otherwise[place, default] = values.unique("property_or_default")
    values.used.add(values.otherwise[place, default])
    return Text.placeholder(values.otherwise[place, default])


def defaults(values: KnownValues) -> list[Entry]:
    """At the start of an iteration: the values, or defaults, of properties that it reads."""
    entries: list[Entry] = []
    for (place, default), name in values.otherwise.items():
        if name in values.used:
            known = Condition(left=f"${{{place}}}", op="!=", right=NOT_SET)
            entries.append(Block(set={name: Text.of(default).engine}))
            entries.append(Block(condition=known, steps=(Block(set={name: f"${{{place}}}"}),)))
    return entries
