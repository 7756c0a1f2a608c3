"""Every check fires on its trouble and keeps quiet without it; every limit decides something; the page on the
method knows all of them. A check or a limit that is added must be added here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from prony.evidence.counts import EngineThread, Gap, Http2Counts, UrlCount
from prony.evidence.engine import Histogram
from prony.evidence.server import CgroupThrottle, ThreadUse
from prony.evidence.trial import AfterLoad, Ceiling, Evidence, Nonconformity, ServerCount, Turns
from prony.judge.check import Check
from prony.judge.checks import CHECKS
from prony.judge.checks.arrivals import arrivals
from prony.judge.checks.bound_by import bound_by
from prony.judge.checks.client import client
from prony.judge.checks.connections import connections
from prony.judge.checks.content import content
from prony.judge.checks.descriptors import DescriptorsLimits, descriptors, forecast_descriptors
from prony.judge.checks.errors import errors
from prony.judge.checks.host import host
from prony.judge.checks.hosts import hosts
from prony.judge.checks.isolation import isolation
from prony.judge.checks.little import little
from prony.judge.checks.memory import memory
from prony.judge.checks.network import network
from prony.judge.checks.ports import PortsLimits, forecast_ports
from prony.judge.checks.samples import samples
from prony.judge.checks.schedule import schedule
from prony.judge.checks.spread import spread
from prony.judge.checks.stall import stall
from prony.judge.checks.steady import steady
from prony.judge.checks.streams import streams
from prony.judge.checks.think import think
from prony.judge.checks.warm import warm
from prony.judge.finding import CAPACITY, CPU, Finding, Judgement, Kind
from prony.judge.judging import disturbed
from prony.judge.limits import CheckLimits
from prony.plan.planfile_read import read
from tests.judge import factory as f

NOT_CONFORMING, BUDGET, PROVIDED, FINE = Kind
HEALTHY, OPEN, POISSON = f.healthy(), f.open_model(), f.open_model("poisson")
HOSTS = f.on_hosts()
ROOM = f.part(
    f.window(HEALTHY, users_integral_s=f.USERS * f.WINDOW_S),
    "server_window",
    cpu_user_s=6.0,
    cpu_system_s=0.0,
)
"""Its server had 40 % of its CPU left."""
METHOD = Path(__file__).resolve().parents[2] / "docs" / "method.md"


def comes_to(finding: Finding, expected: str) -> bool:
    """A kind, or the code of what is bounded whatever the limit is."""
    return expected == (finding.kind if isinstance(expected, Kind) else finding.code)


def slight(finding: Finding) -> bool:
    """Nothing to speak of: every machine costs a rate and a mean a little."""
    sizes = [finding.of(name).size for name in ("requests_per_s", "mean_ms", *CPU, *CAPACITY)]
    return finding.conforms and not finding.provided and max(sizes) < 0.06


def failed(count: int) -> Evidence:
    return f.window(HEALTHY, failed=count, completed=80_000 - count, errors={"timeout": count})


def thinking(actual_s: float = 100.02, overshoot_ms: float = 0.5) -> Evidence:
    base = f.part(HEALTHY, "load", think_kind="constant", think_mean_ms=100.0, claim="latency")
    late = f.of_values([int(overshoot_ms * 1e6)] * 1000)
    drawn: dict[str, Any] = {"think_drawn_sum_s": 100.0, "think_count": 1000, "think_overshoot": late}
    return f.window(base, think_actual_sum_s=actual_s, **drawn)


def queued(waited_s: float) -> Evidence:
    """Over HTTP/2, where requests waited so long of 100 s in the client."""
    base = f.part(HEALTHY, "load", http_version="2", streams_per_connection=f.USERS)
    counts = Http2Counts(streams_opened=80_000, max_concurrent_streams=1, stream_wait_sum_s=waited_s)
    return f.window(base, http2=counts)


def slow_row() -> Evidence:
    assert OPEN.engine is not None
    rows = [r.model_copy(update={"sent": 7000}) if r.t_ms == 45_000 else r for r in OPEN.engine.rows]
    return f.engine(OPEN, rows=tuple(rows))


def far_apart() -> Evidence:
    """Service times of one load host are 1.5 times those of the other, in a trial that claims a latency."""
    base = f.part(HOSTS, "load", claim="latency")
    return f.host_engine(base, "load2", service_time=f.histogram(40_000, mean_ms=f.MEAN_MS * 1.5))


def late_sends(latency_ms: float = f.MEAN_MS) -> Evidence:
    times = f.histogram(mean_ms=latency_ms)
    return f.window(OPEN, send_lag=f.histogram(mean_ms=5.0), latency=times, service_time=times)


def late_in_the_tail() -> Evidence:
    """2 % of the sends are late, by half of the p99 latency."""

    def tail(usual_us: int, longest_us: int) -> Histogram:
        return f.of_values([usual_us * 1000] * 980 + [longest_us * 1000] * 20)

    return f.window(OPEN, send_lag=tail(20, 5000), latency=tail(1000, 9500), service_time=tail(1000, 4500))


def client_with(cpu_share: float = 0.4, lag_ms: float = 0.06) -> Evidence:
    thread = EngineThread(cpu=1, cpu_s=cpu_share * 10, wall_s=10.0, loop_lag_p99_ns=int(lag_ms * 1e6))
    return f.window(ROOM, threads=(thread,))


def waiting(share: float, wakeups: int = 1000) -> Evidence:
    """The client's thread was runnable and not running for this share of 10 s."""
    thread = EngineThread(cpu=1, cpu_s=4.0, wall_s=10.0, run_delay_s=share * 10, timeslices=wakeups)
    return f.window(ROOM, threads=(thread,))


