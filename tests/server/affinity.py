"""Where the threads of a server under test may run, as the kernel says it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from prony.server.launch import RunningServer


def cpus_of_threads(server: RunningServer) -> set[frozenset[int]]:
    """The distinct sets of CPUs of all its threads."""
    found = set()
    for thread in (thread for pid in server.pids() for thread in Path(f"/proc/{pid}/task").iterdir()):
        with suppress(ProcessLookupError):  # it ended meanwhile
            found.add(frozenset(os.sched_getaffinity(int(thread.name))))
    return found
