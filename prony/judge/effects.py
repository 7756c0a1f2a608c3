"""From a disturbance to bounds on figures (figure -> Bias, without those that are not affected)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from prony.evidence.engine import Histogram
from prony.evidence.trial import Evidence
from prony.judge.finding import CPU, MEAN, PERCENTILES, THROUGHPUT, Bias, added
from prony.judge.server_cpu import busiest_server_thread_share, server_cpu_used, server_cpus
from prony.judge.times import NAMED, headline, read_times, without_response
from prony.judge.window import measured, request_times

LARGE = 2.0
"""Delays from this multiple of the mean are bounded per request; shorter delays are taken as uniform."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Observed headline times in ms, ascending from 0, and the share of requests up to each."""

    ms: list[float]
    share: list[float]
    mean_ms: float
    below: list[float]
    """Per point: the share of requests that took less."""
    hull: list[int]
    """Per point: the index of its predecessor on the lower convex hull of `below`. From any point to the
    right the steepest slope is to a hull point, and along the hull the slope is unimodal.
    """

    @staticmethod
    def of(evidence: Evidence) -> Curve | None:
        window = measured(evidence)
        histogram = None if window is None else headline(window, evidence.load.model)
        if window is None or histogram is None:
            return None
        return _curve(histogram, window.completed, without_response(evidence))

    def place(self, share: float) -> int | None:
        at = bisect_left(self.share, share - 1e-9)
        return at if at < len(self.ms) else None

    def at(self, share: float) -> float:
        """Time in ms of a share of the requests; 0 below the first, infinite among those without a time."""
        at = self.place(share) if share > 0 else 0
        return math.inf if at is None else self.ms[at]

    def mean_below(self, share: float) -> float:
        """Mean (ms) without this share of the longest requests; failed requests count as the longest."""
        shares = np.minimum(self.share, max(0.0, self.share[-1] - share))
        return float(np.dot(np.diff(shares), self.ms[1:]) / shares[-1]) if shares[-1] > 0 else 0.0

    def without(self, p: float, delayed_ms: Callable[[float], float]) -> float:
        """Lowest time (ms) of percentile p without delays; `delayed_ms`: mean delay at that time."""
        at = self.place(p) or 0
        while at > 0:
            there, mean = self.ms[at], delayed_ms(self.ms[at - 1])
            if there >= LARGE * mean:
                other, slope = min(at, bisect_right(self.ms, there - LARGE * mean)) - 1, 0.0
                while other >= 0 and (p - self.below[other]) / (there - self.ms[other]) > slope:
                    slope = (p - self.below[other]) / (there - self.ms[other])
                    other = self.hull[other]
                if p - self.share[at - 1] > mean * slope:
                    return there - delayed_ms(there)
            at -= 1
        return 0.0


@lru_cache(maxsize=4)
def _curve(histogram: Histogram, completed: int, failed: int) -> Curve | None:
    times = read_times(histogram, completed, failed)
    if times is None or times.count < 1:
        return None
    ms = [0.0, *(times.responses.middle_ns / 1e6).tolist()]
    share = [0.0, *(np.cumsum(times.responses.counts) / times.count).tolist()]
    below, hull = [0.0, *share[:-1]], [-1]
    for at in range(1, len(ms)):
        last = at - 1
        while (other := hull[last]) >= 0 and (below[last] - below[other]) * (ms[at] - ms[other]) >= (
            below[at] - below[other]
        ) * (ms[last] - ms[other]):
            last = other
        hull.append(last)
    return Curve(ms, share, times.mean_ms, below, hull)


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


def narrower(first: Biases, second: Biases) -> Biases:
    """The tighter of two bounds on an effect, per figure; a figure missing from either is unbiased."""
    pairs = {name: (first[name], second[name]) for name in first if name in second}
    return {name: Bias.of_logs(min(a.down, b.down), min(a.up, b.up)) for name, (a, b) in pairs.items()}


def wider(first: Biases, second: Biases) -> Biases:
    """The larger of two bounds, per figure, where either effect may be the whole."""
    names, none = dict.fromkeys((*first, *second)), Bias()
    pairs = {name: (first.get(name, none), second.get(name, none)) for name in names}
    return {name: Bias.of_logs(max(a.down, b.down), max(a.up, b.up)) for name, (a, b) in pairs.items()}


def both(figures: Iterable[str], down: float = 0.0, up: float = 0.0) -> Biases:
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
    # By its beginnings: who is there waits for the whole burst, and who comes until its backlog is gone for
    # any time. It may begin whenever the server is busy.
    there = min(1.0, gone / busy) if busy > 0 else 1.0
    begun = together(
        longest(evidence, hit, at_random=True),
        delayed(evidence, there, at_risk=True) | both(MEAN, down=math.log1p(there)),
    )
    return narrower(narrower(slowed, seldom) | mean, begun)


def _burst_ms(evidence: Evidence, share: float, cpus: int) -> float:
    window = measured(evidence)
    if window is None:
        return math.inf
    whole_ms = share * cpus * window.duration_s * 1000
    if cpus > 1 or window.gaps_total is None:
        return whole_ms
    return min(whole_ms, max([GAP_MS, *(gap.duration_ms for gap in window.gaps)]))


def user_time_lost(evidence: Evidence, share: float, *, requests: float | None = None) -> Biases:
    """`share`: user time in requests not spent on the server; `requests`: share of requests affected, if
    known.

    In a closed loop fewer users loaded the server: the others would take longer, by a busy M/M/1 queue at
    most.
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
    """Percentiles without independent delays that make up `share` of all request time. `at_risk`: a longer
    request is likelier to be delayed.

    With mean delay L, p - F(x) is at most L times the steepest slope from any (y - d, F(y - d)) up to (y, p),
    y the next observed time; delays shorter than 2 L are taken as L for all.
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
    curve = Curve.of(evidence)
    values = {} if curve is None else {name: curve.at(percentile / 100) for name, percentile in NAMED.items()}
    return {name: Bias.of_logs(down=lost(ms / at)) for name, at in values.items() if at < math.inf and ms > 0}


def longest(evidence: Evidence, share: float, *, at_random: bool = False) -> Biases:
    """As if `share` of the requests were not the server's, and the longest; `at_random`: of any time."""
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
    """`share`: failed or wrong; `answered`: with a response, so they may have been the shortest."""
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
