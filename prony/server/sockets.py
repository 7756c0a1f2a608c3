"""Listening sockets from the kernel's tables, which list them before all others."""

from __future__ import annotations

import errno
import ipaddress
import os
import random
import socket
import struct
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.errors import EnvironmentFault, UsageError
from prony.server.proc import describe

LISTEN = "0A"
ACCEPTS = 0x10000
"""In the flags of a Unix socket that listens (__SO_ACCEPTCON)."""
OWN_PORTS = range(18_000, 28_000)
"""Below the usual ephemeral range, above most services."""


@dataclass(frozen=True, slots=True)
class Listener:
    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int
    uid: int
    inode: int

    def takes(self, addresses: Collection[str]) -> bool:
        return self.address.is_unspecified or str(self.address) in addresses


def listeners(port: int, host: str) -> list[Listener]:
    """Sockets of all processes listening on `port` for `host`; empty where the tables cannot be read."""
    return _listeners(port, host) or []


def listening_inodes(port: int, host: str) -> frozenset[int] | None:
    """Inodes of `listeners`; None where the tables cannot be read."""
    listening = _listeners(port, host)
    return None if listening is None else frozenset(listener.inode for listener in listening)


def _listeners(port: int, host: str) -> list[Listener] | None:
    everywhere = _on(port)
    if everywhere is None or all(listener.address.is_unspecified for listener in everywhere):
        return everywhere
    addresses = resolved(host)
    return [listener for listener in everywhere if listener.takes(addresses)]


def resolved(host: str) -> frozenset[str]:
    """The addresses of a name (may ask a resolver) or address; empty: not known."""
    try:
        return frozenset(str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except OSError:
        return frozenset()


def _on(port: int) -> list[Listener] | None:
    listening = []
    for table in ("tcp", "tcp6"):
        try:
            with Path(f"/proc/net/{table}").open(encoding="ascii") as rows:
                listening += [listener for listener in _listening(rows) if listener.port == port]
        except FileNotFoundError:
            if table == "tcp":
                return None
        except OSError:
            return None
    return listening


def answering(port: int, addresses: Collection[str]) -> list[Listener] | None:
    """The `listeners` that a connection to these `resolved` addresses reaches: none where it is another host;
    of several the most specific address, as the kernel chooses (NAT is not seen). None where the tables
    cannot be read.
    """
    here = bool(addresses) and all(_is_local(address) for address in addresses)
    everywhere = _on(port) if here else []
    if everywhere is None:
        return None
    reached = [listener for listener in everywhere if listener.takes(addresses)]
    versions = {ipaddress.ip_address(address.partition("%")[0]).version for address in addresses}

    def distance(listener: Listener) -> int:
        if not listener.address.is_unspecified:
            return 0
        return 1 if listener.address.version in versions else 2

    nearest = min(map(distance, reached), default=0)
    return [listener for listener in reached if distance(listener) == nearest]


def _is_local(address: str) -> bool:
    """Loopback, or the route's own source."""
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return True
    with socket.socket(_family(address), socket.SOCK_DGRAM) as towards:
        try:
            towards.connect((address, 9))  # a datagram socket: nothing is sent
        except OSError:
            return False
        return bool(towards.getsockname()[0] == address)


def unix_listeners(path: str) -> set[int] | None:
    """Inodes of the sockets listening at this path; None where the table cannot be read."""
    inodes = set()
    try:
        with Path("/proc/net/unix").open(encoding="utf-8", errors="replace") as rows:
            next(rows, None)
            for row in rows:
                # Num RefCount Protocol Flags Type St Inode Path
                fields = row.rstrip("\n").split(maxsplit=7)
                if len(fields) == 8 and fields[7] == path and int(fields[3], 16) & ACCEPTS:
                    inodes.add(int(fields[6]))
    except OSError:
        return None
    return inodes


def _listening(rows: Iterator[str]) -> Iterator[Listener]:
    next(rows, None)
    for row in rows:
        fields = row.split()
        if fields[3] != LISTEN:
            break
        address, _, port = fields[1].partition(":")
        yield Listener(_address(address), int(port, 16), int(fields[7]), int(fields[9]))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """32-bit words in the byte order of the host."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    address = ipaddress.ip_address(packed)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def owned_by(inodes: Iterable[int], pids: Iterable[int]) -> set[int] | None:
    """Which of these inodes are open in these processes; None when no process may be inspected."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    owned: set[int] = set()
    looked = False
    for pid in pids:
        try:
            descriptors = [entry.path for entry in os.scandir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        looked = True
        owned |= {wanted[target] for target in map(_target, descriptors) if target in wanted}
        if len(owned) == len(wanted):
            break
    return owned if looked else None


def _target(descriptor: str) -> str:
    """Such as `socket:[123]`; empty if closed meanwhile."""
    try:
        return os.readlink(descriptor)  # noqa: PTH115 - a name, not a path
    except OSError:
        return ""


def holders(inodes: Collection[int]) -> set[int]:
    """Visible processes with one of these sockets open."""
    if not inodes:
        return set()
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {pid for pid in pids if owned_by(inodes, (pid,))}


def owner_of(listener: Listener) -> int | None:
    """Pid; None: another user's process."""
    return min(holders((listener.inode,)), default=None)


def check_free(host: str, port: int) -> None:
    """Raises EnvironmentFault that names the port's owner, or UsageError for an unusable address."""
    for listener in listeners(port, host):
        pid = owner_of(listener)
        who = (
            f"PID {describe(pid)}"
            if pid is not None
            else f"a process of user {_user(listener.uid)} that this user cannot see"
        )
        raise EnvironmentFault(f"port {port} is taken by {who}; stop it or choose another port")
    fault = _try_to_bind(host, port)
    if fault is None:
        return
    if fault.errno == errno.EACCES:
        raise EnvironmentFault(
            f"no permission to listen on port {port}: {fault.strerror}; choose one above 1023"
        )
    if fault.errno == errno.EADDRINUSE:
        raise EnvironmentFault(
            f"port {port} is in use by a connection of another program; choose another port"
        )
    raise UsageError(f"cannot listen on {host}:{port}: {fault.strerror or fault}")


def free_port(host: str) -> int:
    """Outside the ephemeral range where possible; random, checked by binding."""
    ephemeral = _ephemeral_range()
    outside = [port for port in OWN_PORTS if port not in ephemeral]
    for port in random.sample(outside, min(200, len(outside))):
        if not listeners(port, host) and _try_to_bind(host, port) is None:
            return port
    with socket.socket(_family(host), socket.SOCK_STREAM) as any_port:
        try:
            any_port.bind((host, 0))
        except OSError as fault:
            raise EnvironmentFault(f"no free port on {host}: {fault.strerror}") from fault
        return int(any_port.getsockname()[1])


def _try_to_bind(host: str, port: int) -> OSError | None:
    with socket.socket(_family(host), socket.SOCK_STREAM) as trial:
        # As servers do it: connections of an earlier one that are still in TIME_WAIT are no obstacle.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as fault:
            return fault
    return None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _ephemeral_range() -> range:
    try:
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()
        return range(int(low), int(high) + 1)
    except (OSError, ValueError):
        return range(32_768, 61_000)


def _user(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
