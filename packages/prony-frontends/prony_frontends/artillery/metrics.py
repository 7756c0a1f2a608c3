"""A run as Artillery's metrics: counters, rates and summaries."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prony.evidence.engine import Counters, Histogram, IntervalRow, StepFigures, Window
from prony.judge.histogram import Decoded, decode
from prony_frontends.artillery.flow import TranslatedScenario
from prony_frontends.artillery.translate import TranslatedScript
from prony_frontends.base import Ran

PERIOD_S = 10
ERRORS: Mapping[str, str] = {
    "connect_refused": "ECONNREFUSED", "connect_timeout": "ETIMEDOUT", "connect_other": "EHOSTUNREACH",
    "tls": "EPROTO", "address_unavailable": "EADDRNOTAVAIL", "descriptors": "EMFILE", "write": "EPIPE",
    "read": "ECONNRESET", "premature_close": "ECONNRESET", "timeout": "ETIMEDOUT",
    "protocol": "HPE_INVALID_CONSTANT", "header_too_long": "HPE_HEADER_OVERFLOW", "client": "EBUSY",
    "answer_memory": "ENOBUFS", "capture": "Failed capture or match",
    "expect_redirect": "redirect_not_followed",
}  # fmt: skip
"""The engine's kinds of errors -> Artillery's names. Failed expectations are no errors in Artillery."""
UNCONNECTED = (
    "connect_refused", "connect_timeout", "connect_other", "tls", "address_unavailable", "descriptors",
)  # fmt: skip
QUANTILES = (
    ("p50", 50.0),
    ("median", 50.0),
    ("p75", 75.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p999", 99.9),
)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics of a report or of a period."""

    counters: dict[str, int] = field(default_factory=dict)
    rates: dict[str, int] = field(default_factory=dict)
    summaries: dict[str, dict[str, float | None]] = field(default_factory=dict)
    period_ms: int = 0
    """Unix time of the period's start, in ms."""
    first_ms: int = 0
    last_ms: int = 0

    def as_json(self) -> dict[str, Any]:
        """Artillery's JSON."""
        return {
            "counters": self.counters,
            "rates": self.rates,
            "firstCounterAt": self.first_ms,
            "firstHistogramAt": self.first_ms,
            "lastCounterAt": self.last_ms,
            "lastHistogramAt": self.last_ms,
            "firstMetricAt": self.first_ms,
            "lastMetricAt": self.last_ms,
            "period": self.period_ms,
            "summaries": self.summaries,
            "histograms": self.summaries,
        }


def aggregate(read: TranslatedScript, ran: Ran) -> Metrics:
    """The whole run."""
    window = ran.window
    began_ms = ran.report.ready.started_unix_ns // 1_000_000
    counters = _counters(read, window)
    requests = counters.get("http.requests", 0)
    rates = {"http.request_rate": round(requests / max(window.duration_s, 1.0))} if requests else {}
    summaries: dict[str, dict[str, float | None]] = {}
    answered = _answered(window)
    if answered is not None:
        summaries["http.response_time"] = answered
    for family, figures in _by_family(window).items():
        summaries[f"http.response_time.{family}"] = figures
    if window.session_time is not None and window.session_time.count:
        summaries["vusers.session_length"] = summary(_decoded([window.session_time]))
    for name, steps in _by_endpoint(read, window).items():
        times = [time for time in (_time_of(step) for step in steps) if time is not None]
        if any(histogram.count for histogram in times) and any(step.completed for step in steps):
            summaries[f"{read.namespace}response_time.{name}"] = summary(_decoded(times))
    if (own := ran.report.script) is not None:
        for name, count in own.counters.items():
            name = NO_OBJECT.sub(_as_node, name)
            counters[name] = counters.get(name, 0) + count
        rates |= {name: round(count / max(window.duration_s, 1.0)) for name, count in own.rates.items()}
        summaries |= {name: _summary_of(values) for name, values in own.histograms.items()}
    return Metrics(
        counters=counters,
        rates=rates,
        summaries=summaries,
        period_ms=_period(began_ms + int(window.duration_s * 1000)),
        first_ms=began_ms,
        last_ms=began_ms + round(window.duration_s * 1000),
    )


NO_OBJECT = re.compile(r"^errors\.cannot (set|read) property '(.*)' of (undefined|null)$")


def _as_node(found: re.Match[str]) -> str:
    """Its words for a function that uses a missing object."""
    doing = {"set": "setting", "read": "reading"}[found[1]]
    return f"errors.Cannot {found[1]} properties of {found[3]} ({doing} '{found[2]}')"


def periods(rows: Sequence[IntervalRow], began_ms: int) -> list[Metrics]:
    """Ten-second periods of clock time from one-second rows, which have no percentiles."""
    rows_by_period: dict[int, list[IntervalRow]] = {}
    for row in rows:
        rows_by_period.setdefault(_period(began_ms + int(row.t_ms - row.duration_ms)), []).append(row)
    return [_part(period, part, began_ms) for period, part in sorted(rows_by_period.items())]