def turned_around(share: float) -> Evidence:
    return f.window(ROOM, clipped_turnaround_s=share * f.USERS * f.WINDOW_S)


def frozen(requests: int, ms: float = 500.0) -> Evidence:
    """This many of 80,000 requests took so long, while the others went on."""
    usual = [int(f.MEAN_MS * 1e6)] * (80_000 - requests)
    return f.window(HEALTHY, service_time=f.of_values(usual + [int(ms * 1e6)] * requests))


def idle(share: float = 0.3, **more: Any) -> Evidence:
    return f.part(HEALTHY, "server_window", cpu_user_s=share * 10, cpu_system_s=0.0, **more)


def one_thread(share: float) -> Evidence:
    thread = ThreadUse(pid=200, tid=200, name="node", cpu_s=share * 10)
    return f.part(HEALTHY, "server_window", granted_cpus=4, busiest_thread=thread)


def throttled(throttled_s: float, periods: int = 0) -> CgroupThrottle:
    return CgroupThrottle(periods=100, throttled_periods=periods, throttled_s=throttled_s)


def closing(per_s: float, reuse: bool = False) -> Evidence:
    base = f.part(HEALTHY, "load", keep_alive=False, expected_requests_per_s=per_s, duration_s=60.0)
    return f.part(base, "limits", time_wait_reuse=reuse)


def few_descriptors(soft: int, driver: str = "epoll", server: int = 20_000) -> Evidence:
    base = f.part(f.part(HEALTHY, "limits", descriptors_soft=soft), "load", driver=driver)
    return f.part(base, "server", descriptor_limit_soft=server)


def opened(count: int) -> Evidence:
    return f.totals(HEALTHY, connections_opened=count, connections_closed_by_server=count - f.USERS)


def stepped(by: float) -> Evidence:
    levels = [*f.noisy(f.RATE, 45, 0.005), *f.noisy(f.RATE * (1 + by), 7, 0.005, seed=2)]
    return f.engine(HEALTHY, rows=f.rows(levels))


def compiling(seconds: float, classes: int = 0) -> Evidence:
    ended = f.snapshot(50, 20.0 + seconds, classes=9000 + classes)
    return f.part(HEALTHY, "server_window", jvm_close=ended)


