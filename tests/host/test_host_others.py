"""Other processes' CPU: the bookkeeping on made-up processes, and real busy ones on this host."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from prony.host.kmsg import KernelLog
from prony.host.others import (
    Census,
    OthersUse,
    OwnUse,
    census,
    irq_time_accounted,
    others_between,
    share_of_others,
)
from prony.host.proc import TICKS_PER_S, ProcessStat, process_stat
from tests.host.conftest import Grow


def process(
    pid: int, own_s: float, *, reaped_s: float = 0, name: str = "p", started: int = 1, kernel: bool = False
) -> ProcessStat:
    return ProcessStat(
        pid=pid,
        parent=1,
        name=name,
        kernel_thread=kernel,
        own_ticks=round(own_s * TICKS_PER_S),
        reaped_ticks=round(reaped_s * TICKS_PER_S),
        threads=1,
        started_ticks=started,
        last_cpu=0,
        rss_bytes=0,
    )


def people(t_s: float, *processes: ProcessStat, complete: bool | None = True) -> Census:
    return Census(t_s, {one.pid: one for one in processes}, complete)


def test_only_others_count_and_the_busiest_is_named() -> None:
    before = people(0, process(1, 5), process(2, 1, name="cron"), process(9, 0, name="server"))
    after = people(10, process(1, 5.5), process(2, 4, name="cron"), process(9, 9, name="server"))
    use = others_between(before, after, {(9, 1)})
    assert use.cpu_s == pytest.approx(3.5)
    assert use.busiest == "cron (pid 2), 30.0% of one CPU"


def test_children_that_came_and_went_are_found_in_their_parent() -> None:
    # make (pid 3) ran compilers for 6 s; one of them (pid 4) had used 2 s before the first look.
    before = people(0, process(3, 1, name="make"), process(4, 2, name="cc"))
    after = people(10, process(3, 1, reaped_s=8, name="make"))
    use = others_between(before, after, set())
    assert use.cpu_s == pytest.approx(6)
    assert use.busiest is not None
    assert use.busiest.startswith("make")


def test_the_busiest_is_not_blamed_for_what_its_children_used_before() -> None:
    """A shell that waits for a finished build gets all of its time at once: 60 s of CPU in a 10 s window."""
    child = replace(process(4, 55, name="make"), parent=3)
    grandchild = replace(process(5, 3, name="cc"), parent=4)
    before = people(0, process(3, 1, name="bash"), child, grandchild)
    after = people(10, process(3, 1, reaped_s=60, name="bash"))
    use = others_between(before, after, set())
    assert use.cpu_s == pytest.approx(2)
    assert use.busiest == "bash (pid 3), 20.0% of one CPU"


def test_a_process_that_ended_unseen_takes_nothing_off_the_living() -> None:
    before = people(0, process(3, 1), process(4, 50))
    after = people(10, process(3, 3))
    assert others_between(before, after, set()).cpu_s == pytest.approx(2)


def test_a_reused_pid_is_another_process() -> None:
    before = people(0, process(3, 40, started=1))
    after = people(10, process(3, 2, started=700))
    assert others_between(before, after, set()).cpu_s == pytest.approx(0)
    assert others_between(people(0), after, {(3, 1)}).cpu_s == pytest.approx(2)


def test_ksoftirqd_works_for_the_load_but_other_kernel_threads_do_not() -> None:
    before = people(
        0, process(5, 0, name="ksoftirqd/0", kernel=True), process(6, 0, name="kswapd0", kernel=True)
    )
    after = people(
        10, process(5, 4, name="ksoftirqd/0", kernel=True), process(6, 1, name="kswapd0", kernel=True)
    )
    assert others_between(before, after, set()).cpu_s == pytest.approx(1)
    assert others_between(people(0), people(1, process(7, 3, name="ksoftirqd/0")), set()).cpu_s == 3


def test_an_idle_machine_has_no_busiest() -> None:
    same = people(0, process(1, 5))
    assert others_between(same, people(1, process(1, 5)), set()).busiest is None
    assert others_between(people(0), people(1), set()).busiest is None


USE = {"busy_s": 5.0, "own_s": 4.0, "capacity_s": 10.0}


def test_the_smaller_of_the_two_bounds_is_taken() -> None:
    idle, busy = OthersUse(0.2, None, True), OthersUse(7.0, None, True)
    assert share_of_others(irq_s=0, others=idle, irq_accounted=False, **USE) == pytest.approx(0.02)
    assert share_of_others(irq_s=0, others=busy, irq_accounted=False, **USE) == pytest.approx(0.1)


def test_interrupt_time_is_taken_off_only_where_the_kernel_keeps_it_apart() -> None:
    hidden = OthersUse(0, None, False)
    assert share_of_others(irq_s=1, others=hidden, irq_accounted=True, **USE) == pytest.approx(0)
    assert share_of_others(irq_s=1, others=hidden, irq_accounted=False, **USE) == pytest.approx(0.1)


def test_a_bracket_that_is_too_wide_is_unknown_but_a_certain_part_is_told() -> None:
    assert share_of_others(irq_s=1, others=None, irq_accounted=None, **USE) is None
    assert share_of_others(irq_s=0.1, others=None, irq_accounted=None, **USE) == pytest.approx(0.1)
    certain = share_of_others(busy_s=9, irq_s=1, own_s=4, others=None, irq_accounted=None, capacity_s=10)
    assert certain == pytest.approx(0.4)
    assert share_of_others(busy_s=1, irq_s=0, own_s=1, others=None, irq_accounted=None, capacity_s=0) is None


def test_own_time_beyond_busy_time_is_no_negative_share() -> None:
    assert share_of_others(
        busy_s=1, irq_s=0, own_s=1.2, others=None, irq_accounted=False, capacity_s=2
    ) == pytest.approx(0)


def test_the_kernel_configuration_is_found_packed_or_plain(tree: Grow) -> None:
    assert irq_time_accounted(tree({})) is None
    root = tree({"proc/sys/kernel/osrelease": "6.1\n", "boot/config-6.1": "CONFIG_IRQ_TIME_ACCOUNTING=y\n"})
    assert irq_time_accounted(root) is True
    (root / "proc/config.gz").write_bytes(gzip.compress(b"# CONFIG_IRQ_TIME_ACCOUNTING is not set\n"))
    assert irq_time_accounted(root) is False
    (root / "proc/config.gz").write_bytes(b"not packed")
    assert irq_time_accounted(root) is True


def test_a_hidden_machine_is_known_to_be_hidden(tree: Grow) -> None:
    root = tree({"proc/loadavg": "0.1 0.2 0.3 1/500 99\n"})
    assert census(root).complete is False
    (root / "proc/loadavg").unlink()
    assert census(root).complete is None


BURN = """
import os, sys, time
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end: pass
print('done', flush=True)
sys.stdin.read()
"""


def burner(seconds: float, *, wrapper: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*wrapper, sys.executable, "-c", BURN, str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def end(child: subprocess.Popen[str]) -> None:
    child.communicate()
    assert child.returncode == 0


def test_a_real_busy_process_is_seen_and_an_own_one_is_not() -> None:
    before = census()
    child = burner(0.6)
    assert child.stdout is not None
    assert child.stdout.readline() == "done\n"
    after = census()
    started = after.processes[child.pid].started_ticks
    other = others_between(before, after, set())
    assert other.cpu_s >= 0.55
    others_without = others_between(before, after, {(child.pid, started)})
    assert other.cpu_s - others_without.cpu_s >= 0.55
    end(child)


def test_own_use_is_counted_on_the_set_it_is_bound_to() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU only: there are no two sets")
    own = OwnUse(frozenset({cpus[0]}), frozenset({cpus[1]}))
    child = burner(0.5)
    os.sched_setaffinity(child.pid, {cpus[0]})
    own.update({child.pid}, 0)
    assert child.stdout is not None
    assert child.stdout.readline() == "done\n"
    own.update({child.pid}, 1)
    assert own.server_s >= 0.4
    assert own.client_s == 0
    assert {pid for pid, _ in own.identities} == {child.pid}
    end(child)
    own.update({child.pid}, 2)  # gone: what it used stays counted
    assert own.server_s >= 0.4


def test_own_use_of_a_process_that_may_run_anywhere_is_divided_by_its_threads(tree: Grow) -> None:
    def stat(ticks: int, cpu: int, threads: int) -> str:
        return f"7 (x) S 1 0 0 0 0 0 0 0 0 0 {ticks} 0 0 0 20 0 {threads} 0 50 0 0 {'0 ' * 14}{cpu} 0"

    root = tree({"proc/7/stat": stat(100, 0, 2), "proc/7/task/7/stat": stat(40, 0, 2)})
    (root / "proc/7/task/8").mkdir()
    (root / "proc/7/task/8/stat").write_text(stat(60, 3, 2))
    own = OwnUse(frozenset({0, 1}), frozenset({3}), root)
    own.update({7}, 60)
    assert own.server_s + own.client_s == 0  # it ran before the sampler did
    for name, text in {
        "stat": stat(200, 0, 2),
        "task/7/stat": stat(65, 1, 2),
        "task/8/stat": stat(135, 3, 2),
    }.items():
        (root / "proc/7" / name).write_text(text)
    own.update({7}, 160)
    assert own.server_s * TICKS_PER_S == pytest.approx(25)
    assert own.client_s * TICKS_PER_S == pytest.approx(75)


def test_a_process_that_starts_between_two_readings_counts_from_its_start(tree: Grow) -> None:
    own = OwnUse(frozenset({0}), frozenset({0}), tree({}))
    own.update({7}, 40)
    tree({"proc/7/stat": f"7 (x) S 1 0 0 0 0 0 0 0 0 0 30 0 0 0 20 0 1 0 50 0 0 {'0 ' * 14}0 0"})
    own.update({7}, 100)
    assert own.server_s * TICKS_PER_S == own.client_s * TICKS_PER_S == 30


def test_threads_limit_keeps_a_huge_process_cheap(tree: Grow) -> None:
    text = f"7 (x) S 1 0 0 0 0 0 0 0 0 0 30 0 0 0 20 0 100000 0 50 0 0 {'0 ' * 14}1 0"
    own = OwnUse(frozenset({0}), frozenset({1}), tree({"proc/7/stat": text, "proc/7/task/7/stat": text}))
    own.update({7}, 10)
    own.update({7}, 20)
    (own.root / "proc/7/stat").write_text(text.replace(" 30 0 ", " 50 0 "))
    own.update({7}, 30)
    assert own.client_s * TICKS_PER_S == 20
    assert own.server_s == 0


def test_the_kernel_log_starts_at_its_end() -> None:
    log = KernelLog()
    first = log.count()
    log.close()
    log.close()
    assert log.count() is None
    if first is None:
        pytest.skip("the kernel log cannot be read by this user")
    assert first == 0


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([b"4,1,5,-;cpu hot\n", b"6,2,6,-;hello\n", b"3,3,7,-;worse\n", b"12,4,8,-;user\n", b"x"], 2),
        ([BrokenPipeError(), b"2,9,9,-;critical\n"], 1),
        ([], 0),
    ],
)
def test_kernel_log_records(
    monkeypatch: pytest.MonkeyPatch, tree: Grow, records: list[object], expected: int
) -> None:
    log = KernelLog(tree({"dev/kmsg": ""}))
    waiting = list(records)

    def read(_descriptor: int, _size: int) -> bytes:
        if not waiting:
            raise BlockingIOError
        item = waiting.pop(0)
        if isinstance(item, Exception):
            raise item
        assert isinstance(item, bytes)
        return item

    monkeypatch.setattr(os, "read", read)
    assert log.count() == expected
    monkeypatch.undo()
    log.close()


def test_a_kernel_log_that_fails_is_unknown_from_then_on(monkeypatch: pytest.MonkeyPatch, tree: Grow) -> None:
    log = KernelLog(tree({"dev/kmsg": ""}))

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", fail)
    assert log.count() is None
    monkeypatch.undo()
    assert log.count() is None
    assert KernelLog(tree({}) / "nowhere").count() is None


def test_process_identity_of_this_process_is_stable() -> None:
    one, other = process_stat(os.getpid()), process_stat(os.getpid())
    assert one is not None
    assert other is not None
    assert one.started_ticks == other.started_ticks > 0
