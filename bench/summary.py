"""Runs into rows: medians, ranges, the ratio to the baseline, sanity and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.cases import Case
from bench.measure import Run
from prony.compare.ratio import RatioResult, ratio
from prony.numbers import number, percent

MISCOUNT = 0.001
"""A claim may be off by what can be in flight at the end, and by this share of the requests."""
RATE_OFF = 0.01
"""Open loop: the achieved rate may differ from the offered one by this share (as in the check `schedule`)."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range over rounds."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value."""
    return Spread(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Row:
    """One tool in one case. Without runs, `reason` says why."""

    case: Case
    tool: str
    runs: Mapping[int, Run]
    """By round."""
    reason: str | None = None
    ratio: RatioResult | None = None
    """CPU per request ÷ the baseline's, paired by round; None for the baseline itself or without one."""
    baseline_disturbed: bool = False

    def over_rounds(self, value: Callable[[Run], float | None]) -> Spread | None:
        """A figure over the rounds; None when no run has it."""
        found = [known for known in map(value, self.runs.values()) if known is not None]
        return spread(found) if found else None

    @property
    def disturbed(self) -> tuple[str, ...]:
        """Why runs of this row were disturbed, one sentence per run that was."""
        return tuple(reason for run in self.runs.values() if (reason := run.disturbance.reason))

    @property
    def verdict(self) -> str:
        """Whether the aim was met, in words; empty where nothing was aimed at."""
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
        """What does not add up, each once."""
        found: dict[str, None] = {}
        for run in self.runs.values():
            found |= dict.fromkeys(faults(self.case, run))
        return tuple(found)


def judged(low: float | None, high: float | None, aim: float) -> str:
    """An aim (a highest value) is met or missed only when the whole interval lies on one side of it."""
    if low is None or high is None or low <= aim < high:
        return "not decided"
    return "met" if high <= aim else "missed"


def rows(
    cases: Sequence[Case],
    tools: Sequence[str],
    runs: Mapping[tuple[str, str], Mapping[int, Run]],
    reasons: Mapping[tuple[str, str], str],
) -> list[Row]:
    """One row per case and tool that it takes, in their order. `runs` by (case, tool), then by round."""
    found = []
    for case in cases:
        base = runs.get((case.name, case.baseline), {})
        base_disturbed = any(run.disturbance.reason for run in base.values())
        for tool in filter(case.takes, tools):
            own = runs.get((case.name, tool), {})
            compared = None if tool == case.baseline or not own or not base else _ratio(own, base)
            reason = reasons.get((case.name, tool))
            found.append(Row(case, tool, own, reason, compared, base_disturbed and tool != case.baseline))
    return found


def _ratio(own: Mapping[int, Run], base: Mapping[int, Run]) -> RatioResult:
    return ratio(
        [run.cpu_us_per_request for run in own.values()],
        [run.cpu_us_per_request for run in base.values()],
        list(own),
        list(base),
    )


def miscount(case: Case, run: Run) -> int:
    """By how many requests the claim is beyond what can be true; 0 when it fits.

    True is: what was answered was counted by the server; and the server may have counted one more per
    connection, which was in flight when the tool ended, or as many as the tool itself says it abandoned.
    """
    if run.whole is None:
        return 0
    claimed, counted = run.claim.requests, run.whole.requests
    tolerance = round(MISCOUNT * counted)
    in_flight = max(case.connections * (case.streams or 1), run.claim.abandoned)
    if claimed > counted + tolerance:
        return claimed - counted
    if claimed < counted - in_flight - tolerance:  # less what was in flight
        return claimed + in_flight - counted
    return 0


def faults(case: Case, run: Run) -> list[str]:
    """What does not add up about a run, in words without figures of single rounds where possible."""
    found = []
    off, whole = miscount(case, run), run.whole
    if off and whole is not None:
        share = percent(abs(off) / whole.requests)
        found.append(f"miscounts: claims {share} {'more' if off > 0 else 'fewer'} than the server counted")
    if run.claim.errors:
        found.append(f"{number(run.claim.errors)} errors")
    if whole is None:
        return found
    if case.per_request and whole.connections < (1 - RATE_OFF) * whole.requests:
        found.append("kept connections although asked not to")
    if not case.per_request and whole.connections > 2 * case.connections and case.rate_per_s is None:
        found.append(f"opened {number(whole.connections)} connections instead of {case.connections}")
    if case.tls and whole.tls_resumptions:
        found.append(f"{number(whole.tls_resumptions)} TLS sessions were resumed")
    if case.rate_per_s is not None and abs(run.offered_per_s / case.rate_per_s - 1) > RATE_OFF:
        found.append(f"sent {number(round(run.offered_per_s))} requests per second")
    return found


@dataclass(frozen=True, slots=True)
class Memory:
    """Peak resident memory of a tool with few and with many connections."""

    tool: str
    connections: int
    peak: Spread
    per_connection_bytes: float
    """Peak ÷ connections."""
    growth_bytes: float | None
    """What each further connection costs: rise of the median peak from the small case ÷ added connections."""


def memory(all_rows: Sequence[Row], small: str = "closed-1", large: str = "closed-1000") -> list[Memory]:
    """One entry per tool that ran the large case, the least memory first."""
    peaks = {
        (row.case.name, row.tool): (row.case.connections, peak)
        for row in all_rows
        if (peak := row.over_rounds(lambda run: run.peak_rss_bytes)) is not None
    }
    found = []
    for (case, tool), (connections, peak) in peaks.items():
        if case != large:
            continue
        growth = None
        if (small, tool) in peaks:
            few, base = peaks[small, tool]
            growth = (peak.median - base.median) / (connections - few)
        found.append(Memory(tool, connections, peak, peak.median / connections, growth))
    return sorted(found, key=lambda entry: entry.peak.median)
