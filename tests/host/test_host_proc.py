"""Parsers of /proc, on made-up files and on this host."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.host import proc
from prony.host.window import difference, interpolate
from tests.host.conftest import Grow

STAT = """cpu  10 0 10 80 0 0 0 0 0 0
cpu0 100 5 50 800 20 3 7 15 40 0
cpu3 1 2 3 4
intr 1 2 3
cpu9 this comes after and is not read
"""


def test_cpu_ticks_split_busy_idle_irq_and_steal(tree: Grow) -> None:
    ticks = proc.cpu_ticks(tree({"proc/stat": STAT}))
    assert ticks is not None
    assert sorted(ticks) == [0, 3]
    assert ticks[0] == proc.CpuTicks(user=105, system=50, idle=820, irq=10, steal=15)
    assert ticks[0].busy == 165
    assert ticks[0].total == 1000
    assert ticks[3] == proc.CpuTicks(user=3, system=3, idle=4, irq=0, steal=0)


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    assert proc.cpu_ticks(tmp_path) is None
    assert proc.read_text(tmp_path / "absent") is None
    assert proc.read_text(tmp_path) is None
    assert proc.read_int(tmp_path / "absent") is None
    assert proc.process_stat(1, tmp_path) is None
    assert proc.all_processes(tmp_path) == {}
    assert proc.threads_total(tmp_path) is None


def test_a_process_name_may_hold_brackets_and_blanks(tree: Grow) -> None:
    fields = "S 7 1 1 0 -1 2097152 0 0 0 0 30 12 5 2 20 0 4 0 999 1000 25 " + " ".join(["0"] * 14) + " 3 0"
    root = tree({"proc/42/stat": f"42 (a) b (c) {fields}\n", "proc/self/x": "", "proc/43/stat": "short"})
    found = proc.all_processes(root)
    assert list(found) == [42]
    process = found[42]
    assert (process.name, process.parent, process.threads, process.started_ticks) == ("a) b (c", 7, 4, 999)
    assert (process.own_ticks, process.reaped_ticks, process.last_cpu) == (42, 7, 3)
    assert process.kernel_thread
    assert process.rss_bytes == 25 * proc.PAGE_BYTES


def test_this_process_is_read_like_the_kernel_says() -> None:
    deadline = time.process_time() + 0.2
    while time.process_time() < deadline:
        pass
    mine = proc.process_stat(os.getpid())
    assert mine is not None
    assert mine.parent == os.getppid()
    assert not mine.kernel_thread
    assert mine.own_ticks >= 15
    total = proc.threads_total()
    assert total is not None
    assert total >= mine.threads
    assert os.getpid() in proc.all_processes()


def test_waits_for_memory_are_those_of_some_task(tree: Grow, tmp_path: Path) -> None:
    text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 total=7\n"
    assert proc.memory_stall_s(tree({"proc/pressure/memory": text})) == 1.5
    assert proc.memory_stall_s(tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0", (0,)), ("0-3,8", (0, 1, 2, 3, 8)), ("4,1-2, 2", (1, 2, 4)), ("", ()), ("7,7", (7,))],
)
def test_cpu_lists_are_read_and_written(text: str, cpus: tuple[int, ...]) -> None:
    assert proc.parse_cpus(text) == cpus
    assert proc.parse_cpus(proc.cpus_text(cpus)) == cpus


@pytest.mark.parametrize("text", ["a", "1-", "-1", "3-1", "1.5", "0-99999999999", "1 2"])
def test_a_bad_cpu_list_is_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="0-3,8"):
        proc.parse_cpus(text)


def test_interpolation_is_linear_between_readings_and_never_beyond() -> None:
    samples = [(10.0, 100.0), (11.0, 110.0), (13.0, 150.0)]
    assert interpolate(samples, 10.0) == 100.0
    assert interpolate(samples, 10.5) == 105.0
    assert interpolate(samples, 12.0) == 130.0
    assert interpolate(samples, 13.0) == 150.0
    assert interpolate(samples, 9.99) is None
    assert interpolate(samples, 13.01) is None
    assert interpolate([], 1.0) is None
    assert difference(samples, 10.5, 12.0) == 25.0
    assert difference(samples, 10.5, 14.0) is None
