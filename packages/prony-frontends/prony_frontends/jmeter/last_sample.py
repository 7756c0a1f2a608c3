"""`${JMeterThread.last_sample_ok}`: "true" or "false" for the previous request. It follows from a capture of
the status, which is taken only from an expected response.
"""

from __future__ import annotations

from collections.abc import Sequence

from prony.plan.blocks import Condition, Loop
from prony.plan.response import Capture
from prony.plan.step import Block, Entry, Step
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.guards import filled
from prony_frontends.jmeter.jmx import JmxNode

VARIABLE = "JMeterThread.last_sample_ok"


def declare(top: JmxNode, values: KnownValues) -> None:
    """Declares the variable for the whole plan, with the initial value "true"."""
    values.initial[values.changing(VARIABLE, top)] = "true"


def used(values: KnownValues) -> str:
    """Marks it as used; returns its name in the engine."""
    name = values.values[VARIABLE]
    values.used.add(name)
    return name


def noted(entries: Sequence[Entry], values: KnownValues) -> list[Entry]:
    """The steps, with the result of each request recorded if the variable is used."""
    name = values.values[VARIABLE]
    if name not in values.used:
        return list(entries)
    noting = _Noting(name, values.own_value("status"))
    return [noting.entry(entry) for entry in entries]


class _Noting:
    def __init__(self, name: str, status: str) -> None:
        self._name, self._status = name, status
        self._pages: set[str] = set()
        """Lists of embedded resources: a page succeeds when all of them do."""

    def entry(self, entry: Entry, embedded: bool = False) -> Entry:
        if isinstance(entry, Step):
            return self._step(entry, embedded)
        inside = embedded or (entry.each is not None and entry.each in self._pages)
        update = {
            "steps": tuple(self.entry(inner, inside) for inner in entry.steps),
            "otherwise": tuple(self.entry(inner, inside) for inner in entry.otherwise),
        }
        return entry.model_copy(update=update)

    def _step(self, step: Step, embedded: bool) -> Entry:
        if step.resources is not None:
            self._pages.add(step.resources.into)
        noted = {**step.capture, self._status: Capture(status=True, optional=True)}
        once = step.model_copy(update={"repeat": 1, "capture": noted})
        right, wrong = ((Block(set={self._name: word}),) for word in ("true", "false"))
        if embedded:
            result = Block(condition=Condition(negated=filled(self._status)), steps=wrong)
        else:
            result = Block.model_validate({"if": filled(self._status), "steps": right, "else": wrong})
        steps = (Block(set={self._status: ""}), once, result)
        if step.repeat == 1:
            return Block(group=True, steps=steps)
        return Block(loop=Loop(count=step.repeat), steps=steps)
