"""hosts: were all hosts of the trial there, at one time, and alike. Must not know how hosts are reached.

Left out where everything was on one host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from prony.evidence.hosts import HostEvidence
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Positive, Share, check
from prony.judge.finding import Finding, Status, no_window, worst
from prony.judge.histogram import Decoded, HistogramError, decode
from prony.judge.load_hosts import load_hosts
from prony.judge.window import measured
from prony.numbers import milliseconds, percent

CHECK = "hosts"
SOURCE = "rows of one second that are put on one clock; Kolmogorov-Smirnov, two samples"
ROW_S = 1.0
"""Rows are a second long."""
LEVEL = 0.01
"""Chance that of all hosts, alike, any is named: each is compared at this level ÷ hosts (Bonferroni)."""
LEAST_ERRORS = 5
"""Failed requests; the normal distribution does not describe fewer."""


class HostsLimits(DeclaredLimits):
    hosts_skew_max: Share = 0.01
    """Error of an instant on the laboratory's clock ÷ a row of one second, above which it is suspect."""
    hosts_late_max: Share = 0.10
    """How late a host opened its window ÷ a row of one second, above which it is invalid: the sum of the
    hosts then lacks so much of the first row, and rates are no longer of one time.
    """
    hosts_row_late_max_s: Positive = 3.0
    """A row that reaches the laboratory later than this comes from a host that is too slow: invalid. The
    warm-up was judged, and the window closed, without it.
    """
    hosts_differ_max: Share = 0.10
    """Largest distance between the distribution of a host's service times and that of the others from which
    it is named; suspect where a latency is claimed. At 0.1 a median of one is at most a p60 of the other.
    """
    hosts_errors_differ_max: Share = 0.01
    """A host's share of errors minus that of the others, above which it is suspect."""


@dataclass(frozen=True, slots=True)
class Part:
    """What was found of some hosts, and what to do."""

    status: Status
    text: str
    advice: str = ""


@check(HostsLimits, order=45, essential=lambda evidence: bool(evidence.hosts))
def hosts(evidence: Evidence, limits: HostsLimits) -> Finding | None:
    """Lost, late or slow hosts, clocks, and hosts that differ from the others."""
    if not evidence.hosts:
        return None
    late_ms, skew_limit_ms = limits.hosts_late_max * ROW_S * 1000, limits.hosts_skew_max * ROW_S * 1000
    limit = (
        f"no host lost, windows open within {milliseconds(late_ms)}, rows at most "
        f"{limits.hosts_row_late_max_s:g} s late, instants within {milliseconds(skew_limit_ms)}, "
        f"service times of load hosts at most {percent(limits.hosts_differ_max)} apart"
    )
    lost = [part for host in evidence.hosts for part in _lost(host)]
    if measured(evidence) is None and not lost:
        return no_window(CHECK, limit=limit, source=SOURCE)
    if measured(evidence) is None:
        # Without a window nothing else can be said of the hosts that were there to the end.
        return _finding(lost, None, limit)
    skew_ms = max((h.clock.skew_s * 1000 for h in evidence.hosts if h.clock is not None), default=None)
    there = [host for host in evidence.hosts if host.lost is None]
    parts = [*lost, *(part for host in there for part in (*_late(host, limits), *_clock(host, limits)))]
    parts += _different(evidence, limits)
    good = f"{len(evidence.hosts)} hosts, instants within {milliseconds(skew_ms or 0.0)}"
    return _finding(parts or [Part(Status.VALID, good)], skew_ms, limit)


def _finding(parts: Sequence[Part], skew_ms: float | None, limit: str) -> Finding:
    return Finding(
        check=CHECK,
        status=worst(*(part.status for part in parts)),
        value=skew_ms,
        unit="ms",
        limit=limit,
        reason="; ".join(part.text for part in parts),
        advice="; ".join(dict.fromkeys(part.advice for part in parts if part.advice)),
        source=SOURCE,
    )


def _lost(host: HostEvidence) -> list[Part]:
    if host.lost is None:
        return []
    text = host.lost if host.name in host.lost else f"{host.name} was lost: {host.lost}"
    return [Part(Status.INVALID, text, "see `prony hosts check`")]


def _late(host: HostEvidence, limits: HostsLimits) -> list[Part]:
    """Without figures, late or slow."""
    if host.role == "load" and (host.engine is None or host.engine.window is None):
        text = f"{host.name} reported no measured window"
        return [Part(Status.INVALID, text, "see `prony hosts check`")]
    found = []
    if host.opened_late_s is not None and host.opened_late_s > limits.hosts_skew_max * ROW_S:
        late = host.opened_late_s > limits.hosts_late_max * ROW_S
        text = f"{host.name} opened its window {milliseconds(host.opened_late_s * 1000)} late"
        advice = "the way to this host, or the host itself, is too slow: see `prony hosts check`"
        found.append(Part(Status.INVALID if late else Status.SUSPECT, text, advice))
    rows_s = host.row_late_max_s
    if rows_s is None and host.engine is not None and any(row.in_window for row in host.engine.rows):
        found.append(Part(Status.UNKNOWN, f"when the rows of {host.name} came is not known"))
    if rows_s is not None and rows_s > limits.hosts_row_late_max_s:
        text = f"the rows of {host.name} came {milliseconds(rows_s * 1000)} late"
        found.append(Part(Status.INVALID, text, f"take load off {host.name}, or off the way to it"))
    return found


