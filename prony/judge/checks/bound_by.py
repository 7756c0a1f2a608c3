"""bound_by: the bottleneck, by CPU time and declared delays (users ÷ service time is no evidence: Little)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from prony.evidence.trial import Ceiling, Evidence
from prony.judge.check import Share, check
from prony.judge.checks.client import ClientLimits, client_bound, thread_shows_load
from prony.judge.checks.streams import StreamsLimits, only_at_the_start, waits
from prony.judge.effects import both
from prony.judge.finding import CAPACITY, Bias, Finding, no_window
from prony.judge.links import LinkLimits, full_link
from prony.judge.more_users import probed
from prony.judge.server_cpu import busiest_server_thread_share, server_cpu_share
from prony.judge.window import measured
from prony.numbers import number, percent

CHECK = "bound_by"
SOURCE = "the-benchmarker's saturation rule; 200 threads ÷ 0.15 s in experiment D"
SERVER_CPU, CLIENT, OFFERED_LOAD, UNKNOWN = "server-cpu", "client", "offered-load", "unknown"
MORE_USERS = "add users until the rate no longer rises, and measure capacity there"
NETWORK = "network"
FLOW_CONTROL, STREAMS = "flow-control", "streams"
SERVICE_CPU, SERVER_THREAD = "service-cpu", "server-thread"
FASTER_LINK = "use a faster link or smaller responses, or compare CPU per request below the link's limit"
FORWARDERS = {"docker-proxy", "rootlessport", "slirp4netns", "pasta", "gvproxy", "socat", "kubectl", "ssh"}
"""Programs that listen on behalf of another process: their CPU time is not the server's."""
LEAST_US_PER_REQUEST = 0.5
"""A process with less did not answer: two system calls and a parser take longer."""
LEAST_LEFT = 0.05
"""Share of the server's CPUs left by others below which the remainder is rounding."""


class BoundLimits(ClientLimits, LinkLimits, StreamsLimits):
    bound_tolerance: Share = 0.05
    """A rate this near to a declared ceiling, or to the offered rate, is bound by it."""
    bound_throttled_periods_min: Share = 0.5
    """Throttled ÷ all periods of the CPU quota from which the quota is the bottleneck."""


@dataclass(frozen=True, slots=True)
class Bound:
    name: str
    cpu_share: float | None
    text: str
    advice: str = ""


def bound(evidence: Evidence, limits: BoundLimits) -> Bound:
    """The bottleneck, tested from the link and the client to the server's CPU, ceilings and the load."""
    window = measured(evidence)
    share = server_cpu_share(evidence)
    if window is None:
        return Bound(UNKNOWN, share, "the engine reported no measured window")
    rate = window.completed / window.duration_s
    elsewhere = _answered_elsewhere(evidence, rate)
    share = None if elsewhere else share
    cpu = elsewhere or (
        "server CPU could not be read"
        if share is None
        else f"server CPU {percent(share)} of what was granted{_whose(evidence)}"
    )
    link = full_link(evidence, limits)
    if link is not None:
        # A full link is the bound under any CPU load.
        return Bound(NETWORK, share, f"link full: {link.text}; {cpu}", FASTER_LINK)
    if client_bound(evidence, limits):
        return Bound(CLIENT, share, f"load generator saturated; {cpu}", "see client")
    if share is not None and share >= limits.bound_cpu_min:
        return Bound(SERVER_CPU, share, cpu)
    thread = None if share is None else _thread(evidence, limits)
    if thread is not None:
        return Bound(SERVER_THREAD, share, f"{thread}; {cpu}")
    left = _left_by_others(evidence)
    if share is not None and left is not None and share >= limits.bound_cpu_min * left:
        text = f"{cpu}; other processes left {percent(left)} of it (see isolation)"
        return Bound(SERVER_CPU, share, text)
    service = _service(evidence, share, cpu, limits)
    if service is not None:
        return service
    quota = _quota(evidence, limits)
    if quota is not None:
        return Bound(SERVER_CPU, share, quota)
    http2 = _http2(evidence, limits)
    if http2 is not None:
        return Bound(http2[0], share, f"{http2[1]}; {cpu}", "see streams")
    ceiling = _ceiling(evidence, rate, limits)
    if ceiling is not None:
        text = f"{number(rate)}/s, at the ceiling of {number(ceiling.per_s)}/s: {ceiling.explanation}"
        return Bound(ceiling.name, share, f"{text}; {cpu}")
    load = evidence.load
    rate = _level_per_s(evidence, rate)
    if (
        load.model == "open"
        and load.offered_per_s
        and rate >= (1 - limits.bound_tolerance) * load.offered_per_s
    ):
        text = f"{number(rate)}/s, the offered rate ({number(load.offered_per_s)}/s); {cpu}"
        return Bound(
            OFFERED_LOAD,
            share,
            text,
            "raise the rate, or measure capacity in a closed loop without think time",
        )
    if share is None:
        return Bound(UNKNOWN, None, cpu + (", no declared ceiling nearby" if evidence.ceilings else ""))
    if load.model == "closed" and load.think_kind != "none":
        text = f"{number(rate)}/s, the most that {number(load.users or 0)} users with think time offer; {cpu}"
        return Bound(OFFERED_LOAD, share, text, "use more users or less think time until the server is busy")
    return Bound(
        UNKNOWN,
        share,
        f"{cpu}, no declared ceiling nearby",
        "add users; if the rate does not rise, declare what the server waits for as a ceiling "
        "(worker threads ÷ delay, a pool, a database)",
    )


