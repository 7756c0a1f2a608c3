"""The kernel settings that matter for network load."""

from __future__ import annotations

from pathlib import Path

from prony.host.proc import ROOT, read_text

WATCHED = (
    "fs.nr_open",
    "kernel.io_uring_disabled",
    "kernel.numa_balancing",
    "kernel.pid_max",
    "kernel.sched_autogroup_enabled",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "net.netfilter.nf_conntrack_max",
    "vm.max_map_count",
    "vm.nr_hugepages",
    "vm.overcommit_memory",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
)
"""Without settings derived from free memory at boot (tcp_mem, file-max, threads-max)."""


def read_sysctls(root: Path = ROOT) -> dict[str, str]:
    """The existing watched settings, with single blanks within values."""
    settings = {}
    for name in WATCHED:
        text = read_text(root / "proc/sys" / name.replace(".", "/"))
        if text is not None:
            settings[name] = " ".join(text.split())
    return settings


def changed(before: dict[str, str], after: dict[str, str]) -> tuple[str, ...]:
    """Differences as `name: old -> new`, with `absent` for a missing setting."""
    names = sorted(before.keys() | after.keys())
    return tuple(
        f"{name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
        for name in names
        if before.get(name) != after.get(name)
    )
