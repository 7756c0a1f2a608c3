"""client: bias of a figure by the load generator; of throughput only as far as the server had CPU left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from prony.evidence.counts import EngineThread
from prony.evidence.engine import Histogram, Window
from prony.evidence.trial import Evidence
from prony.judge.check import Positive, Share, check
from prony.judge.effects import (
    Biases,
    both,
    longest,
    lost,
    narrower,
    sooner,
    time_in_requests_s,
    together,
    user_time_lost,
)
from prony.judge.finding import PERCENTILES, THROUGHPUT, TIMES, Bias, Finding, no_window
from prony.judge.links import each_load_host, hosts_needed
from prony.judge.more_users import MoreUsersLimits, probed
from prony.judge.server_cpu import ServerCpuLimits, headroom, is_exhausted
from prony.judge.times import plain_times, supported
from prony.judge.window import measured, request_times
from prony.numbers import milliseconds, number, percent

CHECK = "client"
SOURCE = (
    "one signal alone gives false alarms (Hyperfoil PR#835) or misses (k6 at 92-97 % of its ceiling passed)"
)
KEEP_OFF = "keep other processes off the client's CPUs, or give it CPUs of its own (--client-cpus)"
NO_QUOTA = "raise or remove the CPU quota of the load generator's control group (cpu.max)"
HAD_CPU = "the load generator had CPU time left"
LEFT_SOON = "the deferred sends left soon after"
KEEP_OFF_HOSTS = "keep other processes off the load hosts' CPUs"
STAMPS_NEEDED = 500
"""Fewest stamped reads for a p99: five lie above it."""
WAKE_UP_NS = 10_000
"""From packet to read on an idle CPU: 2 µs at the median, 4 to 9 µs at p99 with one user."""
SIGNALS_NEEDED = 2
"""Independent signals needed to clear the client, and to call it saturated."""
REQUESTS_NEEDED = 100
"""Fewest requests for agreeing signals: below, they reflect cold caches, and a p99 is the maximum."""


class ClientLimits(ServerCpuLimits, MoreUsersLimits):
    client_cpu_max: Share = 0.85
    """CPU ÷ wall of the busiest engine thread."""
    client_lag_max_ms: Positive = 1.0
    """p99 receive delay (kernel stamps; loop lag with too few), if also `client_run_delay_max` of times."""
    client_ceiling_max: Share = 0.80
    """Throughput ÷ this client's calibrated ceiling for the request shape (against the reference server)."""
    client_gain_max: Share = 0.05
    """Throughput gain without turn-around; reference server at full CPU: 1 % (1 user), 3 to 10 % (more)."""
    client_run_delay_max: Share = 0.02
    """Run delay of a thread ÷ wall time: the practical band. 0.4 µs per wake-up is 1 % at 20,000 a second."""
    client_run_delay_alone: Share = 0.10
    """Run delay that decides by itself, where each wait is also this share of a service time."""


class MovedFigure(Enum):
    THROUGHPUT = "throughput"
    LATENCY = "latency"


BOTH = frozenset(MovedFigure)
CLAIMED = {
    "capacity": frozenset({MovedFigure.THROUGHPUT}),
    "latency": frozenset({MovedFigure.LATENCY}),
    "protocol": BOTH,
}


@dataclass(frozen=True, slots=True)
class Signal:
    over: bool
    text: str
    moves: frozenset[MovedFigure] = BOTH
    counts: bool = True
    """Whether it can call the client saturated together with another signal."""
    alone: bool = False
    """Whether it is certain to have moved its figures."""
    waits: bool = False
    """Whether the client waited for a CPU instead of being busy ..."""
    quota: bool = False
    """... because its CPU quota was used up."""


