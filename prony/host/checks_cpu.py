"""The doctor's checks of CPUs and clocks."""

from __future__ import annotations

from prony.host.check import Health, HostCheck
from prony.host.proc import cpus_text
from prony.host.readings import Readings

COMFORTABLE_CORES = 4
STEAL_BAD = 0.01
"""The limit of the check `isolation`."""
OTHERS_BAD = 0.05
OTHERS_WARN = 0.01
GOOD_CLOCKS = (
    "tsc",
    "arch_sys_counter",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "timebase",
    "riscv_clocksource",
)
"""Clocks that are read without a system call."""


def cpus(r: Readings) -> HostCheck:
    """The CPUs of server and client."""
    why = "Server and client compete for CPU time unless each has its own cores."
    if r.partition is None:
        return HostCheck("CPUs", "unknown", "could not be partitioned", why)
    usable = [core for core in r.topology.cores if set(core.cpus) & set(r.granted)]
    reading = (
        f"{len(r.granted)} CPUs: server {cpus_text(r.partition.server)}, client "
        f"{cpus_text(r.partition.client)}"
    )
    if r.partition.note:
        reading += f". {r.partition.note}"
    if r.partition.shared:
        return HostCheck(
            "CPUs",
            "bad",
            reading,
            why,
            "Use a host with two or more cores; here the load generator takes CPU from the server.",
        )
    if len(usable) < COMFORTABLE_CORES:
        advice = (
            f"Keep other load off this host; {COMFORTABLE_CORES} cores leave room for the kernel's own work."
        )
        return HostCheck("CPUs", "warn", reading, why, advice)
    return HostCheck("CPUs", "ok", reading, why)


def pinning(r: Readings) -> HostCheck:
    """Whether processes may be pinned to CPUs."""
    why = "Without pinning the scheduler sometimes puts server and client on the same CPU."
    if r.pinning.done:
        return HostCheck("pinning", "ok", "permitted", why)
    return HostCheck(
        "pinning",
        "bad",
        r.pinning.note,
        why,
        "Allow sched_setaffinity (a container's seccomp profile may forbid it).",
    )


def measuring_threads(r: Readings) -> HostCheck:
    """Whether the engine's threads may have real-time priority."""
    name = "measuring threads"
    why = (
        "Ordinary threads compete with Prony's own work on the client's CPUs: with two CPUs an open load may "
        "then not conform (`schedule`)."
    )
    runtime_us = r.realtime.runtime_us
    if r.realtime.used:
        return HostCheck(name, "ok", "real-time priority permitted (SCHED_FIFO)", why)
    if not r.realtime.permitted:
        advice = (
            "Run as root, or with ulimit -r 1 (rtprio in /etc/security/limits.conf, LimitRTPRIO= in a unit); "
            "in a container with the capability SYS_NICE."
        )
        return HostCheck(name, "warn", "no permission for real-time priority (SCHED_FIFO)", why, advice)
    if runtime_us is None:
        reading = "ordinary threads: kernel.sched_rt_runtime_us could not be read"
        return HostCheck(name, "unknown", reading, why)
    reading = f"ordinary threads: kernel.sched_rt_runtime_us is {runtime_us}, so others could fill a CPU"
    return HostCheck(name, "warn", reading, why, "sudo sysctl kernel.sched_rt_runtime_us=950000")


def quota(r: Readings) -> HostCheck:
    """A CPU quota of the control group."""
    why = (
        "A quota stops all threads for the rest of each period: it bounds the throughput, and its pauses "
        "set the latency."
    )
    limit = r.fingerprint.cgroup_cpu_quota
    if limit is None:
        return HostCheck("CPU quota", "ok", "none", why)
    if limit >= len(r.granted):
        return HostCheck("CPU quota", "ok", f"{limit:g} CPUs, {len(r.granted)} granted", why)
    return HostCheck(
        "CPU quota",
        "bad",
        f"{limit:g} of {len(r.granted)} CPUs",
        why,
        (
            "Give whole CPUs instead of a quota (docker: --cpuset-cpus instead of --cpus; Kubernetes: "
            "static CPU policy)."
        ),
    )


def smt(r: Readings) -> HostCheck:
    """Hardware threads that share a core."""
    why = "Hardware threads of a core slow each other down; Prony gives both to the same side."
    if not r.topology.complete:
        return HostCheck("SMT", "unknown", "the kernel does not report which CPUs share a core", why)
    return HostCheck("SMT", "ok", "on" if r.topology.smt else "off (one thread per core)", why)


