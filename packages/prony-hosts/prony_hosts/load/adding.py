"""Merges the reports of several engines into one: pure functions.

Counts and integrals are summed, histograms added; nothing is averaged. A figure that cannot be merged
(percentiles of a mark) is None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from prony.evidence.counts import (
    AddressCounts,
    BodyCount,
    Gap,
    Http2Counts,
    ResponseCount,
    TlsAgreed,
    UrlCount,
)
from prony.evidence.engine import (
    REQUEST_FAILED,
    Counters,
    EngineReport,
    Histogram,
    IntervalRow,
    Mark,
    Ready,
    StepFigures,
    Window,
)
from prony.load.histograms import Packed, added
from prony_hosts.load.histograms import added_up, quantile_ns

RESPONSES_LISTED = 32
"""Responses that an engine lists by status and size."""
SHORTEST_GAP_NS = 20_000_000
GAPS_KEPT = 256
"""Both as in the engine."""
WORST_FIRST = ("script", REQUEST_FAILED, "stdin_closed", "signal", "stopped", "duration")
"""Reasons for the end, worst first; the first that occurs is reported."""

Number = TypeVar("Number", int, float)
Key = TypeVar("Key")
Value = TypeVar("Value")
Counted = TypeVar("Counted", BodyCount, TlsAgreed)
Silence = Sequence[int]
"""A span without a completion: from, in-flight since (its end where nothing was in flight), to, in ns after
the start; and requests in flight.
"""


def merged_report(
    reports: Sequence[EngineReport],
    rows: Sequence[IntervalRow] = (),
    marks: Sequence[Mark] = (),
    gap_cells: Sequence[Sequence[int]] = (),
    silences: Sequence[Sequence[Silence] | None] = (),
) -> EngineReport:
    """Merges reports of engines that began one load at the same instant, with windows of the same span.
    `rows`, `marks`: already merged during the run. `gap_cells`: `arrival_gaps_cells` of each engine with
    Poisson arrivals. `silences`: of each engine with a window; None where it reported none.
    """
    windows = [report.window for report in reports]
    measured = [window for window in windows if window is not None]
    values: dict[str, str] = {}
    for report in reversed(reports):
        values.update(report.values)
    readers = [report.reader_cpu_s for report in reports if report.reader_cpu_s is not None]
    return EngineReport(
        ready=merged_ready([report.ready for report in reports]),
        rows=tuple(rows),
        marks=tuple(marks),
        reason=merged_reason([report.reason for report in reports]),
        elapsed_ms=max(report.elapsed_ms for report in reports),
        totals=Counters(**counted([report.totals for report in reports])),
        # Without a window on every engine there is no common window.
        window=merged_window(measured, gap_cells, silences)
        if measured and len(measured) == len(windows)
        else None,
        reader_cpu_s=sum(readers) if readers else None,
        values=values,
        responses=tuple(response for report in reports for response in report.responses),
    )


def merged_ready(all_ready: Sequence[Ready]) -> Ready:
    """The common start: the instant of the last engine."""
    first = all_ready[0]
    drivers = list(dict.fromkeys(ready.driver for ready in all_ready))
    return first.model_copy(
        update={
            "driver": ", ".join(drivers),
            "addresses": _distinct(address for ready in all_ready for address in ready.addresses),
            "injected_faults": _distinct(fault for ready in all_ready for fault in ready.injected_faults),
            "emulated": next(filter(None, (ready.emulated for ready in all_ready)), None),
            "threads": tuple(thread for ready in all_ready for thread in ready.threads),
            "started_unix_ns": max(ready.started_unix_ns for ready in all_ready),
            "started_monotonic_ns": max(ready.started_monotonic_ns for ready in all_ready),
        }
    )


def merged_reason(reasons: Sequence[str]) -> str:
    """The worst of the reasons for the end."""
    return next((reason for reason in WORST_FIRST if reason in reasons), reasons[0])


def merged_row(rows: Sequence[IntervalRow], service_times: Sequence[Packed]) -> IntervalRow:
    """Merges the rows of one second. `service_times`: of engines that completed requests."""
    counts = added(service_times) if service_times else None
    answered = [(row.mean_ns, row.completed) for row in rows if row.mean_ns is not None]
    weight = sum(completed for _, completed in answered)
    begun_ms = min(row.t_ms - row.duration_ms for row in rows)
    t_ms = max(row.t_ms for row in rows)
    longest = _most(row.max_ns for row in rows)

    def quantile(share: float) -> int | None:
        value_ns = None if counts is None else quantile_ns(counts, share)
        return value_ns if value_ns is None or longest is None else min(value_ns, longest)

    return IntervalRow(
        t_ms=t_ms,
        duration_ms=t_ms - begun_ms,
        in_window=all(row.in_window for row in rows),
        completed=sum(row.completed for row in rows),
        failed=sum(row.failed for row in rows),
        errors=_by_key(row.errors for row in rows),
        bytes_received=_sum(row.bytes_received for row in rows),
        in_flight=_sum(row.in_flight for row in rows),
        users=_sum(row.users for row in rows),
        connections_open=_sum(row.connections_open for row in rows),
        connections_opened=_sum(row.connections_opened for row in rows),
        mean_ns=sum(mean * count for mean, count in answered) / weight if weight else None,
        p50_ns=quantile(0.5),
        p90_ns=quantile(0.9),
        p99_ns=quantile(0.99),
        max_ns=longest,
        # The busiest host counts: idle hosts do not make up for it. An unreadable host may be the busiest; a
        # host without a lag had no event to be late for.
        client_cpu=_busiest([row.client_cpu for row in rows]),
        loop_lag_p99_ns=_most(row.loop_lag_p99_ns for row in rows),
        offered=_sum(row.offered for row in rows),
        sent=_sum(row.sent for row in rows),
        latency_p50_ns=_weighted((row.latency_p50_ns, row.completed) for row in rows),
        latency_p99_ns=_weighted((row.latency_p99_ns, row.completed) for row in rows),
        send_lag_p99_ns=_most(row.send_lag_p99_ns for row in rows),
    )


def _weighted(values: Iterable[tuple[int | None, int]]) -> int | None:
    """The mean weighted by requests; None where an engine with requests has no value."""
    counted = [(value, count) for value, count in values if count]
    valued = [(value, count) for value, count in counted if value is not None]
    if not valued or len(valued) < len(counted):
        return None
    return round(sum(value * count for value, count in valued) / sum(count for _, count in valued))


def merged_mark(requests: int, marks: Sequence[Mark]) -> Mark:
    """When all engines had completed their shares of `requests`; without percentiles."""
    done = sum(mark.requests for mark in marks)
    sums_ns = [mark.mean_ns * mark.requests for mark in marks if mark.mean_ns is not None]
    alone = marks[0] if len(marks) == 1 else None
    return Mark(
        requests=requests,
        elapsed_ms=max(mark.elapsed_ms for mark in marks),
        mean_ns=sum(sums_ns) / done if done and len(sums_ns) == len(marks) else None,
        p50_ns=None if alone is None else alone.p50_ns,
        p99_ns=None if alone is None else alone.p99_ns,
        errors=sum(mark.errors for mark in marks),
    )


def merged_window(
    windows: Sequence[Window],
    gap_cells: Sequence[Sequence[int]],
    silences: Sequence[Sequence[Silence] | None],
) -> Window:
    """Merges windows that opened and closed at the same instants on all hosts."""

    def histogram(name: str) -> Histogram | None:
        return added_up([getattr(window, name) for window in windows])

    gaps, gaps_total = common_gaps(silences)
    tested, distance, distances = uniform_distance(gap_cells, _looked_from(windows))
    if len(windows) == 1:
        tested, distance = windows[0].arrival_gaps, windows[0].arrival_gaps_ks
        distances = windows[0].arrival_gaps_ks_from
        gaps, gaps_total = windows[0].gaps, windows[0].gaps_total
    return Window(
        **counted(windows),
        opened_ms=min(window.opened_ms for window in windows),
        duration_s=sum(window.duration_s for window in windows) / len(windows),
        complete=all(window.complete for window in windows),
        **{
            name: histogram(name)
            for name in (
                "service_time",
                "response_time",
                "latency",
                "send_lag",
                "session_time",
                "send_time",
                "wait_time",
                "receive_time",
            )
        },
        steps=_steps([window.steps for window in windows]),
        bodies=_grouped(
            (body for window in windows for body in window.bodies),
            lambda body: (body.scenario, body.step, body.sha256),
            _counted,
        ),
        urls=_grouped(
            (one for window in windows for one in window.urls), lambda one: (one.scenario, one.step), _urls
        ),
        transactions=_steps([window.transactions for window in windows]),
        threads=tuple(thread for window in windows for thread in window.threads),
        gaps=gaps,
        gaps_total=gaps_total,
        slowest=windows[0].slowest if len(windows) == 1 else None,  # relative to each engine's own start
        arrival_gaps=tested,
        arrival_gaps_ks=distance,
        arrival_gaps_ks_from=distances,
    )


SUMMED = (
    "bytes_sent", "bytes_received", "connect_attempts", "connections_opened", "connections_closed_by_server",
    "connections_closed_by_client", "connections_closed_first_by_server", "tls_handshakes", "tls_resumptions",
    "service_time_sum_s", "lost_time_sum_s", "in_flight_integral_s", "in_flight_age_open_s",
    "in_flight_age_close_s", "clipped_cycle_s", "clipped_connect_s", "clipped_turnaround_s",
    "clipped_back_off_s", "turnaround_sum_s", "turnaround_count", "users", "users_integral_s",
    "think_drawn_sum_s", "think_actual_sum_s", "think_count", "eaddrnotavail", "emfile",
    "submissions_put_off", "cookies_dropped", "offered", "due_unsent", "blocked", "sessions_begun",
    "sessions_completed", "sent", "completed", "failed", "abandoned",
)  # fmt: skip
"""Counters that are summed, or None where an engine could not read them."""


def counted(parts: Sequence[Counters]) -> dict[str, Any]:
    """The merged fields of `Counters`."""
    responses: Counter[tuple[int, int]] = Counter()
    for part in parts:
        for response in part.answers:
            responses[response.status, response.body_bytes] += response.count
    listed = sorted(responses.items(), key=lambda item: (-item[1], item[0]))
    reasons: dict[str, str] = {}
    for part in reversed(parts):
        reasons.update(part.error_reasons)
    return {
        **{name: _sum(getattr(part, name) for part in parts) for name in SUMMED},
        "errors": _by_key(part.errors for part in parts),
        "error_reasons": reasons,
        "first_head": next((part.first_head for part in parts if part.first_head is not None), None),
        "status": _by_key(part.status for part in parts),
        "answers": tuple(
            ResponseCount(status=status, body_bytes=size, count=count)
            for (status, size), count in listed[:RESPONSES_LISTED]
        ),
        "answers_other": sum(part.answers_other for part in parts)
        + sum(count for _, count in listed[RESPONSES_LISTED:]),
        "addresses": _grouped(
            (counts for part in parts for counts in part.addresses), lambda counts: counts.address, _address
        ),
        "tls_agreed": _grouped(
            (agreed for part in parts for agreed in part.tls_agreed),
            lambda agreed: (agreed.version, agreed.cipher_suite, agreed.alpn),
            _counted,
        ),
        "http2": _http2([part.http2 for part in parts if part.http2 is not None]),
        **{
            name: added_up([getattr(part, name) for part in parts])
            for name in ("connect_time", "tls_time", "turnaround", "think_overshoot")
        },
    }


def _http2(parts: Sequence[Http2Counts]) -> Http2Counts | None:
    """Sums, except for maximum waits and the smallest limit."""
    if not parts:
        return None
    merged: dict[str, Any] = {}
    for name in Http2Counts.model_fields:
        values = [getattr(part, name) for part in parts]
        if name == "max_concurrent_streams":
            merged[name] = min((value for value in values if value is not None), default=None)
        elif name.endswith("_max_ms"):
            merged[name] = max(values)
        elif isinstance(values[0], dict):
            merged[name] = _by_key(values)
        else:
            merged[name] = sum(values)
    return Http2Counts(**merged)


def _address(parts: Sequence[AddressCounts]) -> AddressCounts:
    return AddressCounts(
        address=parts[0].address,
        connect_attempts=_sum(part.connect_attempts for part in parts),
        connections_opened=_sum(part.connections_opened for part in parts),
        sent=_sum(part.sent for part in parts),
    )


def _counted(parts: Sequence[Counted]) -> Counted:
    return parts[0].model_copy(update={"count": sum(part.count for part in parts)})


def _urls(parts: Sequence[UrlCount]) -> UrlCount:
    """Upper bounds: engines may share paths."""
    return parts[0].model_copy(update={"distinct": _sum(part.distinct for part in parts)})


def _steps(lists: Sequence[Sequence[StepFigures]]) -> tuple[StepFigures, ...]:
    def merged(parts: Sequence[StepFigures]) -> StepFigures:
        return StepFigures(
            scenario=parts[0].scenario,
            name=parts[0].name,
            completed=sum(part.completed for part in parts),
            failed=sum(part.failed for part in parts),
            status=_by_key(part.status for part in parts),
            service_time=added_up([part.service_time for part in parts]),
            response_time=added_up([part.response_time for part in parts]),
        )

    return _grouped(
        (figures for steps in lists for figures in steps),
        lambda figures: (figures.scenario, figures.name),
        merged,
    )


def common_gaps(silences: Sequence[Sequence[Silence] | None]) -> tuple[tuple[Gap, ...], int | None]:
    """Spans without a completion on any host while some host had requests in flight, longest first, and their
    number. The engine merges its threads the same way, so an idle host hides no gap. The number is None where
    a host reported no silences.
    """
    reported = [silence for silence in silences if silence is not None]
    if not reported or len(reported) < len(silences):
        return (), None
    common = list(reported[0])
    for silent in reported[1:]:
        common = _overlaps(common, silent)
    gaps = [
        Gap(start_ms=busy * 1e-6, duration_ms=(to - busy) * 1e-6, in_flight=in_flight)
        for _, busy, to, in_flight in common
        if to - busy > SHORTEST_GAP_NS
    ]
    gaps.sort(key=lambda gap: -gap.duration_ms)
    return tuple(gaps[:GAPS_KEPT]), len(gaps)


def _overlaps(left: Sequence[Silence], right: Sequence[Silence]) -> list[Silence]:
    """Intersection of two ordered lists; in flight from the earlier of the two."""
    overlaps: list[Silence] = []
    i = j = 0
    while i < len(left) and j < len(right):
        (begin, busy, end, flying), (other_begin, other_busy, other_end, other_flying) = left[i], right[j]
        start, to = max(begin, other_begin), min(end, other_end)
        if start < to:
            overlaps.append((start, min(max(min(busy, other_busy), start), to), to, flying + other_flying))
        i, j = (i + 1, j) if end <= other_end else (i, j + 1)
    return overlaps


def uniform_distance(
    cells: Sequence[Sequence[int]], looked_from: Sequence[float] = ()
) -> tuple[int | None, float | None, tuple[tuple[float, float], ...]]:
    """Merges counts of values in cells of equal width from 0 to 1. Returns the number of values, the
    Kolmogorov-Smirnov distance from the uniform distribution at the cells' borders (None without values), and
    (u, distance above u) for each u of `looked_from`.
    """
    counted = [np.asarray(counts, dtype=np.int64) for counts in cells if len(counts)]
    if not counted:
        return None, None, ()
    together = np.sum(counted, axis=0)
    total = int(together.sum())
    if total == 0:
        return None, None, ()
    uniform = np.arange(1, together.size + 1) / together.size
    away = np.abs(np.cumsum(together) / total - uniform)
    from_each = tuple((least, float(np.max(away[uniform >= least]))) for least in looked_from)
    return total, float(np.max(away)), from_each


def _looked_from(windows: Sequence[Window]) -> tuple[float, ...]:
    """Lower bounds u for which every engine reported a distance."""
    reported = [{least for least, _ in window.arrival_gaps_ks_from} for window in windows]
    return tuple(sorted(set.intersection(*reported))) if reported else ()


def _sum(values: Iterable[Number | None]) -> Number | None:
    """The sum; None when a value is missing."""
    present = list(values)
    return (
        None
        if any(value is None for value in present)
        else sum(value for value in present if value is not None)
    )


def _busiest(values: Sequence[float | None]) -> float | None:
    """The largest; None when a value is missing."""
    return None if None in values else _most(values)


def _most(values: Iterable[Number | None]) -> Number | None:
    return max((value for value in values if value is not None), default=None)


def _by_key(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    together: Counter[str] = Counter()
    for part in counts:
        together.update(part)
    return dict(together)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _grouped(
    values: Iterable[Value], key: Callable[[Value], Key], merge: Callable[[Sequence[Value]], Value]
) -> tuple[Value, ...]:
    """Merges the items with equal keys, in the order of first occurrence."""
    groups: dict[Key, list[Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return tuple(merge(group) for group in groups.values())