def _thread(evidence: Evidence, limits: BoundLimits) -> str | None:
    window, share = evidence.server_window, busiest_server_thread_share(evidence)
    if window is None or window.busiest_thread is None or share is None or share < limits.bound_thread_min:
        return None
    thread = window.busiest_thread
    return f"its thread {thread.name} (TID {thread.tid}) was {percent(share)} busy"


def _whose(evidence: Evidence) -> str:
    server, window = evidence.server, evidence.server_window
    if server.owned or server.pid is None or window is None:
        return ""
    more = (
        "" if (window.processes or 1) == 1 else f" and {number((window.processes or 1) - 1)} more processes"
    )
    return f" to PID {server.pid} ({server.runtime}){more}"


def _answered_elsewhere(evidence: Evidence, rate: float) -> str | None:
    server, window = evidence.server, evidence.server_window
    if server.owned or window is None or window.cpu_s is None or window.wall_s <= 0 or rate <= 0:
        return None
    who = f"PID {server.pid} ({server.runtime}), which listens"
    if server.runtime in FORWARDERS:
        return f"{who}, forwards to another process, whose CPU was not read"
    each_us = window.cpu_s / window.wall_s / rate * 1e6
    if each_us < LEAST_US_PER_REQUEST:
        return (
            f"{who}, used {number(each_us)} µs of CPU per request: another process answered, its CPU unread"
        )
    return None


def _left_by_others(evidence: Evidence) -> float | None:
    """Share of the server's CPUs left by other processes; None where all or next to nothing was."""
    host, sides = evidence.host_window, evidence.partition
    if host is None or sides is None:
        return None
    steals = [cpu.steal for cpu in host.cpus if cpu.cpu in sides.server]
    steal = sum(steals) / len(steals) if steals else 0.0
    left = 1.0 - (host.others_on_server_cpus or 0.0) - steal
    return left if LEAST_LEFT <= left < 1.0 else None


def _http2(evidence: Evidence, limits: BoundLimits) -> tuple[str, str] | None:
    shares = waits(evidence)
    if shares is None or max(shares) <= limits.streams_share_max:
        return None
    waited, blocked = shares
    if blocked >= waited:
        return (
            FLOW_CONTROL,
            f"bodies waited for the server's window for {percent(blocked)} of the service time",
        )
    if only_at_the_start(evidence):
        return None
    return STREAMS, f"requests waited for a stream for {percent(waited)} of the service time"


