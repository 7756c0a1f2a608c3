"""The process that runs an experiment, to detect crashed ones."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from prony.host.proc import process_stat, read_text


def this_process() -> str:
    """`host|boot id|pid|start tick`: identity of this process, unique across reboots."""
    return _identity(os.getpid())


def is_gone(owner: str) -> bool:
    """True only if the process certainly ended: it ran on this host and is gone."""
    host, _, rest = owner.partition("|")
    if host != socket.gethostname() or not Path("/proc/self/stat").exists():
        return False
    boot, _, process = rest.partition("|")
    if boot != _boot():
        return bool(boot and _boot())
    pid = process.partition("|")[0]
    return not pid.isdecimal() or _identity(int(pid)) != owner


def _identity(pid: int) -> str:
    stat = process_stat(pid)
    return f"{socket.gethostname()}|{_boot()}|{pid}|{stat.started_ticks if stat else ''}"


def _boot() -> str:
    return read_text("/proc/sys/kernel/random/boot_id") or ""
