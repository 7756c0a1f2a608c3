"""h2load, over HTTP/2 or with --h1: closed loops over libev, one thread here."""

from __future__ import annotations

import re
from pathlib import Path

from prony_peers.base import Claim, Command, InstalledTool, NotOffered, PeerLoad, last_line


class H2load(InstalledTool):
    """h2load of nghttp2."""

    name = "h2load"
    install = "apt-get install nghttp2-client"
    version_pattern = r"nghttp2/(\S+)"

    def command(self, program: Path, request: PeerLoad) -> Command:
        case = request.case
        if case.per_request:
            raise NotOffered("it does not open a new connection after each response")
        protocol = ("--h1", "-m1") if case.streams is None else ("--npn-list=h2", f"-m{case.streams}")
        argv = [str(program), *protocol, "-t1", f"-c{case.connections}", f"-D{request.seconds}"]
        if case.tls:  # the suite that the other tools negotiate
            argv.append("--tls13-ciphers=TLS_AES_256_GCM_SHA384")
        if case.rate_per_s is not None:
            argv.append(f"--rps={case.rate_per_s / case.connections:g}")
        return Command((*argv, request.url))

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:
        pattern = (
            r"^requests: \d+ total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored"
        )
        match = re.search(pattern, stdout, re.MULTILINE)
        if exit_code != 0 or match is None:
            raise ValueError(last_line(stderr or stdout))
        started, done, succeeded, _failed, _errored = (int(count) for count in match.groups())
        # Its clients stop at the end of the time: requests in flight are neither done nor errors.
        rate = re.search(r"^finished in .*?, ([\d.]+) req/s", stdout, re.MULTILINE)
        return Claim(
            requests=done,
            errors=done - succeeded,
            per_s=float(rate[1]) if rate else None,
            abandoned=max(0, started - done),
        )
