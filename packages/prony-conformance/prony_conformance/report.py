"""Findings of the conformance suite, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from rich.table import Table
from rich.text import Text

from prony.evidence.conformance import CheckStatus, Conformance
from prony.report.out import Out

STYLES = {
    CheckStatus.PASSED: "green", CheckStatus.FAILED: "bold red", CheckStatus.DECLARED: "yellow",
    CheckStatus.NOTED: "cyan", CheckStatus.LEFT_OUT: "dim",
}  # fmt: skip


def table(conformance: Conformance) -> Table:
    """Every check of a server under a workload: what was found, what was expected."""
    shown = _table(
        f"{conformance.server} under {conformance.workload}: {summary(conformance)}",
        "Check",
        "Result",
        "Found",
        "Expected",
    )
    for result in conformance.results:
        style = STYLES[result.status]
        expected = "" if result.status is CheckStatus.LEFT_OUT else result.expected
        shown.add_row(result.check, Text(result.status.value, style), Text(result.found), Text(expected))
    return shown


def summary(conformance: Conformance) -> str:
    """`passed 12 of 13`, and declared deviations; left-out checks do not count."""
    counted = conformance.counted
    passed = len(counted) - len(conformance.failed)
    declared = sum(result.status is CheckStatus.DECLARED for result in counted)
    more = f" ({declared} as declared in its server.yaml)" if declared else ""
    return f"passed {passed} of {len(counted)}{more}"


def summary_table(done: Sequence[Conformance]) -> Table:
    """One line per server and workload, with the names of the checks that failed."""
    shown = _table(None, "Server", "Workload", "Conformance", "Failed")
    for conformance in done:
        names = ", ".join(result.check for result in conformance.failed)
        shown.add_row(
            conformance.server,
            conformance.workload,
            summary(conformance),
            Text(names, STYLES[CheckStatus.FAILED]),
        )
    return shown


class CheckOut(Out):
    """One check of a server under a workload."""

    check: str
    status: CheckStatus
    found: str
    expected: str


class ServerOut(Out):
    """All checks of a server under a workload."""

    server: str
    workload: str
    passed: bool
    summary: str
    checks: list[CheckOut]


class ConformanceOut(Out):
    """`prony servers check --json`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["conformance"] = "conformance"
    passed: bool
    servers: list[ServerOut]


def as_json(done: Sequence[Conformance]) -> ConformanceOut:
    return ConformanceOut(
        passed=not any(conformance.failed for conformance in done),
        servers=[
            ServerOut.filled(
                conformance,
                passed=not conformance.failed,
                summary=summary(conformance),
                checks=[CheckOut.filled(result) for result in conformance.results],
            )
            for conformance in done
        ],
    )


def _table(title: str | None, *headings: str) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="bold"
    )
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("Check", "Result"))
    return table