def _part(period_ms: int, rows: Sequence[IntervalRow], began_ms: int) -> Metrics:
    counters: dict[str, int] = {
        "http.requests": sum((row.sent or 0) + _unconnected(row.errors) for row in rows),
        "http.responses": sum(row.completed for row in rows),
    }
    for row in rows:
        _errors(counters, row.errors)
    completed = counters["http.responses"]
    summaries: dict[str, dict[str, float | None]] = {}
    if completed:
        mean_ns = sum((row.mean_ns or 0.0) * row.completed for row in rows) / completed
        worst_ns = max(row.max_ns or 0 for row in rows)
        summaries["http.response_time"] = {
            "max": _ms(worst_ns), "count": completed, "mean": _ms(mean_ns),
        }  # fmt: skip
    length_s = sum(row.duration_ms for row in rows) / 1000
    return Metrics(
        counters={name: value for name, value in counters.items() if value},
        rates={"http.request_rate": round(counters["http.requests"] / max(length_s, 1.0))},
        summaries=summaries,
        period_ms=period_ms,
        first_ms=began_ms + round(rows[0].t_ms - rows[0].duration_ms),
        last_ms=began_ms + round(rows[-1].t_ms),
    )


def _counters(read: TranslatedScript, window: Window) -> dict[str, int]:
    created = window.sessions_begun or 0
    counters: dict[str, int] = {}
    for walked, count in zip(read.scenarios, _created(read.scenarios, window), strict=True):
        if count is not None:
            counters[f"vusers.created_by_name.{walked.name}"] = count
    counters["vusers.created"] = created
    if window.blocked:
        counters["vusers.skipped"] = window.blocked
    if sent := window.sent + _unconnected(window.errors):
        counters["http.requests"] = sent
    for code, count in sorted(window.status.items()):
        counters[f"http.codes.{code}"] = count
    if window.completed:
        counters["http.responses"] = window.completed
    if window.completed and not window.answers_other:
        counters["http.downloaded_bytes"] = sum(
            response.body_bytes * response.count for response in window.answers
        )
    _expected(counters, read, window)
    follows = frozenset(name for walked in read.scenarios for name in walked.follows)
    for name, steps in _by_endpoint(read, window).items():
        for step in steps:
            for code, count in _last(step.status, name in follows).items():
                key = f"{read.namespace}{name}.codes.{code}"
                counters[key] = counters.get(key, 0) + count
    _errors(counters, window.errors)
    wanted = [expected for walked in read.scenarios for expected in walked.wanted.values()]
    if (missed := window.errors.get("expect_body", 0)) and not any(expected.body for expected in wanted):
        key = f"errors.{ERRORS['capture']}"  # only a match reads bodies
        counters[key] = counters.get(key, 0) + missed
    completed = window.sessions_completed or 0
    counters["vusers.failed"] = max(0, created - completed)
    if completed:
        counters["vusers.completed"] = completed
    return counters


def _unconnected(errors: Mapping[str, int]) -> int:
    """Requests without a connection: Artillery counts them before it connects."""
    return sum(errors.get(kind, 0) for kind in UNCONNECTED)


def _errors(counters: dict[str, int], errors: Mapping[str, int]) -> None:
    for kind, count in errors.items():
        if kind in ERRORS:
            key = f"errors.{ERRORS[kind]}"
            counters[key] = counters.get(key, 0) + count


