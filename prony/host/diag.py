"""TCP sockets from sock_diag over netlink, fast enough for 100,000; the sums of `ss -s`.

Layouts: linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from prony.host.net_counters import groups
from prony.host.proc import ROOT, now_s, read_text

STATES = {
    1: "established", 2: "syn_sent", 3: "syn_recv", 4: "fin_wait_1", 5: "fin_wait_2", 6: "time_wait",
    7: "close", 8: "close_wait", 9: "last_ack", 10: "listen", 11: "closing", 12: "syn_recv",
}  # fmt: skip
"""Kernel numbers (include/net/tcp_states.h) to names; 12 is a half-open connection without a full socket."""

ESTABLISHED, TIME_WAIT = 1, 6
_ALL_STATES = 0xFFFFFFFF

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST_DUMP = 0x001 | 0x300
_NLMSG_ERROR = 2
_NLMSG_DONE = 3

HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI")
IDENTITY = struct.Struct("!HH16s16s4x8x")
"""Ports and addresses of a socket (network order), then interface and cookie (unused)."""

_INODE, _INODE_AT = struct.Struct("=I"), 68
"""The last field of inet_diag_msg: after family, identity, expiry, both queues and the user."""

_RECEIVE_BYTES = 256 * 1024
_PATIENCE_S = 2.0


def count_by_state() -> dict[str, int] | None:
    """TCP sockets by state, IPv4 and IPv6; None when the kernel refuses. About 1.2 µs per socket."""
    counts: Counter[int] = Counter()
    try:
        for family in (socket.AF_INET, socket.AF_INET6):
            for body, offset in dump(family, _ALL_STATES, 0):
                counts[body[offset + 1]] += 1
    except OSError:
        return None
    named: Counter[str] = Counter()
    for state, count in counts.items():
        named[STATES.get(state, f"state_{state}")] += count
    return dict(sorted(named.items()))


def time_wait_to(address: str, port: int) -> int | None:
    """Sockets in TIME_WAIT towards this target, whose ports cannot be reused yet; None: not readable."""
    wanted = ipaddress.ip_address(address)
    mapped = {wanted.packed}
    if isinstance(wanted, ipaddress.IPv4Address):
        mapped.add(b"\0" * 10 + b"\xff\xff" + wanted.packed)
    count = 0
    try:
        for family in (socket.AF_INET, socket.AF_INET6):
            size = 4 if family == socket.AF_INET else 16
            for body, offset in dump(family, 1 << TIME_WAIT, port):
                _, destination_port, _, destination = IDENTITY.unpack_from(body, offset + 4)
                if destination_port == port and destination[:size] in mapped:
                    count += 1
    except OSError:
        return None
    return count


def established_inodes(source_port: int) -> set[int] | None:
    """Inodes of established sockets with this source port; None when the kernel refuses."""
    try:
        return {
            _INODE.unpack_from(body, offset + _INODE_AT)[0]
            for family in (socket.AF_INET, socket.AF_INET6)
            for body, offset in dump(family, 1 << ESTABLISHED, 0, source_port)
            if IDENTITY.unpack_from(body, offset + 4)[0] == source_port
        }
    except OSError:
        return None


def dump(
    family: int, states: int, destination_port: int, source_port: int = 0, *, extensions: int = 0
) -> Iterator[tuple[bytes, int]]:
    """(buffer, offset of inet_diag_msg). Raises OSError. `extensions`: bits of the requested attributes."""
    identity = IDENTITY.pack(source_port, destination_port, b"", b"")
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, extensions, 0, states) + identity
    message = HEADER.pack(HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST_DUMP, 1, 0) + body
    deadline_s = now_s() + _PATIENCE_S
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as link:
        link.settimeout(_PATIENCE_S)
        link.send(message)
        while True:
            if now_s() > deadline_s:
                raise TimeoutError("the kernel's list of sockets took too long")
            reply = link.recv(_RECEIVE_BYTES)
            offset = 0
            while offset + HEADER.size <= len(reply):
                length, kind, _, _, _ = HEADER.unpack_from(reply, offset)
                if kind == _NLMSG_DONE:
                    return
                if kind == _NLMSG_ERROR:
                    code = struct.unpack_from("=i", reply, offset + HEADER.size)[0]
                    raise OSError(-code, "sock_diag refused")
                if length < HEADER.size:
                    raise OSError("sock_diag sent a message that cannot be read")
                yield reply, offset + HEADER.size
                offset += (length + 3) & ~3


DUMP_LIMIT = 100_000
"""With more sockets only the sums are read, to spare the client's CPU."""


def socket_sums(root: Path = ROOT) -> dict[str, int] | None:
    """`total`, `established`, `closed`, `orphaned`, `time_wait` as in `ss -s`; None when unreadable. `total`
    and `orphaned` cover all network namespaces; `established` includes CLOSE_WAIT (tcpCurrEstab, RFC 4022).
    """
    tcp = _counters(root, "sockstat", "TCP")
    if tcp is None or "alloc" not in tcp:
        return None
    tcp6 = _counters(root, "sockstat6", "TCP6") or {}
    time_wait = tcp.get("tw", 0)
    hashed = tcp.get("inuse", 0) + tcp6.get("inuse", 0)
    sums = {
        "total": tcp["alloc"] + time_wait,
        "closed": max(0, tcp["alloc"] - (hashed - time_wait)),
        "orphaned": tcp.get("orphan", 0),
        "time_wait": time_wait,
    }
    established = groups(read_text(root / "proc/net/snmp") or "").get("Tcp", {}).get("CurrEstab")
    if established is not None:
        sums["established"] = established
    return dict(sorted(sums.items()))


def sockets(root: Path = ROOT) -> dict[str, int]:
    """`socket_sums` and, up to DUMP_LIMIT, every occupied state. Empty when unreadable."""
    sums = socket_sums(root) or {}
    if root != ROOT or sums.get("total", 0) > DUMP_LIMIT:
        return sums
    states = count_by_state()
    if states is None:
        return sums
    exact = {state: states.get(state, 0) for state in ("established", "time_wait")}
    return dict(sorted((sums | states | exact).items()))


def _counters(root: Path, file: str, label: str) -> dict[str, int] | None:
    for line in (read_text(root / "proc/net" / file) or "").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if name == label:
            pairs = zip(words[::2], words[1::2], strict=False)
            return {key: int(value) for key, value in pairs if value.isdecimal()}
    return None
