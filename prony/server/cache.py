"""The cache directory for builds, logs and small facts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from prony.errors import EnvironmentFault


def cache_dir(*below: str) -> Path:
    """`$PRONY_CACHE`, `$XDG_CACHE_HOME/prony` or `~/.cache/prony`; created. Raises EnvironmentFault."""
    named = os.environ.get("PRONY_CACHE")
    root = (
        Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "prony"
    )
    folder = root.joinpath(*below).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise _not_writable(folder, fault.strerror or str(fault)) from fault
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _not_writable(folder, "permission denied")
    return folder


def _not_writable(folder: Path, why: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"cannot write to the cache directory {folder}: {why}; set PRONY_CACHE to a directory you own"
    )


def prune(folder: Path, pattern: str, keep: int) -> list[Path]:
    """Entries to remove: all that match but the newest `keep`."""
    entries = []
    for path in folder.glob(pattern):
        try:
            entries.append((path.stat().st_mtime_ns, path))
        except FileNotFoundError:
            continue
    return [path for _, path in sorted(entries, reverse=True)[keep:]]


def on_path(name: str) -> Path | None:
    program = shutil.which(name)
    return Path(program) if program else None


def installed(name: str, package: str | None = None) -> Path | None:
    """The program on the PATH, else in the package that `make peers` installed."""
    if (program := on_path(name)) is not None:
        return program
    try:
        fetched = cache_dir("programs") / (package or name) / "bin" / name
    except EnvironmentFault:
        return None
    return fetched if fetched.exists() else None
