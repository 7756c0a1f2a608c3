"""CPU quota counters of a process's cgroup, version 1 or 2."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prony.evidence.server import CgroupThrottle
from prony.host.proc import ROOT

GROUP_FILE = "/proc/{pid}/cgroup"
Levels = tuple[CgroupThrottle, ...]
"""Of each level with a quota, nearest first: any of them may stop the process."""
V1_ROOTS = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuacct,cpu")
V2_ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")


def throttle(pid: int, root: Path = ROOT) -> Levels | None:
    """Counters since the cgroup exists, of each level with a quota, nearest first; one of zeros when no level
    has one. None when unreadable. `root`: of the file system, for tests.
    """
    try:
        rows = [
            line.split(":", 2)
            for line in _below(root, GROUP_FILE.format(pid=pid)).read_text(encoding="ascii").splitlines()
        ]
    except (OSError, ValueError):
        return None
    for _, controllers, path in (row for row in rows if len(row) == 3):
        if "cpu" in controllers.split(","):
            return _levels([_below(root, one) for one in V1_ROOTS], path)
    for number, _, path in (row for row in rows if len(row) == 3):
        if number == "0":
            return _levels([_below(root, one) for one in V2_ROOTS], path)
    return None


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def between(first: Levels | None, last: Levels | None) -> CgroupThrottle | None:
    """The difference of two readings, of the level throttled longest; None when either is unknown, or a level
    came or went.
    """
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
    return max(differences, key=lambda one: one.throttled_s)


def _levels(roots: Sequence[Path], path: str) -> Levels | None:
    root = next((one for one in roots if (one / "cgroup.procs").exists()), None)
    if root is None:
        return None
    level = root / path.lstrip("/")
    if not level.is_dir():
        level = root  # inside a container the path is the host's, and the root is ours
    # A path that leads out of the root (`/../x`, of another namespace's) has no level above it that is ours.
    above = [parent for parent in level.parents if parent == root or root in parent.parents]
    limited = [_counters(one) for one in (level, *above) if _has_quota(one)]
    known = tuple(one for one in limited if one is not None)
    if len(known) < len(limited):
        return None
    return known or (CgroupThrottle(periods=0, throttled_periods=0, throttled_s=0.0),)


def _has_quota(level: Path) -> bool:
    """A hierarchy's root and levels without the controller have none."""
    for file, unlimited in (("cpu.max", "max"), ("cpu.cfs_quota_us", "-1")):
        try:
            return not (level / file).read_text(encoding="ascii").startswith(unlimited)
        except OSError:
            continue
    return False


def _counters(level: Path) -> CgroupThrottle | None:
    try:
        pairs = (line.split() for line in (level / "cpu.stat").read_text(encoding="ascii").splitlines())
        stat = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}
    except (OSError, ValueError):
        return None
    if "nr_periods" not in stat:
        return None
    throttled_s = (
        stat["throttled_usec"] / 1e6 if "throttled_usec" in stat else stat.get("throttled_time", 0) / 1e9
    )
    return CgroupThrottle(
        periods=stat["nr_periods"], throttled_periods=stat.get("nr_throttled", 0), throttled_s=throttled_s
    )
