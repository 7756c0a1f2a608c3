"""The doctor's checks of kernel, memory, limits and disk."""

from __future__ import annotations

from prony.host.check import HostCheck
from prony.host.readings import Readings

TIME_WAIT_S = 60
"""Time that a closed connection holds its port on Linux (TCP_TIMEWAIT_LEN in include/net/tcp.h)."""
DEFAULT_PORTS = 28_232
"""Size of the default range 32768-60999."""
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


def io_uring(r: Readings) -> HostCheck:
    """Whether the engine's faster driver works."""
    why = (
        "io_uring costs the client less CPU per request than epoll, and its connections need no descriptors."
    )
    if r.engine is None:
        return HostCheck(
            "io_uring",
            "unknown",
            "the engine is not installed",
            why,
            "Build it: make setup, or pip install .",
        )
    if r.drivers is None or "io_uring" not in r.drivers:
        advice = "Run prony-engine probe for the reason; then rebuild: make setup."
        return HostCheck("io_uring", "unknown", "prony-engine probe failed", why, advice)
    driver = r.drivers["io_uring"]
    if driver.works:
        return HostCheck("io_uring", "ok", driver.reason or "works", why)
    disabled = r.fingerprint.sysctls.get("kernel.io_uring_disabled", "0")
    advice = (
        "sudo sysctl kernel.io_uring_disabled=0; until then epoll is used."
        if disabled != "0"
        else "No action needed: epoll is used. Linux 6.1 or newer without a seccomp filter has io_uring."
    )
    return HostCheck("io_uring", "warn", driver.reason, why, advice)


def emulation(r: Readings) -> HostCheck | None:
    """Whether the engine is emulated; None if not."""
    if r.emulated is None:
        return None
    return HostCheck(
        "emulation",
        "bad",
        r.emulated,
        "An emulated load generator measures the emulator: no trial will conform.",
        "Install the package for this CPU (a container: --platform of the host).",
    )


def locked_memory(r: Readings) -> HostCheck:
    """RLIMIT_MEMLOCK, which bounds io_uring's rings before Linux 5.12 and from 6.14 on."""
    why = "Before Linux 5.12 and from 6.14 on io_uring's rings count against this limit, except for root."
    if r.locked_memory_bytes is None:
        return HostCheck("locked memory", "ok", "unlimited", why)
    reading = f"{r.locked_memory_bytes / 1024**2:g} MiB"
    version = _kernel_version(r.fingerprint.kernel)
    if version is None:
        return HostCheck("locked memory", "unknown", f"{reading}, kernel {r.fingerprint.kernel}", why)
    if version >= _RINGS_LOCKED_AGAIN:
        needed = LOCKED_NOW_BYTES
    else:
        needed = 0 if version >= _RINGS_UNLOCKED else LOCKED_BYTES
    if r.locked_memory_bytes >= needed:
        return HostCheck("locked memory", "ok", reading, why)
    return HostCheck(
        "locked memory", "warn", reading, why, "ulimit -l 65536, or memlock in /etc/security/limits.conf."
    )


def _kernel_version(text: str) -> tuple[int, int] | None:
    major, _, rest = text.partition(".")
    minor = rest.partition(".")[0].partition("-")[0]
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


def ports(r: Readings) -> HostCheck:
    """New connections per second within the ephemeral ports."""
    why = (
        f"A closed connection holds its port for {TIME_WAIT_S} s, so the range bounds new connections to a "
        "target."
    )
    if r.ports is None:
        return HostCheck("port range", "unknown", "could not be read", why)
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
        return HostCheck("port range", "bad", reading, why, advice)
    if size < DEFAULT_PORTS:
        return HostCheck("port range", "warn", reading, why, advice)
    if waiting is not None and waiting > size / 2:
        return HostCheck(
            "port range", "warn", reading, why, f"Wait {TIME_WAIT_S} s for those ports to be released."
        )
    return HostCheck("port range", "ok", reading, why)


def descriptors(r: Readings) -> HostCheck:
    """RLIMIT_NOFILE."""
    why = "Every connection needs a descriptor in the server, and with epoll in the client."
    soft, hard = r.descriptors
    if soft is None or hard is None:
        return HostCheck("descriptors", "unknown", "could not be read", why)
    reading = f"soft {soft:,}, hard {hard:,} (Prony raises its own to {hard:,})"
    advice = (
        f"ulimit -Hn {4 * MANY_USERS} as root, or nofile in /etc/security/limits.conf, "
        "LimitNOFILE= in a unit."
    )
    if hard < 1024:
        return HostCheck("descriptors", "bad", reading, why, advice)
    if hard < MANY_USERS:
        return HostCheck("descriptors", "warn", reading, why, advice)
    return HostCheck("descriptors", "ok", reading, why)


def many_users(r: Readings) -> HostCheck:
    """Number of users an engine can simulate towards a target (docs/engine.md)."""
    why = (
        "With io_uring a simulated user needs no descriptor, so memory and ports bound their number; with "
        "epoll each needs a descriptor."
    )
    if r.drivers is None or "io_uring" not in r.drivers:
        return HostCheck("many users", "unknown", "the usable driver is not known", why)
    ports_free, available, hard = r.ports, r.memory.get("MemAvailable"), r.descriptors[1]
    if ports_free is None or available is None or hard is None:
        return HostCheck("many users", "unknown", "ports, memory or descriptors could not be read", why)
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
        return HostCheck("many users", "ok", reading, why)
    advice = (
        "Stop other programs, or use a host with more memory."
        if by == "memory"
        else "Raise the hard limit of descriptors, or use a kernel with io_uring (6.1 or newer)."
    )
    return HostCheck("many users", "warn", reading, why, advice)


