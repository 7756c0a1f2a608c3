"""One run of a tool against a fresh server, with the counters of kernel and server."""

from __future__ import annotations

import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from bench import disturbance
from bench.cases import Case
from bench.disturbance import Disturbance
from bench.nghttpd import Nghttpd
from bench.server import Certificate, Counts, ReferenceServer
from bench.tools import Claim, LoadGenerator, NotOffered, PeerLoad
from prony_peers.kernel import process_cpu_s, process_gone, start_pinned, wait

END_GRACE_S = 10.0
"""Grace period for a tool to end; then it is killed and the run fails."""


class ToolFailed(Exception):
    """A run without figures; `str()` is the reason."""


@dataclass(frozen=True, slots=True)
class Setting:
    """CPUs, certificate and body of a run."""

    client_cpu: int
    server_cpu: int
    certificate: Certificate | None
    body: str


@dataclass(frozen=True, slots=True)
class Run:
    """Counts from the end of the warm-up to the end of the tool (`*_measured`: requests by the server, CPU
    time by the kernel), and over the tool's whole life.
    """

    requests_measured: int
    cpu_s_measured: float
    wall_s_measured: float
    server_cpu_s_measured: float
    whole: Counts | None
    """The server's counters over its whole life, without the benchmark's own connection; None: the server has
    none, and the measured span is the tool's whole life, by its claim.
    """
    claim: Claim
    peak_rss_bytes: int | None
    disturbance: Disturbance
    seconds: int
    """Planned duration of the load."""

    @property
    def offered_per_s(self) -> float:
        """Requests per second of planned duration."""
        requests = self.claim.requests if self.whole is None else self.whole.requests
        return requests / self.seconds

    @property
    def cpu_us_per_request(self) -> float:
        """CPU time of the tool per request counted by the server."""
        return self.cpu_s_measured / self.requests_measured * 1e6

    @property
    def requests_per_s(self) -> float:
        """Requests counted by the server, per second until the tool ended."""
        return self.requests_measured / self.wall_s_measured

    @property
    def busy(self) -> float:
        """Share of its CPU that the tool used."""
        return self.cpu_s_measured / self.wall_s_measured

    @property
    def server_busy(self) -> float:
        """Share of its CPU that the server used."""
        return self.server_cpu_s_measured / self.wall_s_measured


def run_once(tool: LoadGenerator, program: Path, request: PeerLoad, setting: Setting) -> Run:
    """Run a tool once (`request.url` is set here). Raises NotOffered, ToolFailed, EnvironmentFault."""
    certificate = setting.certificate if request.case.tls else None
    with _server(request, setting, certificate) as server, tempfile.TemporaryDirectory() as folder:
        command = tool.command(program, replace(request, url=server.url))
        with (Path(folder) / "out").open("w+b") as out, (Path(folder) / "err").open("w+b") as err:
            before = disturbance.now()
            server_before_s = server.cpu_s() or 0.0
            process = start_pinned(command.argv, setting.client_cpu, stdout=out, stderr=err)
            own = disturbance.identities([process.pid, server.pid])
            try:
                mark = _mark(process, command.stdin, server, request.warm_s)
                ended = wait(process, request.seconds - request.warm_s + END_GRACE_S)
            finally:
                _make_sure_it_ended(process)
            server_after_s = server.cpu_s() or 0.0
            after = disturbance.now()
            if ended is None:
                raise ToolFailed(f"it did not end within {END_GRACE_S:g} s after its planned time")
            claim = _claim(tool, out, err, ended.exit_code)
        if mark is None:
            raise ToolFailed("it ended during its warm-up")
        whole = server.stop()
    requests = claim.requests
    if whole is not None and mark.counts is not None:
        requests = whole.requests - mark.counts.requests
    if requests <= 0:
        raise ToolFailed("no request reached the server after the warm-up")
    return Run(
        requests_measured=requests,
        cpu_s_measured=ended.cpu_s - mark.client_s,
        wall_s_measured=ended.t_monotonic_s - mark.t_monotonic_s,
        server_cpu_s_measured=server_after_s - mark.server_s,
        whole=None if whole is None else whole.model_copy(update=_without_the_asker(whole, certificate)),
        claim=claim,
        peak_rss_bytes=ended.peak_rss_bytes,
        disturbance=disturbance.between(
            before,
            after,
            own=own,
            client=(setting.client_cpu, ended.cpu_s),
            server=(setting.server_cpu, server_after_s - server_before_s),
        ),
        seconds=request.seconds,
    )


def _server(
    request: PeerLoad, setting: Setting, certificate: Certificate | None
) -> ReferenceServer | Nghttpd:
    case = request.case
    if isinstance(case, Case) and case.nghttpd:
        return Nghttpd(setting.server_cpu, certificate)
    return ReferenceServer(setting.server_cpu, certificate, http2=case.streams is not None)


@dataclass(frozen=True, slots=True)
class _Mark:
    """The end of the warm-up, or the start if the server has no counters."""

    t_monotonic_s: float
    client_s: float
    server_s: float
    counts: Counts | None


def _mark(
    process: subprocess.Popen[bytes], stdin: str, server: ReferenceServer | Nghttpd, warm_s: float
) -> _Mark | None:
    """Send the input, wait for the end of the warm-up and read all clocks; None if the tool has ended. The
    server counts between two readings of the tool's clock; their mean is used.
    """
    assert process.stdin is not None
    server_began_s, tool_began_s = server.cpu_s() or 0.0, time.monotonic()
    try:
        process.stdin.write(stdin.encode())
        process.stdin.flush()
    except BrokenPipeError:
        return None
    if isinstance(server, Nghttpd):
        return _Mark(tool_began_s, 0.0, server_began_s, None)
    time.sleep(warm_s)
    began_s, client_began_s = time.monotonic(), process_cpu_s(process.pid)
    counts = server.counts()
    client_ended_s, ended_s = process_cpu_s(process.pid), time.monotonic()
    server_s = server.cpu_s()
    if client_began_s is None or client_ended_s is None or server_s is None or process_gone(process.pid):
        return None
    return _Mark((began_s + ended_s) / 2, (client_began_s + client_ended_s) / 2, server_s, counts)


def _claim(tool: LoadGenerator, out: IO[bytes], err: IO[bytes], exit_code: int) -> Claim:
    out.seek(0)
    err.seek(0)
    stdout, stderr = out.read().decode("utf-8", "replace"), err.read().decode("utf-8", "replace")
    try:
        return tool.claim(stdout, stderr, exit_code)
    except NotOffered:
        raise
    except ValueError as fault:
        raise ToolFailed(f"it ended with exit code {exit_code}: {fault}") from fault


def _make_sure_it_ended(process: subprocess.Popen[bytes]) -> None:
    """Kills the tool of an interrupted run, so that it stops loading the server."""
    if process.returncode is None:
        process.kill()
        process.wait()


def _without_the_asker(whole: Counts, certificate: Certificate | None) -> dict[str, int]:
    changes = {"connections": whole.connections - 1}
    if certificate is not None:
        changes["tls_handshakes"] = whole.tls_handshakes - 1
    return changes
