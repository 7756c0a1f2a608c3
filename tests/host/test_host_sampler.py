"""The sampler: on this host, and the window's arithmetic on made-up snapshots."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from prony.evidence.host import HostRow, HostWindow
from prony.evidence.server import ProcessSample
from prony.host import sampler as sampler_module
from prony.host.others import Census
from prony.host.proc import TICKS_PER_S, CpuTicks, cpu_ticks, now_s, process_stat
from prony.host.sampler import HostSampler
from prony.host.window import Snapshot, WindowEdge, host_window, over_turns
from tests.host.conftest import Grow


def ticks(busy_s: float, idle_s: float, steal_s: float = 0, irq_s: float = 0) -> CpuTicks:
    user, idle, steal, irq = (round(s * TICKS_PER_S) for s in (busy_s - irq_s, idle_s, steal_s, irq_s))
    return CpuTicks(user=user, system=0, idle=idle, irq=irq, steal=steal)


def snapshot(t_s: float, **values: object) -> Snapshot:
    base = Snapshot(
        t_monotonic_s=t_s,
        cpus={0: ticks(0, t_s), 1: ticks(0, t_s)},
        own_server_s=0,
        own_client_s=0,
        swapped_in_bytes=0,
        kernel_lines=0,
        mhz=None,
        sockets={"time_wait": 1},
    )
    return replace(base, **values)  # type: ignore[arg-type]


def mark(t_s: float, **values: object) -> WindowEdge:
    base = WindowEdge(t_s, {"a": "1"}, {"established": 3}, None, Census(t_s, {}, True))
    return replace(base, **values)  # type: ignore[arg-type]


def over(
    snapshots: list[Snapshot],
    marks: list[WindowEdge],
    open_s: float,
    close_s: float,
    irq_accounted: bool | None = False,
) -> HostWindow:
    return host_window(
        snapshots,
        marks,
        (),
        open_s=open_s,
        close_s=close_s,
        server_cpus=frozenset({0}),
        client_cpus=frozenset({1}),
        irq_accounted=irq_accounted,
    )


def test_shares_are_of_the_window_alone_also_between_samples() -> None:
    # CPU 0 idles until 10 s and is busy from then on; the window starts in the middle of a second.
    snapshots = [
        snapshot(t, cpus={0: ticks(max(0, t - 10), min(t, 10)), 1: ticks(0, t * 0.75, steal_s=t * 0.25)})
        for t in range(0, 21)
    ]
    found = over(snapshots, [], 14.5, 18.25)
    assert found.wall_s == 3.75
    assert [(use.cpu, use.busy) for use in found.cpus] == [(0, 1.0), (1, 0.0)]
    assert found.cpus[1].steal == pytest.approx(0.25)
    half = over(snapshots, [], 9.0, 11.0)
    assert half.cpus[0].busy == pytest.approx(0.5)


def test_interrupts_are_part_of_busy() -> None:
    snapshots = [snapshot(0), snapshot(10, cpus={0: ticks(5, 5, irq_s=2), 1: ticks(0, 10)})]
    use = over(snapshots, [], 0, 10).cpus[0]
    assert (use.busy, use.irq) == pytest.approx((0.5, 0.2))


def test_others_are_what_is_busy_and_not_own() -> None:
    last = snapshot(10, cpus={0: ticks(8, 2), 1: ticks(3, 7)}, own_server_s=7.0, own_client_s=3.0)
    hidden = [mark(0, census=Census(0, {}, False)), mark(10, census=Census(10, {}, False))]
    found = over([snapshot(0), last], hidden, 0, 10)
    assert found.others_on_server_cpus == pytest.approx(0.1)
    assert found.others_on_client_cpus == pytest.approx(0.0)
    # All processes can be seen and none did anything: then it was interrupts, and nobody is blamed.
    assert over([snapshot(0), last], [mark(0), mark(10)], 0, 10).others_on_server_cpus == 0


def test_what_was_not_sampled_is_unknown() -> None:
    snapshots = [snapshot(0), snapshot(1)]
    found = over(snapshots, [], 5, 6)
    assert found.cpus == ()
    assert found.others_on_server_cpus is None
    assert found.swap_in_bytes is None
    assert found.kernel_log_lines is None
    assert found.sysctls_changed is None
    assert found.sockets_open == {}
    blind = [snapshot(t, cpus={}, swapped_in_bytes=None, kernel_lines=None, sockets=None) for t in (0, 10)]
    found = over(blind, [mark(0), mark(10)], 1, 9)
    assert (found.cpus, found.others_on_client_cpus, found.swap_in_bytes) == ((), None, None)
    assert found.kernel_log_lines is None


def test_counters_and_settings_over_the_window() -> None:
    snapshots = [
        snapshot(t, swapped_in_bytes=1000 * t, kernel_lines=int(t >= 3) + int(t >= 8), mhz=3000.0 - t)
        for t in range(0, 11)
    ]
    marks = [
        mark(0.5, sysctls={"a": "0"}),
        mark(1.9),
        mark(6.1, sysctls={"a": "2"}, sockets={"established": 9}),
    ]
    found = over(snapshots, marks, 2, 6)
    assert found.swap_in_bytes == 4000
    assert found.kernel_log_lines == 1
    assert found.sysctls_changed == ("a: 1 -> 2",)
    assert found.sockets_open == {"established": 3}
    assert found.sockets_close == {"established": 9}
    assert (found.mhz_open, found.mhz_close) == (2998.0, 2994.0)


def test_a_mark_from_long_ago_does_not_describe_the_border() -> None:
    snapshots = [snapshot(t) for t in range(0, 61)]
    found = over(snapshots, [mark(0), mark(60)], 30, 40)
    assert found.sockets_open == {"time_wait": 1}
    assert found.sockets_close == {"time_wait": 1}
    assert found.sysctls_changed == ()  # nothing changed over an even longer time


def server_reading() -> ProcessSample:
    mine = process_stat(os.getpid())
    assert mine is not None
    return ProcessSample(
        t_monotonic_s=now_s(),
        cpu_user_s=mine.own_ticks / TICKS_PER_S,
        cpu_system_s=0,
        rss_bytes=mine.rss_bytes,
        threads=mine.threads,
    )


def test_a_real_second_of_this_machine() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    with HostSampler(cpus[:1], cpus[-1:], lambda: set(), interval_s=0.1) as sampler:
        sampler.watch("server", server_reading)
        opened = sampler.mark()
        busy_until = time.thread_time() + 0.5
        while time.thread_time() < busy_until:
            pass
        closed = sampler.mark()
        found = sampler.window(opened, closed)
        assert os.sched_getaffinity(0) == before, "only the sampler's own thread is pinned"
    assert sampler.pinning.done
    assert found.wall_s == pytest.approx(closed - opened)
    assert [use.cpu for use in found.cpus] == sorted({cpus[0], cpus[-1]})
    for use in found.cpus:
        assert 0 <= use.busy <= 1
        assert 0 <= use.irq <= use.busy
    assert found.sysctls_changed is not None
    assert found.sockets_open
    assert found.sockets_close
    values = sampler.samples("server")
    assert len(values) >= 3
    assert values[-1].cpu_s > values[0].cpu_s
    assert all(a.t_monotonic_s < b.t_monotonic_s for a, b in itertools.pairwise(values))
    rows = sampler.series(opened)
    assert rows
    assert all(isinstance(row, HostRow) and row.t_ms > 0 for row in rows)
    assert [row.t_ms for row in rows] == sorted(row.t_ms for row in rows)
    assert rows[-1].server_rss_bytes in {value.rss_bytes for value in values}
    assert 0 < sampler.cost_s < 5
    assert sampler.samples("nobody") == ()


BURN = "import time\nend = time.process_time() + 0.8\nwhile time.process_time() < end: pass\ninput()"


def test_a_disturbance_on_the_servers_cpu_is_seen_and_own_work_is_not() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU only: the sides cannot be told apart")
    own: set[int] = set()
    with HostSampler(cpus[:1], cpus[-1:], lambda: own, interval_s=0.2) as sampler:
        for is_own in (False, True):
            child = subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE)
            os.sched_setaffinity(child.pid, {cpus[0]})
            own = {child.pid} if is_own else set()
            opened = sampler.mark()
            before = cpu_ticks()
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                stat = process_stat(child.pid)
                assert stat is not None
                if stat.own_ticks >= 0.7 * TICKS_PER_S:
                    break
                time.sleep(0.05)
            closed = sampler.mark()
            after = cpu_ticks()
            assert before is not None
            assert after is not None
            found = sampler.window(opened, closed)
            child.communicate(b"\n")
            used = found.others_on_server_cpus
            assert used is not None
            if not is_own:
                # At least what the child burned, less a sampling tick or two.
                assert used * found.wall_s >= 0.5
                assert found.busiest_other is not None
            else:
                busy_s = (after[cpus[0]].busy - before[cpus[0]].busy) / TICKS_PER_S
                assert used * found.wall_s <= busy_s - 0.3


def test_callbacks_that_fail_leave_a_gap_and_not_a_dead_thread() -> None:
    calls = threading.Event()

    def fails() -> ProcessSample | None:
        calls.set()
        raise ProcessLookupError("gone")

    def pids() -> set[int]:
        raise RuntimeError("the server is just ending")

    with HostSampler((0,), (0,), pids, interval_s=0.05) as sampler:
        sampler.watch("server", fails)
        assert calls.wait(60)
        first = sampler.sample()
        deadline = time.monotonic() + 10
        while not sampler.series(first) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert sampler.samples("server") == ()
    rows = sampler.series(first)
    assert rows
    assert rows[-1].server_rss_bytes is None


def test_a_window_without_marks_still_says_what_it_can() -> None:
    with HostSampler((0,), (0,), lambda: set(), interval_s=0.05) as sampler:
        opened = sampler.sample()
        time.sleep(0.3)
        closed = now_s()
        found = sampler.window(opened, closed)
    assert found.cpus
    assert found.sysctls_changed == ()
    assert found.sockets_open


def test_ctrl_c_leaves_no_lock_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the `__enter__` of a condition, which is Python, leaves its lock taken for good: an
    event's `set` is such a place, and every trial ends by stopping its sampler.
    """

    def interrupted(condition: threading.Condition) -> bool:
        condition.acquire()
        raise KeyboardInterrupt

    sampler = HostSampler((0,), (0,), lambda: set(), interval_s=60).start()
    monkeypatch.setattr(threading.Condition, "__enter__", interrupted)
    sampler.stop()
    monkeypatch.undo()
    assert not [one for one in threading.enumerate() if one.name == "prony-sampler"]


