"""h2load's lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from prony_frontends.counted import CountedValues
from prony_frontends.h2load.arguments import H2loadArguments
from prony_frontends.h2load.figures import H2loadFigures, H2loadTimes, by_hundred

HEADING = "                     min         max         mean         sd        +/- sd"


def begin(args: H2loadArguments, requests: int | None) -> Iterator[str]:
    """Lines before the load: each thread's share of clients and requests."""
    yield "starting benchmark..."
    for number in range(args.threads):
        clients = _share(args.clients, args.threads, number)
        line = f"spawning thread #{number}: {clients} total client(s). "
        if args.rate is not None:
            line += (
                f"Up to {_share(args.rate, args.threads, number)} client(s) will be created every "
                f"{_period(args.rate_period_s)} "
            )
        if requests is None:
            line += (
                f"Timing-based test with {args.warm_up_s:g}s of warm-up time and {args.duration_s:g}s of "
                "main duration for measurements."
            )
        else:
            line += f"{_share(requests, args.threads, number)} total requests"
        yield line
    if requests is None:
        yield from (f"Warm-up started for thread #{number}." for number in range(args.threads))


def phases(threads: int) -> Iterator[str]:
    """h2load's messages about the phases of a timed run."""
    for line in (
        "Warm-up phase is over for thread #{}.",
        "Main benchmark duration is started for thread #{}.",
        "Main benchmark duration is over for thread #{}. Stopping all clients.",
        "Stopped all clients for thread #{}",
    ):
        yield from (line.format(number) for number in range(threads))


def _share(things: int, threads: int, number: int) -> int:
    return things // threads + (number < things % threads)


def duration(seconds: float) -> str:
    """161us, 9.61ms, 2.00s."""
    if seconds >= 1:
        return f"{seconds:.2f}s"
    return f"{seconds * 1000:.2f}ms" if seconds >= 0.001 else f"{int(seconds * 1e6 + 1e-6)}us"


def _period(seconds: float) -> str:
    """The period of -r as printed: 1s, 200ms."""
    return f"{seconds:g}s" if seconds >= 1 else f"{seconds * 1000:g}ms"


def size(count: float) -> str:
    """A size without its B: 148, 4.27M."""
    for unit, scale in (("G", 2**30), ("M", 2**20), ("K", 2**10)):
        if count >= scale:
            return f"{count / scale:.2f}{unit}"
    return f"{int(count)}"


def report(found: H2loadFigures, times: H2loadTimes, over_s: float) -> Iterator[str]:
    """The report after the run. `over_s`: divisor of the rates."""
    per_s = found.answered / over_s if over_s else 0.0
    yield ""
    yield (
        f"finished in {duration(found.elapsed_s)}, {per_s:.2f} req/s, "
        f"{size(found.total_bytes / over_s if over_s else 0.0)}B/s"
    )
    yield (
        f"requests: {found.total} total, {found.started} started, {found.answered} done, "
        f"{found.succeeded} succeeded, {found.failed} failed, {found.errored} errored, "
        f"{found.timed_out} timeout"
    )
    yield "status codes: " + ", ".join(f"{count} {name}" for name, count in by_hundred(found.statuses))
    yield (
        f"traffic: {_bytes(found.total_bytes)} total, {_bytes(found.head_bytes)} headers "
        f"(space savings {found.savings:.2f}%), {_bytes(found.body_bytes)} data"
    )
    yield HEADING
    yield _row("time for request: ", times.request_s)
    yield _row("time for connect: ", times.connect_s)
    yield _row(
        "time to 1st byte: ", times.first_byte_s, known=times.first_byte_s.count >= 1 or not found.answered
    )
    rates = times.per_s
    shown = (f"{value:.2f}" for value in (rates.lowest, rates.highest, rates.mean, rates.stdev))
    yield "req/s           :  {:>10}  {:>10}  {:>10}  {:>10}".format(*shown) + f"{rates.within_stdev:9.2f}%"


def _bytes(count: int) -> str:
    return f"{size(count)}B ({count})"


def _row(name: str, sample: CountedValues, known: bool = True) -> str:
    if not known:
        return name + "  ".join([f"{'n/a':>10}"] * 4) + f"{'n/a':>9}"
    shown = (duration(value) for value in (sample.lowest, sample.highest, sample.mean, sample.stdev))
    return name + "{:>10}  {:>10}  {:>10}  {:>10}".format(*shown) + f"{sample.within_stdev:9.2f}%"