def signals(evidence: Evidence, limits: ClientLimits) -> tuple[list[Signal], float | None]:
    window = measured(evidence)
    if window is None:
        return [], None
    readable: list[Signal] = []
    cpu = window.busiest_thread_share
    if cpu is not None:
        readable.append(Signal(cpu >= limits.client_cpu_max, f"busiest thread at {percent(cpu)} CPU"))
    waiting = _run_delay(window, limits)
    readable += _late(window, limits, waits=any(signal.over for signal in waiting))
    readable += waiting + _throttled(evidence, window, limits)
    readable += _turnaround(evidence, window, limits)
    if window.submissions_put_off:
        text = f"its kernel deferred sends {number(window.submissions_put_off)} times"
        readable.append(Signal(True, text))
    calibration = evidence.calibration
    share = calibration.share_of(window.completed / window.duration_s) if calibration is not None else None
    if share is not None:
        text = f"{percent(share)} of its ceiling (calibrated against the reference server)"
        # CPU per request x rate, as the first signal: with that alone it adds no proof.
        room = headroom(evidence, by_thread=True) is not None
        readable.append(Signal(share >= limits.client_ceiling_max, text, counts=room))
    return readable, cpu


def _late(window: Window, limits: ClientLimits, *, waits: bool) -> list[Signal]:
    """The longest receive delay, or loop lag with too few stamped reads. Receive delay includes the wait for
    a CPU, so together with `waits` it counts once; loop lag starts at the wake-up.
    """
    ages = [(age_ns, t) for t in window.threads if (age_ns := _age_ns(t)) is not None]
    if not ages or len(ages) < len(window.threads):
        return []
    age_ns, thread = max(ages, key=lambda age: age[0])
    age_ms = age_ns / 1e6
    text = f"loop lag p99 {milliseconds(age_ms)}"
    if stamped := _is_stamped(thread):
        text = (
            f"p99 receive delay {milliseconds(age_ms)} (kernel time stamps, "
            f"{number(thread.reads_stamped or 0)} of {number(thread.reads or 0)} reads)"
        )
    over = age_ms >= limits.client_lag_max_ms
    if over and (part := _part_of_latency(thread, request_times(window))) is not None:
        over = part >= limits.client_run_delay_max
        text += f", {percent(part)} of the response time"
    return [Signal(over, text, counts=not (stamped and waits))]


def _age_ns(thread: EngineThread) -> int | None:
    return thread.receive_delay_p99_ns if _is_stamped(thread) else thread.loop_lag_p99_ns


def _is_stamped(thread: EngineThread) -> bool:
    return thread.receive_delay_p99_ns is not None and (thread.reads_stamped or 0) >= STAMPS_NEEDED


def _run_delay(window: Window, limits: ClientLimits) -> list[Signal]:
    """The longest run delay: adds to a mean at most its share of the window, and one wait per request."""
    waited = [(share, t) for t in window.threads if (share := _waited(t)) is not None]
    if not waited or len(waited) < len(window.threads):
        return []
    share, thread = max(waited, key=lambda wait: wait[0])
    each_s = (thread.run_delay_s or 0.0) / max(1, thread.timeslices or 0)
    times = request_times(window)
    mean_s = (times.mean_ns or 0.0) / 1e9 if times is not None else 0.0
    certain = min(share, each_s / mean_s) if mean_s > 0 else 0.0
    which = "its thread" if len(waited) == 1 else "one of its threads"
    text = f"{which} was runnable and not running for {percent(share)} of the window"
    if thread.timeslices:
        text += f" (mean {milliseconds(each_s * 1000)} per wake-up)"
    over = share >= limits.client_run_delay_max
    alone = certain >= limits.client_run_delay_alone
    if over and (part := _part_of_latency(thread, times)) is not None:
        over = alone or part >= limits.client_run_delay_max
        text += f"; beyond a wake-up responses waited {percent(part)} of their time for a read"
    return [Signal(over, text, alone=alone, waits=True)]


def _throttled(evidence: Evidence, window: Window, limits: ClientLimits) -> list[Signal]:
    """The share, an upper bound, is summed over a group's CPUs; it counts only where it decides by itself."""
    throttle = evidence.client_throttle
    if throttle is None or not throttle.periods:
        return []
    share = min(1.0, throttle.throttled_s / window.duration_s)
    text = f"a CPU quota throttled it for {percent(share)} of the window"
    far, over = (share >= limit for limit in (limits.client_run_delay_alone, limits.client_run_delay_max))
    return [Signal(over, text, counts=far, alone=far, waits=True, quota=True)]


