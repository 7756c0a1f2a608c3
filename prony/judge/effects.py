"""From a disturbance to bounds on figures: what a lost share of CPU, of user time or of requests may have
done to throughput, times and CPU per request. Pure.

Every function returns figure -> Bias for the figures that are bent, and leaves out the others.
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
"""Shorter spans in which nothing completes are not reported."""
QUEUE_BUSY = 0.9
"""As busy the queue is taken to be of which a higher rate makes times longer."""
VISITS = 4
"""A request comes to a CPU so often at most: to be read, to go on after a wait, and to be answered."""


def together(*parts: Biases) -> Biases:
    """Several effects of one check, added figure by figure."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: added(part[name] for part in parts if name in part) for name in names}


def narrower(one: Biases, other: Biases) -> Biases:
    """Of two bounds on the same effect the better one, figure by figure; what one leaves out is not bent."""
    pairs = {name: (one[name], other[name]) for name in one if name in other}
    return {name: Bias.of_logs(min(a.down, b.down), min(a.up, b.up)) for name, (a, b) in pairs.items()}


def wider(one: Biases, other: Biases) -> Biases:
    """Of two bounds on effects of which one may be the whole: the larger."""
    names, none = dict.fromkeys((*one, *other)), Bias()
    pairs = {name: (one.get(name, none), other.get(name, none)) for name in names}
    return {name: Bias.of_logs(max(a.down, b.down), max(a.up, b.up)) for name, (a, b) in pairs.items()}


def both(figures: Iterable[str], down: float = 0.0, up: float = 0.0) -> Biases:
    """The same bound, on the log scale, for several figures."""
    return {name: Bias.of_logs(down, up) for name in figures}


def saturating(evidence: Evidence) -> bool:
    """Whether the load is a closed loop without think time: its rate is set by the response times alone."""
    return evidence.load.model == "closed" and evidence.load.think_kind == "none"


def lost(share: float) -> float:
    """-ln(1 - share): by how much a rate would be higher, on the log scale, with this share of its time."""
    return math.inf if share >= 1 else -math.log1p(-max(0.0, share))


def responding(evidence: Evidence) -> float:
    """Share of its cycle that a user of a closed loop waits for a response; 1 where that is not known."""
    window, load = measured(evidence), evidence.load
    times = None if window is None else request_times(window)
    if load.think_kind == "none" or times is None or not times.mean_ns:
        return 1.0
    mean_ms = times.mean_ns / 1e6
    return mean_ms / (mean_ms + load.think_mean_ms)


def time_in_requests_s(evidence: Evidence) -> float:
    """What all requests of the window took together, connecting and those without a response included."""
    window = measured(evidence)
    if window is None:
        return 0.0
    times, sum_s = request_times(window), window.service_time_sum_s
    if sum_s is None:
        sum_s = 0.0 if times is None else times.count * (times.mean_ns or 0.0) / 1e9
    return sum_s + (window.lost_time_sum_s or 0.0) + (window.clipped_connect_s or 0.0)


