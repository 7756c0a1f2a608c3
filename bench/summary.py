"""Turns runs into rows: medians, ranges, ratios to the baseline, faults and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.cases import Case
from bench.measure import Run
from prony.compare.ratio import RatioResult, ratio
from prony.numbers import number, percent

MISCOUNT = 0.001
"""Tolerance of a claim as a share of the requests, besides those in flight at the end."""
RATE_OFF = 0.01
"""Open loop: tolerance of the achieved rate (as in the check `schedule`)."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range over rounds."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Median and range of one or more values."""
    return Spread(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Row:
    """A tool in a case. Without runs, `reason` says why."""

    case: Case
    tool: str
    runs: Mapping[int, Run]
    """By round."""
    reason: str | None = None
    ratio: RatioResult | None = None
    """CPU per request ÷ the baseline's, paired by round; None for the baseline or without it."""
    baseline_disturbed: bool = False

    def over_rounds(self, value: Callable[[Run], float | None]) -> Spread | None:
        """A figure over the rounds; None if no run has it."""
        values = [known for known in map(value, self.runs.values()) if known is not None]
        return spread(values) if values else None

    @property
    def disturbed(self) -> tuple[str, ...]:
        """Reasons of disturbed runs."""
        return tuple(reason for run in self.runs.values() if (reason := run.disturbance.reason))

    @property
    def verdict(self) -> str:
        """Verdict on the aim; empty without an aim."""
        aim, lag = self.case.aims.get(self.tool), self.over_rounds(lambda run: run.claim.send_lag_p99_us)
        lag_aim_us = self.case.send_lag_aim_us if lag else None
        if (aim is None and lag_aim_us is None) or not self.runs:
            return ""
        if self.disturbed or self.baseline_disturbed:
            return "no verdict: disturbed"
        if lag is not None and lag_aim_us is not None:
            return f"p99 send lag, aim {lag_aim_us:g} µs: {judged(lag.low, lag.high, lag_aim_us)}"
        assert aim is not None
        low, high = (self.ratio.low, self.ratio.high) if self.ratio else (None, None)
        return f"aim {aim:.2f}: {judged(low, high, aim)}"

    @property
    def faults(self) -> tuple[str, ...]:
        """Inconsistencies, each once."""
        sentences: dict[str, None] = {}
        for run in self.runs.values():
            sentences |= dict.fromkeys(faults(self.case, run))
        return tuple(sentences)


def judged(low: float | None, high: float | None, aim: float) -> str:
    """An aim (an upper limit) is met or missed only if the whole interval is on one side of it."""
    if low is None or high is None or low <= aim < high:
        return "not decided"
    return "met" if high <= aim else "missed"


def rows(
    cases: Sequence[Case],
    tools: Sequence[str],
    runs: Mapping[tuple[str, str], Mapping[int, Run]],
    reasons: Mapping[tuple[str, str], str],
) -> list[Row]:
    """A row per case and tool, in order. `runs` by (case, tool), then by round."""
    table = []
    for case in cases:
        base = runs.get((case.name, case.baseline), {})
        base_disturbed = any(run.disturbance.reason for run in base.values())
        for tool in filter(case.takes, tools):
            own = runs.get((case.name, tool), {})
            compared = None if tool == case.baseline or not own or not base else _ratio(own, base)
            reason = reasons.get((case.name, tool))
            table.append(Row(case, tool, own, reason, compared, base_disturbed and tool != case.baseline))
    return table


def _ratio(own: Mapping[int, Run], base: Mapping[int, Run]) -> RatioResult:
    return ratio(
        [run.cpu_us_per_request for run in own.values()],
        [run.cpu_us_per_request for run in base.values()],
        list(own),
        list(base),
    )


def miscount(case: Case, run: Run) -> int:
    """Requests by which the claim exceeds the plausible range; 0 if it fits. The server must have counted
    every claimed request, and at most those in flight (one per connection or stream, or the tool's abandoned
    requests) in addition.
    """
    if run.whole is None:
        return 0
    claimed, counted = run.claim.requests, run.whole.requests
    tolerance = round(MISCOUNT * counted)
    in_flight = max(case.connections * (case.streams or 1), run.claim.abandoned)
    if claimed > counted + tolerance:
        return claimed - counted
    if claimed < counted - in_flight - tolerance:
        return claimed + in_flight - counted
    return 0


def faults(case: Case, run: Run) -> list[str]:
    """Inconsistencies of a run, in words and if possible without figures of single rounds."""
    sentences = []
    off, whole = miscount(case, run), run.whole
    if off and whole is not None:
        share = percent(abs(off) / whole.requests)
        sentences.append(
            f"miscounts: claims {share} {'more' if off > 0 else 'fewer'} than the server counted"
        )
    if run.claim.errors:
        sentences.append(f"{number(run.claim.errors)} errors")
    if whole is None:
        return sentences
    if case.per_request and whole.connections < (1 - RATE_OFF) * whole.requests:
        sentences.append("kept connections alive although not requested")
    if not case.per_request and whole.connections > 2 * case.connections and case.rate_per_s is None:
        sentences.append(f"opened {number(whole.connections)} connections instead of {case.connections}")
    if case.tls and whole.tls_resumptions:
        sentences.append(f"{number(whole.tls_resumptions)} TLS sessions were resumed")
    if case.rate_per_s is not None and abs(run.offered_per_s / case.rate_per_s - 1) > RATE_OFF:
        sentences.append(f"sent {number(round(run.offered_per_s))} requests per second")
    return sentences


@dataclass(frozen=True, slots=True)
class Memory:
    """Peak resident memory of a tool with many connections, and its growth."""

    tool: str
    connections: int
    peak: Spread
    per_connection_bytes: float
    """Peak ÷ connections."""
    growth_bytes: float | None
    """Memory per further connection: rise of the median peak from the small case ÷ added connections."""


def memory(all_rows: Sequence[Row], small: str = "closed-1", large: str = "closed-1000") -> list[Memory]:
    """An entry per tool of the large case, ascending by memory."""
    peaks = {
        (row.case.name, row.tool): (row.case.connections, peak)
        for row in all_rows
        if (peak := row.over_rounds(lambda run: run.peak_rss_bytes)) is not None
    }
    entries = []
    for (case, tool), (connections, peak) in peaks.items():
        if case != large:
            continue
        growth = None
        if (small, tool) in peaks:
            few, base = peaks[small, tool]
            growth = (peak.median - base.median) / (connections - few)
        entries.append(Memory(tool, connections, peak, peak.median / connections, growth))
    return sorted(entries, key=lambda entry: entry.peak.median)
