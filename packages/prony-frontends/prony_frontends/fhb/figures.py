"""fhb's report and summary.xml from a stored run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from prony.errors import EnvironmentFault
from prony.evidence.engine import Window
from prony.judge.histogram import decode
from prony_frontends.base import Ran
from prony_frontends.fhb.arguments import FhbArguments

SIMULATED_SHARE = 0.975
"""Minimum share of the requested users; below, Faban warns about Little's law."""
THINK_DEVIATION = 0.01


@dataclass(frozen=True, slots=True)
class FhbFigures:
    """fhb's figures; times in seconds."""

    per_s: float
    successes: int
    failures: int
    mean_s: float
    max_s: float
    percentiles_s: dict[int, float]
    simulated: float
    """Mean users by Little's law."""
    drawn_s: float
    thought_s: float

    @property
    def error_percent(self) -> float:
        """Of all requests."""
        total = self.successes + self.failures
        return 100.0 * self.failures / total if total else 0.0


def figures(window: Window) -> FhbFigures:
    """Figures of the steady part. A timeout or a status from 400 on is a failure."""
    decoded = None if window.service_time is None else decode(window.service_time)
    if decoded is None or not decoded.count:
        raise EnvironmentFault("no responses in the steady part; check the server, then try again")
    unmet = sum(n for kind, n in window.errors.items() if kind.startswith("expect_"))
    successes = max(0, window.completed - unmet)
    count = window.think_count or 0
    return FhbFigures(
        per_s=successes / window.duration_s,
        successes=successes,
        failures=window.failed,
        mean_s=decoded.moment(1),
        max_s=decoded.max_ns / 1e9,
        percentiles_s={nth: (decoded.percentile_ns(nth) or 0.0) / 1e9 for nth in (90, 95, 99)},
        simulated=(window.user_time_s or 0.0) / window.duration_s,
        drawn_s=(window.think_drawn_sum_s or 0.0) / count if count else 0.0,
        thought_s=(window.think_actual_sum_s or 0.0) / count if count else 0.0,
    )


def report(args: FhbArguments, found: FhbFigures) -> Iterator[str]:
    """fhb's lines."""
    yield f"ops/sec: {found.per_s:.3f}"
    yield f"% errors: {found.error_percent!r}"
    yield f"avg. time: {found.mean_s:.3f}"
    yield f"max time: {found.max_s:.3f}"
    yield f"90th %: {found.percentiles_s[90]:.3f}"
    if found.percentiles_s[90] > args.target_s:
        yield f"ERROR: Missed target 90% of {args.target_s!r}"
    yield f"95th %: {found.percentiles_s[95]:.3f}"
    yield f"99th %: {found.percentiles_s[99]:.3f}"
    if args.clients * SIMULATED_SHARE > found.simulated:
        yield (
            f"WARNING: Little's law verification results low: {args.clients} users requested; "
            f"{found.simulated:.3f} users simulated"
        )
    if found.drawn_s and abs(found.thought_s - found.drawn_s) / found.drawn_s > THINK_DEVIATION:
        yield (
            f"ERROR: Think time deviation is too high; requested {args.think}; "
            f"actual is {found.thought_s * 1000:.3f}"
        )


def summary(args: FhbArguments, found: FhbFigures, ran: Ran) -> str:
    """summary.xml for -s: Faban's elements for these figures."""
    passed = str(found.percentiles_s[90] <= args.target_s).lower()
    nth = "".join(
        f'\n                <percentile nth="{n}">{value:.3f}</percentile>'
        for n, value in found.percentiles_s.items()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<benchResults>
    <benchSummary name="fhb" version="1.0">
        <runId>{escape(ran.identifier)}</runId>
        <metric unit="ops/sec">{found.per_s:.3f}</metric>
        <conforms>{str(ran.judgement.conforms).lower()}</conforms>
    </benchSummary>
    <driverSummary name="http_driver1">
        <metric unit="ops/sec">{found.per_s:.3f}</metric>
        <users>{args.clients}</users>
        <rtXtps>{found.simulated:.4f}</rtXtps>
        <mix>
            <operation name="test">
                <successes>{found.successes}</successes>
                <failures>{found.failures}</failures>
            </operation>
        </mix>
        <responseTimes unit="seconds">
            <operation name="test" r90th={quoteattr(repr(args.target_s))}>
                <avg>{found.mean_s:.3f}</avg>
                <max>{found.max_s:.3f}</max>{nth}
                <passed>{passed}</passed>
            </operation>
        </responseTimes>
        <delayTimes>
            <operation name="test" type="thinkTime">
                <targetedAvg>{found.drawn_s:.3f}</targetedAvg>
                <actualAvg>{found.thought_s:.3f}</actualAvg>
            </operation>
        </delayTimes>
    </driverSummary>
</benchResults>
"""


def save(args: FhbArguments, text: str) -> None:
    """Writes FOLDER/N/summary.xml, with N from fhb.seq as in Faban. Raises EnvironmentFault."""
    sequence = args.folder / "fhb.seq"
    try:
        args.folder.mkdir(parents=True, exist_ok=True)
        last = sequence.read_text(encoding="ascii").strip() if sequence.is_file() else "1"
        number = int(last) if last.isdigit() else 1
        place = args.folder / str(number)
        place.mkdir(exist_ok=True)
        (place / "summary.xml").write_text(text, encoding="utf-8")
        sequence.write_text(f"{number + 1}\n", encoding="ascii")
    except OSError as fault:
        raise EnvironmentFault(
            f"{args.folder} cannot be written: {fault.strerror}; name another folder with -D (the run is "
            "stored: prony results show latest)"
        ) from fault
