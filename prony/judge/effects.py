"""From a disturbance to bounds on figures: what a lost share of CPU, of user time or of requests may have
done to throughput, times and CPU per request. Pure. Must not know which check asks, or limits.

Every function returns figure -> Bias for the figures that are bent, and leaves out the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from prony.evidence.trial import Evidence
from prony.judge.finding import CPU, MEAN, THROUGHPUT, TIMES, Bias, added
from prony.judge.server_cpu import server_cpu_share
from prony.judge.times import NAMED, headline_times
from prony.judge.window import measured, request_times

Biases = dict[str, Bias]


def together(*parts: Biases) -> Biases:
    """Several effects of one check, added figure by figure."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: added(part[name] for part in parts if name in part) for name in names}


def both(figures: Iterable[str], down: float = 0.0, up: float = 0.0) -> Biases:
    """The same bound, on the log scale, for several figures."""
    return {name: Bias.of_logs(down, up) for name in figures}


def saturating(evidence: Evidence) -> bool:
    """Whether the load is a closed loop without think time: its rate is set by the response times alone."""
    return evidence.load.model == "closed" and evidence.load.think_kind == "none"


def lost(share: float) -> float:
    """-ln(1 - share): by how much a rate would be higher, on the log scale, with this share of its time
    back.
    """
    return math.inf if share >= 1 else -math.log1p(-max(0.0, share))


def responding(evidence: Evidence) -> float:
    """Share of its cycle that a user of a closed loop waits for a response; 1 where that is not known."""
    window, load = measured(evidence), evidence.load
    times = None if window is None else request_times(window)
    if load.think_kind == "none" or times is None or not times.mean_ns:
        return 1.0
    mean_ms = times.mean_ns / 1e6
    return mean_ms / (mean_ms + load.think_mean_ms)


def cpu_lost(evidence: Evidence, share: float) -> Biases:
    """`share`: CPU time that the server's CPUs gave to others ÷ their wall time.

    The server used u of its CPUs; with s back it could have used u + s: s ÷ (u + s) of the CPU that the
    figure needs. A saturating closed loop would have been faster by -ln(1 - that); one with think time by
    the part of a cycle that is response; an open loop keeps its rate. Response times then: by the same in a
    saturating loop, else as 1 ÷ (1 - utilisation) (M/M/1; Kleinrock 1975). Percentiles besides as if that
    share of the requests, the longest ones, had been hit. CPU per request: time that a guest was not running
    may be in its account.
    """
    if share <= 0:
        return {}
    used = server_cpu_share(evidence)
    need = share if used is None else share / max(used + share, share, 1e-9)
    up = lost(need if used is not None else min(share, 1.0))
    if saturating(evidence):
        return together(
            both(THROUGHPUT, up=up), both(TIMES, down=up), longest(evidence, share), both(CPU, down=up)
        )
    if evidence.load.model == "closed":
        rate = both(THROUGHPUT, up=lost((1 - math.exp(-up)) * responding(evidence)))
    else:
        rate = {}
    busy = min(used, 1.0) if used is not None else None
    if busy is None or busy >= 1 - share:
        queueing = math.inf
    else:
        queueing = math.log((1 - busy) / (1 - busy / (1 - share)))
    return together(rate, both(TIMES, down=queueing), longest(evidence, share), both(CPU, down=up))


def user_time_lost(evidence: Evidence, share: float, *, requests: float | None = None) -> Biases:
    """`share`: user time that went to something else than the server (a connect, a timer of TCP, the client)
    ÷ all user time in requests; `requests`: the share of requests that it hit, where that is known.
    """
    if share <= 0:
        return {}
    down = lost(share)
    parts = [both(MEAN, down=down)]
    if evidence.load.model == "closed":
        parts.append(both(THROUGHPUT, up=lost(min(share, 1.0) * responding(evidence))))
    parts.append(longest(evidence, share if requests is None else requests))
    return together(*parts)


def longest(evidence: Evidence, share: float) -> Biases:
    """As if this share of the requests, and the longest of them, were not the server's: percentile p is at
    least what percentile p - share is now.
    """
    times = headline_times(evidence)
    if share <= 0 or times is None or times.count < 1:
        return {}
    found: Biases = {}
    for name, percentile in NAMED.items():
        here = times.percentile(percentile)
        lower = percentile - 100 * share
        if here is None or not math.isfinite(here.value_ms) or here.value_ms <= 0:
            continue
        there = times.percentile(lower) if lower > 0 else None
        if there is None or there.value_ms <= 0:
            found[name] = Bias.of_logs(down=math.inf)
        elif there.value_ms < here.value_ms:
            found[name] = Bias.of_logs(down=math.log(here.value_ms / there.value_ms))
    return found


def wrong_requests(evidence: Evidence, share: float) -> Biases:
    """`share` of the requests failed or had a wrong response: the rate may be off by it either way, times as
    if they were the shortest or the longest ones.
    """
    if share <= 0:
        return {}
    off = lost(share)
    return together(
        both(THROUGHPUT, off, off), both(MEAN, off, off), both(CPU, off, off), longest(evidence, share)
    )
