"""Network interfaces of this network namespace: properties and counters."""

from __future__ import annotations

import ctypes
import fcntl
import ipaddress
import socket
import struct
from contextlib import suppress
from pathlib import Path

from prony.evidence.host import InterfaceCounts
from prony.evidence.hosts import Link
from prony.host.proc import ROOT, read_int, read_text

COLUMNS = {
    "received_bytes": 0,
    "received_packets": 1,
    "received_errors": 2,
    "received_dropped": 3,
    "sent_bytes": 8,
    "sent_packets": 9,
    "sent_errors": 10,
    "sent_dropped": 11,
}
"""Columns of /proc/net/dev (net/core/net-procfs.c). Received drops include the hardware's."""

_SIOCGIFADDR, _SIOCETHTOOL = 0x8915, 0x8946
_ETHTOOL_GDRVINFO = 0x00000003
_DRIVER_INFO_BYTES = 196
"""struct ethtool_drvinfo (linux/ethtool.h): the command, then the driver's name in 32 bytes."""


def interface_counts(root: Path = ROOT) -> dict[str, InterfaceCounts] | None:
    """Interface -> counters since its creation; None when unreadable."""
    text = read_text(root / "proc/net/dev")
    if text is None:
        return None
    counts: dict[str, InterfaceCounts] = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) > max(COLUMNS.values()) and all(word.isdecimal() for word in words):
            counts[name.strip()] = InterfaceCounts(**{key: int(words[at]) for key, at in COLUMNS.items()})
    return counts


def interface_towards(address: str) -> str | None:
    """The interface of the route to a numeric address, without sending a packet; None without a route or a
    known interface.
    """
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as way:
            way.connect((address, 9))
            source = str(way.getsockname()[0])
    except OSError:
        return None
    return interface_with(source)


def interface_with(address: str) -> str | None:
    """The interface with this numeric address; None without one."""
    wanted = ipaddress.ip_address(address.partition("%")[0])
    if wanted.version == 6:
        # The address in 32 digits, index, length, scope, flags, name.
        for line in (read_text("/proc/net/if_inet6") or "").splitlines():
            words = line.split()
            if len(words) == 6 and int(words[0], 16) == int(wanted):
                return words[5]
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            with suppress(OSError):  # it has no IPv4 address
                reply = fcntl.ioctl(any_socket, _SIOCGIFADDR, request)
                if reply[20:24] == wanted.packed:
                    return name
    return "lo" if wanted.is_loopback else None


def read_link(interface: str, declared_bits_per_s: float | None = None, root: Path = ROOT) -> Link:
    """Speed, MTU and driver of an interface; a declared speed takes precedence.

    The speed of an interface without hardware is ignored: veth always reports 10 Gbit/s.
    """
    folder = root / "sys/class/net" / interface
    speed_mbit_per_s = read_int(folder / "speed") if (folder / "device").exists() else None
    read = speed_mbit_per_s * 1e6 if speed_mbit_per_s is not None and speed_mbit_per_s > 0 else None
    return Link(
        interface=interface,
        speed_bits_per_s=read if declared_bits_per_s is None else declared_bits_per_s,
        speed_declared=declared_bits_per_s is not None,
        mtu=read_int(folder / "mtu"),
        driver=_driver(interface) if root == ROOT else None,
    )


def _driver(interface: str) -> str | None:
    """By the ioctl of ethtool; None where the interface does not know it (loopback)."""
    info = ctypes.create_string_buffer(struct.pack("=I", _ETHTOOL_GDRVINFO), _DRIVER_INFO_BYTES)
    request = struct.pack("16sP", interface.encode(), ctypes.addressof(info))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
    except OSError:
        return None
    return info.raw[4:36].split(b"\0")[0].decode(errors="replace") or None
