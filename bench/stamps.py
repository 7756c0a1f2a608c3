"""Cost of receive time stamps: CPU time per request of load generator and server, with ÷ without them, in
alternated pairs. The server pays, too: the kernel stamps every packet of the host.

    python -m bench.stamps [--pairs 10] [--only closed-64]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from bench.builds import sentence
from bench.cases import CASES, Case
from bench.measure import Run, Setting, ToolFailed, run_once
from bench.server import BODY
from bench.session import two_cpus
from bench.tools import PeerLoad
from bench.tools.prony import UNSTAMPED, Prony
from prony.compare.ratio import ratio
from prony.errors import PronyError
from prony.host.affinity import pin_self
from prony.host.resource_limits import raise_descriptors
from prony.load.engine import find_engine

COMPARED = ("closed-1", "closed-64", "closed-1000", "per-request-64", "open-10k")
DRIVERS: tuple[Literal["io_uring", "epoll"], ...] = ("io_uring", "epoll")
SECONDS, WARM_S = 2, 0.5


def main(words: Sequence[str]) -> int:
    """Prints a line per load, driver and side."""
    parser = argparse.ArgumentParser(prog="python -m bench.stamps", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10, help="pairs of runs per load and driver")
    parser.add_argument("--only", choices=COMPARED, action="append", help="only this load")
    options = parser.parse_args(words)
    if options.pairs < 2:
        parser.error(f"--pairs is {options.pairs}; expected at least 2")
    client, server = two_cpus()
    raise_descriptors()
    pin_self({server})
    setting, engine = Setting(client, server, None, BODY), find_engine()
    for case in (case for case in CASES if case.name in (options.only or COMPARED)):
        for driver in DRIVERS:
            stamped, plain = in_pairs(case, driver, engine, options.pairs, setting)
            for side, of in (("client", client_us), ("server", server_us)):
                blocks = list(range(options.pairs))
                result = ratio([of(run) for run in stamped], [of(run) for run in plain], blocks, blocks)
                print(f"{case.name:16} {driver:9} {side} {sentence(result)}", flush=True)
    return 0


def client_us(run: Run) -> float:
    """CPU time of the load generator per request."""
    return run.cpu_us_per_request


def server_us(run: Run) -> float:
    """CPU time of the server per request."""
    return run.server_cpu_s_measured / run.requests_measured * 1e6


def in_pairs(
    case: Case, driver: Literal["io_uring", "epoll"], engine: Path, pairs: int, setting: Setting
) -> tuple[list[Run], list[Run]]:
    """Runs with stamps and runs without, in pairs of random order."""
    drawn = random.Random(pairs)
    kinds = (Prony(driver), Prony(driver, UNSTAMPED))
    runs: tuple[list[Run], list[Run]] = ([], [])
    for _ in range(pairs):
        for place in drawn.sample((0, 1), 2):
            load = PeerLoad(case, "", SECONDS, WARM_S, setting.body, setting.client_cpu)
            runs[place].append(run_once(kinds[place], engine, load, setting))
    return runs


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (PronyError, ToolFailed) as fault:
        print(fault, file=sys.stderr)
        sys.exit(1)
