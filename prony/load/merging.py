"""Adds up what several engines said of one load that they shared: pure functions. Histograms are merged by
addition, never averaged; a sum of which one part is not known is not known. Must not know hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from prony.evidence.engine import (
    AddressCounts,
    Counters,
    EngineReport,
    Gap,
    Histogram,
    IntervalRow,
    Mark,
    Ready,
    ResponseCount,
    StepFigures,
    TlsAgreed,
    Window,
)

CELLS_KEY = "arrival_gaps_cells"
"""Of a window with a `share`: the probability-transformed gaps in cells of equal width (docs/engine.md)."""
SHARED = frozenset({"first_head", "error_reasons"})
"""Said once for all: the first one counts."""
C = TypeVar("C", bound=Counters)


def merged_report(
    reports: Sequence[EngineReport],
    *,
    rows: Sequence[IntervalRow],
    marks: Sequence[Mark] = (),
    cells: Sequence[Sequence[int]] = (),
) -> EngineReport:
    """One report over those of all engines. `rows`, `marks`: merged already (`merged_row`, `merged_mark`);
    `cells`: of each engine the cells of its arrival gaps, where they were Poisson arrivals.
    """
    windows = [report.window for report in reports if report.window is not None]
    reasons = dict.fromkeys(report.reason for report in reports)
    return EngineReport(
        ready=merged_ready([report.ready for report in reports]),
        rows=tuple(rows),
        marks=tuple(marks),
        reason=", ".join(reasons),
        elapsed_ms=max(report.elapsed_ms for report in reports),
        totals=merged_counters(Counters, [report.totals for report in reports]),
        window=merged_window(windows, cells) if len(windows) == len(reports) else None,
        values={name: value for report in reports for name, value in report.values.items()},
    )


def merged_ready(each: Sequence[Ready]) -> Ready:
    """The first engine's, with the threads and addresses of all."""
    drivers = dict.fromkeys(one.driver for one in each)
    return each[0].model_copy(
        update={
            "driver": ", ".join(drivers),
            "addresses": tuple(dict.fromkeys(address for one in each for address in one.addresses)),
            "threads": tuple(thread for one in each for thread in one.threads),
        }
    )


def merged_window(windows: Sequence[Window], cells: Sequence[Sequence[int]] = ()) -> Window:
    """The window of all engines, which opened and closed at one instant."""
    merged = merged_counters(Window, windows)
    gaps = _common(windows)
    update: dict[str, Any] = {
        "opened_ms": windows[0].opened_ms,
        "duration_s": sum(window.duration_s for window in windows) / len(windows),
        "complete": all(window.complete for window in windows),
        "steps": _steps([window.steps for window in windows]),
        "transactions": _steps([window.transactions for window in windows]),
        "threads": tuple(thread for window in windows for thread in window.threads),
        "gaps": gaps,
        "gaps_total": len(gaps) if len(windows) > 1 else windows[0].gaps_total,
    }
    if len(windows) == 1:
        return merged.model_copy(update=update | {"arrival_gaps_ks": windows[0].arrival_gaps_ks})
    known = [counts for counts in cells if counts]
    update["arrival_gaps_ks"] = _distance(known) if len(known) == len(windows) else None
    return merged.model_copy(update=update)


def merged_counters(kind: type[C], each: Sequence[C]) -> C:
    """Counts and sums of all engines; lists by what they count."""
    found: dict[str, Any] = {}
    for name in kind.model_fields:
        values = [getattr(one, name) for one in each]
        known = [value for value in values if value is not None]
        if not known:
            found[name] = None
        elif name in SHARED:
            found[name] = (
                known[0]
                if name == "first_head"
                else {k: v for one in reversed(known) for k, v in one.items()}
            )
        elif isinstance(known[0], bool):
            found[name] = all(known)
        elif isinstance(known[0], int | float):
            found[name] = sum(known) if len(known) == len(values) else None
        elif isinstance(known[0], Histogram):
            found[name] = merged_histogram(known)
        elif isinstance(known[0], dict):
            found[name] = dict(sum((Counter(one) for one in known), Counter()))
    found["answers"] = _responses(one.answers for one in each)
    found["addresses"] = _addresses([one.addresses for one in each])
    found["tls_agreed"] = _agreed(one.tls_agreed for one in each)
    return each[0].model_copy(update=found)


