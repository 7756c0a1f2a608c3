"""stall: were there gaps without completions, for all users or some (hidden from closed-loop samples)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from prony.evidence.counts import EngineThread, Gap
from prony.evidence.engine import Window
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative, Positive, Share, check
from prony.judge.checks.client import KEEP_OFF
from prony.judge.effects import Biases, both, longest, lost
from prony.judge.finding import THROUGHPUT, Bias, Finding, no_window, unread
from prony.judge.histogram import Decoded, HistogramError, decode, fill_gaps
from prony.judge.parts import joined
from prony.judge.times import NAMED
from prony.judge.window import measured, request_times
from prony.numbers import milliseconds, number, percent
from prony.steady.detector import full_rows

CHECK = "stall"
SOURCE = "coordinated omission (Tene)"
WITNESSED = 0.5
"""Share of a gap with a busy or waiting client thread from which the gap is the client's own."""
USUAL_DELAY = 0.01
"""Ordinary run delay of a thread between gaps, as a share: no evidence about a gap."""
KNOWN_SHARE = 0.0025
"""Frequency of long requests from which they may be a kind of work ..."""
BURST_ROWS = 0.5
"""... unless at most this share of the window's rows has any: regular work comes every second."""
IN_TIME = "nothing stalled"
A_KIND_OF_WORK = "the long requests are a kind of work of their own"
OF_A_PART = ("p99_ms", "p999_ms")
"""Percentiles bounded by time-weighted requests; lower ones always rise under that weighting."""
OWN_STEP = "declare requests that are meant to be long as a step of their own, with its own p99"


class StallLimits(DeclaredLimits):
    stall_p99_factor: Positive = 10.0
    """A gap is a stall when it is longer than this many times p99 ..."""
    stall_floor_ms: NotNegative = 50.0
    """... and than this."""
    stall_user_time: Share = 0.01
    """User time in requests longer than both: the chance that a random arrival meets one. Above 1 % the p99
    of arrivals exceeds the printed p99 by that factor.
    """


@dataclass(frozen=True, slots=True)
class ClientStall:
    thread: int
    gaps: list[Gap]
    text: str


@dataclass(frozen=True, slots=True)
class LongRequests:
    """Requests above the limit; `share`: of the request time outside gaps of all users."""

    count: float
    frequency: float
    longest_ms: float
    share: float


def least_ms(p99_ms: float, limits: StallLimits) -> float:
    return max(limits.stall_floor_ms, limits.stall_p99_factor * p99_ms)


def stalls(window: Window, p99_ms: float, limits: StallLimits) -> list[Gap]:
    """Longest first."""
    least = least_ms(p99_ms, limits)
    return sorted((g for g in window.gaps if g.duration_ms > least), key=lambda g: -g.duration_ms)


def client_stalls(window: Window, gaps: list[Gap], least: float) -> list[ClientStall]:
    if len(window.threads) == 1:
        return []
    of_all = [(gap.start_ms, gap.start_ms + gap.duration_ms) for gap in gaps]

    def is_own(gap: Gap) -> bool:
        middle_ms = gap.start_ms + gap.duration_ms / 2
        return gap.duration_ms > least and not any(begin <= middle_ms <= end for begin, end in of_all)

    stood = []
    for number_, thread in enumerate(window.threads):
        own = [gap for gap in thread.gaps if is_own(gap)]
        witness = _witness(window, thread, own)
        if own and witness:
            stood.append(ClientStall(number_, own, witness))
    return stood


def _witness(window: Window, thread: EngineThread, gaps: list[Gap]) -> str:
    """Evidence (text) that the thread caused these gaps: run delay is a sum, less the others' usual one."""
    longest_ms = max((gap.duration_ms for gap in gaps), default=0.0)
    lag_ms = (thread.loop_lag_max_ns or 0) / 1e6
    if lag_ms >= WITNESSED * longest_ms > 0:
        return f"loop lag up to {milliseconds(lag_ms)}"
    delay_ms, in_gaps_ms = (thread.run_delay_s or 0.0) * 1000, _sum_ms(gaps)
    usual = max(
        [USUAL_DELAY, *(_usual_delay(window, other) for other in window.threads if other is not thread)]
    )
    passing_ms = usual * max(0.0, window.duration_s * 1000 - in_gaps_ms)
    if delay_ms - passing_ms >= WITNESSED * in_gaps_ms > 0:
        return f"runnable and not running for {milliseconds(delay_ms)} in total"
    return ""


