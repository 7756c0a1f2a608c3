"""Samplers and controllers into the requests of one iteration, in their order.

Must not know thread groups.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prony.frontends.jmeter import answers, timers
from prony.frontends.jmeter.functions import Values
from prony.frontends.jmeter.jmx import Node
from prony.frontends.jmeter.requests import SAMPLERS, Request, request
from prony.frontends.jmeter.scope import CONFIGURATION, Scope, Shared, inner
from prony.plan.think import Think
from prony.plan.workload import Step

MOST_REQUESTS = 10_000
"""Of one iteration, with its loops written out."""
PLAIN = frozenset({"GenericController", "TransactionController"})
PERCENT = 1
NOT_REQUESTS = frozenset(
    {*CONFIGURATION, *timers.KINDS, *timers.PACING, *answers.ASSERTIONS, *answers.EXTRACTORS}
)
COMPARISON = r"""("[^"]*"|'[^']*'|-?\d+(?:\.\d+)?|true|false)"""
INSTEAD = {
    "OnceOnlyController": "send it beforehand, or set the group's loops to 1",
    "InterleaveControl": "use a Random Controller as the group's only child, or write the order out",
    "RandomOrderController": "write one order out",
    "SwitchController": "keep the branch that is meant",
    "ForeachController": "write the requests out, or use a CSV data set",
    "ModuleController": "copy the module's elements here",
    "IncludeController": "copy the included elements here",
    "RunTime": "use a Loop Controller",
    "JSR223Sampler": "use extractors, functions or a CSV data set",
    "BeanShellSampler": "use extractors, functions or a CSV data set",
    "JSR223PreProcessor": "use functions or a CSV data set",
    "JSR223PostProcessor": "use an extractor",
    "XPathExtractor": "use a boundary or regular expression extractor",
    "XPath2Extractor": "use a boundary or regular expression extractor",
    "HtmlExtractor": "use a boundary or regular expression extractor",
    "PreciseThroughputTimer": "use an Open Model Thread Group with random_arrivals",
    "SyncTimer": "leave it out: users who wait for each other are no load that Prony offers",
    "BackendListener": "leave it out; prony results keeps what was measured",
    "TestAction": "use a Constant Timer",
    "CounterConfig": "use the function ${__counter(TRUE)} or ${__counter(FALSE)}",
    "RandomVariableConfig": "use the function ${__Random(low,high)}",
    "XPathAssertion": "test a text with a Response Assertion",
    "XMLAssertion": "test a text with a Response Assertion",
}


@dataclass(frozen=True, slots=True)
class Sent:
    """One request and the pause before it."""

    request: Request
    before: Think


def unsupported(node: Node) -> Exception:
    """The refusal of an element that has no translation."""
    return node.refused("it has no equivalent here", INSTEAD.get(node.tag, "remove or disable it"))


def requests_of(
    nodes: Sequence[Node], scope: Scope, values: Values, shared: Shared, rows_at: bool = True
) -> list[Sent]:
    """What a user sends when these elements are walked once. Raises Refused and UsageError."""
    here = inner(scope, nodes, values, shared, rows_at)
    found: list[Sent] = []
    for node in nodes:
        if node.enabled and node.tag not in NOT_REQUESTS:
            found += _one(node, here, values, shared)
            if len(found) > MOST_REQUESTS:
                raise node.refused(
                    f"an iteration of more than {MOST_REQUESTS} requests",
                    "use the group's loops in place of this one",
                )
    return found