def starved(seconds: float) -> Evidence:
    """Compilations waited so long for a CPU."""
    opened = f.snapshot(40, 20.0).model_copy(update={"compilers_cpu_s": 7.0})
    closed = f.snapshot(50, 20.0 + seconds).model_copy(update={"compilers_cpu_s": 7.0})
    return f.part(HEALTHY, "server_window", jvm_open=opened, jvm_close=closed)


def answered(count: int) -> Evidence:
    return f.window(HEALTHY, completed=count, service_time=f.histogram(count))


def wrong(count: int) -> Evidence:
    declared = f.part(HEALTHY, "load", content_declared=True)
    return f.window(declared, failed=count, errors={"expect_body": count})


def refused(count: int, window: Evidence = HEALTHY, **more: int) -> Evidence:
    """So many connection attempts met a full queue, of 40,000; `more` are other counters of TCP."""
    assert HEALTHY.host_window is not None
    assert HEALTHY.host_window.tcp is not None
    counted = HEALTHY.host_window.tcp.model_copy(update={"listen_overflows": count, **more})
    connects = f.of_values([100_000] * 100 + [1_010_000_000])
    connecting = f.window(window, connect_attempts=40_000, connect_time=connects)
    return f.part(connecting, "host_window", tcp=counted)


def growing(mib_per_s: float) -> Evidence:
    """A native server that takes so much more memory every second, from 100 MiB on."""
    rows = f.memory_rows([100 + mib_per_s * second for second in range(int(f.WINDOW_S))])
    native = f.part(f.part(HEALTHY, "server", runtime="native"), "server_window", jvm_open=None)
    native = f.part(native, "server_window", jvm_close=None)
    return native.model_copy(update={"host_rows": rows})


def uncollected(mib: int) -> Evidence:
    """A JVM with a heap of 1 GiB that grew by so much, and was not collected."""
    opened = f.snapshot(40, 20.0)
    closed = f.snapshot(50, 20.03).model_copy(
        update={"heap_used_bytes": opened.heap_used_bytes + mib * f.MIB, "gc_count": opened.gc_count}
    )
    return f.part(HEALTHY, "server_window", jvm_open=opened, jvm_close=closed)


def faulting(major_faults: int) -> Evidence:
    return f.part(HEALTHY, "server_window", major_faults=major_faults)


def steal(share: float) -> Evidence:
    assert HEALTHY.host_window is not None
    cpus = tuple(cpu.model_copy(update={"steal": share}) for cpu in HEALTHY.host_window.cpus)
    return f.part(HEALTHY, "host_window", cpus=cpus)


GAP = f.window(HEALTHY, gaps=(Gap(start_ms=45_000.0, duration_ms=100.0, in_flight=10),))
COUNTED = f.totals(HEALTHY, sent=1000, failed=0, abandoned=0)
SLOW_CLOCK = f.part(HEALTHY, "host_window", mhz_close=2300)
CEILING = Ceiling(name="workers", per_s=f.RATE * 1.08, explanation="so many workers ÷ their delay")
NEAR_CEILING = idle().model_copy(update={"ceilings": (CEILING,)})
UNEVEN = f.window(
    POISSON,
    arrival_gaps_ks=0.058,
    arrival_gaps_ks_from=((0.05, 0.018), (0.2, 0.018), (0.5, 0.018)),
    threads=f.threads(0.0),
)
"""Of which 0.04 is what 8,000 sends a second on one thread cannot avoid: not among gaps longer than that."""
assert HEALTHY.engine is not None
INJECTED = f.engine(
    HEALTHY, ready=HEALTHY.engine.ready.model_copy(update={"injected_faults": ("late_timers",)})
)
EMULATED = f.engine(HEALTHY, ready=HEALTHY.engine.ready.model_copy(update={"emulated": "one on another"}))
assert HEALTHY.conformance is not None
LIES = HEALTHY.conformance.model_copy(
    update={"failed": (Nonconformity(check="answers", found="x", expected="y"),)}
)


