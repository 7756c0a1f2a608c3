"""CPU time per request of two builds of the engine, in alternated pairs: is the quicker build profile of
`make setup` equivalent? `make bench-builds` builds both and compares the profile `setup` with the release
build. Exit code 1 if the cost differs by more than the band, or if equivalence is not shown.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.cases import CASES, Case
from bench.measure import Setting, ToolFailed, run_once
from bench.server import BODY
from bench.session import two_cpus
from bench.tools import PeerLoad
from bench.tools.prony import Prony
from prony.compare.ratio import RatioResult, ratio
from prony.errors import PronyError
from prony.host.affinity import pin_self
from prony.host.resource_limits import raise_descriptors

TARGET = Path(__file__).resolve().parents[1] / "engine" / "target"
BAND = 0.01
"""Smaller relative differences of CPU time per request count as equal."""
COMPARED = ("closed-64", "per-request-64", "open-10k")
SECONDS, WARM_S = 2, 0.5


def main(words: Sequence[str]) -> int:
    """Measure the pairs; print a line per load and driver."""
    parser = argparse.ArgumentParser(prog="python -m bench.builds", description=__doc__)
    parser.add_argument("--pairs", type=int, default=20, help="pairs of runs per load and driver")
    parser.add_argument("--base", type=Path, default=TARGET / "release" / "prony-engine")
    parser.add_argument("--other", type=Path, default=TARGET / "setup" / "prony-engine")
    options = parser.parse_args(words)
    for engine in (options.base, options.other):
        if not engine.is_file():
            parser.error(f"no engine at {engine}; make bench-builds builds both")
    if options.pairs < 5:
        parser.error(f"--pairs is {options.pairs}; expected at least 5")
    client, server = two_cpus()
    raise_descriptors()
    pin_self({server})
    setting = Setting(client, server, None, BODY)
    same = True
    for case in (case for case in CASES if case.name in COMPARED):
        for tool in (Prony("io_uring"), Prony("epoll")):
            result = compared(case, tool, (options.other, options.base), options.pairs, setting)
            verdict = judged(result)
            same = same and verdict == "same"
            print(f"{case.name:16} {tool.name:16} {sentence(result)}: {verdict}", flush=True)
    return 0 if same else 1


def compared(
    case: Case, tool: Prony, engines: tuple[Path, Path], pairs: int, setting: Setting
) -> RatioResult:
    """CPU time per request of the first engine ÷ the second, in pairs of random order."""
    drawn = random.Random(pairs)
    costs: dict[Path, list[float]] = {engine: [] for engine in engines}
    for _ in range(pairs):
        for engine in drawn.sample(engines, 2):
            load = PeerLoad(case, "", SECONDS, WARM_S, setting.body, setting.client_cpu)
            costs[engine].append(run_once(tool, engine, load, setting).cpu_us_per_request)
    blocks = list(range(pairs))
    first, second = engines
    return ratio(costs[first], costs[second], blocks, blocks)


def judged(found: RatioResult) -> str:
    """same: the interval is within the band; different: outside; else unknown."""
    if found.low is None or found.high is None:
        return "unknown: too few pairs"
    if found.low >= 1 - BAND and found.high <= 1 + BAND:
        return "same"
    if found.low > 1 + BAND or found.high < 1 - BAND:
        return "different"
    return f"unknown: more pairs are needed for a difference within {BAND:.0%}"


def sentence(found: RatioResult) -> str:
    """The ratio and its interval."""
    if found.low is None or found.high is None:
        return f"{found.ratio:.3f}x"
    return f"{found.ratio:.3f}x [{found.low:.3f}, {found.high:.3f}] (95 %, {found.n} pairs)"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (PronyError, ToolFailed) as fault:
        print(fault, file=sys.stderr)
        sys.exit(1)
