"""Rows as text, for the terminal and for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console
from rich.table import Table

from bench.cases import Case
from bench.summary import Memory, Row, Spread
from prony.numbers import number

COLUMNS = 8
MEMORY_HEAD = ("tool", "peak memory, MiB", "per connection, KiB", "each further connection, KiB")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A titled table of text."""

    title: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


def sheets(rows: Sequence[Row], memories: Sequence[Memory]) -> list[Sheet]:
    """A sheet per case, and a sheet on memory if its cases were run."""
    tables = [
        Sheet(case.title, _head(case), tuple(_line(row) for row in group))
        for case, group in groupby(rows, key=lambda row: row.case)
    ]
    if memories:
        connections = memories[0].connections
        title = f"Peak resident memory at {number(connections)} connections"
        tables.append(Sheet(title, MEMORY_HEAD, tuple(map(_memory_line, memories))))
    return tables


def _head(case: Case) -> tuple[str, ...]:
    return (
        "tool",
        "CPU per request, µs",
        f"÷ {case.baseline} (95 % interval)",
        "requests/s",
        "busy: tool, server",
        "sent bytes per request",
        "claim - count",
        "remarks",
    )


def _line(row: Row) -> tuple[str, ...]:
    cost = row.over_rounds(lambda run: run.cpu_us_per_request)
    if cost is None:
        return (row.tool, *["-"] * (COLUMNS - 2), row.reason or "not run")
    open_loop = row.case.rate_per_s is not None
    rate = row.over_rounds(lambda run: run.offered_per_s if open_loop else run.requests_per_s)
    busy = row.over_rounds(lambda run: run.busy)
    server = row.over_rounds(lambda run: run.server_busy)
    size = row.over_rounds(
        lambda run: None if run.whole is None else run.whole.bytes_received / run.whole.requests
    )
    off = row.over_rounds(
        lambda run: None if run.whole is None else float(run.claim.requests - run.whole.requests)
    )
    assert rate is not None
    assert busy is not None
    assert server is not None
    return (
        row.tool,
        shown(cost, 2),
        _ratio(row),
        number(round(rate.median)),
        f"{busy.median:.0%}, {server.median:.0%}",
        "-" if size is None else f"{size.median:.0f}",
        "not counted" if off is None else f"{off.median:+.0f}",
        _remarks(row),
    )


def shown(value: Spread, digits: int) -> str:
    """`5.12 (5.01 to 5.40)`"""
    return f"{value.median:.{digits}f} ({value.low:.{digits}f} to {value.high:.{digits}f})"


def _ratio(row: Row) -> str:
    if row.tool == row.case.baseline:
        return "1"
    result = row.ratio
    if result is None:
        return "-"
    if result.low is None or result.high is None:
        return f"{result.ratio:.2f} (too few rounds)"
    return f"{result.ratio:.2f} ({result.low:.2f} to {result.high:.2f})"


def _remarks(row: Row) -> str:
    parts = [row.verdict] if row.verdict else []
    if row.case.rate_per_s is not None:
        lag = row.over_rounds(lambda run: run.claim.send_lag_p99_us)
        typical = row.over_rounds(lambda run: run.claim.send_lag_p50_us)
        if lag is None or typical is None:
            parts.append("send lag not reported")
        else:
            parts.append(f"send lag p50 {shown(typical, 1)} µs, p99 {shown(lag, 1)} µs")
    if row.disturbed:
        parts.append(f"disturbed in {len(row.disturbed)} of {len(row.runs)} rounds, {row.disturbed[0]}")
    parts += row.faults
    if row.reason:
        parts.append(row.reason)
    return "; ".join(parts)


def _memory_line(entry: Memory) -> tuple[str, ...]:
    mib, kib = 1024 * 1024, 1024
    peak = Spread(entry.peak.median / mib, entry.peak.low / mib, entry.peak.high / mib)
    growth = "-" if entry.growth_bytes is None else f"{entry.growth_bytes / kib:.1f}"
    return (entry.tool, shown(peak, 1), f"{entry.per_connection_bytes / kib:.1f}", growth)


def print_sheets(console: Console, found: Sequence[Sheet]) -> None:
    """Prints to a terminal."""
    for sheet in found:
        table = Table(title=sheet.title, title_justify="left", title_style="bold", expand=False)
        for at, name in enumerate(sheet.head):
            table.add_column(
                name, justify="left" if at in (0, len(sheet.head) - 1) else "right", overflow="fold"
            )
        for line in sheet.lines:
            table.add_row(*line)
        console.print(table)


def markdown(found: Sequence[Sheet]) -> str:
    """Markdown for docs/benchmarks.md."""
    parts = []
    for sheet in found:
        lines = [sheet.head, tuple("---" for _ in sheet.head), *sheet.lines]
        text = "\n".join(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
        )
        parts.append(f"### {sheet.title}\n\n{text}\n")
    return "\n".join(parts)
