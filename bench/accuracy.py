"""The command `python -m bench.accuracy`: measured minus true percentiles for known distributions of the
server's delay, per driver.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log, pi, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any

import typer
from rich.console import Console

from bench.session import two_cpus
from bench.table import Sheet, markdown, print_sheets
from prony.errors import EnvironmentFault, PronyError
from prony.evidence.engine import Window
from prony.judge.histogram import Decoded, decode
from prony.load.engine import find_engine
from prony_peers.kernel import start_pinned

PERCENTILES = (50.0, 75.0, 90.0, 99.0, 99.9)
DRIVERS = ("io_uring", "epoll")
USERS = 64
SECONDS = 10
Z95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Delay:
    """A distribution of delays (ms): name, server option, quantile function, density at the quantile."""

    name: str
    option: str
    quantile_ms: Callable[[float], float]
    density_per_ms: Callable[[float], float]


def fixed(ms: float) -> Delay:
    """A constant delay."""
    return Delay(f"fixed {ms:g} ms", f"fixed:{ms:g}ms", lambda _p: ms, lambda _p: inf)


def exponential(mean_ms: float) -> Delay:
    """Q(p) = -mean ln(1 - p); f(Q(p)) = (1 - p) / mean."""
    return Delay(
        f"exponential, mean {mean_ms:g} ms",
        f"exp:{mean_ms:g}ms",
        lambda p: -mean_ms * log(1 - p),
        lambda p: (1 - p) / mean_ms,
    )


def lognormal(median_ms: float, sigma: float) -> Delay:
    """Q(p) = median exp(sigma z(p)); f(Q(p)) = phi(z) / (sigma Q(p))."""

    def quantile(p: float) -> float:
        return median_ms * exp(sigma * NormalDist().inv_cdf(p))

    def density(p: float) -> float:
        z = NormalDist().inv_cdf(p)
        return exp(-z * z / 2) / sqrt(2 * pi) / (sigma * quantile(p))

    return Delay(
        f"lognormal, median {median_ms:g} ms, sigma {sigma:g}",
        f"lognormal:{median_ms:g}ms,{sigma:g}",
        quantile,
        density,
    )


def bimodal(low_ms: float, high_ms: float, high_share: float) -> Delay:
    """`low_ms` with probability 1 - `high_share`, else `high_ms`."""
    return Delay(
        f"bimodal, {low_ms:g} and {high_ms:g} ms ({high_share:.0%} high)",
        f"bimodal:{low_ms:g}ms,{high_ms:g}ms,{high_share:g}",
        lambda p: low_ms if p <= 1 - high_share else high_ms,
        lambda _p: inf,
    )


DELAYS = (fixed(10), exponential(10), lognormal(10, 0.5), bimodal(5, 50, 0.15))
"""The steps of the bimodal distribution are far from the printed percentiles."""


def half_width_ms(delay: Delay, p: float, count: float) -> float:
    """Half width of the 95 % interval of a sample's p-quantile: z sqrt(p(1-p)/n) / f(Q(p)) (David and
    Nagaraja, Order Statistics, 2003, section 10.2); 0 for a point mass.
    """
    return Z95 * sqrt(p * (1 - p) / count) / delay.density_per_ms(p)


def plan(url: str, driver: str, cpu: int, seconds: int) -> dict[str, Any]:
    """A closed loop of few users: the server is nearly idle, and the delay is measured."""
    return {
        "version": 1,
        "target": {"url": url},
        "driver": driver,
        "threads": {"cpus": [cpu], "pin": True},
        "load": {"model": "closed", "users": USERS},
        "scenarios": [{"steps": [{"method": "GET", "path": "/"}]}],
        "stop": {"after_ms": seconds * 1000 + 500},
        "window": {"mode": "fixed", "warmup_ms": 500, "duration_ms": seconds * 1000},
    }


def measure(delay: Delay, driver: str, cpus: tuple[int, int], seconds: int) -> Decoded:
    """The service times of one run. Raises EnvironmentFault."""
    client_cpu, server_cpu = cpus
    engine = str(find_engine())
    options = ["--listen", "127.0.0.1:0", "--cpus", str(server_cpu), "--delay", delay.option]
    argv = [engine, "serve", *options, "--seed", "random", "--stdin-guard"]
    with start_pinned(argv, server_cpu, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            address = json.loads(server.stdout.readline())["address"]
            window = offer(engine, plan(f"http://{address}", driver, client_cpu, seconds), client_cpu)
        except (ValueError, KeyError) as fault:
            raise EnvironmentFault(f"no figures from {driver} with {delay.option}: {fault!r}") from fault
        finally:
            server.terminate()
    if window.service_time is None:
        raise EnvironmentFault(f"{driver} recorded no service times with {delay.option}")
    return decode(window.service_time)


def offer(engine: str, plan: dict[str, Any], cpu: int) -> Window:
    """Run this plan to its end. Raises ValueError or KeyError for unexpected output."""
    with start_pinned([engine, "run"], cpu, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(json.dumps(plan).encode() + b"\n")
        client.stdin.flush()
        events = [json.loads(line) for line in client.stdout]
    return Window.model_validate(events[-1]["window"])


def sheet(delay: Delay, found: dict[str, Decoded]) -> Sheet:
    """A line per percentile: the true value, and per driver measured minus true."""
    lines = []
    for percentile in PERCENTILES:
        p = percentile / 100
        true_ms = delay.quantile_ms(p)
        line = [f"p{percentile:g}", f"{true_ms:.3f}"]
        for recorded in found.values():
            value_ns = recorded.percentile_ns(percentile)
            off_us = inf if value_ns is None else value_ns / 1000 - true_ms * 1000
            chance_us = half_width_ms(delay, p, recorded.count) * 1000
            line.append(f"{off_us:+,.0f}" + (f" (chance ±{chance_us:,.0f})" if chance_us else ""))
        lines.append(tuple(line))
    counts = ", ".join(f"{driver} {recorded.count:,.0f}" for driver, recorded in found.items())
    head = ("percentile", "true, ms", *(f"{driver}: measured - true, µs" for driver in found))
    return Sheet(f"Delay {delay.name}: requests {counts}", head, tuple(lines))


def command(
    seconds: Annotated[int, typer.Option(help="Length of a measured run in whole seconds.", min=1)] = SECONDS,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", help="Also write the tables to this file.")
    ] = None,
) -> None:
    """Measured minus true percentiles, for known distributions of the server's delay and both drivers."""
    cpus = two_cpus()
    sheets = []
    for delay in DELAYS:
        print(delay.name, file=sys.stderr, flush=True)
        sheets.append(sheet(delay, {driver: measure(delay, driver, cpus, seconds) for driver in DRIVERS}))
    print_sheets(Console(), sheets)
    print(
        f"A closed loop of {USERS} users, {seconds} s per run. Differences include the loopback path, the "
        "server's timer and the histogram's 3 digits; chance: 95 % interval of a sample's quantile."
    )
    if markdown_file is not None:
        markdown_file.write_text(markdown(sheets), encoding="utf-8")


def main() -> None:
    """Turns each fault into one sentence and its documented exit code."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(command)
    try:
        app(prog_name="python -m bench.accuracy")
    except PronyError as fault:
        print(f"bench: {fault}", file=sys.stderr)
        raise SystemExit(int(fault.exit_code)) from None


if __name__ == "__main__":
    main()
