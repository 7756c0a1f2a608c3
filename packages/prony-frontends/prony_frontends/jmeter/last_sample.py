"""`${JMeterThread.last_sample_ok}`: "true" or "false" for the previous request. It follows from a capture of
the status, which is taken only from an expected response. And `prev` in Groovy: its status, whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from prony.plan.blocks import Condition, Loop
from prony.plan.response import Capture
from prony.plan.step import Block, Entry, Step
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.guards import filled
from prony_frontends.jmeter.jmx import JmxNode

VARIABLE = "JMeterThread.last_sample_ok"
CODE = "JMeterThread.last_code"
"""Not a variable of JMeter."""
NO_CODE = "Non HTTP response code"
PREVIOUS = re.compile(
    r"\bprev\s*\.\s*(?:(?P<code>getResponseCode\s*\(\s*\)|responseCode\b)"
    r"|(?P<right>isResponseCodeOK\s*\(\s*\)|responseCodeOK\b)|(?:isSuccessful\s*\(\s*\)|successful\b))"
)


def read(script: str, of_processor: bool) -> str:
    """A condition in Groovy with the previous result's getters as variables. `of_processor`: it runs before
    the assertions.
    """

    def variable(found: re.Match[str]) -> str:
        if found["code"]:
            return f'"${{{CODE}}}"'
        if found["right"]:
            return f'("${{{CODE}}}" == "200")'
        return f'"${{{CODE}}}".matches("[23]..")' if of_processor else f"${{{VARIABLE}}}"

    return PREVIOUS.sub(variable, script)


def declare(top: JmxNode, values: KnownValues) -> None:
    """Declares the variables for the whole plan, with the initial values "true" and none."""
    values.initial[values.changing(VARIABLE, top)] = "true"
    values.initial[values.changing(CODE, top)] = ""


def used(values: KnownValues, variable: str = VARIABLE) -> str:
    """Marks it as used; returns its name in the engine."""
    name = values.values[variable]
    values.used.add(name)
    return name


def failed(values: KnownValues) -> Block:
    """After a sampler that sends nothing."""
    return Block(set={values.values[VARIABLE]: "false", values.values[CODE]: NO_CODE})


def noted(entries: Sequence[Entry], values: KnownValues) -> list[Entry]:
    """The steps, with the result of each request recorded where the variables are used."""
    places = (values.values[VARIABLE], values.values[CODE])
    name, code = (place if place in values.used else None for place in places)
    if name is None and code is None:
        return list(entries)
    noting = _Noting(name, values.own_value("status"), code)
    return [noting.entry(entry) for entry in entries]


class _Noting:
    def __init__(self, name: str | None, status: str, code: str | None) -> None:
        self._name, self._status, self._code = name, status, code
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
        noted, before, after = dict(step.capture), dict[str, str](), list[Block]()
        if self._code is not None and not embedded:
            noted[self._code] = Capture(status=True, always=True)
            before[self._code] = NO_CODE
        if self._name is not None:
            noted[self._status] = Capture(status=True, optional=True)
            before[self._status] = ""
            right, wrong = ((Block(set={self._name: word}),) for word in ("true", "false"))
            got = filled(self._status)
            if embedded:
                after.append(Block(condition=Condition(negated=got), steps=wrong))
            else:
                after.append(Block.model_validate({"if": got, "steps": right, "else": wrong}))
        if not before:
            return step
        once = step.model_copy(update={"repeat": 1, "capture": noted})
        steps = (Block(set=before), once, *after)
        if step.repeat == 1:
            return Block(group=True, steps=steps)
        return Block(loop=Loop(count=step.repeat), steps=steps)
