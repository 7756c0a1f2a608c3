"""The readings of /proc beside a profile: from a made-up tree, and what they may cost."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from prony_explain import stalls

PID = 7


def write(root: Path, *, waited_ns: int, throttled_us: int, read_bytes: int, inner_us: int = 0) -> None:
    """`throttled_us`: of the outer group, `inner_us`: of that in which the process is."""
    files = {
        f"proc/{PID}/task/{PID}/schedstat": f"123 {waited_ns} 9\n",
        f"proc/{PID}/task/8/schedstat": "55 1000 2\n",
        f"proc/{PID}/io": f"rchar: 1\nread_bytes: {read_bytes}\nwrite_bytes: 5\n",
        f"proc/{PID}/cgroup": "0::/box/inner\n",
        "proc/self/mountinfo": "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    }
    for group, usec in (("box", throttled_us), ("box/inner", inner_us)):
        files[f"sys/fs/cgroup/{group}/cpu.max"] = "50000 100000\n"
        files[f"sys/fs/cgroup/{group}/cpu.stat"] = (
            f"usage_usec 5\nnr_periods 9\nnr_throttled 3\nthrottled_usec {usec}\n"
        )
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def changing(steps: list[Callable[[], None]], waits: list[float]) -> Callable[[float], bool]:
    """The load goes on for so many steps, before each of which something happens."""
    left = iter(steps)

    def over(seconds: float) -> bool:
        waits.append(seconds)
        step = next(left, None)
        if step is None:
            return True
        step()
        return False

    return over


def test_each_row_has_what_came_up_since_the_one_before(tmp_path: Path) -> None:
    write(tmp_path, waited_ns=1_000_000, throttled_us=500, read_bytes=4096)
    steps = [
        lambda: write(tmp_path, waited_ns=4_500_000, throttled_us=500, read_bytes=4096),
        lambda: write(tmp_path, waited_ns=4_500_000, throttled_us=60_500, read_bytes=12_288),
    ]
    found = stalls.watch([PID], changing(steps, []), time.monotonic(), 10.0, root=tmp_path)
    assert len(found.ends_s) == 2
    assert found.begins_s <= found.ends_s[0] <= found.ends_s[1]
    assert found.run_queue_ms == (3.5, 0.0)
    assert found.throttled_ms == (0.0, 60.0)
    assert found.disk_kib == (0, 8)


def test_what_cannot_be_read_is_not_zero(tmp_path: Path) -> None:
    write(tmp_path, waited_ns=0, throttled_us=0, read_bytes=0)
    (tmp_path / f"proc/{PID}/io").unlink()
    (tmp_path / "sys/fs/cgroup/box/cpu.stat").unlink()
    found = stalls.watch([PID, 99], changing([lambda: None], []), time.monotonic(), 10.0, root=tmp_path)
    assert found.run_queue_ms == (0.0,)
    assert (found.throttled_ms, found.disk_kib) == (None, None)
    gone = stalls.watch([99], changing([lambda: None], []), time.monotonic(), 10.0, root=tmp_path)
    assert gone.run_queue_ms is None


def test_a_thread_that_begins_counts_from_its_first_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalls, "THREADS_ANEW_S", 0.0)
    write(tmp_path, waited_ns=0, throttled_us=0, read_bytes=0)
    new = tmp_path / f"proc/{PID}/task/9"

    def begins() -> None:
        new.mkdir()
        (new / "schedstat").write_text("1 70000000 1\n")

    def waits() -> None:
        (new / "schedstat").write_text("1 72000000 1\n")

    found = stalls.watch([PID], changing([begins, waits], []), time.monotonic(), 10.0, root=tmp_path)
    assert found.run_queue_ms == (0.0, 2.0)


def test_readings_that_take_long_are_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, waited_ns=0, throttled_us=0, read_bytes=0)
    clock = itertools.count(step=0.002)
    monkeypatch.setattr("prony_explain.stalls.time.thread_time", lambda: next(clock))
    waits: list[float] = []
    stalls.watch([PID], changing([lambda: None] * 2, waits), time.monotonic(), 10.0, root=tmp_path)
    assert waits == pytest.approx([stalls.STEP_S, 0.1, 0.1])
    waits = []
    stalls.watch([PID], changing([], waits), time.monotonic(), 4000.0, root=tmp_path)
    assert waits == pytest.approx([0.2])


def test_this_process_can_be_read() -> None:
    rests = [lambda: time.sleep(0.01)] * 3
    found = stalls.watch([os.getpid()], changing(rests, []), time.monotonic(), 1.0)
    assert len(found.ends_s) == 3
    columns = [found.run_queue_ms, found.throttled_ms, found.disk_kib]
    assert {len(one) for one in columns if one is not None} <= {3}


def test_the_group_that_was_throttled_longest_since_the_last_reading_counts(tmp_path: Path) -> None:
    def write_held(outer_us: int, inner_us: int) -> None:
        write(tmp_path, waited_ns=0, throttled_us=outer_us, read_bytes=0, inner_us=inner_us)

    write_held(90_000_000, 0)
    steps: list[Callable[[], None]] = [
        lambda: write_held(90_000_000, 20_000),
        lambda: write_held(90_030_000, 25_000),
    ]
    found = stalls.watch([PID], changing(steps, []), time.monotonic(), 10.0, root=tmp_path)
    assert found.throttled_ms == (20.0, 30.0), "the outer group was held back for 90 s before the window"


def test_without_a_quota_nothing_holds_a_group_back(tmp_path: Path) -> None:
    write(tmp_path, waited_ns=0, throttled_us=5, read_bytes=0)
    for group in ("box", "box/inner"):
        (tmp_path / f"sys/fs/cgroup/{group}/cpu.max").write_text("max 100000\n")
    found = stalls.watch([PID], changing([lambda: None], []), time.monotonic(), 10.0, root=tmp_path)
    assert found.throttled_ms == (0.0,)