def cpu_lost(evidence: Evidence, share: float, used: float | None = None) -> Biases:
    """`share`: CPU time that the server's CPUs gave to others ÷ their wall time. `used`: what served, in the
    same unit, where that is less than what the server used.

    With it back the rate would have been higher in the ratio of the CPU time (utilisation law), and by no
    more than if everything had stood still for as long. In a saturating closed loop the mean time is then as
    much shorter. In another load the queue is shorter, too: as 1 ÷ (1 - utilisation) where the loss is even
    (M/M/1; Kleinrock 1975), and where it comes in bursts the requests that came in one, or while its backlog
    went, waited for the burst at most.
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
    # The cycle of a user who thinks is N ÷ X: of its response at most what a rate higher by `up` takes away.
    part = min(1.0, -math.expm1(-up) / responding(evidence))
    times = narrower(times, both(MEAN, down=lost(part)) | delayed(evidence, part))
    cycle = -math.expm1(-times[MEAN[0]].down) * responding(evidence)
    return times | both(THROUGHPUT, up=min(up, lost(cycle)))


def cpu_spent(evidence: Evidence, share: float) -> Biases:
    """`share` of the CPU time that the server used did not serve: a lower clock, a compiler."""
    if share <= 0:
        return {}
    known, share = server_cpu_used(evidence), min(share, 1.0)
    used = 1.0 if known is None else known
    return together(cpu_lost(evidence, share * used, used * (1 - share)), both(CPU, down=lost(share)))


def _granted(evidence: Evidence, cpus: int) -> float:
    window = evidence.server_window
    return window.granted_cpus if window is not None and window.granted_cpus > 0 else cpus


def _queueing(evidence: Evidence, share: float, used: float | None, cpus: int) -> Biases:
    """What a loss of CPU does to times where the load does not wait for the responses."""
    thread, granted = busiest_server_thread_share(evidence) or 0.0, _granted(evidence, cpus)
    busy = 1.0 if used is None else used * cpus / granted
    # A thread that is busier than the CPUs is the queue, and may have borne all of the loss.
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
    """For how long the server's CPU was gone at once, at most: in a longer time nothing would have completed.
    Of one of several CPUs that does not show.
    """
    window = measured(evidence)
    if window is None:
        return math.inf
    whole_ms = share * cpus * window.duration_s * 1000
    if cpus > 1 or window.gaps_total is None:
        return whole_ms
    return min(whole_ms, max([GAP_MS, *(gap.duration_ms for gap in window.gaps)]))


def user_time_lost(evidence: Evidence, share: float, *, requests: float | None = None) -> Biases:
    """`share`: user time that went to something else than the server (a connect, a timer of TCP, the client)
    ÷ all user time in requests; `requests`: the share of requests that it hit, where that is known.

    In a closed loop fewer users were with the server meanwhile: with all of them the other requests would
    have taken longer, up to a mean time that stays, and no more than a busy queue (M/M/1) at the higher rate.
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
    """Percentiles without delays that met requests whatever they took, of `share` of all their time together.
    `at_risk`: the longer a request took, the more of them it met.

    Let the delays be L on average, F the distribution that was measured and x the percentile p without them.
    Then p - F(x) of the requests were moved across x, to y at least, the next time that was seen. A delay of
    d met at most L ÷ d of the requests, and moved those above y - d, no more than p - F(y - d): p - F(x) is
    at most L times the steepest slope from any (y - d, F(y - d)) up to (y, p). Delays shorter than 2 L are
    taken to be the same for all: L.
    """
    curve = Curve.of(evidence)
    if share <= 0 or curve is None:
        return {}
    found: Biases = {}
    for name, percentile in NAMED.items():
        here = curve.at(percentile / 100)
        if math.isfinite(here):
            least_ms = curve.without(percentile / 100, lambda ms: share * (ms if at_risk else curve.mean_ms))
            found[name] = Bias.of_logs(down=math.log(here / least_ms) if least_ms > 0 else math.inf)
    return found


def sooner(evidence: Evidence, ms: float) -> Biases:
    """Percentiles less by so much."""
    curve = Curve.of(evidence)
    values = {} if curve is None else {name: curve.at(percentile / 100) for name, percentile in NAMED.items()}
    return {name: Bias.of_logs(down=lost(ms / at)) for name, at in values.items() if at < math.inf and ms > 0}


def longest(evidence: Evidence, share: float, *, at_random: bool = False) -> Biases:
    """As if this share of the requests, and the longest of them, were not the server's: percentile p is at
    least what percentile p - share is now, the mean that of the others. `at_random`: they were hit whatever
    they would have taken, so that it is the percentile of the others.
    """
    curve = Curve.of(evidence)
    if share <= 0 or curve is None or curve.mean_ms <= 0:
        return {}
    found = {MEAN[0]: (curve.mean_ms, curve.mean_below(share))}
    for name, percentile in NAMED.items():
        p = percentile / 100
        found[name] = curve.at(p), curve.at(p * (1 - share) if at_random else p - share)
    return {
        name: Bias.of_logs(down=math.log(now / then) if then > 0 else math.inf)
        for name, (now, then) in found.items()
        if math.isfinite(now) and now > then
    }


def wrong_requests(evidence: Evidence, share: float, answered: float) -> Biases:
    """`share` of the requests failed or had a wrong response, `answered` of them had one. The rate may be off
    by as much either way. All may have been the longest; those that were answered may have been the shortest:
    percentile p is then what percentile p + `answered` is now.
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