def _one(node: Node, scope: Scope, values: Values, shared: Shared) -> list[Sent]:
    if node.tag in SAMPLERS:
        return [_sampler(node, scope, values, shared)]
    times = 1
    match node.tag:
        case "LoopController":
            times = loops(node, values)
            if times < 0:
                raise node.refused(
                    "a loop without an end inside of an iteration",
                    "give it a number, or use the group's loops",
                )
        case "IfController":
            times = int(
                _holds(node, "IfController.condition", values, node.flag("IfController.useExpression"))
            )
            node.ignore("IfController.evaluateAll")
        case "WhileController":
            if _holds(node, "WhileController.condition", values):
                raise node.refused("a condition that always holds", "use a Loop Controller")
            times = 0
        case "ThroughputController":
            times = _share(node, values)
        case "RandomController":
            raise node.refused(
                "it stands beside other elements", "make it the only child of its thread group"
            )
        case tag if tag in PLAIN:
            _plain(node, values)
        case _:
            raise unsupported(node)
    node.finish()
    found: list[Sent] = []
    for _ in range(times):
        found += requests_of(node.below, scope, values, shared, rows_at=False)
        if len(found) > MOST_REQUESTS:
            raise node.refused(
                f"an iteration of more than {MOST_REQUESTS} requests",
                "use the group's loops in place of this one",
            )
        if not found:
            break
    return found


def _sampler(node: Node, scope: Scope, values: Values, shared: Shared) -> Sent:
    own = [below for below in node.below if below.enabled]
    for below in own:
        if below.tag not in NOT_REQUESTS:
            raise unsupported(below)
    here = inner(scope, own, values, shared, rows_at=False)
    before = timers.pause(here.timers, values)
    return Sent(request(node, here, values, shared), before)


def loops(node: Node, values: Values) -> int:
    """How often a loop controller walks; -1: for ever."""
    number = values.whole(node.value("LoopController.loops"), node, "LoopController.loops", 1)
    node.ignore("LoopController.continue_forever")
    return number


def _plain(node: Node, values: Values) -> None:
    if node.tag == "TransactionController":
        node.ignore("TransactionController.includeTimers", "TransactionController.parent")
        values.note(f"{node.element} has no row of its own; its requests have theirs")


def _share(node: Node, values: Values) -> int:
    """A throughput controller that takes all or nothing."""
    style = values.whole(node.value("ThroughputController.style", "0"), node, "ThroughputController.style")
    nested = node.property("ThroughputController.percentThroughput")
    holder = node if nested is None else nested
    text = (
        holder.text
        if not holder.children
        else next((c.text for c in holder.children if c.tag == "value"), "")
    )
    node.ignore("ThroughputController.perThread", "ThroughputController.maxThroughput")
    percent = values.number(text, node, "ThroughputController.percentThroughput", 100.0)
    if style != PERCENT or percent not in (0.0, 100.0):
        raise node.refused(
            "a share or a number of the iterations",
            "use a Random Controller as the group's only child, or 100 percent",
        )
    return int(percent == 100.0)


def _holds(node: Node, name: str, values: Values, expression: bool = False) -> bool:
    """A condition that is the same for every request; `expression`: JMeter only looks for true."""
    raw = node.value(name).strip()
    text = values.constant(raw, node).strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if expression:
        raise node.refused(
            f"the condition '{raw}' as a variable expression",
            "write true or false, or untick 'Interpret Condition'",
        )
    compared = re.fullmatch(rf"{COMPARISON}\s*(==|!=|<=|>=|<|>)\s*{COMPARISON}", text)
    if compared is None:
        raise node.refused(
            f"the condition '{raw}'",
            'use true, false or a comparison of two constants, such as "${env}" == "test"',
        )
    left, operator, right = compared.groups()
    numbers = not any(side[0] in "\"'tf" for side in (left, right))
    if operator in ("==", "!="):
        same = float(left) == float(right) if numbers else left.strip("\"'") == right.strip("\"'")
        return same == (operator == "==")
    if not numbers:
        raise node.refused(f"the condition '{raw}'", "compare texts with == or != only")
    a, b = float(left), float(right)
    return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[operator]


def steps_of(sent: Sequence[Sent]) -> tuple[Step, ...]:
    """Pauses before requests become pauses after the previous one; equal neighbours are repeats."""
    found: list[Step] = []
    for index, one in enumerate(sent):
        after = sent[(index + 1) % len(sent)].before
        step = one.request.step
        if after.kind != "none":
            step = step.model_copy(update={"think": after})
        if found and found[-1].model_copy(update={"repeat": 1}) == step:
            found[-1] = found[-1].model_copy(update={"repeat": found[-1].repeat + 1})
        else:
            found.append(step)
    return tuple(found)
