"""wrk: closed loops over epoll, one thread here."""

from __future__ import annotations

import re
from pathlib import Path

from prony_peers.base import Claim, Command, InstalledTool, NotOffered, PeerLoad, last_line, only_http_1


class Wrk(InstalledTool):
    """wrk 4."""

    name = "wrk"
    install = "apt-get install wrk"
    version_pattern = r"^wrk (\S+)"

    def command(self, program: Path, request: PeerLoad) -> Command:
        case = request.case
        only_http_1(case)
        if case.rate_per_s is not None:
            raise NotOffered("it has no open loop")
        argv = [str(program), "-t1", f"-c{case.connections}", f"-d{request.seconds}s"]
        if case.per_request:
            argv += ["-H", "Connection: close"]
        return Command((*argv, request.url))

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:
        done = re.search(r"(\d+) requests in ", stdout)
        if exit_code != 0 or done is None:
            raise ValueError(last_line(stderr or stdout))
        errors = 0
        sockets = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", stdout)
        if sockets:
            errors += sum(int(count) for count in sockets.groups())
        wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", stdout)
        errors += int(wrong[1]) if wrong else 0
        rate = re.search(r"^Requests/sec:\s+([\d.]+)", stdout, re.MULTILINE)
        return Claim(requests=int(done[1]), errors=errors, per_s=float(rate[1]) if rate else None)