def merged_histogram(each: Sequence[Histogram]) -> Histogram:
    """All samples in one histogram."""
    if len(each) == 1:
        return each[0]
    total = _decoded(each[0])
    for one in each[1:]:
        total.add(_decoded(one))
    count = sum(one.count for one in each)
    sums = [(one.mean_ns, one.count) for one in each if one.mean_ns is not None]
    weight = sum(times for _, times in sums)
    return Histogram(
        count=count,
        mean_ns=sum(mean * times for mean, times in sums) / weight if weight else None,
        min_ns=min((one.min_ns for one in each if one.min_ns is not None), default=None),
        max_ns=max((one.max_ns for one in each if one.max_ns is not None), default=None),
        saturated=sum(one.saturated for one in each),
        v2=total.encode().decode("ascii"),
    )


def merged_row(rows: Sequence[IntervalRow], times: Sequence[Histogram | None]) -> IntervalRow:
    """The same second of all engines. `times`: their service times in it, by which its percentiles are known;
    without them it has none.
    """
    if len(rows) == 1:
        return rows[0]
    errors: Counter[str] = Counter()
    for row in rows:
        errors.update(row.errors)
    weighted = [(row.mean_ns, row.completed) for row in rows if row.mean_ns is not None]
    weight = sum(completed for _, completed in weighted)
    update: dict[str, Any] = {
        "duration_ms": sum(row.duration_ms for row in rows) / len(rows),
        "in_window": all(row.in_window for row in rows),
        "completed": sum(row.completed for row in rows),
        "failed": sum(row.failed for row in rows),
        "errors": dict(errors),
        "mean_ns": sum(mean * n for mean, n in weighted) / weight if weight else None,
        "max_ns": _most(row.max_ns for row in rows),
        "client_cpu": _most(row.client_cpu for row in rows),
        "loop_lag_p99_ns": _most(row.loop_lag_p99_ns for row in rows),
        **_percentiles(rows, times),
    }
    for name in (
        "bytes_received", "in_flight", "users", "connections_open", "connections_opened", "sent", "offered",
    ):  # fmt: skip
        values = [getattr(row, name) for row in rows]
        update[name] = None if None in values else sum(values)
    return rows[0].model_copy(update=update)


def merged_mark(marks: Sequence[Mark]) -> Mark:
    """When all engines had completed their part of this many requests. Its percentiles are not known: each
    engine said its own only.
    """
    if len(marks) == 1:
        return marks[0]
    requests = sum(mark.requests for mark in marks)
    means = [(mark.mean_ns, mark.requests) for mark in marks if mark.mean_ns is not None]
    return Mark(
        requests=requests,
        elapsed_ms=max(mark.elapsed_ms for mark in marks),
        mean_ns=sum(mean * n for mean, n in means) / requests if len(means) == len(marks) else None,
        errors=sum(mark.errors for mark in marks),
    )


def _percentiles(rows: Sequence[IntervalRow], times: Sequence[Histogram | None]) -> dict[str, int | None]:
    known = [one for one in times if one is not None and one.count]
    counted = sum(row.completed for row in rows)
    if not known or sum(one.count for one in known) < counted:
        return {"p50_ns": None, "p90_ns": None, "p99_ns": None}
    total = _decoded(known[0])
    for one in known[1:]:
        total.add(_decoded(one))
    return {
        f"p{percentile}_ns": int(total.get_value_at_percentile(percentile)) for percentile in (50, 90, 99)
    }


def _decoded(one: Histogram) -> Any:
    from hdrh.histogram import HdrHistogram  # a tenth of a second: only loads on several hosts need it here

    found: Any = HdrHistogram.decode(one.v2)
    return found


