"""vegeta: a rate, or with rate 0 a worker per connection; goroutines on one CPU."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from prony.server.cache import on_path
from prony_peers.base import Claim, Command, NotOffered, PeerLoad, last_line, output_of

REPORT_TIMEOUT_S = 60.0


class Vegeta:
    """vegeta 12. It reads targets from a file and writes results to a file, as by default."""

    name = "vegeta"
    install = "go install github.com/tsenart/vegeta/v12@v12.12.0"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="prony-bench-vegeta-")
        self._program: Path | None = None

    def find(self) -> Path | None:
        return on_path("vegeta")

    def version(self, program: Path) -> str:
        stated = output_of(program, "-version")
        version = next((text for text in stated.splitlines() if text.startswith("Version:")), "")
        return version.removeprefix("Version:").strip() or "12"

    def command(self, program: Path, request: PeerLoad) -> Command:
        case, folder = request.case, Path(self._folder.name)
        if case.streams is not None:
            raise NotOffered("its number of HTTP/2 connections and streams cannot be set")
        self._program = program
        (folder / "targets").write_text(f"GET {request.url}\n", encoding="utf-8")
        argv = [str(program), "attack", "-targets", str(folder / "targets"), "-output", str(self._results)]
        argv += ["-duration", f"{request.seconds}s", "-http2=false", "-redirects=-1"]
        if case.rate_per_s is None:
            argv += ["-rate=0", f"-max-workers={case.connections}", f"-workers={case.connections}"]
        else:
            argv += [f"-rate={case.rate_per_s}/1s", f"-workers={case.connections}"]
        if case.per_request:
            argv.append("-keepalive=false")
        if case.tls:
            argv.append("-insecure")
        return Command(tuple(argv))

    @property
    def _results(self) -> Path:
        return Path(self._folder.name) / "results"

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:
        if exit_code != 0 or self._program is None:
            raise ValueError(last_line(stderr or stdout))
        done = subprocess.run(
            [self._program, "report", "-type=json", self._results],
            capture_output=True,
            text=True,
            timeout=REPORT_TIMEOUT_S,
            check=False,
        )
        return read_report(done.stdout or done.stderr)


def read_report(text: str) -> Claim:
    """`vegeta report -type=json`; code 0 is a request without a response."""
    try:
        status = {int(code): int(count) for code, count in json.loads(text)["status_codes"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise ValueError(last_line(text)) from fault
    unanswered = status.pop(0, 0)
    wrong = sum(count for code, count in status.items() if not 200 <= code < 400)
    return Claim(requests=sum(status.values()), errors=wrong + unanswered)
