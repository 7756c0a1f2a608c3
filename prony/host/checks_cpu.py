"""The doctor's checks of CPUs and clocks: pure functions of the readings."""

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
    why = "Server and client compete for CPU unless each has its own cores."
    if r.partition is None:
        return HostCheck("CPUs", "unknown", "could not be partitioned", why)
    usable = [core for core in r.topology.cores if set(core.cpus) & set(r.granted)]
    found = (
        f"{len(r.granted)} CPUs: server {cpus_text(r.partition.server)}, client "
        f"{cpus_text(r.partition.client)}"
    )
    if r.partition.note:
        found += f". {r.partition.note}"
    if r.partition.shared:
        return HostCheck(
            "CPUs",
            "bad",
            found,
            why,
            "Use a host with two or more cores; here the load generator takes CPU from the server.",
        )
    if len(usable) < COMFORTABLE_CORES:
        advice = (
            f"Keep other load off this host; {COMFORTABLE_CORES} cores leave room for the kernel's own work."
        )
        return HostCheck("CPUs", "warn", found, why, advice)
    return HostCheck("CPUs", "ok", found, why)


def pinning(r: Readings) -> HostCheck:
    """Whether processes may be bound to CPUs."""
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
    """Whether the engine's threads may go before ordinary ones."""
    name = "measuring threads"
    why = (
        "An ordinary thread waits for its turn beside Prony's own work on the client's CPUs: with two CPUs "
        "an open load may then not conform (`schedule`)."
    )
    runtime_us = r.realtime.runtime_us
    if r.realtime.used:
        return HostCheck(name, "ok", "may go before ordinary ones (SCHED_FIFO)", why)
    if not r.realtime.permitted:
        advice = (
            "Run as root, or with ulimit -r 1 (rtprio in /etc/security/limits.conf, LimitRTPRIO= in a unit); "
            "in a container with the capability SYS_NICE."
        )
        return HostCheck(name, "warn", "may not go before ordinary ones (SCHED_FIFO)", why, advice)
    if runtime_us is None:
        found = "ordinary ones: kernel.sched_rt_runtime_us could not be read"
        return HostCheck(name, "unknown", found, why)
    found = f"ordinary ones: kernel.sched_rt_runtime_us is {runtime_us}, real-time threads could fill a CPU"
    return HostCheck(name, "warn", found, why, "sudo sysctl kernel.sched_rt_runtime_us=950000")


def quota(r: Readings) -> HostCheck:
    """A CPU quota of the control group."""
    why = (
        "A quota stops all threads for the rest of each period: it sets the throughput, and its pauses "
        "the latency."
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
    why = "Two hardware threads of a core slow each other down; Prony gives both to the same side."
    if not r.topology.complete:
        return HostCheck("SMT", "unknown", "the kernel does not report which CPUs share a core", why)
    return HostCheck("SMT", "ok", "on" if r.topology.smt else "off (one thread per core)", why)


def kinds(r: Readings) -> HostCheck | None:
    """Cores of different speed; left out where all are alike."""
    if not r.cpu_kinds:
        return None
    found = "; ".join(f"{kind}: {listed}" for kind, listed in r.cpu_kinds.items())
    return HostCheck(
        "kinds of cores",
        "warn",
        found,
        "A server that moves between fast and slow cores has two speeds.",
        "Choose CPUs of one kind with --server-cpus and --client-cpus.",
    )


def governor(r: Readings) -> HostCheck:
    """The frequency governor."""
    why = (
        "A governor that follows the load lowers the frequency in every pause, which slows the first "
        "requests after it."
    )
    found = r.fingerprint.governor
    if found is None:
        where = "" if r.fingerprint.hypervisor == "none" else " (the hypervisor's host sets it)"
        return HostCheck("governor", "unknown", f"not reported by the kernel{where}", why)
    if found == "performance":
        return HostCheck("governor", "ok", found, why)
    return HostCheck("governor", "warn", found, why, "sudo cpupower frequency-set -g performance")


def turbo(r: Readings) -> HostCheck:
    """Clock speeds above the base frequency."""
    why = (
        "With turbo the clock depends on temperature and on the number of busy cores: equal runs may differ."
    )
    on = r.fingerprint.turbo
    if on is None:
        return HostCheck("turbo", "unknown", "not reported by the kernel", why)
    if not on:
        return HostCheck("turbo", "ok", "off", why)
    advice = (
        "For the steadiest figures: echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost "
        "(intel_pstate: echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo)."
    )
    return HostCheck("turbo", "warn", "on", why, advice)


def virtualisation(r: Readings) -> HostCheck:
    """Bare metal or a hypervisor."""
    why = "Other guests share a virtual machine's caches and CPUs: figures hold for this host and this hour."
    found = r.fingerprint.hypervisor
    if found is None:
        return HostCheck("virtualisation", "unknown", "not detectable", why)
    if found == "none":
        return HostCheck("virtualisation", "ok", "bare metal", why)
    advice = "Watch steal in each trial's finding `isolation`; compare servers within one run only."
    return HostCheck("virtualisation", "warn", found, why, advice)


def steal(r: Readings) -> HostCheck:
    """CPU time that the hypervisor gave to other guests."""
    why = "Steal looks like a slow server."
    if r.steal is None:
        return HostCheck("steal", "unknown", "could not be read", why)
    found = f"{r.steal:.1%} of the worst CPU in {r.sample_s:g} s, kept busy"
    if r.steal >= STEAL_BAD:
        return HostCheck(
            "steal", "bad", found, why, "Measure at another time, or on a host with dedicated CPUs."
        )
    return HostCheck("steal", "ok", found, why)


def other_load(r: Readings) -> HostCheck:
    """CPU used by other processes."""
    why = "Other processes take CPU from server or client, never equally from both."
    if r.others is None:
        return HostCheck(
            "other load",
            "unknown",
            "not all processes of this host are visible (container or hidepid)",
            why,
        )
    found = f"{r.others:.1%} of the CPUs in {r.sample_s:g} s"
    if r.busiest and r.others >= OTHERS_WARN:
        found += f"; mostly {r.busiest}"
    status: Health = "bad" if r.others >= OTHERS_BAD else "warn" if r.others >= OTHERS_WARN else "ok"
    return HostCheck(
        "other load", status, found, why, "" if status == "ok" else "Stop it, or wait until it has finished."
    )


def clock(r: Readings) -> HostCheck:
    """The kernel's clock."""
    why = (
        "Each request reads the clock; a slow one costs a microsecond or more each time and blurs short "
        "latencies."
    )
    found = r.fingerprint.clocksource
    if found is None:
        return HostCheck("clock", "unknown", "could not be read", why)
    if found in GOOD_CLOCKS:
        return HostCheck("clock", "ok", found, why)
    advice = (
        "See why the kernel rejected a better one: dmesg | grep -i clocksource; on a VM select tsc if it is "
        "stable."
    )
    return HostCheck("clock", "bad", found, why, advice)


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