def _part_of_latency(thread: EngineThread, times: Histogram | None) -> float | None:
    """Receive delay less a wake-up ÷ response time: the larger of mean ÷ mean and p99 ÷ p99."""
    if not _is_stamped(thread) or times is None:
        return None
    took_p99 = plain_times(times)
    p99 = None if took_p99 is None else took_p99.responses.percentile_ns(99.0)
    usual_ns = min(thread.receive_delay_p50_ns or 0, WAKE_UP_NS)
    pairs = (
        (thread.receive_delay_mean_ns, usual_ns, times.mean_ns),
        (thread.receive_delay_p99_ns, WAKE_UP_NS, p99),
    )
    parts = (max(0.0, age - less) / took for age, less, took in pairs if age is not None and took)
    return max(parts, default=None)


def _waited(thread: EngineThread) -> float | None:
    if thread.run_delay_s is None or not thread.wall_s:
        return None
    return thread.run_delay_s / thread.wall_s


def _turnaround(evidence: Evidence, window: Window, limits: ClientLimits) -> list[Signal]:
    """Share t of user time in the client: without it the rate would be at most t/(1 - t) higher."""
    if evidence.load.model != "closed" or window.clipped_turnaround_s is None:
        return []
    if not window.users_integral_s:
        return []
    share = min(window.clipped_turnaround_s / window.users_integral_s, 1.0)
    gain = share / (1 - share) if share < 1 else 1.0
    text = f"{percent(share)} of user time between a response and the next request"
    each = supported(plain_times(window.turnaround))
    if "p99_ms" in each:
        text += f" (p99 {milliseconds(each['p99_ms'].value_ms)} each)"
    only = frozenset({MovedFigure.THROUGHPUT})
    read = headroom(evidence, by_thread=True) is not None
    return [Signal(gain >= limits.client_gain_max, text, only, counts=read)]


def ceiling_decides(evidence: Evidence, limits: ClientLimits) -> bool:
    """Whether a calibrated ceiling can change the finding: as the second signal, or one of too few."""
    if each_load_host(evidence):
        return False  # each is judged without
    every, _ = signals(evidence.model_copy(update={"calibration": None}), limits)
    over = [signal for signal in every if signal.over]
    return len(every) < SIGNALS_NEEDED or (
        bool(over) and sum(signal.counts for signal in over) < SIGNALS_NEEDED
    )


def thread_shows_load(evidence: Evidence, limits: ClientLimits) -> bool:
    """Whether a busy server thread shows a busy server: polling threads are busy without requests."""
    window = measured(evidence)
    cpu = None if window is None else window.busiest_thread_share
    if cpu is not None and cpu < limits.client_cpu_max:
        return True
    probe = probed(evidence, limits, limits.client_cpu_max)
    return probe is not None and probe.level


def _saturated(
    every: Sequence[Signal], evidence: Evidence, limits: ClientLimits, claimed: frozenset[MovedFigure]
) -> list[Signal]:
    if is_exhausted(evidence, limits):
        claimed = claimed - {MovedFigure.THROUGHPUT}
    against = [s for s in every if s.over and s.counts and s.moves & claimed]
    window = measured(evidence)
    if window is not None and window.completed + window.failed < REQUESTS_NEEDED:
        against = [signal for signal in against if signal.alone]
    enough = len(against) >= SIGNALS_NEEDED or any(signal.alone for signal in against)
    return against if enough else []


@check(ClientLimits, order=80)
def client(evidence: Evidence, limits: ClientLimits) -> Finding:
    """Cost of the client in user time; two signals over their limits call it saturated."""
    window = measured(evidence)
    alone = [(host.name, _of_one(view, limits)) for host, view in each_load_host(evidence)]
    finding = _of_several(alone, limits) if alone else _of_one(evidence, limits)
    if window is None:
        return finding
    bias = _bias(evidence, window, limits)
    if finding.code == "ok" and any(part.counts for part in bias.values()):
        finding = finding.model_copy(update={"code": "overhead"})
    return finding.model_copy(update={"bias": bias})


