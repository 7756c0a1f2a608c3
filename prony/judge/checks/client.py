"""client: could the load generator have moved the figure that is claimed. Must not know what the server did,
only whether it had CPU left.

A busy client costs throughput in a closed loop only as far as the server had room for more; it costs latency
between a response's arrival and the moment it is looked at, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean

from prony.evidence.engine import EngineThread, Histogram, Window
from prony.evidence.trial import Evidence
from prony.judge.check import Positive, Share, check
from prony.judge.effects import both, lost, responding, together
from prony.judge.finding import THROUGHPUT, TIMES, Bias, Finding, Kind, no_window
from prony.judge.load_hosts import each_load_host, hosts_needed
from prony.judge.more_users import MoreUsersLimits, probed
from prony.judge.percentiles import Times
from prony.judge.server_cpu import ServerCpuLimits, headroom, is_exhausted
from prony.judge.times import NAMED, headline_times, plain_times, supported
from prony.judge.window import measured, request_times
from prony.numbers import milliseconds, number, percent

CHECK = "client"
SOURCE = (
    "one signal alone gives false alarms (Hyperfoil PR#835) or misses (k6 at 92-97 % of its ceiling passed)"
)
KEEP_OFF = "keep other processes off the client's CPUs, or give it CPUs of its own (--client-cpus)"
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
    client_run_delay_kept: Share = 0.10
    """From here on, where each wait is also that share of a service time, the mean is the client's."""


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
    is_delay: bool = False
    """It is itself a delay between a response and the look at it: in every latency that is printed."""
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
            f"p99 {milliseconds(age_ms)} from arrival to the look at it (kernel time stamps, "
            f"{number(thread.reads_stamped or 0)} of {number(thread.reads or 0)} reads)"
        )
    over = age_ms >= limits.client_lag_max_ms
    if over and (part := _part_of_latency(thread, request_times(window))) is not None:
        over = part >= limits.client_run_delay_max
        text += f", {percent(part)} of what they took"
    return [Signal(over, text, is_delay=True, counts=not (stamped and waits))]


def _age_ns(thread: EngineThread) -> int | None:
    return thread.receive_delay_p99_ns if _is_stamped(thread) else thread.loop_lag_p99_ns


def _is_stamped(thread: EngineThread) -> bool:
    return thread.receive_delay_p99_ns is not None and (thread.reads_stamped or 0) >= STAMPS_NEEDED


def _run_delay(window: Window, limits: ClientLimits) -> list[Signal]:
    """The thread that waited longest for a CPU. What it adds to a mean is at most the share of time that it
    waited, and at most one wait per request: the smaller of the two certainly moved it.

    A sum cannot tell many short waits, which every wake-up costs, from few long ones. Where the kernel
    stamped enough reads, the waits count only if what they are part of, the age of responses at the look at
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
    alone = certain >= limits.client_run_delay_kept
    if over and (part := _part_of_latency(thread, times)) is not None:
        over = alone or part >= limits.client_run_delay_max
        text += f", and responses waited {percent(part)} of their time longer than a wake-up takes"
    return [
        Signal(
            over,
            text,
            is_delay=True,
            alone=alone,
            waits=True,
        )
    ]


def _part_of_latency(thread: EngineThread, times: Histogram | None) -> float | None:
    """The age of responses at the look at them ÷ what they took: mean by mean or p99 by p99, the larger; less
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
    """What the load generator took of users' time, and added to responses' times: turn-around and the age of
    a response at the look at it. Of several load hosts each is judged, and its part weighed by its requests.
    """
    alone = [(host.name, view, _of_one(view, limits)) for host, view in each_load_host(evidence)]
    return _of_several(alone, limits) if alone else _of_one(evidence, limits)


def _of_several(alone: Sequence[tuple[str, Evidence, Finding]], limits: ClientLimits) -> Finding:
    """Biases are means, weighed by what each host completed; the gravest host is named."""
    weights = [window.completed if (window := measured(view)) is not None else 0 for _, view, _ in alone]
    whole = max(1, sum(weights))
    names = dict.fromkeys(name for _, _, finding in alone for name in finding.bias)
    bias = {
        name: Bias.of_logs(
            sum(w * f.of(name).down for w, (_, _, f) in zip(weights, alone, strict=True) if w) / whole,
            sum(w * f.of(name).up for w, (_, _, f) in zip(weights, alone, strict=True) if w) / whole,
        )
        for name in names
    }
    over = [name for name, _, finding in alone if finding.code in BUSY]
    gravest = max(alone, key=lambda one: (one[2].code in BUSY, one[2].kind is Kind.PROVIDED, _value(one[2])))
    shares = [finding.value for _, _, finding in alone if isinstance(finding.value, float)]
    advice = gravest[2].advice
    if over:
        advice = KEEP_OFF_HOSTS
        if any(finding.code == "saturated" for _, _, finding in alone):
            advice = _more_hosts(over, shares, len(alone), limits)
    counted = f"{len(over)} of {len(alone)} load hosts too busy, " if over else f"of {len(alone)} load hosts "
    return gravest[2].model_copy(
        update={
            "bias": bias,
            "value": max(shares, default=None),
            "reason": f"{counted}{gravest[0]}: {gravest[2].reason}",
            "advice": advice,
        }
    )


BUSY = frozenset({"saturated", "kept_from_cpu"})


