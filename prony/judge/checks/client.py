"""client: by how much the load generator moved a figure.

A busy client costs throughput in a closed loop only as far as the server had room for more; it costs latency
between a response's arrival and the moment it is looked at, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from prony.evidence.engine import EngineThread, Histogram, Window
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
from prony.judge.load_hosts import each_load_host, hosts_needed
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
HAD_CPU = "the load generator had CPU time left"
LEFT_SOON = "what its kernel put off was sent soon after"
KEEP_OFF_HOSTS = "keep other processes off the load hosts' CPUs"
STAMPS_NEEDED = 500
"""Reads with a receive time stamp from which on their p99 is taken: five of them lie above it."""
WAKE_UP_NS = 10_000
"""From the packet to the look at it on an idle CPU: 2 µs at the median, 4 to 9 µs at p99 with one user."""
SIGNALS_NEEDED = 2
"""Independent signals that must be readable to clear the client, and that must agree to call it saturated."""
REQUESTS_NEEDED = 100
"""To call the client saturated because signals agree: of fewer, what they see is the first requests, on cold
caches, and a p99 is the longest.
"""


class ClientLimits(ServerCpuLimits, MoreUsersLimits):
    client_cpu_max: Share = 0.85
    """CPU ÷ wall of the busiest engine thread."""
    client_lag_max_ms: Positive = 1.0
    """p99 of the age of a response when the engine looks at it: since its arrival, by the kernel's receive
    time stamps, and then only where it is `client_run_delay_max` of what responses took; where there are too
    few stamps, since the wake-up (loop lag).
    """
    client_ceiling_max: Share = 0.80
    """Throughput ÷ this client's calibrated ceiling for the request shape (against the reference server)."""
    client_gain_max: Share = 0.05
    """What a client without turn-around would have added to the throughput. Against the reference server it
    is 1 % with one user and 3 to 10 % with more, of a server whose CPU is then full.
    """
    client_run_delay_max: Share = 0.02
    """Time that an engine thread was runnable and not running ÷ wall time; the practical band of a
    comparison. A wake-up on an idle CPU costs 0.4 µs: 1 % at 20,000 wake-ups a second.
    """
    client_run_delay_alone: Share = 0.10
    """From here on, where each wait is also that share of a service time, it decides by itself."""


class MovedFigure(Enum):
    """What a signal can move."""

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
    """One sign of a busy client: over its limit or not, and which figures it moves when it is."""

    over: bool
    text: str
    moves: frozenset[MovedFigure] = BOTH
    counts: bool = True
    """Whether it can call the client saturated together with another one."""
    alone: bool = False
    """It must have moved what it moves."""
    waits: bool = False
    """The client was not busy, it waited for a CPU."""


def signals(evidence: Evidence, limits: ClientLimits) -> tuple[list[Signal], float | None]:
    """The signals that can be read, and the CPU share of the busiest engine thread."""
    window = measured(evidence)
    if window is None:
        return [], None
    found: list[Signal] = []
    cpu = window.busiest_thread_share
    if cpu is not None:
        found.append(Signal(cpu >= limits.client_cpu_max, f"busiest thread at {percent(cpu)} CPU"))
    waiting = _run_delay(window, limits)
    found += _late(window, limits, waits=any(signal.over for signal in waiting))
    found += waiting
    found += _turnaround(evidence, window, limits)
    if window.submissions_put_off:
        text = f"its kernel put off what it sent, {number(window.submissions_put_off)} times"
        found.append(Signal(True, text))
    calibration = evidence.calibration
    share = calibration.share_of(window.completed / window.duration_s) if calibration is not None else None
    if share is not None:
        text = f"{percent(share)} of its ceiling (calibrated against the reference server)"
        # It is CPU per request x rate, as the first signal is: alone with it, it proves nothing more.
        room = headroom(evidence, by_thread=True) is not None
        found.append(Signal(share >= limits.client_ceiling_max, text, counts=room))
    return found, cpu


def _late(window: Window, limits: ClientLimits, *, waits: bool) -> list[Signal]:
    """The thread that looks latest at what has come. Since the arrival where the kernel stamped enough reads;
    that age has the wait for a CPU in it, so where a thread `waits` too the two count as one. The loop lag
    begins at the wake-up and has not.

    An age is held against what the responses took: 1.5 ms of four seconds moves nothing. The loop lag is
    not: it does not say how long a response lay in its socket.
    """
    ages = [(age_ns, t) for t in window.threads if (age_ns := _age_ns(t)) is not None]
    if not ages or len(ages) < len(window.threads):
        return []
    age_ns, thread = max(ages, key=lambda one: one[0])
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
        text += f", {percent(part)} of what they took"
    return [Signal(over, text, counts=not (stamped and waits))]


def _age_ns(thread: EngineThread) -> int | None:
    return thread.receive_delay_p99_ns if _is_stamped(thread) else thread.loop_lag_p99_ns


def _is_stamped(thread: EngineThread) -> bool:
    return thread.receive_delay_p99_ns is not None and (thread.reads_stamped or 0) >= STAMPS_NEEDED


