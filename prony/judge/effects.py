"""From a disturbance to bounds on figures: the effect of a lost share of CPU, user time or requests on
throughput, times and CPU per request.

Functions return figure -> Bias, without the figures that are not affected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from prony.evidence.trial import Evidence
from prony.judge.curve import Curve
from prony.judge.finding import CPU, MEAN, PERCENTILES, THROUGHPUT, Bias, added
from prony.judge.server_cpu import busiest_server_thread_share, server_cpu_used, server_cpus
from prony.judge.times import NAMED
from prony.judge.window import measured, request_times

Biases = dict[str, Bias]

GAP_MS = 20.0
"""Shortest gap without completions that the engine reports."""
QUEUE_BUSY = 0.9
"""Assumed utilisation of the queue where a higher rate makes times longer."""
VISITS = 4
"""Most CPU visits of a request: to be read, to go on after a wait, and to be answered."""


def together(*parts: Biases) -> Biases:
    """Sum of several effects of a check, per figure."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: added(part[name] for part in parts if name in part) for name in names}


def narrower(one: Biases, other: Biases) -> Biases:
    """The tighter of two bounds on one effect, per figure; a figure that either leaves out is unbiased."""
    pairs = {name: (one[name], other[name]) for name in one if name in other}
    return {name: Bias.of_logs(min(a.down, b.down), min(a.up, b.up)) for name, (a, b) in pairs.items()}


def wider(one: Biases, other: Biases) -> Biases:
    """The larger of two bounds, per figure, where either effect may be the whole."""
    names, none = dict.fromkeys((*one, *other)), Bias()
    pairs = {name: (one.get(name, none), other.get(name, none)) for name in names}
    return {name: Bias.of_logs(max(a.down, b.down), max(a.up, b.up)) for name, (a, b) in pairs.items()}


def both(figures: Iterable[str], down: float = 0.0, up: float = 0.0) -> Biases:
    """The same bound, on the log scale, for several figures."""
    return {name: Bias.of_logs(down, up) for name in figures}


def saturating(evidence: Evidence) -> bool:
    """Whether the load is a closed loop without think time: response times alone set its rate."""
    return evidence.load.model == "closed" and evidence.load.think_kind == "none"


def lost(share: float) -> float:
    """-ln(1 - share): log increase of a rate that gets this share of its time back."""
    return math.inf if share >= 1 else -math.log1p(-max(0.0, share))


def responding(evidence: Evidence) -> float:
    """Share of a closed-loop user's cycle spent waiting for a response; 1 where not known."""
    window, load = measured(evidence), evidence.load
    times = None if window is None else request_times(window)
    if load.think_kind == "none" or times is None or not times.mean_ns:
        return 1.0
    mean_ms = times.mean_ns / 1e6
    return mean_ms / (mean_ms + load.think_mean_ms)


def time_in_requests_s(evidence: Evidence) -> float:
    """Total time of the window's requests (s), including connecting and requests without a response."""
    window = measured(evidence)
    if window is None:
        return 0.0
    times, sum_s = request_times(window), window.service_time_sum_s
    if sum_s is None:
        sum_s = 0.0 if times is None else times.count * (times.mean_ns or 0.0) / 1e9
    return sum_s + (window.lost_time_sum_s or 0.0) + (window.clipped_connect_s or 0.0)


