"""Properties of an HTTP sampler merged with HTTP Request Defaults as in JMeter."""

from __future__ import annotations

import re
from dataclasses import dataclass

from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.scope import TreeScope


@dataclass(slots=True)
class SamplerValues:
    """A sampler's properties; unset ones come from its defaults."""

    node: JmxNode
    scope: TreeScope
    values: KnownValues

    def raw(self, name: str) -> str:
        """The unresolved text."""
        candidates = [holder.value(name) for holder in (self.node, *self.scope.defaults)]
        return next(filter(None, candidates), "")

    def constant(self, name: str) -> str:
        """The constant value, stripped. Raises Refused."""
        return self.values.constant(self.raw(name), self.node).strip()

    def flag(self, name: str) -> bool:
        """The nearest value that is set, even if false."""
        holders = [
            holder for holder in (self.node, *self.scope.defaults) if holder.property(name) is not None
        ]
        return holders[0].flag(name) if holders else False

    def members(self, name: str, inner: str) -> list[JmxNode]:
        """The sampler's own members, then those of its defaults, nearest first."""
        return [
            member for holder in (self.node, *self.scope.defaults) for member in holder.members(name, inner)
        ]

    def time_ms(self, name: str) -> int | None:
        """A limit in ms; None without one, or for a non-number, as in JMeter."""
        text = self.constant(name)
        if text and not re.fullmatch(r"[+-]?\d{1,9}", text):
            self.values.note("not_a_number", f"{name} '{text}' is no number, ignored", self.node)
            return None
        return int(text) if text and int(text) > 0 else None
