"""Descriptor limits and ephemeral ports of the client's side."""

from __future__ import annotations

import resource
import socket
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

from prony.errors import UsageError
from prony.evidence.host import Limits, PortRange
from prony.host import diag
from prony.host.proc import ROOT, parse_cpus, read_int, read_text

Target = tuple[str, int]
"""Host and port."""
OWN_SERVERS: Target = ("127.0.0.1", 0)
"""Servers that Prony launches, each on a fresh port."""


def limits(target: Target | None = None, *, root: Path = ROOT) -> Limits:
    soft, hard = descriptor_limits()
    return Limits(
        descriptors_soft=soft,
        descriptors_hard=hard,
        ports=port_range(root),
        time_wait_to_target=None if target is None else time_wait_to(target),
        time_wait_reuse=None if target is None else time_wait_reuse(target, root),
    )


def limits_to_own_servers() -> Limits:
    return limits().model_copy(update={"time_wait_reuse": time_wait_reuse(OWN_SERVERS)})


def towards(limits: Limits, target: Target) -> Limits:
    """The limits with a target's ports in TIME_WAIT and their reuse."""
    return limits.model_copy(
        update={"time_wait_to_target": time_wait_to(target), "time_wait_reuse": time_wait_reuse(target)}
    )


def descriptor_limits() -> tuple[int | None, int | None]:
    """(soft, hard) of RLIMIT_NOFILE; unlimited is fs.nr_open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    bound = read_int("/proc/sys/fs/nr_open")
    return (
        bound if soft == resource.RLIM_INFINITY else soft,
        bound if hard == resource.RLIM_INFINITY else hard,
    )


def raise_descriptors() -> int | None:
    """Raises the soft limit to the hard one and returns it. Children inherit it, but a server is to start
    under its own defaults."""
    soft, hard = descriptor_limits()
    if soft is not None and hard is not None and soft < hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return descriptor_limits()[0]


def port_range(root: Path = ROOT) -> PortRange | None:
    words = (read_text(root / "proc/sys/net/ipv4/ip_local_port_range") or "").split()
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return None
    low, high = int(words[0]), int(words[1])
    return PortRange(low=low, high=high, reserved=_reserved(root, low, high))


def _reserved(root: Path, low: int, high: int) -> int:
    text = read_text(root / "proc/sys/net/ipv4/ip_local_reserved_ports") or ""
    try:
        ports = parse_cpus(text)  # the same notation: 8080,9148-9150
    except UsageError:
        return 0
    return sum(low <= port <= high for port in ports)


def time_wait_to(target: Target) -> int | None:
    """Ports in TIME_WAIT, over all addresses of the target's name."""
    addresses = _addresses(target)
    if addresses is None:
        return None
    counts = [diag.time_wait_to(address, target[1]) for address in addresses]
    readable = [count for count in counts if count is not None]
    return sum(readable) if len(readable) == len(counts) else None


def time_wait_reuse(target: Target, root: Path = ROOT) -> bool | None:
    """Whether the kernel reuses a port in TIME_WAIT for this target after a second: tcp_tw_reuse 1 always, 2
    for loopback; both need timestamps.
    """
    mode, stamps = (
        read_text(root / "proc/sys/net/ipv4" / name) for name in ("tcp_tw_reuse", "tcp_timestamps")
    )
    if mode is None or stamps is None:
        return None
    if stamps.strip() == "0" or mode.strip() not in {"1", "2"}:
        return False
    if mode.strip() == "1":
        return True
    addresses = _addresses(target)
    return None if addresses is None else all(ip_address(address).is_loopback for address in addresses)


def _addresses(target: Target) -> list[str] | None:
    try:
        entries = socket.getaddrinfo(*target, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return sorted({str(entry[4][0]).partition("%")[0] for entry in entries})
