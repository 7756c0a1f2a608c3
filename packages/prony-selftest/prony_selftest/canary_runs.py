"""Would a canary sharpen comparisons? Trials of a server against itself on this host, each between two bursts
of requests to the reference server on the same CPUs: what they tell of a trial's figures, and what is left of
that in the ratio of a block.
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation, fmean, stdev

from prony.errors import EnvironmentFault
from prony.evidence.host import CpuPartition
from prony.host.partition import partition
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun, find_engine
from prony.plan.load import OpenLoad, SteadyWindow
from prony_selftest.duet_runs import blocks_to_decide, spread_interval
from prony_selftest.faults.model import BODY, Setup, hello
from prony_selftest.faults.trial import run_setup
from prony_selftest.tables import Say, prose, table

RATE_PER_S, REQUESTS, CONNECTIONS = 15_000.0, 9_000, 8
"""A burst of 0.6 s."""
BOUND_S = 10.0
"""Of a burst on a starved host."""
WINDOW_S = 6.0
FIGURES = {
    "requests_per_s": "requests/s",
    "server_cpu_us_per_request": "server CPU per request",
    "p50_ms": "p50",
}
CLIENT = "client_cpu_us_per_request"
NODE = f"""
require("node:http").createServer((request, response) => {{
  response.end("{BODY}");
}}).listen(Number(process.argv[2]), "127.0.0.1");
"""


@dataclass(frozen=True, slots=True)
class CanaryTrial:
    """Logarithms: of the canary's CPU time per request, and of the figures."""

    canary: float
    logs: Mapping[str, float]


Block = tuple[CanaryTrial, CanaryTrial]


def canary_blocks(runs: int, say: Say) -> Iterator[str]:
    """`runs` blocks of two trials of each server; after each block, as Markdown."""
    blocks: dict[str, list[Block]] = {}
    with tempfile.TemporaryDirectory(prefix="prony-canary-") as folder:
        script = Path(folder) / "server.js"
        script.write_text(NODE, encoding="utf-8")
        measured = SteadyWindow(window_s=WINDOW_S)
        setups = {
            "reference server": Setup(serve=(), measured=measured),
            "Node": Setup(command=("node", str(script), "{port}"), measured=measured),
        }
        for server, setup in setups.items():
            of = blocks.setdefault(server, [])
            for number in range(1, runs + 1):
                try:
                    of.append((_trial(setup), _trial(setup)))
                except EnvironmentFault as fault:
                    say(f"{server} {number}/{runs}: {fault}")
                    continue
                shown = " ".join(f"{trial.canary:.3f} {trial.logs['requests_per_s']:.3f}" for trial in of[-1])
                say(f"{server} {number}/{runs}: {shown}")
                yield canary_table(blocks)


def _trial(setup: Setup) -> CanaryTrial:
    sides = partition()
    before = _burst_us(sides)
    figures = run_setup(setup).figures
    canary = fmean(map(math.log, (before, _burst_us(sides))))
    return CanaryTrial(canary, {name: math.log(figures[name]) for name in (*FIGURES, CLIENT)})


def _burst_us(sides: CpuPartition) -> float:
    """CPU time per request of the reference server. Raises EnvironmentFault."""
    cpus = ",".join(map(str, sides.server))
    command = [str(find_engine()), "serve", "--listen", "127.0.0.1:0", "--cpus", cpus, "--stdin-guard"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        load = EngineLoad(
            url=f"http://{json.loads(server.stdout.readline())['address']}",
            workload=hello(),
            load=OpenLoad(rate_per_s=RATE_PER_S, connections=CONNECTIONS),
            cpus=sides.client[:1],
            realtime=sides.separate,
            total_requests=REQUESTS,
            after_s=BOUND_S,
            window="all",
        )
        clock = (~server.pid << 3) | 2  # CPUCLOCK_SCHED: of this process, in nanoseconds
        before_s = time.clock_gettime(clock)
        report = EngineRun(load).run_to_end(2 * BOUND_S)
        used_s = time.clock_gettime(clock) - before_s
        server.stdin.close()
        server.wait()
    if report.totals.completed < REQUESTS:
        raise EnvironmentFault(f"{report.totals.completed} of {REQUESTS} requests of a burst completed")
    return 1e6 * used_s / REQUESTS


def canary_table(blocks: Mapping[str, Sequence[Block]]) -> str:
    """Correlation of canary and figure, in trials and in differences of blocks, and the residual."""
    head = (
        "server", "figure", "blocks", "correlation, trials", "correlation, blocks",
        "of the client's CPU, blocks", "standard deviation of the log ratio, %", "corrected, %",
        "blocks to decide 5 %", "corrected",
    )  # fmt: skip
    rows = [
        _row(server, label, name, of)
        for server, of in blocks.items()
        if len(of) > 3
        for name, label in FIGURES.items()
    ]
    summary = (
        f"Each block is two trials of one server in fresh processes, 8 users, a window of {WINDOW_S:g} s, "
        f"each between two bursts of {REQUESTS:,} requests at {RATE_PER_S:,.0f}/s. Canary: mean logarithm of "
        "the bursts' server CPU per request. Corrected: residual of the line through the blocks' "
        "differences, n - 2 degrees of freedom (CUPED; Deng et al. 2013)."
    )
    return table(head, rows) + "\n\n" + prose(summary) + "\n"


def _row(server: str, label: str, name: str, blocks: Sequence[Block]) -> tuple[object, ...]:
    trials = [trial for block in blocks for trial in block]
    logs = [a.logs[name] - b.logs[name] for a, b in blocks]
    related = correlation([a.canary - b.canary for a, b in blocks], logs)
    left, (low, high) = corrected(logs, related), spread_interval(logs)
    return (
        server,
        label,
        len(blocks),
        f"{correlation([trial.canary for trial in trials], [trial.logs[name] for trial in trials]):+.2f}",
        f"{related:+.2f}",
        f"{correlation([a.logs[CLIENT] - b.logs[CLIENT] for a, b in blocks], logs):+.2f}",
        f"{100 * stdev(logs):.1f} ({100 * low:.1f}–{100 * high:.1f})",
        f"{100 * left:.1f}",
        blocks_to_decide(stdev(logs)),
        blocks_to_decide(left),
    )


def corrected(logs: Sequence[float], related: float) -> float:
    """Standard deviation about the least-squares line of a covariate with this correlation."""
    count = len(logs)
    return stdev(logs) * math.sqrt((1 - related**2) * (count - 1) / (count - 2))