def in_turns(**changes: Any) -> Evidence:
    """Ten turns with another server that rested."""
    known: dict[str, Any] = {
        "others": ("other",), "turns": 10, "turn_s": 1.0, "left_out_s": 0.2, "left_out_per_s": float(f.RATE),
        "others_cpu_s": 0.0, "resting_cpu_s": 0.0,
    }  # fmt: skip
    return HEALTHY.model_copy(update={"turns": Turns(**known | changes)})


def paths(distinct: int | None) -> Evidence:
    """Of a feeder with 1,000 rows."""
    counted = UrlCount(scenario="main", step="item", rows=1000, distinct=distinct)
    return f.window(HEALTHY, urls=(counted,))


FIRES: dict[str, Evidence] = {
    "injected_faults": INJECTED,
    "emulation": EMULATED,
    "errors": failed(900),
    "identity": f.part(HEALTHY, "server", owns_port=False),
    "counts": COUNTED.model_copy(update={"server_count": ServerCount(requests=1001)}),
    "isolation": steal(0.2),
    "turns": in_turns(others_cpu_s=0.4),
    "deferred": HEALTHY.model_copy(update={"after_load": AfterLoad(wall_s=1.0, cpu_s=0.96, idle=True)}),
    "host": SLOW_CLOCK,
    "hosts": f.host(HOSTS, "load2", lost="no sign of life for 5 s"),
    "network": refused(900),
    "ports": f.totals(HEALTHY, eaddrnotavail=3),
    "descriptors": f.totals(HEALTHY, emfile=3),
    "client": client_with(0.95, lag_ms=5),
    "little": f.window(HEALTHY, clipped_cycle_s=90.0),
    "think": thinking(104.0),
    "schedule": slow_row(),
    "arrivals": UNEVEN,
    "bound_by": idle(),
    "connections": opened(40_000),
    "streams": queued(50.0),
    "steady": stepped(0.2),
    "memory": growing(40.0),
    "spread": f.part(HEALTHY, "server_window", connections_by_process=(20, 4)),
    "warm": compiling(2.0),
    "samples": f.window(HEALTHY, complete=False),
    "content": wrong(1600),
    "urls": paths(10),
    "conformance": HEALTHY.model_copy(update={"conformance": LIES}),
    "stall": GAP,
}
SAYS_NOTHING = {"injected_faults", "emulation"}
"""Of evidence that gives no reason to speak; the others say that all is well."""
QUIET: dict[str, Evidence] = dict.fromkeys(FIRES, HEALTHY) | {
    "turns": in_turns(),
    "deferred": HEALTHY.model_copy(update={"after_load": AfterLoad(wall_s=0.25, cpu_s=0.001, idle=True)}),
    "urls": paths(1000),
    "streams": queued(0.0),
    "hosts": HOSTS,
    "counts": COUNTED.model_copy(update={"server_count": ServerCount(requests=1000)}),
    "spread": f.part(HEALTHY, "server_window", connections_by_process=(13, 11)),
    "think": thinking(),
    "schedule": OPEN,
    "arrivals": POISSON,
}


@pytest.mark.parametrize("check", CHECKS, ids=[check.name for check in CHECKS])
def test_it_fires_on_its_trouble_and_keeps_quiet_without_it(
    check: Check[Finding | None],
) -> None:
    name = check.name
    assert name in FIRES, f"no evidence on which {name} fires: FIRES of this file"
    fired, quiet = check(FIRES[name], CheckLimits()), check(QUIET[name], CheckLimits())
    assert fired is not None
    if not fired.plateau:  # residual drift is no bias
        assert fired.kind is not FINE
    assert quiet is None or fired.code != quiet.code or not slight(fired)
    assert fired.advice
    if name in SAYS_NOTHING:
        assert quiet is None
    else:
        assert quiet is not None
        assert quiet.kind is FINE or slight(quiet)


def test_no_case_is_without_its_check() -> None:
    assert set(FIRES) <= {check.name for check in CHECKS}


