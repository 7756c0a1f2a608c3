"""What wrk and ab print when they are pointed at the same set-up. Must not judge it."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import nullcontext

from prony.host.partition import partition
from prony.plan.load import ClosedLoad
from prony.selftest.lies.model import Scene, Setup
from prony.selftest.lies.stage import spec_of
from prony.server.build import Built
from prony.server.launch import launch
from prony.server.probe import status_probe

SECONDS = 2


def plain(setup: Setup) -> str:
    """One line: what each tool that is installed says of the rate, and what else it complains about."""
    said = [f"{tool} {_run(tool, setup)}" for tool in ("wrk", "ab") if shutil.which(tool)]
    return "; ".join(said) or "neither wrk nor ab is installed"


def _run(tool: str, setup: Setup) -> str:
    users = setup.load.users if isinstance(setup.load, ClosedLoad) else 10
    chosen = partition()
    server_cpus = chosen.client if setup.shared_cpus else chosen.server
    with setup.around(), launch(Built(spec_of(setup)), cpus=server_cpus) as server:
        server.wait_ready(status_probe(server.host, server.port, tls=setup.tls), 20.0)
        scene = Scene(server_cpus, chosen.client, server.pid)
        with setup.trouble(scene) if setup.trouble is not None else nullcontext():
            words = _words(tool, users, f"{server.url}/")
            pinned = ["taskset", "-c", ",".join(map(str, chosen.client)), *words]
            done = subprocess.run(pinned, capture_output=True, text=True, timeout=SECONDS + 30, check=False)
    return _said(tool, done.stdout + done.stderr)


def _words(tool: str, users: int, url: str) -> list[str]:
    if tool == "wrk":
        return ["wrk", "-t1", f"-c{users}", f"-d{SECONDS}s", url]
    return ["ab", "-q", "-k", "-c", str(users), "-t", str(SECONDS), "-n", "10000000", url]


def _said(tool: str, text: str) -> str:
    """The rate as it is printed, and the lines about errors."""
    pattern = r"Requests/sec:\s*([\d.]+)" if tool == "wrk" else r"Requests per second:\s*([\d.]+)"
    found = re.search(pattern, text)
    if found is None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f"ended without a rate ({lines[-1][:80] if lines else 'it printed nothing'})"
    errors = re.search(
        r"(Socket errors:.*|Non-2xx or 3xx responses: \d+)"
        if tool == "wrk"
        else r"Failed requests:\s*([1-9]\d*)",
        text,
    )
    aside = "" if errors is None else f" ({errors[0].strip()})"
    return f"{float(found[1]):,.0f}/s{aside}"
