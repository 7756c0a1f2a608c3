"""A workload with values that its preparation captured, and with other numbers of `${sequence}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from prony.plan.step import Entry, Step, flattened
from prony.plan.workload import Scenario, Workload


def captured(entries: Iterable[Entry]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for entry in flattened(entries):
        if isinstance(entry, Step):
            names |= dict.fromkeys(entry.capture)
        else:
            names |= dict.fromkeys(entry.set or ())
            names |= dict.fromkeys(() if entry.call is None else entry.call.take.values())
    return tuple(names)


def knowing(workload: Workload, values: Mapping[str, str]) -> Workload:
    """The workload with each value as a variable of the scenarios that use but do not capture it."""
    if not values:
        return workload
    if workload.scenarios:
        return workload.model_copy(
            update={"scenarios": tuple(_knowing(scenario, values) for scenario in workload.scenarios)}
        )
    alone = _knowing(Scenario(name=workload.name, variables=workload.variables, steps=workload.steps), values)
    return workload.model_copy(update={"variables": alone.variables})


def variables(entries: Iterable[Entry], values: Mapping[str, str]) -> dict[str, str]:
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


SEQUENCE = re.compile(r"\$\$\{|\$\{\s*sequence\b(?P<options>[^}|]*)(?P<escape>\|[^}]*)?\}")


def renumbered(workload: Workload, offset: int) -> Workload:
    """The workload with every `${sequence}` shifted by `offset` numbers, and without think times."""

    def later(match: re.Match[str]) -> str:
        if match["options"] is None:
            return match[0]
        options = dict(word.split("=", 1) for word in match["options"].split() if "=" in word)
        if "end" in options:  # a bounded sequence has no further numbers
            return match[0]
        step = int(options.get("step", "1"))
        options["start"] = str(int(options.get("start", "1")) + offset * step)
        words = " ".join(f"{name}={value}" for name, value in options.items())
        return f"${{sequence {words}{match['escape'] or ''}}}"

    def text(value: str) -> str:
        return SEQUENCE.sub(later, value)

    def step(step: Step) -> Step:
        auth = step.auth
        if auth is not None and auth.bearer is not None:
            auth = auth.model_copy(update={"bearer": text(auth.bearer)})
        return step.model_copy(
            update={
                "path": text(step.path),
                "headers": step.with_header_values(text),
                "body": None if step.body is None else text(step.body),
                "auth": auth,
            }
        )

    return workload.with_steps(step, pausing=False)