def test_every_check_has_a_place_of_its_own_in_the_output() -> None:
    assert len({check.order for check in CHECKS}) == len(CHECKS), [(c.order, c.name) for c in CHECKS]
    assert [CHECKS[0].name, CHECKS[-1].name] == ["injected_faults", "stall"]


def ports_before(evidence: Evidence, limits: CheckLimits) -> Finding:
    return forecast_ports(evidence.load, evidence.limits, limits.of(PortsLimits))


def descriptors_before(evidence: Evidence, limits: CheckLimits) -> Finding:
    return forecast_descriptors(evidence.load, evidence.limits, evidence.server, limits.of(DescriptorsLimits))


def repeated(evidence: Evidence, limits: CheckLimits) -> Finding:
    """What isolation finds, under another code where the trial is run again."""
    found = isolation(evidence, limits)
    told = Judgement(conforms=True, findings=(found,), limits=limits.model_dump(exclude_defaults=True))
    return found.model_copy(update={"code": "again"}) if disturbed(told, None) else found


def creeping() -> Evidence:
    """A rate that rises by a thousandth of itself every second, to no end that could be seen."""
    levels = [level * (1 + second / 1000) for second, level in enumerate(f.noisy(f.RATE, 52, 0.002))]
    return f.engine(HEALTHY, rows=f.rows(levels))


def rests_on(evidence: Evidence, limits: CheckLimits) -> Finding:
    """What bound_by finds, by whether the capacity rests on a condition."""
    found = bound_by(evidence, limits)
    return found.model_copy(update={"code": "bound_by" if found.provided else "nothing"})


def to_come(evidence: Evidence, limits: CheckLimits) -> Finding:
    """What steady finds, by whether the rate may move by more than 5 %."""
    found = steady(evidence, limits)
    assert found is not None
    return found.model_copy(
        update={"code": "far" if found.plateau["requests_per_s"].bias.size > 0.05 else "near"}
    )


def asked_for(evidence: Evidence, limits: CheckLimits) -> Finding:
    """... and by whether it advises a longer window."""
    found = steady(evidence, limits)
    assert found is not None
    return found.model_copy(update={"code": "longer" if found.advice else "enough"})


LONG_LEAK = f.window(growing(1.5), duration_s=61.0)
"""15 % in a window that is said to be longer than a minute."""


class Decides(NamedTuple):
    """A limit decides about this evidence: what comes of it by default, another value, and what then."""

    check: Callable[[Evidence, CheckLimits], Finding | None]
    evidence: Evidence
    usual: str
    value: float
    then: str


