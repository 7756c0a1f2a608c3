"""The fingerprint: what is read, what the key depends on, and how people see it."""

from __future__ import annotations

import hashlib
import json

import pytest

from prony.evidence.host import Fingerprint
from prony.host import hardware
from prony.host.cgroup import cpu_quota, memory_left
from prony.host.fingerprint import differences, fingerprint, key_of
from prony.host.hardware import changed, read_sysctls
from prony_serve.host_facts import describe
from tests.host.conftest import Grow

INTEL = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R)  Xeon(R) CPU\nflags\t\t: fpu sse hypervisor\n\n"
    "processor\t: 1\nmodel name\t: other\n",
    "proc/meminfo": "MemTotal:       16384000 kB\nSwapTotal:             0 kB\nHugePages_Total:       3\n",
    "proc/cmdline": "quiet mitigations=off\n",
    "proc/sys/kernel/hostname": "bench\n",
    "proc/sys/kernel/osrelease": "6.1.0\n",
    "proc/sys/net/core/somaxconn": "4096\n",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "sys/devices/system/cpu/online": "0-1\n",
    "sys/devices/system/cpu/cpu0/topology/core_cpus_list": "0-1",
    "sys/devices/system/cpu/cpu1/topology/core_cpus_list": "0-1",
    "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3500000",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "3000000",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "2000000",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
    "sys/devices/system/cpu/cpu0/cache/index0/level": "1",
    "sys/devices/system/cpu/cpu0/cache/index0/type": "Data",
    "sys/devices/system/cpu/cpu0/cache/index0/size": "48K",
    "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list": "0-1",
    "sys/devices/system/cpu/cpu0/cache/index1/level": "3",
    "sys/devices/system/cpu/cpu0/cache/index1/type": "Unified",
    "sys/devices/system/cpu/cpu0/cache/index1/size": "32768K",
    "sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_list": "0-1",
    "sys/devices/system/cpu/vulnerabilities/meltdown": "Not affected",
    "sys/devices/system/cpu/vulnerabilities/spectre_v1": "Vulnerable: no mitigation",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "sys/class/dmi/id/sys_vendor": "QEMU",
    "sys/devices/system/node/online": "0",
}


def test_every_fact_comes_from_its_file(tree: Grow) -> None:
    found = fingerprint({"prony": "1"}, root=tree(INTEL))
    assert found.hostname == "bench"
    assert found.kernel == "6.1.0"
    assert found.cpu_model == "Intel(R) Xeon(R) CPU"
    assert (found.cpus, found.cores, found.sockets, found.smt, found.numa_nodes) == (2, 1, 1, True, 1)
    assert (found.cpu_max_mhz, found.governor, found.turbo) == (3500.0, "performance,powersave", False)
    assert found.caches == {"L1d": "48 KiB x 1", "L3": "32 MiB x 1"}
    assert (found.memory_bytes, found.swap_bytes) == (16384000 * 1024, 0)
    assert found.os == "Debian GNU/Linux 12 (bookworm)"
    assert found.hypervisor == "kvm"
    assert (found.clocksource, found.thp) == ("tsc", "always")
    assert found.mitigations == "mitigations=off; spectre_v1: Vulnerable: no mitigation"
    assert found.sysctls == {"net.core.somaxconn": "4096", "net.ipv4.tcp_rmem": "4096 131072 6291456"}
    assert found.software == {"prony": "1"}
    assert found.key == key_of(found)
    assert len(found.key) == 12
    assert hardware.current_mhz((0, 1), tree({})) == 2500.0


def test_an_empty_machine_is_all_unknown_and_no_zero_is_made_up(tree: Grow) -> None:
    found = fingerprint({}, root=tree({}))
    for name in ("cores", "sockets", "smt", "numa_nodes", "cpu_max_mhz", "governor", "turbo", "swap_bytes"):
        assert getattr(found, name) is None, name
    for name in ("hypervisor", "clocksource", "mitigations", "thp", "cgroup_cpu_quota"):
        assert getattr(found, name) is None, name
    assert any(value == "unknown" for _, value in describe(found))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"proc/cpuinfo": "flags : fpu\n"}, "none"),
        ({"proc/cpuinfo": "flags : fpu hypervisor\n"}, "unnamed"),
        ({"proc/cpuinfo": "flags : fpu\n", "sys/class/dmi/id/sys_vendor": "Microsoft Corporation"}, "none"),
        (
            {"proc/cpuinfo": "flags : hypervisor\n", "sys/class/dmi/id/sys_vendor": "Microsoft Corporation"},
            "hyper-v",
        ),
        ({"sys/hypervisor/type": "xen"}, "xen"),
        (
            {"sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc kvm-clock"},
            "kvm",
        ),
        ({"proc/device-tree/hypervisor/compatible": "linux,kvm\0x"}, "linux,kvm"),
        ({"proc/cpuinfo": "Features : fp asimd\n"}, None),
    ],
)
def test_hypervisors(tree: Grow, files: dict[str, str], expected: str | None) -> None:
    root = tree(files)
    assert hardware.hypervisor(hardware.cpu_info(root), root) == expected


