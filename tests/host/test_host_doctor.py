"""The doctor: each check with a reading that makes it fire and one that keeps it quiet; then this host."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prony.evidence.host import CpuPartition, PortRange
from prony.host import checks_cpu, checks_system, doctor, readings
from prony.host.affinity import Pinning, Realtime, realtime
from prony.host.check import HostCheck
from prony.host.doctor import examine, judge_readings
from prony.host.fingerprint import fingerprint
from prony.host.others import Census, OthersUse, others_between
from prony.host.proc import cpu_ticks
from prony.host.readings import DriverReading, Readings, gather, kept_busy, parse_drivers, parse_emulated
from prony.host.topology import Core, Topology
from tests.host.conftest import Grow

FINE_PRINT = fingerprint({}).model_copy(
    update={
        "hypervisor": "none",
        "governor": "performance",
        "turbo": False,
        "clocksource": "tsc",
        "thp": "madvise",
        "cgroup_cpu_quota": None,
        "kernel": "6.1.0-18-amd64",
        "sysctls": {"net.core.somaxconn": "4096", "kernel.io_uring_disabled": "0"},
    }
)
FINE = Readings(
    fingerprint=FINE_PRINT,
    topology=Topology(tuple(Core((cpu,)) for cpu in range(8))),
    granted=tuple(range(8)),
    partition=CpuPartition(server=tuple(range(6)), client=(6, 7)),
    cpu_kinds={},
    sample_s=1.0,
    steal=0.0,
    others=0.001,
    busiest="cron (pid 1), 0.1% of one CPU",
    swapped_in_bytes=0,
    memory={"MemTotal": 2**34, "MemAvailable": 2**33, "SwapTotal": 2**30, "SwapFree": 2**30},
    ports=PortRange(low=32768, high=60999),
    source_addresses=1,
    sockets={"time_wait": 5},
    descriptors=(1024, 524_288),
    locked_memory_bytes=8 * 2**20,
    conntrack=(10, 262_144),
    engine="prony-engine",
    drivers={"io_uring": DriverReading(True, "probe succeeded"), "epoll": DriverReading(True, "")},
    emulated=None,
    pinning=Pinning(True),
    realtime=Realtime(True, 950_000),
    kernel_log=True,
    disk=(Path("/data"), 50 * 2**30),
)


def print_with(**values: Any) -> dict[str, Any]:
    return {"fingerprint": FINE_PRINT.model_copy(update=values)}


def swap(used: int) -> dict[str, Any]:
    return {"memory": {**FINE.memory, "SwapFree": 2**30 - used}}


CASES: list[tuple[Callable[[Readings], HostCheck | None], dict[str, Any], str, str]] = [
    (checks_cpu.cpus, {"partition": None}, "unknown", ""),
    (
        checks_cpu.cpus,
        {"partition": CpuPartition(server=(0,), client=(0,), shared=True, note="Only one.")},
        "bad",
        "Only one.",
    ),
    (checks_cpu.cpus, {"granted": (0, 1)}, "warn", "2 CPUs"),
    (checks_cpu.pinning, {"pinning": Pinning(False, "Not pinned.")}, "bad", "Not pinned."),
    (checks_cpu.measuring_threads, {"realtime": Realtime(False, 950_000)}, "warn", "SCHED_FIFO"),
    (checks_cpu.measuring_threads, {"realtime": Realtime(True, -1)}, "warn", "-1"),
    (checks_cpu.measuring_threads, {"realtime": Realtime(True, None)}, "unknown", "could not be read"),
    (checks_cpu.quota, print_with(cgroup_cpu_quota=1.5), "bad", "1.5"),
    (checks_cpu.quota, print_with(cgroup_cpu_quota=8.0), "ok", "8 granted"),
    (checks_cpu.smt, {"topology": Topology(FINE.topology.cores, complete=False)}, "unknown", "report"),
    (checks_cpu.kinds, {"cpu_kinds": {"performance": "0-3", "efficiency": "4-7"}}, "warn", "efficiency: 4-7"),
    (checks_cpu.governor, print_with(governor="powersave"), "warn", "powersave"),
    (checks_cpu.governor, print_with(governor=None), "unknown", ""),
    (checks_cpu.turbo, print_with(turbo=True), "warn", "on"),
    (checks_cpu.turbo, print_with(turbo=None), "unknown", "report"),
    (checks_cpu.virtualisation, print_with(hypervisor="kvm"), "warn", "kvm"),
    (checks_cpu.virtualisation, print_with(hypervisor=None), "unknown", ""),
    (checks_cpu.steal, {"steal": 0.02}, "bad", "2.0%"),
    (checks_cpu.steal, {"steal": None}, "unknown", "read"),
    (checks_cpu.other_load, {"others": 0.2, "busiest": "rustc (pid 3)"}, "bad", "mostly rustc"),
    (checks_cpu.other_load, {"others": 0.02}, "warn", "2.0%"),
    (checks_cpu.other_load, {"others": None}, "unknown", "visible"),
    (checks_cpu.clock, print_with(clocksource="hpet"), "bad", "hpet"),
    (checks_cpu.clock, print_with(clocksource=None), "unknown", "read"),
    (checks_system.emulation, {"emulated": "one on another"}, "bad", "one on another"),
    (checks_system.io_uring, {"engine": None}, "unknown", "engine"),
    (checks_system.io_uring, {"drivers": None}, "unknown", "prony-engine probe"),
    (checks_system.io_uring, print_with(kernel="6.8.0-1"), "ok", "not on 6.8"),
    (checks_system.io_uring, {"drivers": {"io_uring": DriverReading(False, "refused")}}, "warn", "refused"),
    (checks_system.locked_memory, print_with(kernel="5.4.0"), "warn", "8 MiB"),
    (
        checks_system.locked_memory,
        print_with(kernel="6.18.1-x") | {"locked_memory_bytes": 65_536},
        "warn",
        "0",
    ),
    (checks_system.locked_memory, print_with(kernel="6.18.1-x"), "ok", "8 MiB"),
    (checks_system.locked_memory, {"locked_memory_bytes": 65_536}, "ok", "0.0625 MiB"),
    (checks_system.many_users, {"drivers": None}, "unknown", ""),
    (checks_system.many_users, {"ports": None}, "unknown", ""),
    (checks_system.many_users, {"memory": {**FINE.memory, "MemAvailable": 2**26}}, "warn", "6,710 (memory)"),
    (
        checks_system.many_users,
        {"drivers": {"io_uring": DriverReading(False, "no")}, "descriptors": (1024, 4096)},
        "warn",
        "epoll: 4,096 (descriptors)",
    ),
    (checks_system.many_users, {}, "ok", "io_uring: 858,993 (memory)"),
    (checks_system.many_users, {"source_addresses": None}, "ok", "14,116"),
    (checks_system.locked_memory, print_with(kernel="odd"), "unknown", "odd"),
    (checks_system.locked_memory, {"locked_memory_bytes": None}, "ok", "unlimited"),
    (checks_system.ports, {"ports": PortRange(low=32768, high=42767)}, "warn", "166 "),
    (checks_system.ports, {"ports": PortRange(low=60000, high=60099)}, "bad", "100 ports"),
    (checks_system.ports, {"sockets": {"time_wait": 20_000}}, "warn", "20,000"),
    (checks_system.ports, {"ports": None}, "unknown", "read"),
    (checks_system.descriptors, {"descriptors": (512, 512)}, "bad", "512"),
    (checks_system.descriptors, {"descriptors": (1024, 4096)}, "warn", "4,096"),
    (checks_system.descriptors, {"descriptors": (None, None)}, "unknown", "read"),
    (checks_system.backlog, print_with(sysctls={"net.core.somaxconn": "128"}), "warn", "128"),
    (checks_system.backlog, print_with(sysctls={}), "unknown", "read"),
    (checks_system.conntrack, {"conntrack": (200_000, 262_144)}, "warn", "200,000"),
    (checks_system.memory, {"memory": {"MemAvailable": 2**29, "MemTotal": 2**30}}, "bad", "0.5 GiB"),
    (checks_system.memory, {"memory": {"MemAvailable": 3 * 2**29}}, "warn", "1.5 GiB"),
    (checks_system.memory, {"memory": {}}, "unknown", "read"),
    (checks_system.swap, swap(2**28), "warn", "256 of 1,024 MiB"),
    (checks_system.swap, {"swapped_in_bytes": 4096}, "bad", "4 KiB read back"),
    (checks_system.swap, {"memory": {"SwapTotal": 0, "SwapFree": 0}}, "ok", "none"),
    (checks_system.swap, {"memory": {}}, "unknown", "read"),
    (checks_system.huge_pages, print_with(thp="always"), "warn", "always"),
    (checks_system.huge_pages, print_with(thp=None), "unknown", "read"),
    (checks_system.disk, {"disk": (Path("/d"), 10 * 2**20)}, "bad", "/d"),
    (checks_system.disk, {"disk": (Path("/d"), 500 * 2**20)}, "warn", "0.5 GiB"),
    (checks_system.disk, {"disk": (Path("/d"), None)}, "unknown", "/d"),
    (checks_system.kernel_log, {"kernel_log": False}, "unknown", "not readable"),
]


@pytest.mark.parametrize(("check", "update", "status", "found"), CASES)
def test_each_check_fires(
    check: Callable[[Readings], HostCheck | None], update: dict[str, Any], status: str, found: str
) -> None:
    result = check(replace(FINE, **update))
    assert result is not None
    assert result.status == status
    assert found in result.found
    assert result.why
    if status in ("warn", "bad"):
        assert result.what_to_do


def test_a_fine_machine_is_fine() -> None:
    results = judge_readings(FINE)
    assert {result.status for result in results} == {"ok"}
    assert all(not result.what_to_do for result in results)


def test_every_check_has_a_case_that_makes_it_fire() -> None:
    fired = {check for check, _, status, _ in CASES if status != "ok"}
    assert fired == set(doctor.CHECKS)


def test_what_is_not_there_is_not_mentioned() -> None:
    names = {result.name for result in judge_readings(replace(FINE, conntrack=None))}
    assert not names & {"conntrack", "emulation"}
    assert "kinds of cores" not in names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"version": "0.1.0", "drivers": [{"driver": "epoll", "works": true, "reason": "x"}]}',
            {"epoll": DriverReading(True, "x")},
        ),
        (
            '[{"driver": "io_uring", "works": false, "reason": "no"}]',
            {"io_uring": DriverReading(False, "no")},
        ),
        ("", None),
        ("[]", {}),
        ("[1]", None),
        ('{"other": 1}', None),
        ("usage: ...", None),
    ],
)
def test_the_engines_probe_is_read(text: str, expected: object) -> None:
    assert parse_drivers(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"drivers": [], "emulated": "one on another"}', "one on another"),
        ('{"drivers": [], "emulated": null}', None),
        ('{"drivers": []}', None),
        ("[]", None),
        ("usage: ...", None),
    ],
)
def test_an_engine_says_that_it_is_emulated(text: str, expected: str | None) -> None:
    assert parse_emulated(text) == expected


def test_cores_of_two_kinds_are_found(tree: Grow) -> None:
    root = tree({"sys/devices/cpu_core/cpus": "0-3\n", "sys/devices/cpu_atom/cpus": "4-7\n"})
    assert readings._cpu_kinds((0,), root) == {"performance": "0-3", "efficiency": "4-7"}
    arm = {f"sys/devices/system/cpu/cpu{cpu}/cpu_capacity": "1024" if cpu < 2 else "462" for cpu in range(4)}
    for path in ("cpu_core", "cpu_atom"):
        (root / "sys/devices" / path / "cpus").unlink()
    assert readings._cpu_kinds((0, 1, 2, 3), tree(arm)) == {"capacity 462": "2-3", "capacity 1024": "0-1"}
    assert readings._cpu_kinds((0, 1), root) == {}


def test_asking_to_go_before_others_changes_nothing_here(tree: Grow) -> None:
    """The kernel answers for a thread of its own; how much real time there is stands in the tree."""
    name = "proc/sys/kernel/sched_rt_runtime_us"
    assert [realtime(tree({name: text})).runtime_us for text in ("950000\n", "-1\n")] == [950_000, -1]
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_source_addresses_are_those_of_the_routing_table(tree: Grow) -> None:
    trie = (
        "Main:\n |-- 127.0.0.1\n    /32 host LOCAL\n |-- 192.0.2.2\n    /32 host LOCAL\n |-- 192.0.2.255\n"
        "    /32 link BROADCAST\nLocal:\n |-- 192.0.2.2\n    /32 host LOCAL\n"
        " |-- 192.0.2.9\n    /32 host LOCAL\n"
    )
    assert readings.source_addresses(tree({})) is None
    assert readings.source_addresses(tree({"proc/net/fib_trie": trie})) == 2


def test_an_engine_that_cannot_be_run_is_no_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "prony-engine"
    broken.write_text("#!/bin/sh\nexit 7\n")
    monkeypatch.setenv("PRONY_ENGINE", str(broken))
    assert gather(sample_s=0).drivers is None  # not executable
    broken.chmod(0o755)
    found = gather(sample_s=0)
    assert found.engine == str(broken)
    assert found.drivers is None


def test_this_machine_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SAMPLE_S", 0.1)
    extra = HostCheck("JDK", "ok", "25", "needed")
    results = examine(extra=[extra])
    assert results[-1] is extra
    names = [result.name for result in results]
    assert len(names) == len(set(names)) >= 18
    assert {result.status for result in results} <= {"ok", "warn", "bad", "unknown"}


def test_while_steal_is_read_each_cpu_has_something_to_run_and_afterwards_nothing() -> None:
    cpu = min(os.sched_getaffinity(0))
    with kept_busy((cpu,)) as (spinning,):
        before = (cpu_ticks() or {})[cpu]
        time.sleep(0.5)
        after = (cpu_ticks() or {})[cpu]
        assert os.sched_getscheduler(spinning) == os.SCHED_IDLE, "nobody waits for it"
        assert os.sched_getaffinity(spinning) == {cpu}
    assert after.idle - before.idle <= (after.total - before.total) / 10
    with pytest.raises(ProcessLookupError):
        os.kill(spinning, 0)


def test_what_keeps_a_cpu_busy_ends_with_who_began_it_even_by_a_kill() -> None:
    began = (
        "import sys, time\nfrom prony.host.readings import kept_busy\n"
        "with kept_busy([int(sys.argv[1])]) as spinning:\n"
        "    print(*spinning, flush=True)\n    time.sleep(60)"
    )
    cpu = str(min(os.sched_getaffinity(0)))
    with subprocess.Popen([sys.executable, "-c", began, cpu], stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        spinning = int(one.stdout.readline())
        one.kill()
        assert one.stdout.read() == "", "nothing that goes on has its output"
    end_s = time.monotonic() + 30
    while Path(f"/proc/{spinning}").exists():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def test_what_keeps_the_cpus_busy_is_no_other_load(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[set[tuple[int, int]]] = []

    def between(before: Census, after: Census, own: set[tuple[int, int]]) -> OthersUse:
        counted.append(own)
        return others_between(before, after, own)

    monkeypatch.setattr(readings, "others_between", between)
    gather(sample_s=0.1)
    (own,) = counted
    assert len(own) == 1 + len(os.sched_getaffinity(0)), "this process and one on each CPU"


def test_a_blind_machine_is_unknown_and_not_fine(tree: Grow) -> None:
    results = {result.name: result for result in judge_readings(gather(sample_s=0, root=tree({})))}
    for name in ("steal", "other load", "clock", "port range", "memory", "swap", "huge pages", "kernel log"):
        assert results[name].status == "unknown", name
    assert results["CPUs"].status == "unknown"
