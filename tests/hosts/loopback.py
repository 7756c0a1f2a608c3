"""A scheduler's address on loopback, certificates, and workers as processes: hosts without namespaces. Must
not know what a test asks for.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from prony.server.sockets import free_port
from prony_hosts import certificates
from prony_hosts.attach import start_scheduler
from prony_hosts.file import HostsFile, read
from prony_hosts.process import Lives, Settings


class Loopback:
    """Workers named `load-1`, `load-2` … that come to a scheduler of this test's own; with `servers` a host
    for each of these groups as well.
    """

    def __init__(
        self, folder: Path, workers: int = 1, *, lives: Lives = "stdin", servers: Sequence[str] = ()
    ) -> None:
        self._servers = tuple(servers)
        self.folder = folder
        self.certificates = folder / "certs"
        certificates.make(self.certificates)
        self._lives = lives
        self.names = [f"load-{number + 1}" for number in range(workers)]
        self.workers: dict[str, subprocess.Popen[str]] = {}
        self.scheduler: subprocess.Popen[str] | None = None
        self.file = self.hosts({})

    def hosts(self, lab: dict[str, Any]) -> HostsFile:
        """hosts.yaml of these workers; `lab` replaces keys of its first part."""
        scheduler = f"tls://127.0.0.1:{free_port('127.0.0.1')}"
        known = {"scheduler": scheduler, "certificates": str(self.certificates)}
        listed = [{"connect": name} for name in self.names]
        groups = {name: {"connect": name} for name in self._servers}
        self.path = self.folder / "hosts.yaml"
        whole = {"lab": {**known, **lab}, "servers": groups, "load": listed}
        self.path.write_text(json.dumps(whole), encoding="utf-8")
        return read(self.path)

    def __enter__(self) -> Loopback:
        for name in self.names:
            self.start_worker(name)
        for name in self._servers:
            self.start_worker(name, "server")
        return self

    def start_worker(self, name: str, role: str = "load") -> subprocess.Popen[str]:
        """One more; it waits for the scheduler."""
        identity = certificates.identity(self.certificates, certificates.ON_HOST)
        settings = Settings(self.file.lab.scheduler, self._lives, identity, name, role)
        process = subprocess.Popen(
            [sys.executable, "-m", "prony_hosts.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(settings.line())
        process.stdin.flush()
        self.workers[name] = process
        return process

    def start_scheduler(self) -> None:
        """As a process of its own, until the end of the test."""
        own = certificates.identity(self.certificates, certificates.LAB)
        self.scheduler = start_scheduler(self.file, own, lives="stdin")

    @cache  # noqa: B019
    def address(self, name: str) -> str:
        """Where a worker says that it listens; waits until it has registered."""
        out = self.workers[name].stdout
        assert out is not None
        return str(json.loads(out.readline())["ready"])

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (*self.workers.values(), self.scheduler):
            if process is not None:
                process.kill()
                process.communicate()
