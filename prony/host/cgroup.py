"""CPU quota, throttling and memory limit of a process's control group, cgroup v1 and v2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from prony.evidence.server import CgroupThrottle
from prony.host.proc import ROOT, TICKS_PER_S, read_int, read_text

Levels = tuple[CgroupThrottle, ...]
"""Throttling of each level with a quota, nearest first; any of them may stop the process."""
CONTAINER = re.compile(r"[0-9a-f]{64}")
"""A container's id, which is in the name of its group."""


def cpu_quota(root: Path = ROOT, pid: int | None = None) -> float | None:
    """The smallest quota, in CPUs, from the group of `pid` (default: this process) up to the root."""
    who = "self" if pid is None else str(pid)
    quotas = [quota for quota in (*_v2(root, who), *_v1(root, who)) if quota is not None]
    return min(quotas, default=None)


def _v2(root: Path, who: str) -> Iterator[float | None]:
    for folder in _folders(root, who, controller=None):
        text = read_text(folder / "cpu.max")
        fields = text.split() if text else []
        if len(fields) == 2 and fields[0].isdecimal() and fields[1].isdecimal() and int(fields[1]) > 0:
            yield int(fields[0]) / int(fields[1])


def _v1(root: Path, who: str) -> Iterator[float | None]:
    for folder in _folders(root, who, controller="cpu"):
        quota, period = read_int(folder / "cpu.cfs_quota_us"), read_int(folder / "cpu.cfs_period_us")
        if quota is not None and period is not None and quota > 0 and period > 0:
            yield quota / period


def members(pid: int, root: Path = ROOT) -> frozenset[int]:
    """All processes of its group (cgroup v2) where that is a service's or a container's. Empty for a group
    that may hold others' processes: the root, a login's session, a desktop's scope, this process's own.
    """
    group = _group(root, str(pid), None) or "/"
    name = PurePosixPath(group).name
    if group == _group(root, "self", None) or not (name.endswith(".service") or CONTAINER.search(name)):
        return frozenset()
    folder = next(_folders(root, str(pid), None), None)
    listed = "" if folder is None else read_text(folder / "cgroup.procs") or ""
    return frozenset(int(word) for word in listed.split() if word.isdecimal())


def throttle(pid: int, root: Path = ROOT) -> Levels | None:
    """Throttling of each level with a quota, nearest first; zeros without a quota. None when unreadable."""
    return counted(limited(pid, root))


def limited(pid: int, root: Path = ROOT) -> tuple[Path, ...] | None:
    """Folders of the levels with a quota, which stay when the process has ended; None when unreadable."""
    controller = None if _group(root, str(pid), "cpu") is None else "cpu"
    folders = tuple(_folders(root, str(pid), controller))
    return tuple(filter(_has_quota, folders)) if folders else None


def counted(folders: tuple[Path, ...] | None) -> Levels | None:
    counters = [_counters(folder) for folder in folders or ()]
    known = tuple(one for one in counters if one is not None)
    if folders is None or len(known) < len(counters):
        return None
    return known or (CgroupThrottle(periods=0, throttled_periods=0, throttled_s=0.0),)


def between(first: Levels | None, last: Levels | None) -> CgroupThrottle | None:
    """Throttling of the most throttled level; None when either is unknown or their levels differ."""
    if not first or not last or len(first) != len(last):
        return None
    differences = [
        CgroupThrottle(
            periods=end.periods - begin.periods,
            throttled_periods=end.throttled_periods - begin.throttled_periods,
            throttled_s=end.throttled_s - begin.throttled_s,
        )
        for begin, end in zip(first, last, strict=True)
    ]
    return max(differences, key=lambda level: level.throttled_s)


@dataclass(frozen=True, slots=True)
class GroupUse:
    """Of a control group and those below it, so far."""

    cpu_user_s: float
    cpu_system_s: float
    memory_bytes: int
    """Without the page cache that the kernel would drop first."""
    peak_bytes: int | None
    """With it; None before Linux 5.19."""


