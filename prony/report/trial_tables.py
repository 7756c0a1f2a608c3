"""A single trial; and steps, time parts, groups of users and a script's output of any trial. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median, median_high

from prony.evidence.engine import Histogram, ScriptReport, Window
from prony.evidence.trial import Evidence, PopulationFacts
from prony.judge.figures import times_ms
from prony.judge.percentiles import Times as Sample
from prony.judge.times import plain_times, step_times
from prony.judge.window import measured
from prony.report.blocks import Block, Chapter, Column, Lines, Row, Section, Table, plain
from prony.report.cell_view import HEADLINE, TrialView
from prony.report.intervals import has_figure, times_lines, trial_cell
from prony.report.labels import SERVICE_TIMES, SESSION_TIMES, SESSIONS, label_of, unit_of
from prony.report.result import PartView
from prony.report.shape import Shape, steps_chapter
from prony.report.wording import counted, duration, number, significant

STEP_HEAD = ("step", "requests/s", "failed", "mean, ms", "p50, ms", "p99, ms")
PART_HEAD = ("part", "samples", "mean, ms", "p50, ms", "p99, ms")
WHEN = {"before": "before the load", "after": "after the load"}
MOST_SCRIPT_LINES = 200
"""Of what a script printed; `prony wrk` prints all of it."""


@dataclass(frozen=True, slots=True)
class Times:
    """Of a histogram; None for percentiles that the samples do not support."""

    mean_ms: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None


def times(sample: Sample | None) -> Times:
    """Mean, p50 and p99 in ms, as far as the samples support them."""
    sample_times = times_ms(sample)
    return Times(sample_times.get("mean_ms"), sample_times.get("p50_ms"), sample_times.get("p99_ms"))


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step over a window."""

    scenario: str
    name: str
    completed: int
    per_s: float
    failed: int
    times: Times


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of a request's time over a window: connect, tls, send, wait or receive."""

    name: str
    samples: int
    times: Times


def steps_of(trial: TrialView) -> list[StepLine]:
    """The steps of a trial; empty for a single step or unprinted figures."""
    window = measured(trial.record.evidence)
    if window is None or not trial.conforms:
        return []
    return [
        StepLine(
            step.scenario,
            step.name,
            step.completed,
            step.completed / window.duration_s,
            step.failed,
            times(step_times(step, trial.record.evidence)),
        )
        for step in (*window.steps, *window.transactions)
    ]


def time_parts_of(trial: TrialView) -> list[TimePart]:
    """Empty without --request-parts; connect and TLS only where connections were opened."""
    window = measured(trial.record.evidence)
    if window is None or window.wait_time is None or not trial.conforms:
        return []
    histograms: Mapping[str, Histogram | None] = {
        "connect": window.connect_time,
        "tls": window.tls_time,
        "send": window.send_time,
        "wait": window.wait_time,
        "receive": window.receive_time,
    }
    there = [(name, histogram) for name, histogram in histograms.items() if histogram is not None]
    return [TimePart(name, histogram.count, times(plain_times(histogram))) for name, histogram in there]


def step_blocks(trials: Sequence[TrialView], whose: str = "") -> list[Block]:
    """A row per step, the median over trials (of `failed` the sum); nothing for a single step."""
    by_name: dict[str, list[StepLine]] = {}
    counting = [trial for trial in trials if trial.counts]
    for trial in counting:
        steps = steps_of(trial)
        scenarios = {step.scenario for step in steps}
        for step in steps:
            name = f"{step.scenario}: {step.name}" if len(scenarios) > 1 else step.name
            by_name.setdefault(name, []).append(step)
    if not by_name:
        return []
    windows = (measured(trial.record.evidence) for trial in counting)
    connecting = any(window is not None and window.response_time is not None for window in windows)
    note = "response times, from the start of the connect" if connecting else "service times"
    note += ", median over trials" if len(counting) > 1 else ""
    rows = [_step_row(name, steps) for name, steps in by_name.items()]
    return [plain(STEP_HEAD, rows, f"Steps, {whose}" if whose else "Steps", note)]


def _step_row(name: str, steps: Sequence[StepLine]) -> tuple[str, ...]:
    middle = (
        middle_time([getattr(step.times, name) for step in steps]) for name in ("mean_ms", "p50_ms", "p99_ms")
    )
    return (
        name,
        number(median(step.per_s for step in steps)),
        number(sum(step.failed for step in steps)),
        *(significant(value, 3) for value in middle),
    )


def middle_time(values: Sequence[float | None]) -> float | None:
    """The upper median of percentiles; None if any is unknown."""
    known = [value for value in values if value is not None]
    return median_high(known) if known and len(known) == len(values) else None