def _created(scenarios: Sequence[TranslatedScenario], window: Window) -> list[int | None]:
    """Users per scenario, from the responses to first steps; None where these make no whole users."""
    if len(scenarios) == 1:
        return [window.sessions_begun or 0]
    users: list[int | None] = []
    for walked in scenarios:
        names = {scenario.name for scenario in walked.scenarios}
        first, sends = walked.first
        # A step that follows redirects is one transaction for the whole chain.
        figures = window.transactions if first in walked.follows else window.steps
        rows = [step for step in figures if step.scenario in names and step.name == first]
        count = sum(step.completed for step in rows)
        users.append(count // sends if rows and sends and count % sends == 0 else None)
    if None not in users and sum(count or 0 for count in users) != window.sessions_begun:
        return [None] * len(users)  # some got no response to their first request
    return users


def _expected(counters: dict[str, int], read: TranslatedScript, window: Window) -> None:
    """plugins.expect.*: statuses exactly; for other failures the request's first check is blamed."""
    for walked in read.scenarios:
        names = {scenario.name for scenario in walked.scenarios}
        for name, wanted in walked.wanted.items():
            rows = [step for step in window.steps if step.scenario in names and step.name == name]
            single: list[Counters | StepFigures] = list(rows) or ([window] if not window.steps else [])
            for row in single:
                status = _last(row.status, name in walked.follows)
                judged = sum(status.values()) if name in walked.follows else row.completed
                ways = [way for way in window.transactions if (way.scenario, way.name) == _key(row)]
                # Chains that ended with a redirect are not checked.
                led = sum(way.completed for way in ways) - judged if name in walked.follows else 0
                others = max(0, min(judged, row.failed - led) - _missed(judged, status, wanted.statuses))
                for label, allowed in wanted.checks:
                    failed = others if allowed is None else _missed(judged, status, allowed)
                    others = others if allowed is not None else 0
                    _add(counters, "plugins.expect.ok", label, judged - failed)
                    _add(counters, "plugins.expect.failed", label, failed)


def _key(row: Counters | StepFigures) -> tuple[str, str]:
    return (row.scenario, row.name) if isinstance(row, StepFigures) else ("", "")


def _last(status: Mapping[str, int], follows: bool) -> dict[str, int]:
    """The responses seen by plugins: without redirects where these are followed."""
    return {code: count for code, count in status.items() if not follows or code[0] != "3"}


def _missed(judged: int, status: Mapping[str, int], allowed: Sequence[int] | None) -> int:
    """Responses with an unexpected status."""
    if allowed is None:
        return 0
    return judged - sum(count for code, count in status.items() if int(code) in allowed)


def _add(counters: dict[str, int], name: str, kind: str, count: int) -> None:
    if count:
        counters[name] = counters.get(name, 0) + count
        counters[f"{name}.{kind}"] = counters.get(f"{name}.{kind}", 0) + count


def _by_endpoint(read: TranslatedScript, window: Window) -> dict[str, list[Counters | StepFigures]]:
    """Rows by endpoint name; for a single step, the whole run."""
    rows_by_name: dict[str, list[Counters | StepFigures]] = {}
    for step in window.steps:
        rows_by_name.setdefault(step.name, []).append(step)
    if not rows_by_name:
        rows_by_name[read.scenarios[0].first[0]] = [window]
    unnamed = {name for walked in read.scenarios for name in walked.unnamed}
    ignored = unnamed if read.endpoints.ignores_unnamed else set()
    return {name: rows for name, rows in rows_by_name.items() if name not in ignored}


def _by_family(window: Window) -> dict[str, dict[str, float | None]]:
    """2xx, 4xx …: only when all responses are of one family, as times are not recorded by status."""
    families = {f"{code[0]}xx" for code, count in window.status.items() if count}
    answered = _answered(window)
    return {families.pop(): answered} if len(families) == 1 and answered is not None else {}


def _time_of(row: Counters | StepFigures) -> Histogram | None:
    return row.service_time if isinstance(row, StepFigures | Window) else None


def _answered(window: Window) -> dict[str, float | None] | None:
    """Time from the last byte of the request to the first byte of the response."""
    times = window.wait_time
    return summary(_decoded([times])) if times is not None and times.count else None


def _decoded(histograms: Iterable[Histogram]) -> Decoded:
    """Merges histograms of one run."""
    parts = [decode(histogram) for histogram in histograms if histogram.count]
    if len(parts) == 1:
        return parts[0]
    high = np.concatenate([part.high_ns for part in parts])
    middle = np.concatenate([part.middle_ns for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    order = np.argsort(high, kind="stable")
    return Decoded(high[order], middle[order], counts[order])


def summary(times: Decoded) -> dict[str, float | None]:
    """min … p999 in ms, rounded as in Artillery."""
    figures: dict[str, float | None] = {
        "min": _ms(float(times.middle_ns[0])),
        "max": _ms(times.max_ns),
        "count": int(times.count),
        "mean": _ms(times.moment(1) * 1e9),
    }
    for name, percentile in QUANTILES:
        value_ns = times.percentile_ns(percentile)
        figures[name] = None if value_ns is None else _ms(value_ns)
    return figures


def _summary_of(values: Sequence[tuple[float, int]]) -> dict[str, float | None]:
    """Summary of values from functions, ascending with counts."""
    total = sum(count for _, count in values)
    mean = sum(value * count for value, count in values) / total
    figures: dict[str, float | None] = {
        "min": values[0][0], "max": values[-1][0], "count": total, "mean": round(mean, 1),
    }  # fmt: skip
    for name, percentile in QUANTILES:
        rank, seen = math.ceil(percentile / 100 * total), 0
        for value, count in values:
            seen += count
            if seen >= rank:
                figures[name] = value
                break
    return figures


def _ms(value_ns: float) -> float:
    ms = round(value_ns / 1e6, 1)
    return int(ms) if ms == int(ms) else ms


def _period(unix_ms: int) -> int:
    return unix_ms // (PERIOD_S * 1000) * PERIOD_S * 1000
