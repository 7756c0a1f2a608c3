"""Facts about CPUs, memory, system and kernel settings. Unreadable: None; known to be absent: `none`."""

from __future__ import annotations

from pathlib import Path

from prony.host.proc import ROOT, key_values, read_cpus, read_int, read_text

_VIRTUAL_VENDORS = {
    "qemu": "kvm", "kvm": "kvm", "google": "kvm (Google Compute Engine)", "amazon ec2": "kvm (Amazon EC2)",
    "vmware": "vmware", "innotek": "virtualbox", "virtualbox": "virtualbox", "xen": "xen",
    "microsoft corporation": "hyper-v", "parallels": "parallels", "openstack": "kvm (OpenStack)",
    "bhyve": "bhyve", "digitalocean": "kvm (DigitalOcean)", "hetzner": "kvm (Hetzner)",
    "apple virtualization": "apple",
}  # fmt: skip
WATCHED = (
    "fs.nr_open", "kernel.io_uring_disabled", "kernel.numa_balancing", "kernel.pid_max",
    "kernel.sched_autogroup_enabled", "net.core.busy_poll", "net.core.busy_read", "net.core.default_qdisc",
    "net.core.netdev_budget", "net.core.netdev_max_backlog", "net.core.rmem_max", "net.core.somaxconn",
    "net.core.wmem_max", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_abort_on_overflow", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_max_orphans", "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets", "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_wmem", "net.netfilter.nf_conntrack_max", "vm.max_map_count",
    "vm.nr_hugepages", "vm.overcommit_memory", "vm.swappiness", "vm.zone_reclaim_mode",
)  # fmt: skip
"""Without settings derived from free memory at boot (tcp_mem, file-max, threads-max)."""


def cpu_info(root: Path = ROOT) -> dict[str, str]:
    return key_values(read_text(root / "proc/cpuinfo") or "")


def cpu_model(info: dict[str, str], architecture: str, root: Path = ROOT) -> str:
    for key in ("model name", "cpu model", "cpu", "Processor", "uarch"):
        if info.get(key):
            return " ".join(info[key].split())
    if "CPU implementer" in info:
        numbers = ", ".join(
            f"{key[4:]} {info[key]}" for key in ("CPU implementer", "CPU part", "CPU variant") if key in info
        )
        return f"{architecture} ({numbers})"
    return read_text(root / "proc/device-tree/model") or architecture


def max_mhz(cpus: tuple[int, ...], root: Path = ROOT) -> float | None:
    limits_khz = [read_int(_cpufreq(root, cpu) / "cpuinfo_max_freq") for cpu in cpus]
    return max((khz / 1000 for khz in limits_khz if khz is not None), default=None)


def current_mhz(cpus: tuple[int, ...], root: Path = ROOT) -> float | None:
    """Mean current frequency; None without cpufreq (most virtual machines)."""
    clocks_khz = [
        khz for cpu in cpus if (khz := read_int(_cpufreq(root, cpu) / "scaling_cur_freq")) is not None
    ]
    return sum(clocks_khz) / len(clocks_khz) / 1000 if clocks_khz else None


def governor(cpus: tuple[int, ...], root: Path = ROOT) -> str | None:
    governors = {text for cpu in cpus if (text := read_text(_cpufreq(root, cpu) / "scaling_governor"))}
    return ",".join(sorted(governors)) or None


def _cpufreq(root: Path, cpu: int) -> Path:
    return root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq"


def turbo(root: Path = ROOT) -> bool | None:
    base = root / "sys/devices/system/cpu"
    off = read_int(base / "intel_pstate/no_turbo")
    if off is not None:
        return off == 0
    boost = read_int(base / "cpufreq/boost")
    return None if boost is None else boost == 1


def caches(cpus: tuple[int, ...], root: Path = ROOT) -> dict[str, str]:
    """Size and number of caches by level and kind, like `{"L1d": "32 KiB x 8", "L3": "16 MiB x 1"}`."""
    sizes: dict[str, str] = {}
    places: dict[str, set[tuple[int, ...]]] = {}
    for cpu in cpus:
        for index in range(8):
            base = root / f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
            level, kind, size = (read_text(base / name) for name in ("level", "type", "size"))
            if level is None or kind is None or not size:
                break
            name = f"L{level}" + {"Data": "d", "Instruction": "i"}.get(kind, "")
            sizes.setdefault(name, _size(size))
            places.setdefault(name, set()).add(read_cpus(base / "shared_cpu_list") or (cpu,))
    return {name: f"{size} x {len(places[name])}" for name, size in sorted(sizes.items())}