def use(pid: int, name: str, root: Path = ROOT) -> GroupUse | None:
    """Of the group of `pid` that carries this name (a container's id); None: there is none, or unreadable."""
    cpu, memory = (_named(root, str(pid), name, controller) for controller in ("cpuacct", "memory"))
    if cpu is None or memory is None:
        return None
    stat = _pairs(cpu / "cpu.stat")
    user_s, system_s = (stat.get(f"{mode}_usec", 0) / 1e6 for mode in ("user", "system"))
    total_s, now = stat.get("usage_usec", 0) / 1e6, read_int(memory / "memory.current")
    peak = read_int(memory / "memory.peak")
    if now is None:  # v1, whose times are in ticks beside an exact sum in nanoseconds
        ticks = _pairs(cpu / "cpuacct.stat")
        user_s, system_s = (ticks.get(mode, 0) / TICKS_PER_S for mode in ("user", "system"))
        total_s = (read_int(cpu / "cpuacct.usage") or 0) / 1e9
        now = read_int(memory / "memory.usage_in_bytes")
        peak = read_int(memory / "memory.max_usage_in_bytes")
    if now is None or not total_s:
        return None
    if not user_s + system_s:
        system_s = total_s
    exact = total_s / (user_s + system_s)
    return GroupUse(user_s * exact, system_s * exact, max(0, now - _dropped(memory)), peak)


def memory_left(root: Path = ROOT) -> int | None:
    """Least room for memory of this process's group and those above it, bytes; None without a limit."""
    left = []
    for controller, most, now in (
        (None, "memory.max", "memory.current"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        for folder in _folders(root, "self", controller):
            limit, used = read_int(folder / most), read_int(folder / now)
            if limit is not None and used is not None:
                left.append(limit - used + _dropped(folder))
    return min(left, default=None)


def _dropped(folder: Path) -> int:
    """Page cache that the kernel would drop first."""
    kept = _pairs(folder / "memory.stat")
    return kept.get("total_inactive_file", kept.get("inactive_file", 0))


def _named(root: Path, who: str, name: str, controller: str) -> Path | None:
    """The highest group that carries this name, in the controller's hierarchy of v1, else in that of v2."""
    v1 = _group(root, who, controller)
    folders = _folders(root, who, None if v1 is None else controller)
    return next((one for one in reversed([*folders]) if name in one.name), None)


def _pairs(file: Path) -> dict[str, int]:
    lines = (line.split() for line in (read_text(file) or "").splitlines())
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}


def _has_quota(level: Path) -> bool:
    """A hierarchy's root and levels without the controller have none."""
    for file, unlimited in (("cpu.max", "max"), ("cpu.cfs_quota_us", "-1")):
        try:
            return not (level / file).read_text(encoding="ascii").startswith(unlimited)
        except OSError:
            continue
    return False


def _counters(level: Path) -> CgroupThrottle | None:
    stat = _pairs(level / "cpu.stat")
    if "nr_periods" not in stat:
        return None
    throttled_s = (
        stat["throttled_usec"] / 1e6 if "throttled_usec" in stat else stat.get("throttled_time", 0) / 1e9
    )
    return CgroupThrottle(
        periods=stat["nr_periods"], throttled_periods=stat.get("nr_throttled", 0), throttled_s=throttled_s
    )


def _folders(root: Path, who: str, controller: str | None) -> Iterator[Path]:
    group = _group(root, who, controller)
    if group is None:
        return
    for mounted_root, mount_point in _mounts(root, controller):
        # In a container the mount shows a part of the hierarchy, but the group's path is absolute.
        try:
            inside = PurePosixPath(group).relative_to(mounted_root)
        except ValueError:
            inside = PurePosixPath(".")
        top = root / mount_point.lstrip("/")
        folder = top / inside
        while True:
            yield folder
            if folder == top:
                break
            folder = folder.parent


def _group(root: Path, who: str, controller: str | None) -> str | None:
    for line in (read_text(root / f"proc/{who}/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller is None:
            if number == "0" and not controllers:
                return path
        elif controller in controllers.split(","):
            return path
    return None


def _mounts(root: Path, controller: str | None) -> Iterator[tuple[str, str]]:
    """(path within the hierarchy, mount point), from /proc/PID/mountinfo."""
    for line in (read_text(root / "proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        before, after = left.split(), right.split()
        if len(before) < 5 or len(after) < 3:
            continue
        if controller is None:
            if after[0] == "cgroup2":
                yield before[3], before[4]
        elif after[0] == "cgroup" and controller in after[2].split(","):
            yield before[3], before[4]