LIMITS: dict[str, Decides] = {
    "errors_share_max": Decides(errors, failed(900), NOT_CONFORMING, 0.05, BUDGET),
    "little_deviation": Decides(little, f.window(HEALTHY, clipped_cycle_s=97.0), NOT_CONFORMING, 0.05, FINE),
    "think_deviation": Decides(think, thinking(104.0), NOT_CONFORMING, 0.1, BUDGET),
    "think_overshoot_share": Decides(think, thinking(overshoot_ms=5), PROVIDED, 0.1, FINE),
    "think_overshoot_floor_ms": Decides(think, thinking(overshoot_ms=5), PROVIDED, 10, FINE),
    "schedule_achieved_min": Decides(schedule, slow_row(), NOT_CONFORMING, 0.8, FINE),
    "schedule_lag_floor_ms": Decides(schedule, late_sends(), BUDGET, 50, FINE),
    "schedule_lag_share": Decides(schedule, late_sends(100.0), BUDGET, 0.5, FINE),
    "schedule_late_share_max": Decides(schedule, late_in_the_tail(), NOT_CONFORMING, 0.6, BUDGET),
    "arrivals_alpha": Decides(arrivals, UNEVEN, PROVIDED, 0.001, FINE),
    "arrivals_resolution_us": Decides(arrivals, UNEVEN, PROVIDED, 20, FINE),
    "hosts_late_max": Decides(hosts, f.host(HOSTS, "load1", opened_late_s=0.2), NOT_CONFORMING, 0.5, BUDGET),
    "hosts_row_late_max_s": Decides(
        hosts, f.host(HOSTS, "load1", row_late_max_s=4.0), NOT_CONFORMING, 9, FINE
    ),
    "hosts_differ_max": Decides(hosts, far_apart(), PROVIDED, 0.9, FINE),
    "hosts_errors_differ_max": Decides(
        hosts, f.host_engine(HOSTS, "load2", failed=2000, completed=38_000), PROVIDED, 0.1, FINE
    ),
    "ports_warn_share": Decides(ports_before, closing(400), PROVIDED, 0.9, FINE),
    "ports_refuse_share": Decides(ports_before, closing(480), NOT_CONFORMING, 1.1, PROVIDED),
    "ports_hold_s": Decides(ports_before, closing(480), NOT_CONFORMING, 30, FINE),
    "ports_hold_reused_s": Decides(ports_before, closing(30_000, reuse=True), NOT_CONFORMING, 0.5, FINE),
    "descriptors_client_reserve": Decides(descriptors_before, few_descriptors(70), NOT_CONFORMING, 10, FINE),
    "descriptors_ring": Decides(descriptors_before, few_descriptors(66, "io_uring"), NOT_CONFORMING, 1, FINE),
    "descriptors_ring_connections": Decides(
        descriptors_before, few_descriptors(100, "io_uring"), FINE, 1, NOT_CONFORMING
    ),
    "descriptors_server_reserve": Decides(
        descriptors_before, few_descriptors(20_000, server=200), NOT_CONFORMING, 100, FINE
    ),
    "descriptors_used_max": Decides(
        descriptors, f.part(HEALTHY, "server_window", descriptors_end=18_500), PROVIDED, 0.95, FINE
    ),
    "connections_ratio_max": Decides(connections, opened(40_000), NOT_CONFORMING, 10_000, FINE),
    "connections_share_max": Decides(connections, opened(40_000), NOT_CONFORMING, 0.2, FINE),
    "streams_share_max": Decides(streams, queued(50.0), NOT_CONFORMING, 0.9, BUDGET),
    "steady_change": Decides(steady, stepped(0.05), "stepped", 0.1, "level"),
    "steady_penalty": Decides(steady, stepped(0.05), "stepped", 1e5, "level"),
    "steady_horizon_s": Decides(to_come, creeping(), "far", 1.0, "near"),
    "steady_remaining": Decides(asked_for, HEALTHY, "enough", 0.001, "longer"),
    "steady_min_rows": Decides(steady, stepped(0.05), "stepped", 20, "level"),
    "content_share_max": Decides(content, wrong(1600), NOT_CONFORMING, 0.05, BUDGET),
    "client_cpu_max": Decides(client, client_with(0.9), "busy", 0.95, "overhead"),
    "client_lag_max_ms": Decides(client, client_with(lag_ms=2), "busy", 5, "overhead"),
    "client_ceiling_max": Decides(
        client, f.part(ROOM, "calibration", ceiling_per_s=9000), "busy", 0.95, "overhead"
    ),
    "client_gain_max": Decides(client, turned_around(0.08), "busy", 0.2, "overhead"),
    "client_run_delay_max": Decides(client, waiting(0.05), "kept_from_cpu", 0.1, "overhead"),
    "client_run_delay_alone": Decides(bound_by, waiting(0.5), "client", 0.9, "unknown"),
    "bound_cpu_min": Decides(bound_by, f.probed(idle(0.6), 1.0), "unknown", 0.5, "server_cpu"),
    "bound_rise_max": Decides(rests_on, f.probed(HEALTHY, 1.2), "bound_by", 0.5, "nothing"),
    "bound_thread_min": Decides(bound_by, one_thread(0.85), "unknown", 0.8, "server_thread"),
    "bound_tolerance": Decides(bound_by, NEAR_CEILING, "unknown", 0.1, "workers"),
    "bound_throttled_periods_min": Decides(
        bound_by, idle(throttle=throttled(1.0, periods=40)), "unknown", 0.3, "server_cpu"
    ),
    "network_link_max": Decides(
        network, f.host(HOSTS, "server", link={"speed_bits_per_s": 96e6}), "network", 0.99, "ok"
    ),
    "network_softirq_max": Decides(
        network, f.host(HOSTS, "server", network={"softirq_share": 0.95}), "soft_interrupts", 1.0, "ok"
    ),
    "spread_factor": Decides(spread, FIRES["spread"], "uneven", 2.0, "ok"),
    "memory_growth": Decides(memory, growing(5.0), "growing", 0.6, "ok"),
    "memory_growth_long": Decides(memory, LONG_LEAK, "growing", 0.5, "ok"),
    "memory_long_s": Decides(memory, LONG_LEAK, "growing", 300.0, "ok"),
    "memory_uncollected": Decides(memory, uncollected(200), "not_collected", 0.3, "ok"),
    "warm_share": Decides(warm, compiling(0.2), "compiling", 0.05, "ok"),
    "warm_class_cost_ms": Decides(warm, compiling(0.0, classes=1000), "compiling", 0, "ok"),
    "warm_waiting_share": Decides(warm, starved(5.0), "starved", 0.9, "ok"),
    "isolation_repeat_min": Decides(repeated, steal(0.07), "again", 0.1, "steal"),
    "host_frequency_drop": Decides(host, SLOW_CLOCK, "slower_clock", 0.2, "ok"),
    "host_major_faults_per_s": Decides(host, faulting(20), PROVIDED, 3, FINE),
    "samples_confidence": Decides(samples, answered(1200), "few", 0.9, "ok"),
    "samples_required_percentile": Decides(samples, answered(1200), "few", 90, "ok"),
    "stall_p99_factor": Decides(stall, GAP, "stall", 100, "ok"),
    "stall_floor_ms": Decides(stall, GAP, "stall", 200, "ok"),
    "stall_user_time": Decides(stall, frozen(10), "part_stalled", 0.2, "ok"),
}