def _most(values: Iterable[Any]) -> Any:
    return max((value for value in values if value is not None), default=None)


def _steps(each: Sequence[Sequence[StepFigures]]) -> tuple[StepFigures, ...]:
    found: dict[tuple[str, str], list[StepFigures]] = {}
    for steps in each:
        for step in steps:
            found.setdefault((step.scenario, step.name), []).append(step)
    return tuple(_step(same) for same in found.values())


def _step(same: Sequence[StepFigures]) -> StepFigures:
    status: Counter[str] = Counter()
    for step in same:
        status.update(step.status)
    service = [step.service_time for step in same if step.service_time is not None]
    response = [step.response_time for step in same if step.response_time is not None]
    return same[0].model_copy(
        update={
            "completed": sum(step.completed for step in same),
            "failed": sum(step.failed for step in same),
            "status": dict(status),
            "service_time": merged_histogram(service) if service else None,
            "response_time": merged_histogram(response) if response else None,
        }
    )


def _responses(each: Iterable[Sequence[ResponseCount]]) -> tuple[ResponseCount, ...]:
    """Most frequent first, as an engine tells them."""
    counts: Counter[tuple[int, int]] = Counter()
    for responses in each:
        for one in responses:
            counts[one.status, one.body_bytes] += one.count
    return tuple(
        ResponseCount(status=status, body_bytes=size, count=count)
        for (status, size), count in counts.most_common()
    )


def _addresses(each: Sequence[Sequence[AddressCounts]]) -> tuple[AddressCounts, ...]:
    found: dict[str, list[AddressCounts]] = {}
    for addresses in each:
        for one in addresses:
            found.setdefault(one.address, []).append(one)

    def added(same: Sequence[AddressCounts], name: str) -> int | None:
        values = [getattr(one, name) for one in same]
        return None if None in values else sum(values)

    names = ("connect_attempts", "connections_opened", "sent")
    return tuple(
        AddressCounts(address=address, **{name: added(same, name) for name in names})
        for address, same in found.items()
    )


def _agreed(each: Iterable[Sequence[TlsAgreed]]) -> tuple[TlsAgreed, ...]:
    found: dict[tuple[str, str, str | None], int] = {}
    for handshakes in each:
        for one in handshakes:
            key = (one.version, one.cipher_suite, one.alpn)
            found[key] = found.get(key, 0) + one.count
    return tuple(
        TlsAgreed(version=version, cipher_suite=suite, alpn=alpn, count=count)
        for (version, suite, alpn), count in found.items()
    )


def _common(windows: Sequence[Window]) -> tuple[Gap, ...]:
    """Where nothing completed on any engine: the spans that the gaps of all have in common."""
    common = list(windows[0].gaps)
    for window in windows[1:]:
        common = [
            Gap(start_ms=start, duration_ms=end - start, in_flight=one.in_flight + other.in_flight)
            for one in common
            for other in window.gaps
            if (start := max(one.start_ms, other.start_ms))
            < (end := min(one.start_ms + one.duration_ms, other.start_ms + other.duration_ms))
        ]
    return tuple(sorted(common, key=lambda gap: -gap.duration_ms))


def _distance(cells: Sequence[Sequence[int]]) -> float | None:
    """Kolmogorov-Smirnov distance of all gaps from the uniform distribution, at the edges of the cells."""
    counts = [sum(column) for column in zip(*cells, strict=True)]
    total = sum(counts)
    if not total:
        return None
    below, worst = 0, 0.0
    for place, count in enumerate(counts, start=1):
        below += count
        worst = max(worst, abs(below / total - place / len(counts)))
    return worst


def cells_of(finished: Mapping[str, Any]) -> tuple[int, ...]:
    """The cells of an engine's `finished` event; empty where it has none."""
    window = finished.get("window") or {}
    return tuple(window.get(CELLS_KEY) or ())