def _size(text: str) -> str:
    if not text.endswith("K") or not text[:-1].isdecimal():
        return text
    kib = int(text[:-1])
    return f"{kib // 1024} MiB" if kib >= 1024 and kib % 1024 == 0 else f"{kib} KiB"


def hypervisor(info: dict[str, str], root: Path = ROOT) -> str | None:
    """The hypervisor's name, `none` for bare metal, None when it cannot be detected."""
    kind = read_text(root / "sys/hypervisor/type")
    if kind:
        return kind
    for path in ("sys_vendor", "product_name", "bios_vendor", "board_vendor"):
        text = (read_text(root / "sys/class/dmi/id" / path) or "").lower()
        for vendor, name in _VIRTUAL_VENDORS.items():
            # Microsoft and Google build bare-metal machines too: the CPU flag decides.
            if text.startswith(vendor) and _virtual_flag(info) is not False:
                return name
    clocks = read_text(root / "sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    for clock, name in (("kvm-clock", "kvm"), ("hyperv", "hyper-v"), ("xen", "xen")):
        if clock in clocks:
            return name
    compatible = read_text(root / "proc/device-tree/hypervisor/compatible")
    if compatible:
        return compatible.split("\0")[0]
    flag = _virtual_flag(info)
    return None if flag is None else ("unnamed" if flag else "none")


def _virtual_flag(info: dict[str, str]) -> bool | None:
    return "hypervisor" in info["flags"].split() if "flags" in info else None


def container(root: Path = ROOT) -> str | None:
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    return read_text(root / "run/systemd/container") or None


def clocksource(root: Path = ROOT) -> str | None:
    return read_text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource") or None


def mitigations(root: Path = ROOT) -> str | None:
    """CPU vulnerabilities with the kernel's mitigations, or `none`."""
    base = root / "sys/devices/system/cpu/vulnerabilities"
    try:
        names = sorted(path.name for path in base.iterdir())
    except OSError:
        return None
    entries = [(name, read_text(base / name)) for name in names]
    concerned = [f"{name}: {text}" for name, text in entries if text and text != "Not affected"]
    chosen = [
        word for word in (read_text(root / "proc/cmdline") or "").split() if word.startswith("mitigations=")
    ]
    return "; ".join(chosen + concerned) or "none"


def transparent_huge_pages(root: Path = ROOT) -> str | None:
    text = read_text(root / "sys/kernel/mm/transparent_hugepage/enabled") or ""
    return next((word.strip("[]") for word in text.split() if word.startswith("[")), None)


def memory(root: Path = ROOT) -> dict[str, int]:
    """/proc/meminfo in bytes."""
    sizes = {}
    for key, value in key_values(read_text(root / "proc/meminfo") or "").items():
        number = value.split()[0] if value else ""
        if number.isdecimal():
            sizes[key] = int(number) * (1024 if value.endswith("kB") else 1)
    return sizes


def os_name(root: Path = ROOT) -> str:
    text = read_text(root / "etc/os-release") or read_text(root / "usr/lib/os-release") or ""
    values = {key: value.strip("\"'") for key, value in key_values(text, "=").items()}
    return values.get("PRETTY_NAME") or values.get("NAME") or "unknown"


def read_sysctls(root: Path = ROOT) -> dict[str, str]:
    """Kernel settings by name, with single blanks within values."""
    settings = {}
    for name in WATCHED:
        text = read_text(root / "proc/sys" / name.replace(".", "/"))
        if text is not None:
            settings[name] = " ".join(text.split())
    return settings


def changed(before: dict[str, str], after: dict[str, str]) -> tuple[str, ...]:
    """Changed settings as `name: old -> new`, with `absent` for a missing setting."""
    names = sorted(before.keys() | after.keys())
    return tuple(
        f"{name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
        for name in names
        if before.get(name) != after.get(name)
    )