def _clock(host: HostEvidence, limits: HostsLimits) -> list[Part]:
    """The server's host sends no rows of requests, but its CPU is read at the same instants."""
    clock = host.clock
    if clock is None:
        return [Part(Status.UNKNOWN, f"the clock of {host.name} was not compared")]
    if clock.skew_s <= limits.hosts_skew_max * ROW_S:
        return []
    text = (
        f"instants of {host.name} may be off by {milliseconds(clock.skew_s * 1000)} "
        f"({clock.round_trips} round trips, uncertainty {milliseconds(clock.uncertainty_s * 1000)})"
    )
    advice = "use a laboratory nearer to the hosts, or a quieter way to them"
    if clock.skew_s > 2 * clock.uncertainty_s:  # more than the way: the clocks drifted apart
        advice = "run chrony or ntpd on all hosts and on the laboratory, or measure for a shorter time"
    return [Part(Status.SUSPECT, text, advice)]


def _different(evidence: Evidence, limits: HostsLimits) -> list[Part]:
    """Load hosts whose service times or errors are not those of the others."""
    parts = [
        Part(
            Status.VALID if evidence.load.claim == "capacity" else Status.SUSPECT,
            f"service times of {name}: {percent(apart)} apart (KS)",
            "look at its link, its round trip and its CPU: a percentile of all hosts mixes the two",
        )
        for name, apart in _outliers(_times(evidence), limits.hosts_differ_max)
    ]
    for name, share, others in _failing(evidence, limits.hosts_errors_differ_max):
        text = f"{percent(share)} of the requests of {name} failed, of the others' {percent(others)}"
        parts.append(Part(Status.SUSPECT, text, f"look for what is different on {name}: see errors"))
    return parts


def _times(evidence: Evidence) -> dict[str, Decoded]:
    found = {}
    for host in load_hosts(evidence):
        window = host.engine.window if host.engine is not None else None
        if window is None or window.service_time is None:
            continue
        try:
            times = decode(window.service_time)
        except HistogramError:
            continue
        if times.count > 0:
            found[host.name] = times
    return found


def _outliers(times: dict[str, Decoded], limit: float) -> list[tuple[str, float]]:
    """The host that is furthest from the others, then of those that are left, and so on: one host that is
    different moves the others' sum, too. Of two hosts neither is the odd one: both are named.
    """
    found: list[tuple[str, float]] = []
    names, counts = list(times), cumulative(list(times.values()))
    while len(names) > 1:
        apart, critical = distances(counts)
        furthest = int(apart.argmax())
        if apart[furthest] <= max(limit, critical[furthest]):
            break
        if len(names) == 2:
            found.append((f"{' and '.join(names)} differ", float(apart[furthest])))
            break
        found.append((f"{names.pop(furthest)} differ from the others'", float(apart[furthest])))
        counts = np.delete(counts, furthest, axis=0)
    return found


def cumulative(times: Sequence[Decoded]) -> NDArray[np.float64]:
    """Samples up to each bucket that any of these has: a row for each distribution."""
    if not times:
        return np.empty((0, 0))
    at = np.unique(np.concatenate([one.high_ns for one in times]))
    return np.stack(
        [
            np.concatenate(([0.0], np.cumsum(one.counts)))[np.searchsorted(one.high_ns, at, side="right")]
            for one in times
        ]
    )


def distances(counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each distribution (rows of `cumulative`): the largest difference of its distribution function from
    that of all others together (Kolmogorov-Smirnov, 0..1), and what chance alone exceeds of any of them once
    in a hundred times.
    """
    rest = counts.sum(axis=0) - counts
    own_total, rest_total = counts[:, -1], rest[:, -1]
    apart = np.abs(counts / own_total[:, None] - rest / rest_total[:, None]).max(axis=1)
    # D > √(ln(2 ÷ level) ÷ 2) √((n + m) ÷ nm) (Smirnov 1948), 1.628 at a level of 1 %.
    significant = math.sqrt(math.log(2 * len(counts) / LEVEL) / 2)
    critical = significant * np.sqrt((own_total + rest_total) / (own_total * rest_total))
    return apart, critical


def _failing(evidence: Evidence, limit: float) -> Sequence[tuple[str, float, float]]:
    """(host, its share of errors, that of the others) of those that failed more than the others."""
    counts = {
        host.name: (host.engine.window.failed, host.engine.window.failed + host.engine.window.completed)
        for host in load_hosts(evidence)
        if host.engine is not None and host.engine.window is not None
    }
    # Standard errors of a difference of two shares.
    significant = NormalDist().inv_cdf(1 - LEVEL / max(1, len(counts)) / 2)
    failed, total = (sum(pair[at] for pair in counts.values()) for at in (0, 1))
    found = []
    for name, (own_failed, own_total) in counts.items():
        rest = total - own_total
        if own_failed < LEAST_ERRORS or not rest:
            continue
        share, others, mean = own_failed / own_total, (failed - own_failed) / rest, failed / total
        error = math.sqrt(mean * (1 - mean) * (1 / own_total + 1 / rest))
        if share - others > max(limit, significant * error):
            found.append((name, share, others))
    return found