def _value(finding: Finding) -> float:
    return finding.value if isinstance(finding.value, float) else 0.0


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
    limit = f"CPU below {percent(limits.client_cpu_max)}"
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    found, cpu = signals(evidence, limits)
    saturated = _saturated(found, evidence, limits, CLAIMED[evidence.load.claim])
    kept = bool(saturated) and len(saturated) < SIGNALS_NEEDED
    bias = together(_throughput(evidence, window, limits, bool(saturated)), _times(window, evidence))
    code, advice, provided = "ok", "", ""
    if saturated:
        code = "kept_from_cpu" if kept else "saturated"
        advice = KEEP_OFF if kept else "give the client more CPUs (--client-cpus) or reduce the load"
    elif any(one.counts for one in bias.values()):
        code, advice = "delay", KEEP_OFF
    if len(found) < SIGNALS_NEEDED:
        code = "unread" if code == "ok" else code
        provided = "the load generator was not the limit"
    if not any(signal.waits for signal in found):
        found.append(Signal(False, "how long its threads waited for a CPU could not be read"))
    return Finding(
        check=CHECK,
        code=code,
        bias=bias,
        provided=provided,
        value=cpu,
        limit=limit,
        reason="; ".join(signal.text for signal in saturated or found),
        assumption="a client that costs nothing would have sent the next request at once" if bias else "",
        advice=advice,
        source=SOURCE,
    )


def _throughput(evidence: Evidence, window: Window, limits: ClientLimits, saturated: bool) -> dict[str, Bias]:
    """By how much more a client that costs nothing would have loaded the server: users were with the client
    for a share t of their time (turn-around, and responses that lay in their sockets), and the rate could be
    t ÷ (1 - t) higher; the server's CPU bounds it, too, where it was read. In an open loop the schedule does.
    """
    if evidence.load.model != "closed":
        return {}
    users_s, turned_s = window.users_integral_s, window.clipped_turnaround_s
    share = None if turned_s is None or not users_s else min(turned_s / users_s, 1.0)
    delay = _mean_delay(window)
    if delay is None and saturated:
        share = None  # how long responses lay in their sockets is not known
    elif share is not None and delay is not None:
        share = min(1.0, share + (1 - share) * delay * responding(evidence))
    gain = math.inf if share is None or share >= 1 else share / (1 - share)
    room = _room(evidence, limits)
    most = min(gain, math.inf if room is None else max(0.0, room))
    if math.isinf(most) and not saturated:
        return {}
    return both(THROUGHPUT, up=math.log1p(most))


def _mean_delay(window: Window) -> float | None:
    """Mean age of responses at the look at them ÷ their mean time, less an ordinary wake-up, over the
    threads; None where too few reads were stamped.
    """
    times = request_times(window)
    ages = [
        max(0.0, t.receive_delay_mean_ns - min(t.receive_delay_p50_ns or 0, WAKE_UP_NS))
        for t in window.threads
        if _is_stamped(t) and t.receive_delay_mean_ns is not None
    ]
    if not ages or len(ages) < len(window.threads) or times is None or not times.mean_ns:
        return None
    return min(1.0, fmean(ages) / times.mean_ns)


def _times(window: Window, evidence: Evidence) -> dict[str, Bias]:
    """What the look at responses added to their times: mean by mean, p50 by p50, higher percentiles by p99;
    the thread that looks latest. Without time stamps the loop lag, which begins at the wake-up.
    """
    times = headline_times(evidence)
    stamped = [t for t in window.threads if _is_stamped(t)]
    if times is None or times.count < 1:
        return {}
    if len(stamped) == len(window.threads) and stamped:
        of = {
            "mean_ms": max((t.receive_delay_mean_ns or 0) for t in stamped),
            "p50_ms": max((t.receive_delay_p50_ns or 0) for t in stamped),
        }
        tail = max((t.receive_delay_p99_ns or 0) for t in stamped)
    else:
        lags = [t for t in window.threads if t.loop_lag_p99_ns is not None]
        if not lags or len(lags) < len(window.threads):
            return {}
        of = {name: max((t.loop_lag_p50_ns or 0) for t in lags) for name in ("mean_ms", "p50_ms")}
        tail = max((t.loop_lag_p99_ns or 0) for t in lags)
    found = {}
    for name in TIMES:
        delay_ns = max(0, of.get(name, tail) - WAKE_UP_NS)
        value_ms = times.mean_ms if name == "mean_ms" else _percentile_ms(times, name)
        if delay_ns > 0 and value_ms:
            found[name] = Bias.of_logs(down=lost(min(1.0, delay_ns / 1e6 / value_ms)))
    return found


def _percentile_ms(times: Times, name: str) -> float | None:
    found = times.percentile(NAMED[name])
    return found.value_ms if found is not None and math.isfinite(found.value_ms) else None


def client_bound(evidence: Evidence, limits: ClientLimits) -> bool:
    """Whether the client, and not the server, bounds the throughput; of several load hosts, each of them."""
    views = [view for _, view in each_load_host(evidence)] or [evidence]
    return all(_bounds(view, limits) for view in views)


def _bounds(evidence: Evidence, limits: ClientLimits) -> bool:
    found, _ = signals(evidence, limits)
    return bool(_saturated(found, evidence, limits, frozenset({MovedFigure.THROUGHPUT})))