def _run_delay(window: Window, limits: ClientLimits) -> list[Signal]:
    """The thread that waited longest for a CPU. What it adds to a mean is at most the share of time that it
    waited, and at most one wait per request: the smaller of the two certainly moved it.

    A sum cannot tell many short waits, which every wake-up costs, from few long ones. Where the kernel
    stamped enough reads, the waits count only if what they are part of, the receive delay of responses at
    them, is that share of what the responses took.
    """
    waited = [(share, t) for t in window.threads if (share := _waited(t)) is not None]
    if not waited or len(waited) < len(window.threads):
        return []
    share, thread = max(waited, key=lambda one: one[0])
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
        text += f", and responses waited {percent(part)} of their time longer than a wake-up takes"
    return [
        Signal(
            over,
            text,
            alone=alone,
            waits=True,
        )
    ]


def _part_of_latency(thread: EngineThread, times: Histogram | None) -> float | None:
    """The receive delay of responses ÷ what they took: mean by mean or p99 by p99, the larger; less
    an ordinary wake-up, which every client has. None where too few reads were stamped, or nothing was
    answered.
    """
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
    """Closed loop: users that are with the client instead of the server. Without that share t of their time
    the rate would be t/(1 - t) higher at most. It says nothing of a server whose CPU was not read: users may
    have waited for it all the same.
    """
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


def thread_tells(evidence: Evidence, limits: ClientLimits) -> bool:
    """Whether a busy thread of the server shows that the server was busy. Threads that poll are busy without
    a request; so the client must have had CPU left, or the rate must not have risen with more users.
    """
    window = measured(evidence)
    cpu = None if window is None else window.busiest_thread_share
    if cpu is not None and cpu < limits.client_cpu_max:
        return True
    probe = probed(evidence, limits, limits.client_cpu_max)
    return probe is not None and probe.level


def _room(evidence: Evidence, limits: ClientLimits) -> float | None:
    return headroom(evidence, by_thread=thread_tells(evidence, limits))


def _saturated(
    found: Sequence[Signal], evidence: Evidence, limits: ClientLimits, claimed: frozenset[MovedFigure]
) -> list[Signal]:
    """The signals that call the client saturated: what they move is claimed, and was not the server's to
    move. Empty unless they are enough.
    """
    if is_exhausted(evidence, limits):
        claimed = claimed - {MovedFigure.THROUGHPUT}
    against = [s for s in found if s.over and s.counts and s.moves & claimed]
    window = measured(evidence)
    if window is not None and window.completed + window.failed < REQUESTS_NEEDED:
        against = [signal for signal in against if signal.alone]
    enough = len(against) >= SIGNALS_NEEDED or any(signal.alone for signal in against)
    return against if enough else []


@check(ClientLimits, order=80)
def client(evidence: Evidence, limits: ClientLimits) -> Finding:
    """Thread CPU, receive delay, run delay, turn-around, share of the calibrated
    ceiling: what they cost in user time is the bound on each figure; two over their limits call the client
    saturated. Of several load hosts each is looked at, and the bounds are those of all requests.
    """
    window = measured(evidence)
    alone = [(host.name, _of_one(view, limits)) for host, view in each_load_host(evidence)]
    found = _of_several(alone, limits) if alone else _of_one(evidence, limits)
    if window is None:
        return found
    bias = _bias(evidence, window, limits)
    if found.code == "ok" and any(one.counts for one in bias.values()):
        found = found.model_copy(update={"code": "overhead"})
    return found.model_copy(update={"bias": bias})


def _bias(evidence: Evidence, window: Window, limits: ClientLimits) -> Biases:
    """What the client took of the users' time: beside requests (turn-around), and within them."""
    users_s, in_requests_s = window.users_integral_s or 0.0, time_in_requests_s(evidence)
    times = request_times(window)
    mean_ns = 0.0 if times is None else times.mean_ns or 0.0
    share = _late_share(window.threads, mean_ns)
    bias = user_time_lost(evidence, share)
    if share and all(_is_stamped(thread) for thread in window.threads):
        known = narrower(bias, _shifted(evidence, window, share * mean_ns))
        bias |= together(known, {name: Bias.of_logs(up=bias[name].up) for name in known})
    if evidence.load.model != "closed":
        return bias
    beside = min(1.0, (window.clipped_turnaround_s or 0.0) / users_s) if users_s else 0.0
    within = share * min(1.0, in_requests_s / users_s) if users_s else share
    room = _room(evidence, limits)
    gain = math.expm1(lost(min(1.0, beside + within)))
    busy = (window.busiest_thread_share or 0.0) >= limits.client_cpu_max
    if busy and not all(_is_stamped(thread) for thread in window.threads):
        gain = math.inf  # how late it was is not known
    up = math.log1p(min(gain, math.inf if room is None else room))
    # Users who are with the client wait for no server: all of them would have waited for it longer.
    longer = both(TIMES, up=0.0 if evidence.load.users == 1 else lost(beside))
    return together(bias, longer) | both(THROUGHPUT, up=up)