def backlog(r: Readings) -> HostCheck:
    """Cap of every listen backlog."""
    why = "When many users start at once, connections beyond the backlog wait 1 s or more for a SYN retry."
    text = r.fingerprint.sysctls.get("net.core.somaxconn")
    if text is None or not text.isdecimal():
        return HostCheck("listen queue", "unknown", "net.core.somaxconn could not be read", why)
    if int(text) < 1024:
        return HostCheck(
            "listen queue", "warn", f"somaxconn {text}", why, "sudo sysctl net.core.somaxconn=4096"
        )
    return HostCheck("listen queue", "ok", f"somaxconn {text}", why)


def conntrack(r: Readings) -> HostCheck | None:
    """The firewall's connection table; None without one."""
    if r.conntrack is None:
        return None
    count, most = r.conntrack
    why = "When the firewall's connection table is full, new connections are dropped silently."
    reading = f"{count:,} of {most:,} entries"
    if count > most / 2 or most < 65_536:
        return HostCheck(
            "conntrack", "warn", reading, why, "sudo sysctl net.netfilter.nf_conntrack_max=262144"
        )
    return HostCheck("conntrack", "ok", reading, why)


def huge_pages(r: Readings) -> HostCheck:
    """Transparent huge pages."""
    why = (
        "With `always` the kernel compacts memory in the background: memory use and pauses then depend on "
        "uptime."
    )
    reading = r.fingerprint.thp
    if reading is None:
        return HostCheck("huge pages", "unknown", "could not be read", why)
    if reading == "always":
        advice = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
        return HostCheck("huge pages", "warn", reading, why, advice)
    return HostCheck("huge pages", "ok", reading, why)


def swap(r: Readings) -> HostCheck:
    """Swap space in use."""
    why = "A process that waits for swapped memory measures the disk."
    total, free = r.memory.get("SwapTotal"), r.memory.get("SwapFree")
    if total is None or free is None:
        return HostCheck("swap", "unknown", "could not be read", why)
    if total == 0:
        return HostCheck("swap", "ok", "none", why)
    reading = f"{(total - free) / 1024**2:,.0f} of {total / 1024**2:,.0f} MiB used"
    if r.swapped_in_bytes:
        reading += f", {r.swapped_in_bytes / 1024:,.0f} KiB read back in {r.sample_s:g} s"
        return HostCheck("swap", "bad", reading, why, "Free memory; then sudo swapoff -a && sudo swapon -a.")
    if total - free > 64 * 1024**2:
        return HostCheck("swap", "warn", reading, why, "Free memory; then sudo swapoff -a && sudo swapon -a.")
    return HostCheck("swap", "ok", reading, why)


def memory(r: Readings) -> HostCheck:
    """Available memory."""
    why = "A Java server and the build tools need about 1 GiB; with less they swap or get killed."
    free = r.memory.get("MemAvailable")
    if free is None:
        return HostCheck("memory", "unknown", "could not be read", why)
    reading = f"{free / 1024**3:.1f} GiB of {r.memory.get('MemTotal', 0) / 1024**3:.1f} GiB available"
    if free < MEMORY_BAD_BYTES:
        return HostCheck(
            "memory", "bad", reading, why, "Stop other programs, or use a host with more memory."
        )
    if free < MEMORY_WARN_BYTES:
        return HostCheck(
            "memory", "warn", reading, why, "Stop other programs, or use a host with more memory."
        )
    return HostCheck("memory", "ok", reading, why)


def disk(r: Readings) -> HostCheck:
    """Disk space for results."""
    why = "Every trial is stored at its end; a full disk stops the experiment."
    folder, free = r.disk
    if free is None:
        return HostCheck("disk", "unknown", f"free space in {folder} could not be read", why)
    reading = f"{free / 1024**3:.1f} GiB free in {folder}"
    advice = "Free disk space, or store the results elsewhere: --db FILE or PRONY_DB."
    if free < DISK_BAD_BYTES:
        return HostCheck("disk", "bad", reading, why, advice)
    if free < DISK_WARN_BYTES:
        return HostCheck("disk", "warn", reading, why, advice)
    return HostCheck("disk", "ok", reading, why)


def kernel_log(r: Readings) -> HostCheck:
    """Whether the kernel log is readable."""
    why = "The kernel logs overheating and out-of-memory kills; unread, neither can be excluded."
    if r.kernel_log:
        return HostCheck("kernel log", "ok", "readable", why)
    advice = (
        "sudo sysctl kernel.dmesg_restrict=0, or join the group adm; else it is a condition of every figure."
    )
    return HostCheck("kernel log", "unknown", "not readable by this user", why, advice)


ALL = (
    emulation,
    io_uring,
    locked_memory,
    ports,
    descriptors,
    many_users,
    backlog,
    conntrack,
    memory,
    swap,
    huge_pages,
    disk,
    kernel_log,
)