def kinds(r: Readings) -> HostCheck | None:
    """Cores of different speeds; None where all are alike."""
    if not r.cpu_kinds:
        return None
    reading = "; ".join(f"{kind}: {listed}" for kind, listed in r.cpu_kinds.items())
    return HostCheck(
        "kinds of cores",
        "warn",
        reading,
        "A server that migrates between fast and slow cores has two speeds.",
        "Choose CPUs of one kind with --server-cpus and --client-cpus.",
    )


def governor(r: Readings) -> HostCheck:
    """The frequency governor."""
    why = (
        "A load-dependent governor lowers the frequency in every pause, which slows the first requests "
        "after it."
    )
    reading = r.fingerprint.governor
    if reading is None:
        where = "" if r.fingerprint.hypervisor == "none" else " (the hypervisor's host sets it)"
        return HostCheck("governor", "unknown", f"not reported by the kernel{where}", why)
    if reading == "performance":
        return HostCheck("governor", "ok", reading, why)
    return HostCheck("governor", "warn", reading, why, "sudo cpupower frequency-set -g performance")


def turbo(r: Readings) -> HostCheck:
    """Clock speeds above the base frequency."""
    why = "With turbo the clock depends on temperature and the number of busy cores: equal runs may differ."
    on = r.fingerprint.turbo
    if on is None:
        return HostCheck("turbo", "unknown", "not reported by the kernel", why)
    if not on:
        return HostCheck("turbo", "ok", "off", why)
    advice = (
        "For less variance: echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost "
        "(intel_pstate: echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo)."
    )
    return HostCheck("turbo", "warn", "on", why, advice)


def virtualisation(r: Readings) -> HostCheck:
    """Bare metal or a hypervisor."""
    why = "Other guests share caches and CPUs of a virtual machine: figures hold for this host and hour."
    reading = r.fingerprint.hypervisor
    if reading is None:
        return HostCheck("virtualisation", "unknown", "not detectable", why)
    if reading == "none":
        return HostCheck("virtualisation", "ok", "bare metal", why)
    advice = "Check steal in each trial's finding `isolation`; compare servers within a run only."
    return HostCheck("virtualisation", "warn", reading, why, advice)


def steal(r: Readings) -> HostCheck:
    """CPU time taken by other guests."""
    why = "Steal looks like a slow server."
    if r.steal is None:
        return HostCheck("steal", "unknown", "could not be read", why)
    reading = f"{r.steal:.1%} of the worst CPU in {r.sample_s:g} busy s"
    if r.steal >= STEAL_BAD:
        return HostCheck(
            "steal", "bad", reading, why, "Measure at another time, or on a host with dedicated CPUs."
        )
    return HostCheck("steal", "ok", reading, why)


def other_load(r: Readings) -> HostCheck:
    """CPU time of other processes."""
    why = "Other processes take CPU time from server or client, and rarely equally."
    if r.others is None:
        return HostCheck(
            "other load",
            "unknown",
            "not all processes of this host are visible (container or hidepid)",
            why,
        )
    reading = f"{r.others:.1%} of the CPUs in {r.sample_s:g} s"
    if r.busiest and r.others >= OTHERS_WARN:
        reading += f"; mostly {r.busiest}"
    status: Health = "bad" if r.others >= OTHERS_BAD else "warn" if r.others >= OTHERS_WARN else "ok"
    return HostCheck(
        "other load", status, reading, why, "" if status == "ok" else "Stop it, or wait until it ends."
    )


def clock(r: Readings) -> HostCheck:
    """The kernel's clock."""
    why = (
        "Each request reads the clock; a slow clock costs a microsecond or more per reading and blurs short "
        "latencies."
    )
    reading = r.fingerprint.clocksource
    if reading is None:
        return HostCheck("clock", "unknown", "could not be read", why)
    if reading in GOOD_CLOCKS:
        return HostCheck("clock", "ok", reading, why)
    advice = (
        "Find why the kernel rejected a better clock: dmesg | grep -i clocksource; on a VM select tsc if it "
        "is stable."
    )
    return HostCheck("clock", "bad", reading, why, advice)


ALL = (
    cpus,
    pinning,
    measuring_threads,
    quota,
    smt,
    kinds,
    governor,
    turbo,
    virtualisation,
    steal,
    other_load,
    clock,
)