def cpu_lost(evidence: Evidence, share: float, used: float | None = None) -> Biases:
    """`share`: CPU time that the server's CPUs gave to others ÷ their wall time. `used`: CPU time that served
    requests, in the same unit; by default all that the server used.

    Without the loss the rate rises in the ratio of the CPU time (utilisation law), and by no more than if
    everything had stopped for that time. In a saturating closed loop the mean time falls as much. In other
    loads the queue shrinks too: as 1 ÷ (1 - utilisation) for an even loss (M/M/1; Kleinrock 1975); for a
    burst, requests that arrived in it or in its backlog waited for the burst at most.
    """
    if share <= 0:
        return {}
    cpus = server_cpus(evidence)
    used = server_cpu_used(evidence) if used is None else used
    ratio = math.log1p(share / used) if used else math.inf
    up = min(ratio, lost(min(1.0, share * cpus)))
    if saturating(evidence):
        times = delayed(evidence, -math.expm1(-up), at_risk=True)
        return together(both(THROUGHPUT, up=up), both(MEAN, down=up), times)
    times = _queueing(evidence, share, used, cpus)
    if evidence.load.model == "open":
        return times
    # A thinking user's cycle is N ÷ X, so the response shrinks by no more than a rate higher by `up` allows.
    part = min(1.0, -math.expm1(-up) / responding(evidence))
    times = narrower(times, both(MEAN, down=lost(part)) | delayed(evidence, part))
    cycle = -math.expm1(-times[MEAN[0]].down) * responding(evidence)
    return times | both(THROUGHPUT, up=min(up, lost(cycle)))


def cpu_spent(evidence: Evidence, share: float) -> Biases:
    """`share`: part of the server's CPU time that served no request (a lower clock, a compiler)."""
    if share <= 0:
        return {}
    server_used, share = server_cpu_used(evidence), min(share, 1.0)
    used = 1.0 if server_used is None else server_used
    return together(cpu_lost(evidence, share * used, used * (1 - share)), both(CPU, down=lost(share)))


def _granted(evidence: Evidence, cpus: int) -> float:
    window = evidence.server_window
    return window.granted_cpus if window is not None and window.granted_cpus > 0 else cpus


def _queueing(evidence: Evidence, share: float, used: float | None, cpus: int) -> Biases:
    """Effect of a CPU loss on times where the load does not wait for responses."""
    thread, granted = busiest_server_thread_share(evidence) or 0.0, _granted(evidence, cpus)
    busy = 1.0 if used is None else used * cpus / granted
    # A thread busier than the CPUs is the queue, and may have taken all of the loss.
    busy, gone = (thread, share * cpus) if thread > busy else (busy, share * cpus / granted)
    left = 1 - busy - gone
    window, curve = measured(evidence), Curve.of(evidence)
    if left <= 0 or window is None or curve is None or curve.mean_ms <= 0:
        return both((*MEAN, *PERCENTILES), down=math.inf)
    even, hit = math.log((1 - busy) / left) + lost(gone), gone / left
    waited = longest(evidence, hit, at_random=True)
    waited |= narrower(
        waited, both(MEAN, down=lost(hit * _burst_ms(evidence, share, cpus) / 2 / curve.mean_ms))
    )
    slowed = wider(delayed(evidence, -math.expm1(-even), at_risk=True), waited)
    served_ms = (used or math.inf) * cpus * window.duration_s * 1000 / max(window.completed, 1)
    seldom = together(
        longest(evidence, VISITS * hit, at_random=True),
        sooner(evidence, served_ms * (1 / left - 1 / (1 - busy))),
    )
    mean = together(both(MEAN, down=even), {name: waited[name] for name in MEAN if name in waited})
    return narrower(slowed, seldom) | mean


def _burst_ms(evidence: Evidence, share: float, cpus: int) -> float:
    """Longest burst (ms) without the server's CPU: bounded by the longest gap without completions on a single
    CPU, else by the whole loss.
    """
    window = measured(evidence)
    if window is None:
        return math.inf
    whole_ms = share * cpus * window.duration_s * 1000
    if cpus > 1 or window.gaps_total is None:
        return whole_ms
    return min(whole_ms, max([GAP_MS, *(gap.duration_ms for gap in window.gaps)]))