def _bias(evidence: Evidence, window: Window, limits: ClientLimits) -> Biases:
    users_s, in_requests_s = window.users_integral_s or 0.0, time_in_requests_s(evidence)
    times = request_times(window)
    mean_ns = 0.0 if times is None else times.mean_ns or 0.0
    share = _late_share(window.threads, mean_ns)
    bias = user_time_lost(evidence, share)
    if share and all(_is_stamped(thread) for thread in window.threads):
        tighter = narrower(bias, _shifted(evidence, window, share * mean_ns))
        bias |= together(tighter, {name: Bias.of_logs(up=bias[name].up) for name in tighter})
    if evidence.load.model != "closed":
        return bias
    beside = min(1.0, (window.clipped_turnaround_s or 0.0) / users_s) if users_s else 0.0
    within = share * min(1.0, in_requests_s / users_s) if users_s else share
    room = headroom(evidence, by_thread=thread_shows_load(evidence, limits))
    gain = math.expm1(lost(min(1.0, beside + within)))
    busy = (window.busiest_thread_share or 0.0) >= limits.client_cpu_max
    if busy and not all(_is_stamped(thread) for thread in window.threads):
        gain = math.inf  # receive delay not known
    up = math.log1p(min(gain, math.inf if room is None else room))
    # Users in the client do not load the server: with them its responses would have taken longer.
    longer = both(TIMES, up=0.0 if evidence.load.users == 1 else lost(beside))
    return together(bias, longer) | both(THROUGHPUT, up=up)


def _shifted(evidence: Evidence, window: Window, late_ns: float) -> Biases:
    """Bias of percentiles by receive delay: 99 % of the responses were read within its p99, the median moved
    by its mean or median; the rest as if late by any time, or all by the largest delay, if that is less.
    """
    usual_ns = max(t.receive_delay_p50_ns or 0 for t in window.threads) - WAKE_UP_NS
    most_ns = max(t.receive_delay_p99_ns or 0 for t in window.threads)
    median = {n: b for n, b in sooner(evidence, max(late_ns, usual_ns) / 1e6).items() if n == "p50_ms"}
    rest = {n: bound for n, bound in longest(evidence, 0.01, at_random=True).items() if n in PERCENTILES}
    seen = together(rest, sooner(evidence, most_ns / 1e6) | median)
    largest_ns = max(t.receive_delay_max_ns or 0 for t in window.threads)
    return narrower(seen, sooner(evidence, largest_ns / 1e6) | median) if largest_ns else seen


def _late_share(threads: Sequence[EngineThread], mean_ns: float) -> float:
    """Share of response time that was receive delay; without time stamps loop lag plus run delay."""
    reads = sum(thread.reads or 0 for thread in threads)
    share = 0.0
    for thread in threads:
        part = (thread.reads or 0) / reads if reads else 1 / len(threads)
        if _is_stamped(thread):
            usual_ns = min(thread.receive_delay_p50_ns or 0, WAKE_UP_NS)
            late_ns, waited = max(0.0, (thread.receive_delay_mean_ns or 0) - usual_ns), 0.0
        else:
            late_ns, waited = float(thread.loop_lag_p99_ns or 0), _waited(thread) or 0.0
        share += part * (waited + (late_ns / mean_ns if mean_ns > 0 else 0.0))
    return min(1.0, share)


GRAVEST = ("no_window", "saturated", "throttled", "kept_from_cpu", "busy", "unread", "ok")


