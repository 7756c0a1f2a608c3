"""wrk's report, line for line. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from prony_frontends.counted import CountedValues

_CLIMBS = 0.85
"""Share of a unit from which wrk switches to the next."""
_US, _S = (1000.0, "us", ("ms",)), (60.0, "s", ("m",))
_BINARY, _METRIC = (1024.0, "", ("K", "M", "G", "T")), (1000.0, "", ("k", "M", "G", "T"))
PERCENTILES = (50.0, 75.0, 90.0, 99.0)


@dataclass(frozen=True, slots=True)
class WrkFigures:
    """Figures of the report."""

    latency_us: CountedValues
    rates_per_s: CountedValues
    """Requests per second of a thread, over intervals of 0.1 s."""
    requests: int
    elapsed_s: float
    bytes_read: int
    errors: dict[str, int] = field(default_factory=dict)
    """connect, read, write, timeout."""
    bad_status: int = 0


def _scaled(amount: float, units: tuple[float, str, tuple[str, ...]], digits: int) -> str:
    scale, unit, higher = units
    for name in higher:
        if amount < scale * _CLIMBS:
            break
        amount, unit = amount / scale, name
    return f"{amount:.{digits}f}{unit}"


def time_us(us: float) -> str:
    """Such as 250.00us, 1.50ms, 2.00s."""
    return _scaled(us / 1e6, _S, 2) if us >= 1e6 else _scaled(us, _US, 2)


def time_s(seconds: float) -> str:
    """Such as 30s, 2m."""
    return _scaled(seconds, _S, 0)


def metric(amount: float) -> str:
    """Such as 56.20k."""
    return _scaled(amount, _METRIC, 2)


def binary(amount: float) -> str:
    """Such as 17.76G; the line adds the B."""
    return _scaled(amount, _BINARY, 2)


def _column(text: str, width: int) -> str:
    """Right-aligned by the number, with padding for missing letters of the unit."""
    letters = sum(text[-place].isalpha() for place in (1, 2) if len(text) >= place)
    pad = 2 - letters
    return f"{text[: width - pad]:>{width - pad}}{' ' * pad}"


def begin(duration_s: int, url: str, threads: int, connections: int) -> str:
    """The first two lines."""
    return f"Running {time_s(duration_s)} test @ {url}\n  {threads} threads and {connections} connections\n"


def _row(name: str, sample: CountedValues, unit: Callable[[float], str]) -> str:
    columns = (
        _column(unit(sample.mean), 8) + _column(unit(sample.stdev), 10) + _column(unit(sample.highest), 9)
    )
    return f"    {name:<10}{columns}{sample.within_stdev:8.2f}%\n"


SPECTRUM_TICKS = 5
"""HdrHistogram's percentile spectrum: lines per halving of the distance to 100 %."""


def recorded(times_us: CountedValues, what: str) -> str:
    """wrk2's distribution, and HdrHistogram's percentile spectrum."""
    lines = [f"  Latency Distribution (HdrHistogram - {what})\n"]
    for percent in (50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0):
        lines.append(f"{percent:7.3f}%{_column(time_us(times_us.percentile(percent)), 10)}\n")
    lines.append("\n  Detailed Percentile spectrum:\n")
    names = ("Value", "Percentile", "TotalCount", "1/(1-Percentile)")
    lines.append("{:>12} {:>12} {:>12} {:>12}\n\n".format(*names))
    lines += [
        f"{us / 1000:12.3f} {percent / 100:12f} {count:12d} "
        + (f"{1 / (1 - percent / 100):12.2f}\n" if percent < 100 else f"{'inf':>12}\n")
        for us, percent, count in _spectrum(times_us)
    ]
    mean, stdev = times_us.mean / 1000, times_us.stdev / 1000
    lines.append(f"#[Mean    = {mean:12.3f}, StdDeviation   = {stdev:12.3f}]\n")
    lines.append(
        f"#[Max     = {times_us.highest / 1000:12.3f}, Total count    = {int(times_us.count):12d}]\n"
    )
    lines.append(f"{'-' * 58}\n")
    return "".join(lines)


def _spectrum(times: CountedValues) -> Iterator[tuple[float, float, int]]:
    """Value, percentile and cumulative count, with the steps of `hdr_percentiles_print`."""
    wanted, seen, total = 0.0, 0, int(times.count)
    for value, count in zip(times.values.tolist(), times.counts.tolist(), strict=True):
        seen += int(count)
        while count and wanted <= 100 * seen / total and wanted < 100:
            yield value, wanted, seen
            if seen == total:
                break
            halvings = int(math.log2(100 / (100 - wanted))) + 1
            wanted += 100 / (SPECTRUM_TICKS * 2**halvings)
    if total:
        yield times.highest, 100.0, total


def report(figures: WrkFigures, distribution: bool, second: bool = False) -> str:
    """The report after the run, of wrk or wrk2."""
    lines = [f"  Thread Stats{'Avg':>6}{'Stdev':>11}{'Max':>8}{'+/- Stdev':>12}\n"]
    lines.append(_row("Latency", figures.latency_us, time_us))
    lines.append(_row("Req/Sec", figures.rates_per_s, metric))
    if distribution and second:
        lines.append(recorded(figures.latency_us, "Recorded Latency"))
    elif distribution:
        lines.append("  Latency Distribution\n")
        for percent in PERCENTILES:
            value = figures.latency_us.percentile(percent)
            lines.append(f"{percent:7.0f}%{_column(time_us(value), 10)}\n")
    elapsed_s = max(figures.elapsed_s, 1e-6)
    read = binary(figures.bytes_read)
    lines.append(f"  {figures.requests} requests in {time_us(elapsed_s * 1e6)}, {read}B read\n")
    if any(figures.errors.values()):
        kinds = ", ".join(
            f"{kind} {figures.errors[kind]}" for kind in ("connect", "read", "write", "timeout")
        )
        lines.append(f"  Socket errors: {kinds}\n")
    if figures.bad_status:
        lines.append(f"  Non-2xx or 3xx responses: {figures.bad_status}\n")
    lines.append(f"Requests/sec: {figures.requests / elapsed_s:9.2f}\n")
    lines.append(f"Transfer/sec: {binary(figures.bytes_read / elapsed_s):>10}B\n")
    return "".join(lines)
