"""The doctor's checks of kernel, memory, limits and disk."""

from __future__ import annotations

from prony.host.check import Verdict, doctor_check
from prony.host.readings import Readings

TIME_WAIT_S = 60
"""Time that a closed connection holds its port on Linux (TCP_TIMEWAIT_LEN in include/net/tcp.h)."""
DEFAULT_PORTS = 28_232
MANY_USERS = 16_384
BYTES_PER_USER = 10_000
"""Per connection with both ends on this host: kernel, engine and server (docs/engine.md)."""
MEMORY_BAD_BYTES = 1 * 1024**3
MEMORY_WARN_BYTES = 2 * 1024**3
DISK_BAD_BYTES = 100 * 1024**2
DISK_WARN_BYTES = 1 * 1024**3
LOCKED_BYTES = 64 * 1024**2
LOCKED_NOW_BYTES = 8 * 1024**2
"""The usual default, enough for twenty rings of 65,536 connections (docs/engine.md)."""
_RINGS_UNLOCKED = (5, 12)
"""First kernel whose io_uring memory does not count against RLIMIT_MEMLOCK ..."""
_RINGS_LOCKED_AGAIN = (6, 14)
"""... and first where it does again, as mapped regions (6.18 with 64 KiB: no ring)."""

_ENDS_IN_ANY_ORDER = (6, 13)
"""First kernel whose rings free closed connections in any order (axboe/liburing#1192)."""
_ENDS_TESTED = ((6, 1), (6, 12))
"""Earlier ones on which the engine was run (make kernels)."""


@doctor_check("emulation", "An emulated load generator measures the emulator: no trial will conform.")
def emulation(r: Readings) -> Verdict | None:
    if r.emulated is None:
        return None
    return "bad", r.emulated, "Install the package for this CPU (a container: --platform of the host)."


@doctor_check(
    "io_uring",
    "io_uring costs the client less CPU per request than epoll, and its connections need no descriptors.",
)
def io_uring(r: Readings) -> Verdict:
    if r.engine is None:
        return "unknown", "the engine is not installed", "Build it: make setup, or pip install ."
    if r.drivers is None or "io_uring" not in r.drivers:
        advice = "Run prony-engine probe for the reason; then rebuild: make setup."
        return "unknown", "prony-engine probe failed", advice
    driver = r.drivers["io_uring"]
    if driver.works:
        version = _kernel_version(r.fingerprint.kernel)
        old = version is not None and version < _ENDS_IN_ANY_ORDER and version not in _ENDS_TESTED
        reasoned = f"; closing tested on Linux 6.1 and 6.12, not on {r.fingerprint.kernel}" if old else ""
        return "ok", (driver.reason or "works") + reasoned
    disabled = r.fingerprint.sysctls.get("kernel.io_uring_disabled", "0")
    advice = (
        "sudo sysctl kernel.io_uring_disabled=0; until then epoll is used."
        if disabled != "0"
        else "No action needed: epoll is used. Linux 6.1 or newer without a seccomp filter has io_uring."
    )
    return "warn", driver.reason, advice


@doctor_check(
    "locked memory",
    "Before Linux 5.12 and from 6.14 on io_uring's rings count against this limit, except for root.",
)
def locked_memory(r: Readings) -> Verdict:
    if r.locked_memory_bytes is None:
        return "ok", "unlimited"
    reading = f"{r.locked_memory_bytes / 1024**2:g} MiB"
    version = _kernel_version(r.fingerprint.kernel)
    if version is None:
        return "unknown", f"{reading}, kernel {r.fingerprint.kernel}"
    if version >= _RINGS_LOCKED_AGAIN:
        needed = LOCKED_NOW_BYTES
    else:
        needed = 0 if version >= _RINGS_UNLOCKED else LOCKED_BYTES
    if r.locked_memory_bytes >= needed:
        return "ok", reading
    return "warn", reading, "ulimit -l 65536, or memlock in /etc/security/limits.conf."


def _kernel_version(text: str) -> tuple[int, int] | None:
    major, _, rest = text.partition(".")
    minor = rest.partition(".")[0].partition("-")[0]
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


@doctor_check(
    "port range",
    f"A closed connection holds its port for {TIME_WAIT_S} s, so the range bounds new connections to a "
    "target.",
)
def ports(r: Readings) -> Verdict:
    if r.ports is None:
        return "unknown", "could not be read"
    size, waiting = r.ports.size, r.sockets.get("time_wait")
    reading = (
        f"{r.ports.low}-{r.ports.high}: {size:,} ports, {size // TIME_WAIT_S:,} new connections/s to a target"
    )
    if waiting:
        reading += f"; {waiting:,} in TIME_WAIT now"
    advice = (
        'sudo sysctl net.ipv4.ip_local_port_range="15000 64999", or keep connections alive, or use several '
        "addresses."
    )
    if size < 1024:
        return "bad", reading, advice
    if size < DEFAULT_PORTS:
        return "warn", reading, advice
    if waiting is not None and waiting > size / 2:
        return "warn", reading, f"Wait {TIME_WAIT_S} s for those ports to be released."
    return "ok", reading


@doctor_check(
    "descriptors", "Every connection needs a descriptor in the server, and with epoll in the client."
)
def descriptors(r: Readings) -> Verdict:
    soft, hard = r.descriptors
    if soft is None or hard is None:
        return "unknown", "could not be read"
    reading = f"soft {soft:,}, hard {hard:,} (Prony raises its own to {hard:,})"
    advice = (
        f"ulimit -Hn {4 * MANY_USERS} as root, or nofile in /etc/security/limits.conf, "
        "LimitNOFILE= in a unit."
    )
    if hard < 1024:
        return "bad", reading, advice
    if hard < MANY_USERS:
        return "warn", reading, advice
    return "ok", reading


