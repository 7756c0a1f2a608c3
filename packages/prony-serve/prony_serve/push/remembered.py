"""The documents that a cluster has acknowledged, as a file in the cache: an interrupted push continues."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from prony.server.cache import cache_dir


class Remembered:
    """Acknowledged keys of an experiment at a cluster. A key stands for documents acknowledged together."""

    def __init__(self, cluster: str, experiment: str) -> None:
        folder = cache_dir("push", hashlib.sha256(cluster.encode()).hexdigest()[:16])
        self._file: Path = folder / f"{quote(experiment, safe='')}.acknowledged"
        self._keys = self._read()

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def add(self, key: str) -> None:
        """Appends, so that pushes may share the file. Write errors are ignored: ids prevent duplicates."""
        self._keys.add(key)
        with suppress(OSError), self._file.open("a", encoding="utf-8") as file:
            file.write(f"{key}\n")
            file.flush()
            os.fsync(file.fileno())

    def forget(self) -> None:
        """The cluster has lost its documents."""
        self._keys = set()
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    def _read(self) -> set[str]:
        with suppress(OSError, UnicodeDecodeError):
            lines = self._file.read_text(encoding="utf-8").split("\n")
            return set(lines[:-1])  # empty, or truncated by a crash
        return set()
