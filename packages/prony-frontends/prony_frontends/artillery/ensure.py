"""The checks of the plugin ensure on a finished report."""

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
"""Stands for a limit that is not a number: the check fails, as in Artillery."""


@dataclass(frozen=True, slots=True)
class EnsureCheck:
    """A line of `Checks:`."""

    expression: str
    shown: str
    strict: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """A check with its result."""

    check: EnsureCheck
    ok: bool

    @property
    def line(self) -> str:
        if self.ok:
            return f"ok: {self.check.shown}"
        return f"fail: {self.check.shown}{'' if self.check.strict else ' (optional)'}"


def checks(node: ScriptNode | None) -> list[EnsureCheck]:
    """The script's checks, parsed before the load. Raises UsageError and Refused."""
    return [] if node is None or not node.value else list(_checks(node))


def _checks(node: ScriptNode) -> Iterator[EnsureCheck]:
    for entry in _listed(node, "thresholds"):
        for name, limit in list(entry.items())[:1]:
            most = _limit(limit)
            if most is None:
                yield EnsureCheck(NEVER, f"{name} < {str_of(limit.value)}", True)
            else:
                yield _checked(limit, f"{name} < {most:g}", name)
    for entry in _listed(node, "conditions"):
        expression = entry.get("expression")
        if expression is None:
            raise entry.wrong("an expression")
        strict = entry.children.get("strict")
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
    """The checks of a list that the plugin reads: mappings only."""
    entries = node.get(key)
    listed = entries is not None and isinstance(entries.value, list)
    return (
        [entry for entry in entries.elements() if isinstance(entry.value, dict)] if entries and listed else []
    )


def _limit(node: ScriptNode) -> float | None:
    """A number, also as a text; None for anything else, which fails the check."""
    try:
        return node.number("a number")
    except UsageError:
        return None


def _checked(node: ScriptNode, expression: str, shown: str, strict: bool = True) -> EnsureCheck:
    """A check with a valid expression, whatever the metrics. Raises Refused."""
    try:
        evaluate(expression, _Any())
    except NotAnExpression as fault:
        raise node.refused(f"this check ({fault})", "compare metrics with numbers") from fault
    except Unknown:
        pass
    return EnsureCheck(expression, expression if shown != expression else shown, strict)


class _Any(dict[str, float]):
    """Stands in for metrics that are not known yet."""


def run(planned: list[EnsureCheck], report: Metrics) -> list[Checked]:
    """Evaluates the checks on the report; passed checks first, each in reverse order of the script."""
    names = _names(report)
    results = [Checked(check, _holds(check.expression, names)) for check in reversed(planned)]
    return sorted(results, key=lambda result: not result.ok)


def _holds(expression: str, names: Mapping[str, float]) -> bool:
    try:
        return evaluate(expression, names)
    except (Unknown, NotAnExpression):  # a metric missing in this run fails the check
        return False


def _names(report: Metrics) -> dict[str, float]:
    names: dict[str, float] = {"vusers.completed": 0, **report.counters, **report.rates}
    for name, values in report.summaries.items():
        for key, value in values.items():
            if value is not None:
                names[f"{name}.{key}"] = value
    return names