def user_time_lost(evidence: Evidence, share: float, *, requests: float | None = None) -> Biases:
    """`share`: user time not spent on the server (connecting, a TCP timer, the client) ÷ all user time in
    requests. `requests`: share of requests affected, where known.

    In a closed loop fewer users then loaded the server. With all of them the other requests would have taken
    longer: up to an unchanged mean, and no more than a busy queue (M/M/1) at the higher rate.
    """
    if share <= 0:
        return {}
    share = min(share, 1.0)
    waited = delayed(evidence, share)
    if requests is not None:
        waited = narrower(waited, longest(evidence, requests))
    waited |= both(MEAN, down=lost(share))
    if evidence.load.model != "closed":
        return waited
    more = share * responding(evidence)
    left = 1 - QUEUE_BUSY * (1 + more)
    longer = min(lost(share), math.log((1 - QUEUE_BUSY) / left) if left > 0 else math.inf)
    longer = 0.0 if evidence.load.users == 1 else longer
    return both(THROUGHPUT, up=lost(more)) | together(waited, both(PERCENTILES, up=longer))


def delayed(evidence: Evidence, share: float, *, at_risk: bool = False) -> Biases:
    """Percentiles without delays that are independent of a request's own time and make up `share` of all
    request time. `at_risk`: a request's chance of a delay grows with its time.

    With mean delay L, measured distribution F and x the percentile p without delays, p - F(x) of the requests
    were moved across x, to at least y, the next observed time. A delay of d hit at most L ÷ d of the requests
    and moved those above y - d, no more than p - F(y - d). So p - F(x) is at most L times the steepest slope
    from any (y - d, F(y - d)) up to (y, p). Delays shorter than 2 L are taken as L for all.
    """
    curve = Curve.of(evidence)
    if share <= 0 or curve is None:
        return {}
    biases: Biases = {}
    for name, percentile in NAMED.items():
        here = curve.at(percentile / 100)
        if math.isfinite(here):
            least_ms = curve.without(percentile / 100, lambda ms: share * (ms if at_risk else curve.mean_ms))
            biases[name] = Bias.of_logs(down=math.log(here / least_ms) if least_ms > 0 else math.inf)
    return biases


def sooner(evidence: Evidence, ms: float) -> Biases:
    """Percentiles shorter by `ms`."""
    curve = Curve.of(evidence)
    values = {} if curve is None else {name: curve.at(percentile / 100) for name, percentile in NAMED.items()}
    return {name: Bias.of_logs(down=lost(ms / at)) for name, at in values.items() if at < math.inf and ms > 0}


def longest(evidence: Evidence, share: float, *, at_random: bool = False) -> Biases:
    """As if `share` of the requests were not the server's, and those the longest: percentile p is at least
    the measured percentile p - share, the mean that of the rest. `at_random`: independent of their own time,
    so percentile p is that of the rest.
    """
    curve = Curve.of(evidence)
    if share <= 0 or curve is None or curve.mean_ms <= 0:
        return {}
    times = {MEAN[0]: (curve.mean_ms, curve.mean_below(share))}
    for name, percentile in NAMED.items():
        p = percentile / 100
        times[name] = curve.at(p), curve.at(p * (1 - share) if at_random else p - share)
    return {
        name: Bias.of_logs(down=math.log(now / then) if then > 0 else math.inf)
        for name, (now, then) in times.items()
        if math.isfinite(now) and now > then
    }


def wrong_requests(evidence: Evidence, share: float, answered: float) -> Biases:
    """`share`: requests that failed or had a wrong response; `answered`: those with a response. The rate may
    be off by the share either way. All may have been the longest; the answered ones may have been the
    shortest: percentile p is then the measured percentile p + `answered`.
    """
    curve = Curve.of(evidence)
    if share <= 0:
        return {}
    off = lost(share)
    shorter: Biases = {}
    if curve is not None and answered > 0:
        for name, percentile in NAMED.items():
            here, higher = curve.at(percentile / 100), percentile / 100 + answered
            if 0 < here < math.inf:
                there = curve.at(higher) if higher < 1 else math.inf
                shorter[name] = Bias.of_logs(up=math.log(there / here))
    rate = both((*THROUGHPUT, *CPU), off, off)
    return together(rate, both(MEAN, up=off), shorter, longest(evidence, share))