@doctor_check(
    "many users",
    "With io_uring a simulated user needs no descriptor, so memory and ports bound their number; with "
    "epoll each needs a descriptor.",
)
def many_users(r: Readings) -> Verdict:
    if r.drivers is None or "io_uring" not in r.drivers:
        return "unknown", "the usable driver is not known"
    ports_free, available, hard = r.ports, r.memory.get("MemAvailable"), r.descriptors[1]
    if ports_free is None or available is None or hard is None:
        return "unknown", "ports, memory or descriptors could not be read"
    memory_for = available // BYTES_PER_USER
    direct = r.drivers["io_uring"].works
    bounds = {"memory": memory_for} if direct else {"memory": memory_for, "descriptors": hard}
    by, users = min(bounds.items(), key=lambda entry: entry[1])
    comfortable = ports_free.size // 2
    addresses = -(-users // max(1, comfortable))
    reading = (
        f"{'io_uring' if direct else 'epoll'}: {users:,} ({by}), from {addresses:,} source "
        f"address{'' if addresses == 1 else 'es'} at {comfortable:,} users each"
    )
    if r.source_addresses is not None:
        reading += f"; {r.source_addresses} here for remote targets, all of 127.0.0.0/8 for local ones"
    if users >= MANY_USERS:
        return "ok", reading
    advice = (
        "Stop other programs, or use a host with more memory."
        if by == "memory"
        else "Raise the hard limit of descriptors, or use a kernel with io_uring (6.1 or newer)."
    )
    return "warn", reading, advice


@doctor_check(
    "listen queue",
    "When many users start at once, connections beyond the backlog wait 1 s or more for a SYN retry.",
)
def backlog(r: Readings) -> Verdict:
    text = r.fingerprint.sysctls.get("net.core.somaxconn")
    if text is None or not text.isdecimal():
        return "unknown", "net.core.somaxconn could not be read"
    if int(text) < 1024:
        return "warn", f"somaxconn {text}", "sudo sysctl net.core.somaxconn=4096"
    return "ok", f"somaxconn {text}"


@doctor_check(
    "conntrack", "When the firewall's connection table is full, new connections are dropped silently."
)
def conntrack(r: Readings) -> Verdict | None:
    if r.conntrack is None:
        return None
    count, most = r.conntrack
    reading = f"{count:,} of {most:,} entries"
    if count > most / 2 or most < 65_536:
        return "warn", reading, "sudo sysctl net.netfilter.nf_conntrack_max=262144"
    return "ok", reading


@doctor_check(
    "memory", "A Java server and the build tools need about 1 GiB; with less they swap or get killed."
)
def memory(r: Readings) -> Verdict:
    free = r.memory.get("MemAvailable")
    if free is None:
        return "unknown", "could not be read"
    reading = f"{free / 1024**3:.1f} GiB of {r.memory.get('MemTotal', 0) / 1024**3:.1f} GiB available"
    if free < MEMORY_BAD_BYTES:
        return "bad", reading, "Stop other programs, or use a host with more memory."
    if free < MEMORY_WARN_BYTES:
        return "warn", reading, "Stop other programs, or use a host with more memory."
    return "ok", reading


@doctor_check("swap", "A process that waits for swapped memory measures the disk.")
def swap(r: Readings) -> Verdict:
    total, free = r.memory.get("SwapTotal"), r.memory.get("SwapFree")
    if total is None or free is None:
        return "unknown", "could not be read"
    if total == 0:
        return "ok", "none"
    reading = f"{(total - free) / 1024**2:,.0f} of {total / 1024**2:,.0f} MiB used"
    if r.swapped_in_bytes:
        reading += f", {r.swapped_in_bytes / 1024:,.0f} KiB read back in {r.sample_s:g} s"
        return "bad", reading, "Free memory; then sudo swapoff -a && sudo swapon -a."
    if total - free > 64 * 1024**2:
        return "warn", reading, "Free memory; then sudo swapoff -a && sudo swapon -a."
    return "ok", reading


@doctor_check(
    "huge pages",
    "With `always` the kernel compacts memory in the background: memory use and pauses then depend on "
    "uptime.",
)
def huge_pages(r: Readings) -> Verdict:
    reading = r.fingerprint.thp
    if reading is None:
        return "unknown", "could not be read"
    if reading == "always":
        advice = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
        return "warn", reading, advice
    return "ok", reading


@doctor_check("disk", "Every trial is stored at its end; a full disk stops the experiment.")
def disk(r: Readings) -> Verdict:
    folder, free = r.disk
    if free is None:
        return "unknown", f"free space in {folder} could not be read"
    reading = f"{free / 1024**3:.1f} GiB free in {folder}"
    advice = "Free disk space, or store the results elsewhere: --db FILE or PRONY_DB."
    if free < DISK_BAD_BYTES:
        return "bad", reading, advice
    if free < DISK_WARN_BYTES:
        return "warn", reading, advice
    return "ok", reading


@doctor_check(
    "kernel log", "The kernel logs overheating and out-of-memory kills; unread, neither can be excluded."
)
def kernel_log(r: Readings) -> Verdict:
    if r.kernel_log:
        return "ok", "readable"
    advice = (
        "sudo sysctl kernel.dmesg_restrict=0, or join the group adm; else it is a condition of every figure."
    )
    return "unknown", "not readable by this user", advice