def _usual_delay(window: Window, thread: EngineThread) -> float:
    return max(0.0, (thread.run_delay_s or 0.0) - _sum_ms(thread.gaps) / 1000) / window.duration_s


def _sum_ms(gaps: Sequence[Gap]) -> float:
    return sum(gap.duration_ms for gap in gaps)


def long_requests(kinds: Sequence[Decoded], limits: StallLimits, gaps: Sequence[Gap]) -> LongRequests:
    """Requests far above the p99 of their kind (step), without time in flight during gaps of all users."""
    count = longest_ms = taken_s = all_s = every = 0.0
    for kind in kinds:
        p99_ns = kind.percentile_ns(99)
        if p99_ns is None:
            continue
        long = kind.high_ns > least_ms(p99_ns / 1e6, limits) * 1e6
        time_s = kind.middle_ns * kind.counts / 1e9
        count += float(kind.counts[long].sum())
        every += kind.count
        taken_s += float(time_s[long].sum())
        all_s += float(time_s.sum())
        longest_ms = max(longest_ms, kind.max_ns / 1e6 if bool(np.any(long)) else 0.0)
    in_gaps_s = sum(gap.duration_ms / 1000 * gap.in_flight for gap in gaps)
    return LongRequests(
        count=count,
        frequency=count / every if every else 0.0,
        longest_ms=longest_ms,
        share=max(0.0, taken_s - in_gaps_s) / all_s if all_s > 0 else 0.0,
    )


def is_usual(long: LongRequests, evidence: Evidence, least: float) -> bool:
    """Whether long requests may be a kind of work: frequent, not in bursts (as is a regular freeze)."""
    if long.frequency < KNOWN_SHARE or evidence.engine is None or evidence.engine.window is None:
        return False
    window = evidence.engine.window
    rows = full_rows(evidence.engine.rows, window.opened_ms, window.opened_ms + window.duration_s * 1000)
    longest_ns = [row.max_ns for row in rows if row.max_ns is not None]
    return sum(ns > least * 1e6 for ns in longest_ns) > BURST_ROWS * len(longest_ns) or not longest_ns


@check(StallLimits, order=200)
def stall(evidence: Evidence, limits: StallLimits) -> Finding:
    """Gaps despite requests in flight, and user time in requests far above p99."""
    limit = (
        f"no gap longer than {limits.stall_p99_factor:g} × p99 and {number(limits.stall_floor_ms)} ms, "
        f"at most {percent(limits.stall_user_time)} of user time in requests that long"
    )
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    blind = partial(unread, CHECK, provided=IN_TIME, limit=limit, source=SOURCE)
    if window.gaps_total is None:
        return blind("a load host did not report its gaps")
    times = request_times(window)
    if times is None:
        return blind("the engine reported no histogram")
    try:
        histogram = decode(times)
        of_steps = [
            decode(step_times) for step in window.steps if (step_times := request_times(step)) is not None
        ]
    except HistogramError as damage:
        return blind(f"the histogram is damaged: {damage}")
    p99_ns = histogram.percentile_ns(99)
    if p99_ns is None:
        return blind("nothing completed")
    least = least_ms(p99_ns / 1e6, limits)
    gaps = stalls(window, p99_ns / 1e6, limits)
    # The client's own stalls need not exceed the server's tail.
    of_threads = client_stalls(window, gaps, max(limits.stall_floor_ms, p99_ns / 1e6))
    long = long_requests(of_steps or [histogram], limits, gaps)
    # Open-loop percentiles are those of arrivals already.
    closed = evidence.load.model != "open"
    finding = partial(Finding, check=CHECK, source=SOURCE)
    parts = [
        finding(
            code="client_stall",
            bias=_of_own_making(evidence, window, step_times.gaps, len(window.threads)),
            reason=_thread(window, step_times),
            advice=KEEP_OFF,
        )
        for step_times in of_threads
    ]
    own = _of_client(window, gaps)
    if gaps and own:
        bias = _of_own_making(evidence, window, gaps, 1)
        reason = f"{_gaps(window, gaps)}: the load generator itself stalled, {own}"
        parts.append(finding(code="client_stall", bias=bias, reason=reason, advice=KEEP_OFF))
    elif gaps and closed:
        filled = fill_gaps(histogram, gaps, window.completed / window.duration_s)
        bias = _higher(histogram, filled, NAMED)
        parts.append(finding(code="stall", bias=bias, reason=_gaps(window, gaps), advice=LOOK_FOR))
    elif gaps:
        parts.append(finding(reason=f"{_gaps(window, gaps)}; latency from the intended send includes them"))
    if closed and long.share >= limits.stall_user_time:
        reason = f"{percent(long.share)} of user time in {number(long.count)} requests far above p99"
        if is_usual(long, evidence, least):
            reason += f", {percent(long.frequency)} of all, in most seconds"
            parts.append(finding(code="frequent", provided=A_KIND_OF_WORK, reason=reason, advice=OWN_STEP))
        else:
            by_time = Decoded(histogram.high_ns, histogram.middle_ns, histogram.counts * histogram.middle_ns)
            bias = _higher(histogram, by_time, {name: NAMED[name] for name in OF_A_PART})
            reason += f", up to {milliseconds(long.longest_ms)}, while others were answered"
            parts.append(finding(code="part_stalled", bias=bias, reason=reason, advice=WORKERS))
    longest_ms = max((gap.duration_ms for gap in window.gaps), default=0.0)
    if not parts:
        seen = f"longest gap {milliseconds(longest_ms)}" if window.gaps else "no gap above 20 ms"
        reason = f"{seen}; {percent(long.share)} of user time in requests above {milliseconds(least)}"
        parts.append(finding(reason=reason))
    whole = joined(parts)
    assumption = ARRIVALS if whole.code in {"stall", "part_stalled"} else whole.assumption
    return whole.model_copy(update={"value": longest_ms, "limit": limit, "assumption": assumption})


