"""oha: closed loops and a fixed rate, on an async runtime with one thread per CPU (one here)."""

from __future__ import annotations

import json
from pathlib import Path

from prony_peers.base import Claim, Command, InstalledTool, PeerLoad, last_line

DEADLINE = "aborted due to deadline"
"""Its error for requests in flight at the end."""


class Oha(InstalledTool):
    """oha 1."""

    name = "oha"
    install = "make peers (cargo is needed), or cargo install oha --locked"
    version_pattern = r"oha (\S+)"

    def command(self, program: Path, request: PeerLoad) -> Command:
        case = request.case
        argv = [str(program), "--no-tui", "--output-format", "json"]
        argv += ["--http-version", "1.1"] if case.streams is None else ["--http2", "-p", str(case.streams)]
        argv += ["-c", str(case.connections), "-z", f"{request.seconds}s"]
        if case.per_request:
            argv.append("--disable-keepalive")
        if case.tls:
            argv.append("--insecure")
        if case.rate_per_s is not None:
            argv += ["-q", str(case.rate_per_s), "--latency-correction"]
        return Command((*argv, request.url))

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:
        try:
            report = json.loads(stdout)
            status = {int(code): int(count) for code, count in report["statusCodeDistribution"].items()}
            per_s = report.get("summary", {}).get("requestsPerSec")
            errors = {str(kind): int(count) for kind, count in report["errorDistribution"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise ValueError(last_line(stderr or stdout)) from fault
        if exit_code != 0:
            raise ValueError(last_line(stderr))
        abandoned = errors.pop(DEADLINE, 0)
        wrong = sum(count for code, count in status.items() if not 200 <= code < 400)
        return Claim(sum(status.values()), wrong + sum(errors.values()), per_s, abandoned)
