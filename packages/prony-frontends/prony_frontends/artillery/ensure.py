"""The checks of the ensure plugin on a finished report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prony.errors import UsageError
from prony_frontends.artillery.conditions import NotAnExpression, Unknown, evaluate
from prony_frontends.artillery.metrics import Metrics
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.templates import str_of

CLASSIC = ("min", "max", "median", "p95", "p99")
ERROR_RATE = "((vusers.created - vusers.completed) / vusers.created * 100)"
NEVER = "0 > 1"
"""Of a check with a limit that is no number: it fails, as there."""


@dataclass(frozen=True, slots=True)
class EnsureCheck:
    """One line of `Checks:`."""

    expression: str
    shown: str
    strict: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """A check and whether it held."""

    check: EnsureCheck
    ok: bool

    @property
    def line(self) -> str:
        if self.ok:
            return f"ok: {self.check.shown}"
        return f"fail: {self.check.shown}{'' if self.check.strict else ' (optional)'}"


def checks(node: ScriptNode | None) -> list[EnsureCheck]:
    """What is to be checked; said before the load. Raises UsageError and Refused."""
    return [] if node is None or not node.value else list(_checks(node))


def _checks(node: ScriptNode) -> Iterator[EnsureCheck]:
    for one in _listed(node, "thresholds"):
        for name, limit in list(one.items())[:1]:
            most = _limit(limit)
            if most is None:
                yield EnsureCheck(NEVER, f"{name} < {str_of(limit.value)}", True)
            else:
                yield _checked(limit, f"{name} < {most:g}", name)
    for one in _listed(node, "conditions"):
        expression = one.get("expression")
        if expression is None:
            raise one.wrong("an expression")
        strict = one.children.get("strict")
        text = expression.text("an expression")
        yield _checked(expression, text, text, strict is None or strict.value is not False)
    for name in CLASSIC:
        given = node.get(name)
        if given is not None:
            limit_ms = re.match(r"\s*-?\d+", str_of(given.value))
            shown = f"{name} < {int(limit_ms[0]) if limit_ms else 'NaN'}"
            yield EnsureCheck(f"http.response_time.{shown}" if limit_ms else NEVER, shown, True)
    rate = node.get("maxErrorRate")
    if rate is not None:
        most = _limit(rate)
        shown = f"maxErrorRate < {'NaN' if most is None else f'{most:g}'}"
        yield EnsureCheck(NEVER if most is None else f"{ERROR_RATE} <= {most:g}", shown, True)


def _listed(node: ScriptNode, key: str) -> list[ScriptNode]:
    """What the plugin reads of a list of checks: those that have keys."""
    found = node.get(key)
    listed = found is not None and isinstance(found.value, list)
    return [one for one in found.elements() if isinstance(one.value, dict)] if found and listed else []


def _limit(node: ScriptNode) -> float | None:
    """A number, also as a text; None for what is none, which nothing is below."""
    try:
        return node.number("a number")
    except UsageError:
        return None


def _checked(node: ScriptNode, expression: str, shown: str, strict: bool = True) -> EnsureCheck:
    """An expression that can be read, whatever the metrics will be. Raises Refused."""
    try:
        evaluate(expression, _Any())
    except NotAnExpression as fault:
        raise node.refused(f"this check ({fault})", "compare metrics with numbers") from fault
    except Unknown:
        pass
    return EnsureCheck(expression, expression if shown != expression else shown, strict)


class _Any(dict[str, float]):
    """No metric is known yet."""


def run(planned: list[EnsureCheck], report: Metrics) -> list[Checked]:
    """Each check on the report; those that held come first, the last written first among each."""
    names = _names(report)
    found = [Checked(check, _holds(check.expression, names)) for check in reversed(planned)]
    return sorted(found, key=lambda one: not one.ok)


def _holds(expression: str, names: Mapping[str, float]) -> bool:
    try:
        return evaluate(expression, names)
    except (Unknown, NotAnExpression):  # a metric that the run did not have: nothing is shown to hold
        return False


def _names(report: Metrics) -> dict[str, float]:
    names: dict[str, float] = {"vusers.completed": 0, **report.counters, **report.rates}
    for name, values in report.summaries.items():
        for key, value in values.items():
            if value is not None:
                names[f"{name}.{key}"] = value
    return names