def test_stopping_twice_and_reading_afterwards_is_harmless() -> None:
    sampler = HostSampler((0,), (0,), lambda: set(), interval_s=60)
    sampler.start()
    assert sampler.sample() > 0
    sampler.stop()
    sampler.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "prony-sampler"]
    assert sampler.samples("server") == ()


def test_memory_stays_bounded_and_marks_are_kept(monkeypatch: pytest.MonkeyPatch, tree: Grow) -> None:
    monkeypatch.setattr(sampler_module, "KEPT_SNAPSHOTS", 20)
    sampler = HostSampler((0,), (0,), lambda: set(), root=tree({}))
    marked = sampler.mark()
    for _ in range(500):
        sampler.sample()
    kept = sampler._snapshots
    assert len(kept) <= 20
    assert kept[0].t_monotonic_s == marked
    assert [s.t_monotonic_s for s in kept] == sorted(s.t_monotonic_s for s in kept)
    sampler.stop()


def test_a_blind_machine_gives_nothing_but_none(tree: Grow) -> None:
    with HostSampler((0,), (1,), lambda: {1}, interval_s=60, root=tree({})) as sampler:
        opened = sampler.mark()
        found = sampler.window(opened, sampler.mark())
    assert found.cpus == ()
    assert found.others_on_server_cpus is None
    assert found.swap_in_bytes is None
    assert found.kernel_log_lines is None
    assert found.mhz_open is None
    assert found.sockets_open == {}


