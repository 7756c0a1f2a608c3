"""Artillery 2: an open loop of users, each with a connection of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

from prony_peers.base import Claim, Command, InstalledTool, NotOffered, PeerLoad, last_line, only_http_1


class Artillery(InstalledTool):
    """Artillery 2."""

    name = "artillery"
    install = "make peers (Node.js and npm are needed), or npm install -g artillery"
    version_pattern = r"^Artillery:\s*(\S+)"

    def command(self, program: Path, request: PeerLoad) -> Command:
        case = request.case
        only_http_1(case)
        if case.rate_per_s is None:
            raise NotOffered("it has no closed loop; give a rate")
        base, slash, path = request.url.partition("://")[2].partition("/")
        scheme = request.url.partition("://")[0]
        config = {
            "target": f"{scheme}://{base}",
            "phases": [{"duration": request.seconds, "arrivalRate": case.rate_per_s}],
            "tls": {"rejectUnauthorized": False},
        }
        script = {"config": config, "scenarios": [{"flow": [{"get": {"url": f"{slash}{path}" or "/"}}]}]}
        return Command(
            ("env", "ARTILLERY_DISABLE_TELEMETRY=1", str(program), "run", "script.json"),
            files={"script.json": json.dumps(script)},
        )

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:
        _, _, summary = stdout.partition("Summary report @")
        if exit_code != 0 or not summary:
            raise ValueError(last_line(stderr or stdout))

        def count(name: str) -> int:
            match = re.search(rf"^{re.escape(name)}: \.+ (\d+)$", summary, re.MULTILINE)
            return int(match[1]) if match else 0

        wrong = sum(int(n) for n in re.findall(r"^http\.codes\.[45]\d\d: \.+ (\d+)$", summary, re.MULTILINE))
        errors = sum(int(n) for n in re.findall(r"^errors\..*: \.+ (\d+)$", summary, re.MULTILINE))
        rate = re.search(r"^http\.request_rate: \.+ ([\d.]+)/sec$", summary, re.MULTILINE)
        return Claim(count("http.responses"), wrong + errors, float(rate[1]) if rate else None)