def test_no_limit_is_without_its_case() -> None:
    assert set(LIMITS) == set(CheckLimits.model_fields), "LIMITS of this file, by the limit's name"


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_in_a_plan_decides(name: str, tmp_path: Path) -> None:
    """From the plan file's key to the finding, which also says the limit that was in force."""
    case = LIMITS[name]
    plan = tmp_path / "plan.yaml"
    plan.write_text(f"title: x\nservers: reference\nworkloads: hello\nlimits: {{{name}: {case.value}}}\n")
    (cell,) = read(plan, limits=CheckLimits, seed=1).cells
    usual, then = (
        case.check(case.evidence, CheckLimits.model_validate(given)) for given in ({}, dict(cell.limits))
    )
    assert usual is not None
    assert then is not None
    assert comes_to(usual, case.usual), usual
    assert comes_to(then, case.then), then


def test_the_page_has_a_row_of_every_check_that_says_all() -> None:
    """And none of a check that is gone; no cell is left empty."""
    part = (
        METHOD.read_text(encoding="utf-8").partition("\n## What conforms\n")[2].partition("\n## Limits\n")[0]
    )
    rows = re.findall(r"^\| `(\w+)` \|(.+)\|$", part, flags=re.MULTILINE)
    assert {name for name, _ in rows} == {check.name for check in CHECKS}, "What conforms of docs/method.md"
    assert len(rows) == len(CHECKS)
    for name, cells in rows:
        told = [cell.strip() for cell in cells.split("|")]
        assert len(told) in {2, 3}, name
        assert all(told), name


def test_the_page_names_every_limit_with_its_default() -> None:
    page = METHOD.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, flags=re.MULTILINE))
    for name, field in CheckLimits.model_fields.items():
        assert name in rows, f"docs/method.md does not list {name}"
        assert float(rows[name].replace(",", "").strip()) == pytest.approx(float(field.default)), name
