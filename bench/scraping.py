"""Cost of --metrics for the client: `prony load` on the reference server without scraping, scraped once and
ten times a second, interleaved. Prints results, asserts nothing.

python -m bench.scraping [--rounds 5] [--seconds 10] [--users 32]
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from prony.load.reference import reference_server

WAYS: tuple[tuple[str, float | None], ...] = (
    ("without", None),
    ("scraped every 1 s", 1.0),
    ("scraped every 0.1 s", 0.1),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One load: its rate, the engine's CPU time per request, and the laboratory's CPU time."""

    requests_per_s: float
    engine_us_per_request: float
    laboratory_s: float
    scrapes: int


def load(url: str, users: int, seconds: int, every_s: float | None) -> Run:
    """One `prony load`, scraped at this interval."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["load", url, "-c", str(users), "-d", f"{seconds}s", "--warmup", "2s", "--json"]
        port = 0
        if every_s is not None:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            words += ["--metrics", f"127.0.0.1:{port}"]
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "prony"), *words],
            env=os.environ | {"PRONY_DB": f"{folder}/results.db"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        own = psutil.Process(process.pid)
        used = [0.0]
        over = threading.Event()
        scrapes = [0]

        def watch() -> None:
            while not over.wait(every_s or 1.0):
                with suppress(OSError):
                    if every_s is not None:
                        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read()
                        scrapes[0] += 1
                with suppress(psutil.Error):
                    times = own.cpu_times()
                    used[0] = times.user + times.system

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, _ = process.communicate(timeout=seconds + 120)
        over.set()
        watcher.join()
    figures = json.loads(out)["parts"][0]["cells"][0]["trials"][0]["figures"]
    return Run(figures["requests_per_s"], figures["client_cpu_us_per_request"], used[0], scrapes[0])


def main(words: Sequence[str] | None = None) -> None:
    """Interleaved rounds; medians, and the differences from *without* by round."""
    parser = argparse.ArgumentParser(description="What --metrics costs the client.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--users", type=int, default=32)
    options = parser.parse_args(words)
    results: dict[str, list[Run]] = {name: [] for name, _ in WAYS}
    with reference_server(()) as url:
        for number in range(options.rounds):
            for name, every_s in WAYS if number % 2 == 0 else WAYS[::-1]:
                results[name].append(load(url, options.users, options.seconds, every_s))
    base = results["without"]
    print(
        f"{options.rounds} rounds of {options.seconds} s, {options.users} users; medians (of ratios to "
        "without)"
    )
    for name, runs in results.items():
        ratios = [run.requests_per_s / other.requests_per_s for run, other in zip(runs, base, strict=True)]
        more = [run.laboratory_s - other.laboratory_s for run, other in zip(runs, base, strict=True)]
        scrapes = median(run.scrapes for run in runs)
        each = f", {median(more) / scrapes * 1000:.1f} ms per scrape" if scrapes else ""
        print(
            f"{name:22}{median(run.requests_per_s for run in runs):>10,.0f} requests/s ({median(ratios):.4f})"
            f"{median(run.engine_us_per_request for run in runs):>8.2f} µs of engine CPU per request"
            f"{median(run.laboratory_s for run in runs):>7.2f} s of laboratory CPU{each}"
        )


if __name__ == "__main__":
    main()
