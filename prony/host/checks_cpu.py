"""The doctor's checks of CPUs and clocks."""

from __future__ import annotations

from prony.host.check import Health, Verdict, doctor_check
from prony.host.proc import cpus_text
from prony.host.readings import Readings

COMFORTABLE_CORES = 4
STEAL_BAD = 0.01
"""The limit of the check `isolation`."""
OTHERS_BAD = 0.05
OTHERS_WARN = 0.01
GOOD_CLOCKS = (
    "tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page", "timebase", "riscv_clocksource",
)  # fmt: skip
"""Clocks that are read without a system call."""


@doctor_check("CPUs", "Server and client compete for CPU time unless each has its own cores.")
def cpus(r: Readings) -> Verdict:
    if r.partition is None:
        return "unknown", "could not be partitioned"
    usable = [core for core in r.topology.cores if set(core.cpus) & set(r.granted)]
    reading = (
        f"{len(r.granted)} CPUs: server {cpus_text(r.partition.server)}, client "
        f"{cpus_text(r.partition.client)}"
    )
    if r.partition.note:
        reading += f". {r.partition.note}"
    if r.partition.shared:
        return (
            "bad",
            reading,
            "Use a host with two or more cores; here the load generator takes CPU from the server.",
        )
    if len(usable) < COMFORTABLE_CORES:
        advice = (
            f"Keep other load off this host; {COMFORTABLE_CORES} cores leave room for the kernel's own work."
        )
        return "warn", reading, advice
    return "ok", reading


@doctor_check("pinning", "Without pinning the scheduler sometimes puts server and client on the same CPU.")
def pinning(r: Readings) -> Verdict:
    if r.pinning.done:
        return "ok", "permitted"
    return "bad", r.pinning.note, "Allow sched_setaffinity (a container's seccomp profile may forbid it)."


@doctor_check(
    "measuring threads",
    "Ordinary threads compete with Prony's own work on the client's CPUs: with two CPUs an open load may "
    "then not conform (`schedule`).",
)
def measuring_threads(r: Readings) -> Verdict:
    runtime_us = r.realtime.runtime_us
    if r.realtime.used:
        return "ok", "real-time priority permitted (SCHED_FIFO)"
    if not r.realtime.permitted:
        advice = (
            "Run as root, or with ulimit -r 1 (rtprio in /etc/security/limits.conf, LimitRTPRIO= in a unit); "
            "in a container with the capability SYS_NICE."
        )
        return "warn", "no permission for real-time priority (SCHED_FIFO)", advice
    if runtime_us is None:
        reading = "ordinary threads: kernel.sched_rt_runtime_us could not be read"
        return "unknown", reading
    reading = f"ordinary threads: kernel.sched_rt_runtime_us is {runtime_us}, so others could fill a CPU"
    return "warn", reading, "sudo sysctl kernel.sched_rt_runtime_us=950000"


@doctor_check(
    "CPU quota",
    "A quota stops all threads for the rest of each period: it bounds the throughput, and its pauses "
    "set the latency.",
)
def quota(r: Readings) -> Verdict:
    limit = r.fingerprint.cgroup_cpu_quota
    if limit is None:
        return "ok", "none"
    if limit >= len(r.granted):
        return "ok", f"{limit:g} CPUs, {len(r.granted)} granted"
    return (
        "bad",
        f"{limit:g} of {len(r.granted)} CPUs",
        "Give whole CPUs instead of a quota (docker: --cpuset-cpus instead of --cpus; Kubernetes: "
        "static CPU policy).",
    )


@doctor_check("SMT", "Hardware threads of a core slow each other down; Prony gives both to the same side.")
def smt(r: Readings) -> Verdict:
    if not r.topology.complete:
        return "unknown", "the kernel does not report which CPUs share a core"
    return "ok", "on" if r.topology.smt else "off (one thread per core)"


@doctor_check("kinds of cores", "A server that migrates between fast and slow cores has two speeds.")
def kinds(r: Readings) -> Verdict | None:
    if not r.cpu_kinds:
        return None
    reading = "; ".join(f"{kind}: {listed}" for kind, listed in r.cpu_kinds.items())
    return "warn", reading, "Choose CPUs of one kind with --server-cpus and --client-cpus."


@doctor_check(
    "governor",
    "A load-dependent governor lowers the frequency in every pause, which slows the first requests after it.",
)
def governor(r: Readings) -> Verdict:
    reading = r.fingerprint.governor
    if reading is None:
        where = "" if r.fingerprint.hypervisor == "none" else " (the hypervisor's host sets it)"
        return "unknown", f"not reported by the kernel{where}"
    if reading == "performance":
        return "ok", reading
    return "warn", reading, "sudo cpupower frequency-set -g performance"


@doctor_check(
    "turbo",
    "With turbo the clock depends on temperature and the number of busy cores: equal runs may differ.",
)
def turbo(r: Readings) -> Verdict:
    on = r.fingerprint.turbo
    if on is None:
        return "unknown", "not reported by the kernel"
    if not on:
        return "ok", "off"
    advice = (
        "For less variance: echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost "
        "(intel_pstate: echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo)."
    )
    return "warn", "on", advice


@doctor_check(
    "virtualisation",
    "Other guests share caches and CPUs of a virtual machine: figures hold for this host and hour.",
)
def virtualisation(r: Readings) -> Verdict:
    reading = r.fingerprint.hypervisor
    if reading is None:
        return "unknown", "not detectable"
    if reading == "none":
        return "ok", "bare metal"
    advice = "Check steal in each trial's finding `isolation`; compare servers within a run only."
    return "warn", reading, advice


@doctor_check("steal", "Steal looks like a slow server.")
def steal(r: Readings) -> Verdict:
    if r.steal is None:
        return "unknown", "could not be read"
    reading = f"{r.steal:.1%} of the worst CPU in {r.sample_s:g} busy s"
    if r.steal >= STEAL_BAD:
        return "bad", reading, "Measure at another time, or on a host with dedicated CPUs."
    return "ok", reading


@doctor_check("other load", "Other processes take CPU time from server or client, and rarely equally.")
def other_load(r: Readings) -> Verdict:
    if r.others is None:
        return "unknown", "not all processes of this host are visible (container or hidepid)"
    reading = f"{r.others:.1%} of the CPUs in {r.sample_s:g} s"
    if r.busiest and r.others >= OTHERS_WARN:
        reading += f"; mostly {r.busiest}"
    status: Health = "bad" if r.others >= OTHERS_BAD else "warn" if r.others >= OTHERS_WARN else "ok"
    return status, reading, "" if status == "ok" else "Stop it, or wait until it ends."


@doctor_check(
    "clock",
    "Each request reads the clock; a slow clock costs a microsecond or more per reading and blurs short "
    "latencies.",
)
def clock(r: Readings) -> Verdict:
    reading = r.fingerprint.clocksource
    if reading is None:
        return "unknown", "could not be read"
    if reading in GOOD_CLOCKS:
        return "ok", reading
    advice = (
        "Find why the kernel rejected a better clock: dmesg | grep -i clocksource; on a VM select tsc if it "
        "is stable."
    )
    return "bad", reading, advice
