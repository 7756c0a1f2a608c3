"""The doctor's checks of CPUs and clocks: pure functions of the readings. Must not read anything."""

from __future__ import annotations

from prony.host.check import Check, Health
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
"""Clocks that are read without a call into the kernel."""


def cpus(r: Readings) -> Check:
    """How many CPUs there are for server and client, and who gets which."""
    why = "Server and client take CPU from each other unless each has cores of its own."
    if r.partition is None:
        return Check("CPUs", "unknown", "could not be divided", why)
    usable = [core for core in r.topology.cores if set(core.cpus) & set(r.granted)]
    found = (
        f"{len(r.granted)} CPUs: server {cpus_text(r.partition.server)}, client "
        f"{cpus_text(r.partition.client)}"
    )
    if r.partition.note:
        found += f". {r.partition.note}"
    if r.partition.shared:
        return Check(
            "CPUs", "bad", found, why, "Use a machine with two cores or more; every trial here is suspect."
        )
    if len(usable) < COMFORTABLE_CORES:
        advice = (
            f"Keep everything else off this machine; {COMFORTABLE_CORES} cores leave room for "
            "what the kernel does."
        )
        return Check("CPUs", "warn", found, why, advice)
    return Check("CPUs", "ok", found, why)


def pinning(r: Readings) -> Check:
    """Whether processes may be bound to CPUs."""
    why = "Without pinning, the scheduler moves server and client onto the same CPU now and then."
    if r.pinning.done:
        return Check("pinning", "ok", "permitted", why)
    return Check(
        "pinning",
        "bad",
        r.pinning.note,
        why,
        "Allow sched_setaffinity (a container's seccomp profile forbids it).",
    )


def quota(r: Readings) -> Check:
    """A CPU quota of the control group."""
    why = (
        "A quota stops all threads for the rest of each period: throughput is the quota's, and "
        "latency its pauses."
    )
    limit = r.fingerprint.cgroup_cpu_quota
    if limit is None:
        return Check("CPU quota", "ok", "none", why)
    if limit >= len(r.granted):
        return Check("CPU quota", "ok", f"{limit:g} CPUs, not less than the {len(r.granted)} granted", why)
    return Check(
        "CPU quota",
        "bad",
        f"{limit:g} of {len(r.granted)} CPUs",
        why,
        (
            "Give whole CPUs instead of a quota (docker: --cpuset-cpus instead of --cpus; Kubernetes: "
            "static CPU policy)."
        ),
    )


def smt(r: Readings) -> Check:
    """Hardware threads that share a core."""
    why = "Two hardware threads of one core slow each other; Prony gives both to the same side."
    if not r.topology.complete:
        return Check("SMT", "unknown", "the kernel does not say which CPUs share a core", why)
    return Check("SMT", "ok", "on" if r.topology.smt else "off (one thread per core)", why)


def kinds(r: Readings) -> Check | None:
    """Cores of different speed; nothing to say where all are alike."""
    if not r.cpu_kinds:
        return None
    found = "; ".join(f"{kind}: {listed}" for kind, listed in r.cpu_kinds.items())
    return Check(
        "kinds of cores",
        "warn",
        found,
        "A server that runs now on a fast and now on a slow core has two speeds.",
        "Name CPUs of one kind with --server-cpus and --client-cpus.",
    )


def governor(r: Readings) -> Check:
    """The frequency governor."""
    why = (
        "A governor that follows the load lowers the frequency in every pause, and the first "
        "requests after it pay."
    )
    found = r.fingerprint.governor
    if found is None:
        where = "" if r.fingerprint.hypervisor == "none" else " (the hypervisor's host decides)"
        return Check("governor", "unknown", f"the kernel offers none{where}", why)
    if found == "performance":
        return Check("governor", "ok", found, why)
    return Check("governor", "warn", found, why, "sudo cpupower frequency-set -g performance")


def turbo(r: Readings) -> Check:
    """Clock speeds above the base frequency."""
    why = "With turbo the clock depends on heat and on how many cores are busy, so two equal runs may differ."
    on = r.fingerprint.turbo
    if on is None:
        return Check("turbo", "unknown", "the kernel does not say", why)
    if not on:
        return Check("turbo", "ok", "off", why)
    advice = (
        "For the steadiest figures: echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost "
        "(intel_pstate: echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo)."
    )
    return Check("turbo", "warn", "on", why, advice)


def virtualisation(r: Readings) -> Check:
    """What the machine runs on."""
    why = (
        "On a virtual machine, other guests share caches and CPUs; figures hold for this "
        "machine and this hour."
    )
    found = r.fingerprint.hypervisor
    if found is None:
        return Check("virtualisation", "unknown", "could not be told", why)
    if found == "none":
        return Check("virtualisation", "ok", "bare metal", why)
    advice = "Watch the steal finding of each trial; compare servers only within one run."
    return Check("virtualisation", "warn", found, why, advice)


def steal(r: Readings) -> Check:
    """CPU time that the hypervisor gave to others."""
    why = "Stolen time looks like a slow server."
    if r.steal is None:
        return Check("steal", "unknown", "could not be read", why)
    found = f"{r.steal:.1%} in {r.sample_s:g} s"
    if r.steal >= STEAL_BAD:
        return Check(
            "steal", "bad", found, why, "Measure at another hour, or on a machine whose CPUs are dedicated."
        )
    return Check("steal", "ok", found, why)


def other_load(r: Readings) -> Check:
    """What other processes use of the CPUs."""
    why = "Whatever else runs takes CPU from server or client, never from both alike."
    if r.others is None:
        return Check(
            "other load",
            "unknown",
            "not all processes of this machine can be seen (container or hidepid)",
            why,
        )
    found = f"{r.others:.1%} of the CPUs in {r.sample_s:g} s"
    if r.busiest and r.others >= OTHERS_WARN:
        found += f"; most by {r.busiest}"
    status: Health = "bad" if r.others >= OTHERS_BAD else "warn" if r.others >= OTHERS_WARN else "ok"
    return Check(
        "other load", status, found, why, "" if status == "ok" else "End it, or wait until it is done."
    )


def clock(r: Readings) -> Check:
    """The kernel's clock."""
    why = (
        "Each request reads the clock; a slow one costs a microsecond or more each time, and "
        "blurs short latencies."
    )
    found = r.fingerprint.clocksource
    if found is None:
        return Check("clock", "unknown", "could not be read", why)
    if found in GOOD_CLOCKS:
        return Check("clock", "ok", found, why)
    advice = (
        "See why the kernel rejected the better one: dmesg | grep -i clocksource; on a VM "
        "choose tsc if it is stable."
    )
    return Check("clock", "bad", found, why, advice)


ALL = (cpus, pinning, quota, smt, kinds, governor, turbo, virtualisation, steal, other_load, clock)
