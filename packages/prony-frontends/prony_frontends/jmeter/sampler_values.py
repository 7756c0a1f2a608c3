"""The properties of an HTTP sampler with those of HTTP Request Defaults behind them, as JMeter
merges them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.scope import TreeScope


@dataclass(slots=True)
class SamplerValues:
    """What a sampler's properties say, or, where it says nothing, those of its defaults."""

    node: JmxNode
    scope: TreeScope
    values: KnownValues

    def raw(self, name: str) -> str:
        """As it is written."""
        found = [one.value(name) for one in (self.node, *self.scope.defaults)]
        return next(filter(None, found), "")

    def constant(self, name: str) -> str:
        """Known before the start, without blanks around it. Raises Refused."""
        return self.values.constant(self.raw(name), self.node).strip()

    def flag(self, name: str) -> bool:
        """The nearest that is there, even where it says false."""
        holders = [one for one in (self.node, *self.scope.defaults) if one.property(name) is not None]
        return holders[0].flag(name) if holders else False

    def members(self, name: str, inner: str) -> list[JmxNode]:
        """The sampler's own, then those of its defaults, the nearest first."""
        return [member for one in (self.node, *self.scope.defaults) for member in one.members(name, inner)]

    def time_ms(self, name: str) -> int | None:
        """None: there is no bound, which is also what JMeter makes of what is no number."""
        text = self.constant(name)
        if text and not re.fullmatch(r"[+-]?\d{1,9}", text):
            self.values.note(f"{self.node.element}: {name} '{text}' is no number; as in JMeter there is none")
            return None
        return int(text) if text and int(text) > 0 else None
