"""hosts: were all hosts of the trial present, in step and alike. Only for several hosts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from prony.evidence.hosts import HostEvidence
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Positive, Share, check
from prony.judge.effects import Biases, both, lost
from prony.judge.finding import CPU, THROUGHPUT, Finding, Kind, no_window, unread
from prony.judge.histogram import Decoded, read
from prony.judge.links import load_hosts
from prony.judge.parts import joined
from prony.judge.window import measured
from prony.numbers import milliseconds, percent

CHECK = "hosts"
SOURCE = "one-second rows on a common clock; two-sample Kolmogorov-Smirnov test"
ROW_S = 1.0
LEVEL = 0.01
"""Chance that any of several equal hosts is named: each is tested at this ÷ hosts (Bonferroni)."""
LEAST_ERRORS = 5
"""Fewest failed requests for a normal approximation."""


PART = partial(Finding, check=CHECK, source=SOURCE, unit="ms")


class HostsLimits(DeclaredLimits):
    hosts_late_max: Share = 0.10
    """Latest opening of a host's window, rows of a second: that part of the first row is not in the sum."""
    hosts_row_late_max_s: Positive = 3.0
    """Latest arrival of a row at the laboratory, which judges the warm-up and closes the window."""
    hosts_differ_max: Share = 0.10
    """Kolmogorov-Smirnov distance of a host's service times from the others'; at 0.1 p50 <= their p60."""
    hosts_errors_differ_max: Share = 0.01
    """A host's share of errors minus that of the others, above which it is named."""


@check(HostsLimits, order=45)
def hosts(evidence: Evidence, limits: HostsLimits) -> Finding | None:
    if not evidence.hosts:
        return None
    late_ms = limits.hosts_late_max * ROW_S * 1000
    limit = (
        f"no host lost, windows opened within {milliseconds(late_ms)}, rows at most "
        f"{limits.hosts_row_late_max_s:g} s late, "
        f"service times of load hosts at most {percent(limits.hosts_differ_max)} apart"
    )
    parts = [_lost(host) for host in evidence.hosts if host.lost is not None]
    window = measured(evidence)
    if window is None and not parts:
        return no_window(CHECK, limit=limit, source=SOURCE)
    skew_ms = None
    if window is not None:  # without one the remaining hosts cannot be judged
        skew_ms = max((h.clock.skew_s * 1000 for h in evidence.hosts if h.clock is not None), default=None)
        for host in evidence.hosts:
            if host.lost is None:
                parts += [*_late(host, evidence, limits), *_clock(host, evidence)]
        parts += _different(evidence, limits)
    whole = joined(parts)
    good = f"{len(evidence.hosts)} hosts, instants within {milliseconds(skew_ms or 0.0)}"
    return whole.model_copy(update={"reason": whole.reason or good, "value": skew_ms, "limit": limit})


def _lost(host: HostEvidence) -> Finding:
    cause = host.lost or ""
    text = cause if host.name in cause else f"{host.name} was lost: {cause}"
    return PART(code="lost", conforms=False, reason=text, advice="see `prony hosts check`")


def _off(host: HostEvidence, evidence: Evidence, by_s: float) -> Biases:
    window = measured(evidence)
    if window is None:
        return {}
    if host.role == "server":
        off = lost(by_s / window.duration_s)
        return both(CPU, off, off)
    part = host.weight / sum(other.weight for other in load_hosts(evidence))
    off = lost(part * by_s / window.duration_s)
    return both(THROUGHPUT + CPU, off, off)


def _late(host: HostEvidence, evidence: Evidence, limits: HostsLimits) -> list[Finding]:
    if host.role == "load" and (host.engine is None or host.engine.window is None):
        text = f"{host.name} reported no measured window"
        return [PART(code="no_window", conforms=False, reason=text, advice="see `prony hosts check`")]
    findings = []
    if late_s := host.opened_late_s:
        late = PART(
            code="late_window",
            conforms=late_s <= limits.hosts_late_max * ROW_S,
            bias=_off(host, evidence, late_s),
            reason=f"{host.name} opened its window {milliseconds(late_s * 1000)} late",
            advice="this host, or the network path to it, is too slow: see `prony hosts check`",
        )
        findings.append(_worth(late))
    rows_s = host.row_late_max_s
    if rows_s is None and host.engine is not None and any(row.in_window for row in host.engine.rows):
        text = f"the delay of rows from {host.name} is not known"
        findings.append(unread(CHECK, text, provided=f"{host.name} was not too slow", source=SOURCE))
    if rows_s is not None and rows_s > limits.hosts_row_late_max_s:
        text = f"the rows of {host.name} arrived {milliseconds(rows_s * 1000)} late"
        advice = f"take load off {host.name}, or off the network path to it"
        findings.append(PART(code="late_rows", conforms=False, reason=text, advice=advice))
    return findings


