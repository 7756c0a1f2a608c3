"""What single windows say beyond their figures: steps of a scenario, time parts, groups of users, a script's
output. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, median_high

from prony.evidence.engine import Histogram, ScriptReport
from prony.evidence.trial import Evidence, PopulationFacts
from prony.judge.figures import times_ms
from prony.judge.percentiles import Times as Sample
from prony.judge.times import plain_times, step_times
from prony.judge.window import measured
from prony.report.blocks import Block, Lines, plain
from prony.report.cell_view import TrialView
from prony.report.wording import counted, number, significant

STEP_HEAD = ("step", "requests/s", "failed", "mean, ms", "p50, ms", "p99, ms")
PART_HEAD = ("part", "samples", "mean, ms", "p50, ms", "p99, ms")
WHEN = {"before": "before the load", "after": "after the load"}
MOST_SCRIPT_LINES = 200
"""Of what a script printed; `prony wrk` prints all of it."""


@dataclass(frozen=True, slots=True)
class Times:
    """Of one histogram; a percentile that the samples do not support is None."""

    mean_ms: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None


def times(sample: Sample | None) -> Times:
    """Mean, p50 and p99 in ms, as far as the samples support them."""
    found = times_ms(sample)
    return Times(found.get("mean_ms"), found.get("p50_ms"), found.get("p99_ms"))


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step over one window."""

    scenario: str
    name: str
    completed: int
    per_s: float
    failed: int
    times: Times


@dataclass(frozen=True, slots=True)
class TimePart:
    """One part of a request's time over one window: connect, tls, send, wait or receive."""

    name: str
    samples: int
    times: Times


def steps_of(trial: TrialView) -> list[StepLine]:
    """The steps of one trial; none when the workload has a single one or its figures are not printed."""
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
    """The time parts of one trial; none unless they were asked for (`--request-parts`) and are printed.
    Connecting and the TLS handshake are there when connections were opened within the window.
    """
    window = measured(trial.record.evidence)
    if window is None or window.wait_time is None or not trial.conforms:
        return []
    found: Mapping[str, Histogram | None] = {
        "connect": window.connect_time,
        "tls": window.tls_time,
        "send": window.send_time,
        "wait": window.wait_time,
        "receive": window.receive_time,
    }
    there = [(name, one) for name, one in found.items() if one is not None]
    return [TimePart(name, one.count, times(plain_times(one))) for name, one in there]


def step_blocks(trials: Sequence[TrialView], whose: str = "") -> list[Block]:
    """A row per step: of one trial its figures, of several the median over those that count (of `failed` the
    sum); nothing when the workload has a single step.
    """
    found: dict[str, list[StepLine]] = {}
    counting = [trial for trial in trials if trial.counts]
    for trial in counting:
        steps = steps_of(trial)
        scenarios = {step.scenario for step in steps}
        for step in steps:
            name = f"{step.scenario}: {step.name}" if len(scenarios) > 1 else step.name
            found.setdefault(name, []).append(step)
    if not found:
        return []
    windows = (measured(trial.record.evidence) for trial in counting)
    connecting = any(window is not None and window.response_time is not None for window in windows)
    note = "response times, from the start of the connect" if connecting else "service times"
    note += ", median over trials" if len(counting) > 1 else ""
    rows = [_step_row(name, steps) for name, steps in found.items()]
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
    """Of percentiles: the median that is one of them; None where one is not known."""
    known = [value for value in values if value is not None]
    return median_high(known) if known and len(known) == len(values) else None


def time_part_blocks(trials: Sequence[TrialView]) -> list[Block]:
    """A row per time part of a single trial; nothing otherwise."""
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
    """A line per group of users, where there are several, and one per load that came before or after."""
    groups = [_group(one) for one in evidence.load.populations]
    stages = [
        f"{WHEN[stage.name]}: {number(totals.completed)} requests completed, {number(totals.failed)} failed "
        "(not in the figures)"
        for stage in evidence.stages
        if (totals := stage.report.totals)
    ]
    return groups + stages


def _group(one: PopulationFacts) -> str:
    words = [f"{one.name}: {counted(one.users, 'user')}"]
    if one.start_s:
        words.append(f"from {one.start_s:g} s")
    if one.ramp_up_s:
        words.append(f"over {one.ramp_up_s:g} s")
    if one.end_s is not None:
        words.append(f"until {one.end_s:g} s")
    if one.iterations_per_user is not None:
        words.append(f"{counted(one.iterations_per_user, 'iteration')} each")
    return ", ".join(words)


def script_blocks(script: ScriptReport | None) -> list[Block]:
    """What a script in Lua printed, in the order in which its functions ran."""
    if script is None:
        return []
    printed = f"{script.printed_setup}{script.printed_run}{script.printed_done}".splitlines()
    lines = printed[:MOST_SCRIPT_LINES]
    if len(printed) > MOST_SCRIPT_LINES or script.printed_left_out:
        lines.append(f"… and {number(max(0, len(printed) - MOST_SCRIPT_LINES))} more lines")
    if script.error is not None:
        lines.append(script.error)
    return [Lines("Script output", tuple(lines), listed=False)] if lines else []
