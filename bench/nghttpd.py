"""nghttpd (of nghttp2, as h2load) as an HTTP/2 server that is not Prony's. It has no counters."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from bench.server import BODY, Certificate
from prony.errors import EnvironmentFault
from prony.server.cache import on_path
from prony_peers.kernel import process_cpu_s, start_pinned

INSTALL = "apt-get install nghttp2-server"
STREAMS = 10_000
"""Concurrent streams per connection, so that no tool waits (nghttpd's default is 100)."""
STARTS_S = 20.0


class Nghttpd:
    """A running server; a context manager."""

    def __init__(self, cpu: int, certificate: Certificate | None = None) -> None:
        self._cpu = cpu
        self._certificate = certificate
        self._folder = tempfile.TemporaryDirectory(prefix="prony-bench-")
        self._port = 0

    def __enter__(self) -> Nghttpd:
        program = on_path("nghttpd")
        if program is None:
            raise EnvironmentFault(f"nghttpd is not installed: {INSTALL}")
        (Path(self._folder.name) / "index.html").write_text(BODY)
        until_s = time.monotonic() + STARTS_S
        while time.monotonic() < until_s:
            self._port = _free_port()
            self._process = start_pinned(
                self._argv(program), self._cpu, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            while self._process.poll() is None and time.monotonic() < until_s:
                if _listens(self._port):
                    return self
                time.sleep(0.01)
            self._end()
        raise EnvironmentFault("nghttpd did not start; run it in a terminal to see its message")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._folder.cleanup()

    def _argv(self, program: Path) -> list[str]:
        options = ["-a", "127.0.0.1", "-d", self._folder.name, "-m", str(STREAMS)]
        if self._certificate is None:
            return [str(program), *options, "--no-tls", str(self._port)]
        keys = (str(self._certificate.key), str(self._certificate.certificate))
        return [str(program), *options, str(self._port), *keys]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def url(self) -> str:
        """URL of the requests."""
        return f"{'https' if self._certificate else 'http'}://127.0.0.1:{self._port}/"

    def cpu_s(self) -> float | None:
        """Its CPU seconds so far, by the kernel's account."""
        return process_cpu_s(self.pid)

    def counts(self) -> None:
        """No counters."""

    def stop(self) -> None:
        """No final counters."""

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
