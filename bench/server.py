"""The reference server (`prony-engine serve`) on its CPU, started fresh for each run."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import BaseModel, ConfigDict

from prony.errors import EnvironmentFault
from prony.load.engine import find_engine
from prony_peers.kernel import process_cpu_s, start_pinned

BODY = "Hello, World!"
TIMEOUT_S = 20.0


class Counts(BaseModel):
    """The server's counters since its start. Requests for the counters are not in `requests`; their
    connection is in `connections`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    requests: int
    connections: int
    bytes_received: int
    bytes_sent: int
    tls_handshakes: int = 0
    tls_resumptions: int = 0
    cpu_s: float


class Certificate(BaseModel):
    """Paths of the server's certificate and key (PEM)."""

    model_config = ConfigDict(frozen=True)

    certificate: Path
    key: Path


def make_certificate(openssl: Path, folder: Path) -> Certificate:
    """A self-signed certificate for 127.0.0.1 with a P-256 key. Raises EnvironmentFault."""
    files = Certificate(certificate=folder / "certificate.pem", key=folder / "key.pem")
    command = [
        *(
            str(openssl),
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ),
        *("-keyout", str(files.key), "-out", str(files.certificate), "-days", "2", "-subj", "/CN=localhost"),
        *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise EnvironmentFault(
            "openssl could not create a certificate for the HTTPS cases", details=done.stderr
        )
    return files


class ReferenceServer:
    """A running server; a context manager. `counts()` while it runs, `stop()` for the final counters."""

    def __init__(self, cpu: int, certificate: Certificate | None = None, *, http2: bool = False) -> None:
        self._cpu = cpu
        self._http2 = http2
        self._certificate = certificate
        self._folder = tempfile.TemporaryDirectory(prefix="prony-bench-")
        self._socket: socket.socket | None = None
        self.address = ""

    def __enter__(self) -> ReferenceServer:
        body = Path(self._folder.name) / "body.txt"
        body.write_text(BODY)
        argv = [
            *(str(find_engine()), "serve", "--listen", "127.0.0.1:0", "--cpus", str(self._cpu)),
            *("--body-file", str(body), "--content-type", "text/plain"),
        ]
        argv.append("--http2" if self._http2 else "--bare")
        if self._certificate:
            argv += ["--tls", "--no-resumption", "--cert", str(self._certificate.certificate)]
            argv += ["--key", str(self._certificate.key)]
        self._process = start_pinned(argv, self._cpu, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            event = self._event()
            self.address = str(event["address"])
            self._socket = self._connect()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def url(self) -> str:
        """URL of the requests."""
        return f"{'https' if self._certificate else 'http'}://{self.address}/"

    def cpu_s(self) -> float | None:
        """Its CPU seconds so far, by the kernel's account."""
        return process_cpu_s(self.pid)

    def counts(self) -> Counts:
        """Its counters now, over a connection opened before the load. Raises EnvironmentFault."""
        assert self._socket is not None
        try:
            self._socket.sendall(b"GET /__prony/stats HTTP/1.1\r\nHost: bench\r\n\r\n")
            response = b""
            while b"\r\n\r\n" not in response:
                response += self._received()
            head, _, body = response.partition(b"\r\n\r\n")
            length = _content_length(head)
            while len(body) < length:
                body += self._received()
            return Counts.model_validate_json(body)
        except (OSError, ValueError) as fault:
            raise EnvironmentFault(f"the reference server did not report its counters: {fault}") from fault

    def stop(self) -> Counts:
        """Stops it; its final counters. Raises EnvironmentFault."""
        self._process.send_signal(signal.SIGTERM)
        return Counts.model_validate(self._event())

    def _connect(self) -> socket.socket:
        host, _, port = self.address.rpartition(":")
        plain = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        if self._certificate is None:
            return plain
        context = ssl.create_default_context(cafile=str(self._certificate.certificate))
        return context.wrap_socket(plain, server_hostname="localhost")

    def _received(self) -> bytes:
        assert self._socket is not None
        part = self._socket.recv(65536)
        if not part:
            raise OSError("connection closed")
        return part

    def _event(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            event: dict[str, Any] = json.loads(line)
        except ValueError as fault:
            raise EnvironmentFault(
                "the reference server ended without output; run `prony-engine serve` to see why"
            ) from fault
        return event

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._folder.cleanup()


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    raise ValueError("no Content-Length in the response")