def _clock(host: HostEvidence, evidence: Evidence) -> list[Finding]:
    clock = host.clock
    if clock is None:
        text = f"the clock of {host.name} was not compared"
        return [unread(CHECK, text, provided="the clocks of all hosts agreed", source=SOURCE)]
    advice = "move the laboratory nearer to the hosts, or use a quieter network path"
    if clock.skew_s > 2 * clock.uncertainty_s:  # more than the path explains: the clocks drifted
        advice = "run chrony or ntpd on all hosts and the laboratory, or shorten the measurement"
    skewed = PART(
        code="clock",
        bias=_off(host, evidence, clock.skew_s),
        reason=f"instants of {host.name} may be off by {milliseconds(clock.skew_s * 1000)}: "
        f"{clock.round_trips} round trips, uncertainty {milliseconds(clock.uncertainty_s * 1000)}",
        advice=advice,
    )
    return [_worth(skewed)]


def _worth(part: Finding) -> Finding:
    return part if part.kind is not Kind.FINE else PART(reason="", bias=part.bias)


def _different(evidence: Evidence, limits: HostsLimits) -> list[Finding]:
    parts = [
        PART(
            code="ok" if evidence.load.claim == "capacity" else "service_times",
            provided="" if evidence.load.claim == "capacity" else "the mix of load hosts is the intended one",
            reason=f"service times of {name}: {percent(apart)} apart (KS)",
            advice="check its link, round trip and CPU: percentiles of all hosts mix the two distributions",
        )
        for name, apart in _outliers(_times(evidence), limits.hosts_differ_max)
    ]
    for name, share, others in _failing(evidence, limits.hosts_errors_differ_max):
        parts.append(
            PART(
                code="errors",
                provided=f"the cause of the failures on {name} does not affect the others",
                reason=f"{percent(share)} of the requests of {name} failed, {percent(others)} of the others'",
                advice=f"compare {name} with the others: see errors",
            )
        )
    return parts


def _times(evidence: Evidence) -> dict[str, Decoded]:
    by_host = {}
    for host in load_hosts(evidence):
        window = host.engine.window if host.engine is not None else None
        times = None if window is None else read(window.service_time)
        if times is not None and times.count > 0:
            by_host[host.name] = times
    return by_host


def _outliers(times: dict[str, Decoded], limit: float) -> list[tuple[str, float]]:
    """Repeatedly removes the furthest host, as it also moves the others' sum. Of two, both are named."""
    outliers: list[tuple[str, float]] = []
    names, counts = list(times), cumulative(list(times.values()))
    while len(names) > 1:
        apart, critical = distances(counts)
        furthest = int(apart.argmax())
        if apart[furthest] <= max(limit, critical[furthest]):
            break
        if len(names) == 2:
            outliers.append((f"{' and '.join(names)} differ", float(apart[furthest])))
            break
        outliers.append((f"{names.pop(furthest)} differ from the others'", float(apart[furthest])))
        counts = np.delete(counts, furthest, axis=0)
    return outliers


def cumulative(times: Sequence[Decoded]) -> NDArray[np.float64]:
    if not times:
        return np.empty((0, 0))
    at = np.unique(np.concatenate([sample.high_ns for sample in times]))
    return np.stack(
        [
            np.concatenate(([0.0], np.cumsum(sample.counts)))[
                np.searchsorted(sample.high_ns, at, side="right")
            ]
            for sample in times
        ]
    )


def distances(counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per row: KS distance from the pooled others, and its critical value at a family-wise level of 1 %."""
    rest = counts.sum(axis=0) - counts
    own_total, rest_total = counts[:, -1], rest[:, -1]
    apart = np.abs(counts / own_total[:, None] - rest / rest_total[:, None]).max(axis=1)
    # D > √(ln(2 ÷ level) ÷ 2) √((n + m) ÷ nm) (Smirnov 1948), 1.628 at a level of 1 %.
    significant = math.sqrt(math.log(2 * len(counts) / LEVEL) / 2)
    critical = significant * np.sqrt((own_total + rest_total) / (own_total * rest_total))
    return apart, critical


def _failing(evidence: Evidence, limit: float) -> Sequence[tuple[str, float, float]]:
    counts = {
        host.name: (host.engine.window.failed, host.engine.window.failed + host.engine.window.completed)
        for host in load_hosts(evidence)
        if host.engine is not None and host.engine.window is not None
    }
    # Standard errors of a difference of two shares.
    significant = NormalDist().inv_cdf(1 - LEVEL / max(1, len(counts)) / 2)
    failed, total = (sum(pair[at] for pair in counts.values()) for at in (0, 1))
    failing = []
    for name, (own_failed, own_total) in counts.items():
        rest = total - own_total
        if own_failed < LEAST_ERRORS or not rest:
            continue
        share, others, mean = own_failed / own_total, (failed - own_failed) / rest, failed / total
        error = math.sqrt(mean * (1 - mean) * (1 / own_total + 1 / rest))
        if share - others > max(limit, significant * error):
            failing.append((name, share, others))
    return failing