def _level_per_s(evidence: Evidence, rate: float) -> float:
    rows = evidence.engine.rows if evidence.engine is not None else ()
    full = sorted(row.completed_per_s for row in rows if row.in_window)
    return full[len(full) // 2] if evidence.load.varies and full else rate


@check(BoundLimits, order=130)
def bound_by(evidence: Evidence, limits: BoundLimits) -> Finding:
    """The bottleneck, and the bias of a *capacity*: the rate that more users would bring."""
    limit = f"at most {percent(limits.bound_rise_max)} more with more users"
    if measured(evidence) is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    bottleneck = bound(evidence, limits)
    reason = bottleneck.text if bottleneck.name == UNKNOWN else f"{bottleneck.name}: {bottleneck.text}"
    if evidence.load.claim != "capacity":
        bias: dict[str, Bias] = {}
        provided = advice = ""
    else:
        up, probe = _room(evidence, bottleneck, limits)
        bias, reason = both(CAPACITY, up=up), reason + (f"; {probe}" if probe else "")
        wide = up > math.log1p(limits.bound_rise_max)
        provided = "more users would not raise the rate" if wide else ""
        advice = bottleneck.advice or (MORE_USERS if wide else "")
    return Finding(
        check=CHECK,
        code=bottleneck.name.replace("-", "_"),
        bias=bias,
        provided=provided,
        value=bottleneck.cpu_share,
        limit=limit,
        reason=reason,
        assumption="half as many users again show the effect of any more" if bias else "",
        advice=advice,
        source=SOURCE,
    )


def _room(evidence: Evidence, bottleneck: Bound, limits: BoundLimits) -> tuple[float, str]:
    if bottleneck.name in {NETWORK, CLIENT, OFFERED_LOAD, FLOW_CONTROL, STREAMS}:
        return math.inf, ""
    probe = probed(evidence, limits, limits.client_cpu_max)
    if probe is not None and probe.high is not None and (probe.level or probe.rising):
        return math.log1p(max(0.0, probe.high)), probe.text
    text = probe.text if probe is not None else "not probed with more users"
    if any(ceiling.name == bottleneck.name for ceiling in evidence.ceilings):
        return math.log1p(limits.bound_tolerance), ""
    if bottleneck.name == SERVER_THREAD and thread_shows_load(evidence, limits):
        used = max(bottleneck.cpu_share or 0.0, busiest_server_thread_share(evidence) or 0.0)
        return -math.log(min(1.0, used)), text
    if bottleneck.name == SERVER_CPU and bottleneck.cpu_share and (probe is None or not probe.client_busy):
        # Below the limit something other than its own CPU use holds it: a quota, a neighbour.
        used = bottleneck.cpu_share if bottleneck.cpu_share >= limits.bound_cpu_min else 1.0
        return -math.log(min(1.0, used)), text
    if bottleneck.name == SERVICE_CPU:
        return -math.log(limits.bound_cpu_min), text
    return math.inf, text


def _service(evidence: Evidence, share: float | None, cpu: str, limits: BoundLimits) -> Bound | None:
    together = share or 0.0
    services: list[str] = []
    for service in evidence.services:
        if service.cpu_s is None or not service.wall_s or not service.cpus:
            continue
        used = service.cpu_s / service.wall_s / len(service.cpus)
        if service.shares_server_cpus:
            together += used
            services.append(f"{service.name} on the same CPUs {percent(used)}")
        elif used >= limits.bound_cpu_min:
            text = f"backing service {service.name} at {percent(used)} of its CPU; {cpu}"
            return Bound(SERVICE_CPU, share, text)
    if share is not None and services and together >= limits.bound_cpu_min:
        return Bound(SERVER_CPU, share, f"{cpu} and {' and '.join(services)}")
    return None


def _quota(evidence: Evidence, limits: BoundLimits) -> str | None:
    """Throttled in most periods of its quota, a server is CPU-bound even at a low CPU share."""
    throttle = evidence.server_window.throttle if evidence.server_window is not None else None
    if throttle is None or throttle.periods <= 0:
        return None
    share = throttle.throttled_periods / throttle.periods
    return (
        f"the CPU quota throttled the server in {percent(share)} of its periods"
        if (share >= limits.bound_throttled_periods_min)
        else None
    )


def _ceiling(evidence: Evidence, rate: float, limits: BoundLimits) -> Ceiling | None:
    near = [
        ceiling
        for ceiling in evidence.ceilings
        if ceiling.per_s > 0 and abs(rate / ceiling.per_s - 1) <= limits.bound_tolerance
    ]
    return min(near, key=lambda ceiling: abs(rate / ceiling.per_s - 1), default=None)