def test_arm_gives_numbers_for_a_model(tree: Grow) -> None:
    root = tree({"proc/cpuinfo": "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n"})
    assert (
        hardware.cpu_model(hardware.cpu_info(root), "aarch64", root)
        == "aarch64 (implementer 0x41, part 0xd0c)"
    )


def test_the_key_follows_what_can_change_a_figure_and_nothing_else() -> None:
    base = fingerprint({"jdk": "25"})
    same = base.model_copy(update={"hostname": "elsewhere", "memory_bytes": base.memory_bytes + 4096 * 10})
    assert key_of(same) == base.key
    assert differences(base, same) == []
    for update in (
        {"governor": "schedutil"},
        {"software": {"jdk": "17"}},
        {"kernel": "0"},
        {"sysctls": base.sysctls | {"net.core.somaxconn": "1"}},
        {"memory_bytes": base.memory_bytes * 2},
        {"cgroup_cpu_quota": 1.5},
    ):
        other = base.model_copy(update=update)
        assert key_of(other) != base.key, update
        assert len(differences(base, other)) == 1, update
    assert differences(base, base.model_copy(update={"software": {"jdk": "17", "node": "20"}})) == [
        ("software.jdk", "25", "17"),
        ("software.node", "absent", "20"),
    ]


def test_a_key_of_one_host_is_what_it_was_before_there_were_several(tree: Grow) -> None:
    found = fingerprint({"prony": "1"}, root=tree({}))
    fields = found.model_dump(exclude={"key", "hostname", "hosts"})
    fields["memory_bytes"] = round(found.memory_bytes / 2**28)
    text = json.dumps(fields, sort_keys=True)
    assert key_of(found) == hashlib.sha256(text.encode()).hexdigest()[:12]


def test_the_key_survives_storing() -> None:
    base = fingerprint({"jdk": "25"})
    again = Fingerprint.model_validate_json(base.model_dump_json())
    assert again == base
    assert key_of(again) == base.key


def test_describe_is_for_people() -> None:
    rows = dict(describe(fingerprint({"jdk": "25.0.1"})))
    assert rows["jdk"] == "25.0.1"
    assert "GiB" in rows["Memory"]
    assert all(value and "None" not in value for value in rows.values()), rows


V1 = "8:cpu,cpuacct:/docker/abc\n0::/\n"
V1_MOUNT = "30 25 0:26 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
V2_MOUNT = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        (
            {
                "proc/self/cgroup": "0::/user/job\n",
                "proc/self/mountinfo": V2_MOUNT,
                "sys/fs/cgroup/user/job/cpu.max": "max 100000",
                "sys/fs/cgroup/user/cpu.max": "250000 100000",
            },
            2.5,
        ),
        (
            {
                "proc/self/cgroup": "0::/\n",
                "proc/self/mountinfo": V2_MOUNT,
                "sys/fs/cgroup/cpu.max": "50000 100000",
            },
            0.5,
        ),
        (
            {
                "proc/self/cgroup": V1,
                "proc/self/mountinfo": V1_MOUNT,
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            1.5,
        ),
        (
            {
                "proc/self/cgroup": V1,
                "proc/self/mountinfo": V1_MOUNT,
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            None,
        ),
        ({"proc/self/cgroup": "0::/../other\n", "proc/self/mountinfo": V2_MOUNT}, None),
        ({}, None),
    ],
)
def test_cgroup_quota(tree: Grow, files: dict[str, str], quota: float | None) -> None:
    assert cpu_quota(tree(files)) == quota


V1_MEMORY = "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"


@pytest.mark.parametrize(
    ("files", "left"),
    [
        (
            {
                "proc/self/cgroup": "0::/user/job\n",
                "proc/self/mountinfo": V2_MOUNT,
                "sys/fs/cgroup/user/job/memory.max": "max",
                "sys/fs/cgroup/user/job/memory.current": "700",
                "sys/fs/cgroup/user/memory.max": "1000",
                "sys/fs/cgroup/user/memory.current": "800",
                "sys/fs/cgroup/user/memory.stat": "anon 500\ninactive_file 300\n",
            },
            500,
        ),
        (
            {
                "proc/self/cgroup": "9:memory:/\n0::/\n",
                "proc/self/mountinfo": V1_MEMORY,
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "900",
                "sys/fs/cgroup/memory/memory.stat": "inactive_file 10\ntotal_inactive_file 50\n",
            },
            150,
        ),
        ({"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": V2_MOUNT}, None),
    ],
)
def test_room_in_a_control_group(tree: Grow, files: dict[str, str], left: int | None) -> None:
    assert memory_left(tree(files)) == left


def test_changed_sysctls_are_named_with_both_values(tree: Grow) -> None:
    before = read_sysctls(tree({"proc/sys/net/core/somaxconn": "128", "proc/sys/vm/swappiness": "60"}))
    after = read_sysctls(tree({"proc/sys/net/core/somaxconn": "4096", "proc/sys/net/ipv4/tcp_tw_reuse": "1"}))
    assert changed(before, before) == ()
    assert changed(before, after) == (
        "net.core.somaxconn: 128 -> 4096",
        "net.ipv4.tcp_tw_reuse: absent -> 1",
    )
