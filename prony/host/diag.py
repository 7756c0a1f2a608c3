"""TCP sockets and round trips from sock_diag over netlink, fast enough for 100,000; the sums of `ss -s`.

Layouts: linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

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

_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI")
_IDENTITY = struct.Struct("!HH16s16s4x8x")
"""Ports and addresses of a socket (network order), then interface and cookie (unused)."""

_INODE, _INODE_AT = struct.Struct("=I"), 68
"""The last field of inet_diag_msg: after family, identity, expiry, both queues and the user."""

_MESSAGE_BYTES = 72
_ATTRIBUTE = struct.Struct("=HH")
_INFO = 2
MOST_ASKED = 500
"""Most connections per reading of round trips, in the kernel's hash order, to spare the client's CPU."""
RTT_AT = 68
"""tcpi_rtt in struct tcp_info (linux/tcp.h): eight bytes of states and options, fifteen numbers before it."""

_RECEIVE_BYTES = 256 * 1024
_PATIENCE_S = 2.0


def count_by_state() -> dict[str, int] | None:
    """By state, IPv4 and IPv6; None when the kernel refuses. About 1.2 µs per socket."""
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
    """Sockets in TIME_WAIT towards this target, whose ports it cannot have again; None: not readable."""
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
    """None when the kernel refuses."""
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
    """tcpi_rtt (µs) of up to MOST_ASKED established connections to this port, or from it if the server is
    `here`. None when the kernel refuses.
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
    """(buffer, offset of inet_diag_msg). Raises OSError. `extensions`: bits of the requested attributes."""
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


TRIES = 7
TRY_TIMEOUT_S = 1.0
PAUSE_S = 0.005


def idle_round_trip_ms(address: str, port: int) -> float | None:
    """Shortest handshake by TCP_INFO: network path and both kernels, without a remote process. None if all
    fail. Only before a load, as each opens a connection.
    """
    times_ms = []
    for _ in range(TRIES):
        try:
            with socket.create_connection((address, port), timeout=TRY_TIMEOUT_S) as connection:
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, RTT_AT + 4)
        except OSError:
            continue
        times_ms.append(struct.unpack_from("=I", info, RTT_AT)[0] / 1000)
        time.sleep(PAUSE_S)
    return min(times_ms, default=None)


def load_round_trip_ms(port: int, *, here: bool) -> float | None:
    """Median of TCP's smoothed round trips of established connections; None without any. An upper bound: an
    acknowledgement may wait for the response, or the next request, that carries it.
    """
    times_us = [time_us for time_us in smoothed_round_trips_us(port, here=here) or () if time_us > 0]
    return median(times_us) / 1000 if times_us else None


DUMP_LIMIT = 100_000
"""Beyond, only the sums, to spare the client's CPU."""


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