def _of_several(alone: Sequence[tuple[str, Finding]], limits: ClientLimits) -> Finding:
    code = min((finding.code for _, finding in alone), key=GRAVEST.index)
    worst = [(name, finding) for name, finding in alone if finding.code == code]
    shares = [finding.value for _, finding in alone if isinstance(finding.value, float)]
    reason = "; ".join(f"{name}: {finding.reason}" for name, finding in worst)
    first, over = worst[0][1], [name for name, _ in worst]
    advice = KEEP_OFF_HOSTS if first.advice == KEEP_OFF else first.advice
    if code == "saturated":
        reason = f"{len(over)} of {len(alone)} load hosts too busy: {reason}"
        advice = _more_hosts(over, shares, len(alone), limits)
    elif code == "ok":
        name, finding = max(
            alone, key=lambda pair: pair[1].value if isinstance(pair[1].value, float) else 0.0
        )
        reason = f"busiest of {len(alone)} load hosts, {name}: {finding.reason}"
    return first.model_copy(update={"value": max(shares, default=None), "reason": reason, "advice": advice})


def _more_hosts(over: Sequence[str], shares: Sequence[float], hosts: int, limits: ClientLimits) -> str:
    below = percent(limits.client_cpu_max)
    if len(shares) < hosts:
        return "give the load hosts more CPUs, or use more of them"
    needed = hosts_needed(shares, limits.client_cpu_max)
    if needed <= hosts and len(over) < hosts:
        return f"{hosts} load hosts suffice to stay below {below} CPU: lower the weight of {', '.join(over)}"
    return f"use at least {max(needed, hosts + 1)} such load hosts to keep each below {below} CPU"


def _of_one(evidence: Evidence, limits: ClientLimits) -> Finding:
    limit = (
        f"CPU below {percent(limits.client_cpu_max)}, "
        f"p99 receive delay below {milliseconds(limits.client_lag_max_ms)}, "
        f"runnable and not running below {percent(limits.client_run_delay_max)}, "
        f"turn-around below {percent(limits.client_gain_max)} of the throughput, "
        f"below {percent(limits.client_ceiling_max)} of the calibrated ceiling; two exceeded: saturated"
    )
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    readable, cpu = signals(evidence, limits)
    saturated = _saturated(readable, evidence, limits, CLAIMED[evidence.load.claim])
    over = saturated or [signal for signal in readable if signal.over]
    code, advice = "ok", ""
    if over and (all(signal.waits for signal in over) or any(signal.alone for signal in saturated)):
        code, prefix, advice = "kept_from_cpu", "the load generator had to wait for a CPU: ", KEEP_OFF
        if any(signal.quota for signal in over):
            code, advice = "throttled", NO_QUOTA
    elif saturated:
        code, prefix = "saturated", "load generator saturated: "
        advice = "give the client more CPUs (--client-cpus) or reduce the load"
    elif over:
        code, prefix = "busy", "the load generator was busy: "
        advice = "repeat with more client CPUs: if the figure changes, the client was part of it"
    elif len(readable) < SIGNALS_NEEDED:
        code, prefix = "unread", f"{len(readable)} of the {SIGNALS_NEEDED} signals needed could be read: "
    else:
        prefix = ""
    texts = [signal.text for signal in over or readable]
    if code == "ok" and not any(signal.waits for signal in readable):
        texts.append("run delay could not be read")
    return Finding(
        check=CHECK,
        code=code,
        provided=HAD_CPU if code == "unread" else LEFT_SOON if window.submissions_put_off else "",
        assumption="the server would have served no more than its CPU had left"
        if code == "saturated"
        else "",
        value=cpu,
        limit=limit,
        reason=prefix + ("; ".join(texts) or "none"),
        advice=advice,
        source=SOURCE,
        outside=code == "kept_from_cpu",
    )


def client_bound(evidence: Evidence, limits: ClientLimits) -> bool:
    """Whether the client bounds the throughput; with several load hosts, every one of them."""
    views = [view for _, view in each_load_host(evidence)] or [evidence]
    return all(_bounds(view, limits) for view in views)


def _bounds(evidence: Evidence, limits: ClientLimits) -> bool:
    readable, _ = signals(evidence, limits)
    return bool(_saturated(readable, evidence, limits, frozenset({MovedFigure.THROUGHPUT})))
