"""ab (ApacheBench): closed loops, one thread, HTTP/1.0."""

from __future__ import annotations

import re
from pathlib import Path

from prony_peers.base import Claim, Command, InstalledTool, NotOffered, PeerLoad, last_line, only_http_1

ENOUGH_REQUESTS = 5_000_000
"""-t alone ends after 50,000 requests; this number is never reached first."""


class Ab(InstalledTool):
    """ab 2.3."""

    name = "ab"
    install = "apt-get install apache2-utils"
    version_pattern = r"Version (\S+)"
    version_options = ("-V",)

    def command(self, program: Path, request: PeerLoad) -> Command:
        case = request.case
        only_http_1(case)
        if case.rate_per_s is not None:
            raise NotOffered("it has no open loop")
        argv = [str(program), "-q", "-c", str(case.connections), "-t", str(request.seconds)]
        argv += ["-n", str(ENOUGH_REQUESTS)]
        if not case.per_request:
            argv.append("-k")
        return Command((*argv, request.url))

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:
        done = re.search(r"^Complete requests:\s+(\d+)", stdout, re.MULTILINE)
        if exit_code != 0 or done is None:
            raise ValueError(last_line(stderr or stdout))
        failed = re.search(r"^Failed requests:\s+(\d+)", stdout, re.MULTILINE)
        wrong = re.search(r"^Non-2xx responses:\s+(\d+)", stdout, re.MULTILINE)
        errors = sum(int(match[1]) for match in (failed, wrong) if match)
        rate = re.search(r"^Requests per second:\s+([\d.]+)", stdout, re.MULTILINE)
        return Claim(requests=int(done[1]), errors=errors, per_s=float(rate[1]) if rate else None)