ARRIVALS = "users arrive independently at the measured rate"
LOOK_FOR = "look for garbage collection, swapping or a pause of the host; measure latency in an open loop"
WORKERS = (
    "check the server's workers, event loops and locks; declare requests that are meant to be long as a step "
    "of their own"
)


def _of_own_making(evidence: Evidence, window: Window, gaps: Sequence[Gap], threads: int) -> Biases:
    silent = min(1.0, _sum_ms(gaps) / 1000 / window.duration_s / threads)
    hit = sum(gap.in_flight for gap in gaps)
    if evidence.load.model == "open":
        return longest(evidence, min(1.0, hit / max(1, window.completed) + silent))
    return longest(evidence, hit / max(1, window.completed)) | both(THROUGHPUT, up=lost(silent))


def _higher(now: Decoded, then: Decoded, names: Mapping[str, float]) -> Biases:
    biases = {}
    for name, percentile in names.items():
        seen_ns, would_ns = now.percentile_ns(percentile), then.percentile_ns(percentile)
        if seen_ns and would_ns and would_ns > seen_ns:
            biases[name] = Bias.of_logs(up=math.log(would_ns / seen_ns))
    return biases


def _gaps(window: Window, gaps: Sequence[Gap]) -> str:
    many, longest_ms = "s" if len(gaps) > 1 else "", milliseconds(gaps[0].duration_ms)
    silent = percent(_sum_ms(gaps) / 1000 / window.duration_s)
    return (
        f"{len(gaps)} stall{many}: nothing completed for up to {longest_ms}, {silent} of the window in total"
    )


def _of_client(window: Window, server_gaps: Sequence[Gap]) -> str:
    if not server_gaps or not window.threads:
        return ""
    begin_ms, end_ms = server_gaps[0].start_ms, server_gaps[0].start_ms + server_gaps[0].duration_ms
    words = []
    for thread in window.threads:
        gaps = [g for g in thread.gaps if g.start_ms < end_ms and g.start_ms + g.duration_ms > begin_ms]
        words.append(_witness(window, thread, gaps) if gaps else "idle")
    causes = [word for word in words if word not in {"", "idle"}]
    return causes[0] if causes and "" not in words else ""


def _thread(window: Window, stalled: ClientStall) -> str:
    longest_ms = max(gap.duration_ms for gap in stalled.gaps)
    times = f"{len(stalled.gaps)} time{'s' if len(stalled.gaps) > 1 else ''}"
    return (
        f"thread {stalled.thread + 1} of the load generator's {len(window.threads)} stalled {times}, up to "
        f"{milliseconds(longest_ms)}, while the others ran: {stalled.text}"
    )
