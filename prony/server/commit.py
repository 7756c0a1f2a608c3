"""The commit that a server's sources are at, asked of git when the server is built."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

LENGTH = 12
DIRTY = "-dirty"
PATIENCE_S = 10.0
"""Where git is slower (a work tree of millions of files, a network file system) the commit is not known."""
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Set within a hook of git: they would name another repository."""


def commit_of(folder: Path) -> str | None:
    """12 digits of the commit that is checked out, with `-dirty` where one of its files below the folder has
    changed since (as `git describe --dirty` means it: a file that git does not know, such as a report that a
    build server leaves there, changes no commit). None without git, outside of a repository, and for a folder
    that the commit does not have: an ignored one (a package installed within somebody's work tree) or one
    that was never added.
    """
    named = _git(folder, "rev-parse", "HEAD", "HEAD:./")
    state = (
        None if named is None else _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    )
    if not named or state is None:
        return None
    return named.split()[0][:LENGTH] + (DIRTY if state.strip() else "")


def _git(folder: Path, *words: str) -> str | None:
    """What it printed; None when it failed."""
    env = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            check=False,
            env=env | {"GIT_OPTIONAL_LOCKS": "0"},  # only looks: takes no lock that somebody else waits for
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
