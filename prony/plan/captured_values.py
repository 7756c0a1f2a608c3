"""What a workload's preparation captures, and the workload that goes on with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from prony.plan.step import Entry, Step
from prony.plan.workload import Scenario, Workload


def captured(entries: Iterable[Entry]) -> tuple[str, ...]:
    """The names that these steps give a value: captured, set, or taken from a script."""
    return tuple(dict.fromkeys(_given_in(entries)))


def _given_in(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, Step):
            yield from entry.capture
            continue
        yield from entry.set or ()
        yield from () if entry.call is None else entry.call.take.values()
        yield from _given_in((*entry.steps, *entry.otherwise))


def knowing(workload: Workload, values: Mapping[str, str]) -> Workload:
    """This workload with each of these values as a variable of the scenarios that use its name and do not
    capture it themselves.
    """
    if not values:
        return workload
    if workload.scenarios:
        return workload.model_copy(
            update={"scenarios": tuple(_knowing(one, values) for one in workload.scenarios)}
        )
    alone = _knowing(Scenario(name=workload.name, variables=workload.variables, steps=workload.steps), values)
    return workload.model_copy(update={"variables": alone.variables})


def variables(entries: Iterable[Entry], values: Mapping[str, str]) -> dict[str, str]:
    """Those of the values that these steps use, as variables."""
    text = "\n".join(entry.model_dump_json(by_alias=True) for entry in entries)
    return {
        name: value.replace("${", "$${")
        for name, value in values.items()
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
    }


def _knowing(scenario: Scenario, values: Mapping[str, str]) -> Scenario:
    own = {*captured(scenario.requests), *scenario.variables}
    wanted = {name: value for name, value in values.items() if name not in own}
    given = variables(scenario.steps, wanted)
    return scenario.model_copy(update={"variables": {**given, **scenario.variables}})