def _shifted(evidence: Evidence, window: Window, late_ns: float) -> Biases:
    """Percentiles less what is known of 99 % of the responses: they were no later than the p99 of the ages,
    and their median moved by the mean age or the median one; the others as if late by any time, or all by the
    largest age that was seen, whichever is less.
    """
    usual_ns = max(t.receive_delay_p50_ns or 0 for t in window.threads) - WAKE_UP_NS
    most_ns = max(t.receive_delay_p99_ns or 0 for t in window.threads)
    median = {n: b for n, b in sooner(evidence, max(late_ns, usual_ns) / 1e6).items() if n == "p50_ms"}
    rest = {n: one for n, one in longest(evidence, 0.01, at_random=True).items() if n in PERCENTILES}
    seen = together(rest, sooner(evidence, most_ns / 1e6) | median)
    largest_ns = max(t.receive_delay_max_ns or 0 for t in window.threads)
    return narrower(seen, sooner(evidence, largest_ns / 1e6) | median) if largest_ns else seen


def _late_share(threads: Sequence[EngineThread], mean_ns: float) -> float:
    """Of the time that responses took, what they lay until the client looked at them, beyond a wake-up. Of a
    thread with too few time stamps: its loop lag, and the time that it waited for a CPU.
    """
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


GRAVEST = ("no_window", "saturated", "kept_from_cpu", "busy", "unread", "ok")


def _of_several(alone: Sequence[tuple[str, Finding]], limits: ClientLimits) -> Finding:
    """The finding of several load hosts from each one's own: the worst of them, named."""
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
        name, finding = max(alone, key=lambda one: one[1].value if isinstance(one[1].value, float) else 0.0)
        reason = f"busiest of {len(alone)} load hosts {name}: {finding.reason}"
    return first.model_copy(update={"value": max(shares, default=None), "reason": reason, "advice": advice})


def _more_hosts(over: Sequence[str], shares: Sequence[float], hosts: int, limits: ClientLimits) -> str:
    """What keeps every load host below the limit: other weights where the others have room, else more of
    them.
    """
    below = percent(limits.client_cpu_max)
    if len(shares) < hosts:
        return "give the load hosts more CPUs, or use more of them"
    needed = hosts_needed(shares, limits.client_cpu_max)
    if needed <= hosts and len(over) < hosts:
        return (
            f"{hosts} load hosts are enough to stay below {below} CPU: lower the weight of {', '.join(over)}"
        )
    return (
        f"use at least {max(needed, hosts + 1)} load hosts like these, so that each stays below {below} CPU"
    )


def _of_one(evidence: Evidence, limits: ClientLimits) -> Finding:
    limit = (
        f"CPU below {percent(limits.client_cpu_max)}, "
        f"p99 receive delay below {milliseconds(limits.client_lag_max_ms)}, "
        f"runnable and not running below {percent(limits.client_run_delay_max)}, "
        f"turn-around worth less than {percent(limits.client_gain_max)} of the throughput, "
        f"below {percent(limits.client_ceiling_max)} of the calibrated ceiling; saturated by two of them"
    )
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    found, cpu = signals(evidence, limits)
    saturated = _saturated(found, evidence, limits, CLAIMED[evidence.load.claim])
    over = saturated or [signal for signal in found if signal.over]
    code, advice = "ok", ""
    if over and (all(signal.waits for signal in over) or any(signal.alone for signal in saturated)):
        code, said, advice = "kept_from_cpu", "the load generator was kept from its CPU: ", KEEP_OFF
    elif saturated:
        code, said = "saturated", "load generator saturated: "
        advice = "give the client more CPUs (--client-cpus) or reduce the load"
    elif over:
        code, said = "busy", "the load generator was busy: "
        advice = "repeat with more client CPUs: if the figure changes, the client was part of it"
    elif len(found) < SIGNALS_NEEDED:
        code, said = "unread", f"{len(found)} of the {SIGNALS_NEEDED} signals needed could be read: "
    else:
        said = ""
    told = [signal.text for signal in over or found]
    if code == "ok" and not any(signal.waits for signal in found):
        told.append("how long its threads waited for a CPU could not be read")
    return Finding(
        check=CHECK,
        code=code,
        provided=HAD_CPU if code == "unread" else LEFT_SOON if window.submissions_put_off else "",
        assumption="the server would have served no more than its CPU had left"
        if code == "saturated"
        else "",
        value=cpu,
        limit=limit,
        reason=said + ("; ".join(told) or "none"),
        advice=advice,
        source=SOURCE,
        outside=code == "kept_from_cpu",
    )


def client_bound(evidence: Evidence, limits: ClientLimits) -> bool:
    """Whether the client, and not the server, bounds the throughput; of several load hosts, each of them."""
    views = [view for _, view in each_load_host(evidence)] or [evidence]
    return all(_bounds(view, limits) for view in views)


def _bounds(evidence: Evidence, limits: ClientLimits) -> bool:
    found, _ = signals(evidence, limits)
    return bool(_saturated(found, evidence, limits, frozenset({MovedFigure.THROUGHPUT})))