def test_turns_add_up_without_what_lay_between_them() -> None:
    # CPU 0 is busy within the turns (0 to 2 s and 6 to 8 s) for 1 s each, and all the time between them.
    at = {0: (0, 0), 2: (1, 1), 6: (5, 1), 8: (6, 2)}
    snapshots = [
        snapshot(t, cpus={0: ticks(busy, idle), 1: ticks(0, t)}, packets={0: 100 * t, 1: 0})
        for t, (busy, idle) in at.items()
    ]
    whole = over(snapshots, [], 0, 8)
    parts = [
        (over(snapshots, [], a, b), snapshots[i], snapshots[i + 1]) for a, b, i in ((0, 2, 0), (6, 8, 2))
    ]
    found = over_turns(whole, parts)
    assert found.wall_s == 4
    assert found.cpus[0].busy == pytest.approx(0.5)
    assert found.cpus[0].packets == 400
    assert found.tcp is None


def test_a_row_ends_at_the_edge_of_a_turn() -> None:
    with HostSampler({0}, {0}, set, interval_s=60) as sampler:
        time.sleep(0.2)
        opened = sampler.edge()
        time.sleep(0.2)
        closed = sampler.edge()
        window = sampler.turns([(opened, closed)])
    assert sampler.series() == ()  # both were too short for a row, and none spans the edge
    assert window.wall_s == closed - opened