def time_part_blocks(trials: Sequence[TrialView]) -> list[Block]:
    parts = time_parts_of(trials[0]) if len(trials) == 1 else []
    if not parts:
        return []
    rows = [
        (
            p.name,
            number(p.samples),
            *(significant(v, 3) for v in (p.times.mean_ms, p.times.p50_ms, p.times.p99_ms)),
        )
        for p in parts
    ]
    return [plain(PART_HEAD, rows, "Time parts", "send, wait and receive make up the service time")]


def group_lines(evidence: Evidence) -> list[str]:
    """A line per group of users, where there are several, and per load before or after."""
    groups = [_group(population) for population in evidence.load.populations]
    stages = [
        f"{WHEN[stage.name]}: {number(totals.completed)} requests completed, {number(totals.failed)} failed "
        "(not in the figures)"
        for stage in evidence.stages
        if (totals := stage.report.totals)
    ]
    return groups + stages


def _group(population: PopulationFacts) -> str:
    words = [f"{population.name}: {counted(population.users, 'user')}"]
    if population.start_s:
        words.append(f"from {population.start_s:g} s")
    if population.ramp_up_s:
        words.append(f"over {population.ramp_up_s:g} s")
    if population.end_s is not None:
        words.append(f"until {population.end_s:g} s")
    if population.iterations_per_user is not None:
        words.append(f"{counted(population.iterations_per_user, 'iteration')} each")
    return ", ".join(words)


def script_blocks(script: ScriptReport | None) -> list[Block]:
    if script is None:
        return []
    printed = f"{script.printed_setup}{script.printed_run}{script.printed_done}".splitlines()
    lines = printed[:MOST_SCRIPT_LINES]
    if len(printed) > MOST_SCRIPT_LINES or script.printed_left_out:
        lines.append(f"… and {number(max(0, len(printed) - MOST_SCRIPT_LINES))} more lines")
    if script.error is not None:
        lines.append(script.error)
    return [Lines("Script output", tuple(lines), listed=False)] if lines else []


GROUPS = (
    (
        "Load",
        (
            *(HEADLINE, "mean_ms", "min_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms"),
            *SERVICE_TIMES,
        ),
    ),
    (
        "Sessions",
        (*SESSIONS, "sessions_per_s", "session_mean_ms", "session_min_ms", *SESSION_TIMES, "session_max_ms"),
    ),
    ("TLS", ("handshakes_per_request", "resumed_share")),
    (
        "Cost",
        (
            *("server_cpu_us_per_request", "server_instructions_per_request", "server_cpu_share"),
            *("client_cpu_us_per_request", "client_cpu_share"),
        ),
    ),
)
PARTS = (
    "Send: until the kernel had taken the last byte. Wait: to the first byte of the response. "
    "Receive: to the last. Together the service time; connect and TLS handshake are not part of it."
)


class Single(Shape):
    """A single trial: counts, figures, steps, time parts, the script's output."""

    picture = "throughput"

    def blocks(self, part: PartView) -> list[Block]:
        return [*results(part), *step_blocks(part.trials), *time_part_blocks(part.trials), *script(part)]

    def chapters(self, part: PartView) -> list[Chapter | str]:
        against = " against a server that was already running" if part.external else ""
        lead = f"A single trial{against}: variation between trials is unknown."
        parts = tuple(replace(block, title="", note="") for block in time_part_blocks(part.trials))
        return [
            Chapter("results", "Results", (*results(part), *script(part)), lead),
            steps_chapter(step_blocks(part.trials)),
            Chapter("parts", "Time parts", parts, PARTS),
            *("latency", "cpu", "sockets"),
        ]


def results(part: PartView) -> list[Block]:
    if not part.trials:
        return []
    trial = part.trials[0]
    window = measured(trial.record.evidence)
    counts = [*(_counts(window) if window is not None else ()), *group_lines(trial.record.evidence)]
    made: list[Block] = [Lines("", tuple(counts), listed=False)] if counts else []
    if trial.counts:
        made.append(_figures(trial))
        if lines := times_lines(trial):
            made.append(Lines("", lines, style="dim", listed=False))
    return made


def script(part: PartView) -> list[Block]:
    engines = (trial.record.evidence.engine for trial in part.trials)
    return script_blocks(next((engine.script for engine in engines if engine is not None), None))


def _counts(window: Window) -> list[str]:
    errors = sorted(window.errors.items(), key=lambda error: -error[1])
    return [
        f"{number(window.completed)} requests completed in {duration(window.duration_s)}, "
        f"{number(window.failed)} failed",
        *(f"{number(n)} × {kind}" for kind, n in errors if n),
        "status " + ", ".join(f"{code}: {number(n)}" for code, n in sorted(window.status.items())),
    ]


def _figures(trial: TrialView) -> Table:
    sections = []
    for title, figures in GROUPS:
        rows = tuple(
            Row(label_of(name), (trial_cell(name, trial),), unit_of(name))
            for name in figures
            if has_figure(name, trial)
        )
        if rows:
            sections.append(Section(rows, title))
    return Table((Column(""),), tuple(sections), caption="Results")
