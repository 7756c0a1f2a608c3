"""TCP sockets from the kernel's sock_diag over netlink, fast enough for 100,000.

Layouts: linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections import Counter
from collections.abc import Iterator

from prony.host.proc import now_s

STATES = {
    1: "established",
    2: "syn_sent",
    3: "syn_recv",
    4: "fin_wait_1",
    5: "fin_wait_2",
    6: "time_wait",
    7: "close",
    8: "close_wait",
    9: "last_ack",
    10: "listen",
    11: "closing",
    12: "syn_recv",
}
"""Kernel numbers (include/net/tcp_states.h) to names; 12 is a half-open connection without a full socket."""

ESTABLISHED, TIME_WAIT = 1, 6
_ALL_STATES = 0xFFFFFFFF

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST_DUMP = 0x001 | 0x300
_NLMSG_ERROR = 2
_NLMSG_DONE = 3

_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI")
_IDENTITY = struct.Struct("!HH16s16s4x8x")
"""Ports and addresses of a socket (network order), then interface and cookie (unused)."""

_INODE, _INODE_AT = struct.Struct("=I"), 68
"""The last field of inet_diag_msg: after family, identity, expiry, both queues and the user."""

_MESSAGE_BYTES = 72
"""sizeof(struct inet_diag_msg); attributes follow."""
_ATTRIBUTE = struct.Struct("=HH")
_INFO = 2
"""INET_DIAG_INFO: a struct tcp_info."""
MOST_ASKED = 500
"""Most connections per reading of round trips, in the kernel's hash order, to spare the client's CPU."""
RTT_AT = 68
"""tcpi_rtt in struct tcp_info (linux/tcp.h): eight bytes of states and options, fifteen numbers before it."""

_RECEIVE_BYTES = 256 * 1024
_PATIENCE_S = 2.0
"""Longest dump; beyond, the figure is unknown."""


def count_by_state() -> dict[str, int] | None:
    """TCP sockets of this network namespace by state, IPv4 and IPv6 together; None when the kernel refuses.

    About 1.2 µs of this process's time per socket (measured with 16,000).
    """
    counts: Counter[int] = Counter()
    try:
        for family in (socket.AF_INET, socket.AF_INET6):
            for body, offset in _dump(family, _ALL_STATES, 0):
                counts[body[offset + 1]] += 1
    except OSError:
        return None
    named: Counter[str] = Counter()
    for state, count in counts.items():
        named[STATES.get(state, f"state_{state}")] += count
    return dict(sorted(named.items()))


def time_wait_to(address: str, port: int) -> int | None:
    """Sockets in TIME_WAIT towards `address`:`port` (numeric), whose local ports a new connection to it
    cannot have; None when the kernel refuses.
    """
    wanted = ipaddress.ip_address(address)
    mapped = {wanted.packed}
    if isinstance(wanted, ipaddress.IPv4Address):
        mapped.add(b"\0" * 10 + b"\xff\xff" + wanted.packed)
    count = 0
    try:
        for family in (socket.AF_INET, socket.AF_INET6):
            size = 4 if family == socket.AF_INET else 16
            for body, offset in _dump(family, 1 << TIME_WAIT, port):
                _, destination_port, _, destination = _IDENTITY.unpack_from(body, offset + 4)
                if destination_port == port and destination[:size] in mapped:
                    count += 1
    except OSError:
        return None
    return count


def established_inodes(source_port: int) -> set[int] | None:
    """Inodes of established sockets with this local port; None when the kernel refuses."""
    try:
        return {
            _INODE.unpack_from(body, offset + _INODE_AT)[0]
            for family in (socket.AF_INET, socket.AF_INET6)
            for body, offset in _dump(family, 1 << ESTABLISHED, 0, source_port)
            if _IDENTITY.unpack_from(body, offset + 4)[0] == source_port
        }
    except OSError:
        return None


def smoothed_round_trips_us(port: int, *, here: bool) -> list[int] | None:
    """TCP's smoothed round trips (tcpi_rtt, µs) of up to MOST_ASKED established connections to this port, or
    from it if the server is `here`. None when the kernel refuses.
    """
    source, destination = (port, 0) if here else (0, port)
    times_us = []
    try:
        for family in (socket.AF_INET, socket.AF_INET6):
            sockets = _dump(family, 1 << ESTABLISHED, destination, source, extensions=1 << (_INFO - 1))
            for body, offset in sockets:
                ports = _IDENTITY.unpack_from(body, offset + 4)[:2]
                info = _attribute(body, offset, _INFO) if ports[0 if here else 1] == port else None
                if info is not None and len(info) >= RTT_AT + 4:
                    times_us.append(struct.unpack_from("=I", info, RTT_AT)[0])
                if len(times_us) >= MOST_ASKED:
                    return times_us
    except OSError:
        return None
    return times_us


def _attribute(body: bytes, offset: int, wanted: int) -> bytes | None:
    """An attribute of the inet_diag_msg at this offset; None without it."""
    end = offset - _HEADER.size + _HEADER.unpack_from(body, offset - _HEADER.size)[0]
    at = offset + _MESSAGE_BYTES
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if length < _ATTRIBUTE.size:
            return None
        if kind == wanted:
            return body[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return None


def _dump(
    family: int, states: int, destination_port: int, source_port: int = 0, *, extensions: int = 0
) -> Iterator[tuple[bytes, int]]:
    """Matching sockets as (buffer, offset of inet_diag_msg). Raises OSError when the kernel refuses or is too
    slow. `extensions`: bits of the requested attributes.
    """
    identity = _IDENTITY.pack(source_port, destination_port, b"", b"")
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, extensions, 0, states) + identity
    message = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST_DUMP, 1, 0) + body
    deadline_s = now_s() + _PATIENCE_S
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as link:
        link.settimeout(_PATIENCE_S)
        link.send(message)
        while True:
            if now_s() > deadline_s:
                raise TimeoutError("the kernel's list of sockets took too long")
            reply = link.recv(_RECEIVE_BYTES)
            offset = 0
            while offset + _HEADER.size <= len(reply):
                length, kind, _, _, _ = _HEADER.unpack_from(reply, offset)
                if kind == _NLMSG_DONE:
                    return
                if kind == _NLMSG_ERROR:
                    code = struct.unpack_from("=i", reply, offset + _HEADER.size)[0]
                    raise OSError(-code, "sock_diag refused")
                if length < _HEADER.size:
                    raise OSError("sock_diag sent a message that cannot be read")
                yield reply, offset + _HEADER.size
                offset += (length + 3) & ~3
