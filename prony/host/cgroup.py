"""The CPU quota of a process's control group, cgroup v1 and v2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from prony.host.proc import ROOT, read_int, read_text


def cpu_quota(root: Path = ROOT, pid: int | None = None) -> float | None:
    """Smallest CPU quota, in CPUs, from the group of `pid` (default: this process) up to the root; None
    without one, or when unreadable.
    """
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


def _folders(root: Path, who: str, controller: str | None) -> Iterator[Path]:
    """The group's folder in a hierarchy and its mounted parents."""
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
    """(path within the hierarchy, mount point) of its mounts, from /proc/PID/mountinfo."""
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
