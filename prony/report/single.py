"""One trial of one server in tables and sentences. Pure."""

from __future__ import annotations

from dataclasses import replace

from prony.evidence.engine import Window
from prony.judge.window import measured
from prony.report.blocks import Block, Chapter, Column, Lines, Row, Section, Table
from prony.report.cell_view import HEADLINE, TrialView
from prony.report.intervals import has_figure, times_lines, trial_cell
from prony.report.labels import SERVICE_TIMES, SESSION_TIMES, SESSIONS, label_of, unit_of
from prony.report.result import PartView
from prony.report.shape import Shape, steps_chapter
from prony.report.trial_tables import group_lines, script_blocks, step_blocks, time_part_blocks
from prony.report.wording import duration, number

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
        ("server_cpu_us_per_request", "server_cpu_share", "client_cpu_us_per_request", "client_cpu_share"),
    ),
)
PARTS = (
    "Send: until the kernel had taken the last byte. Wait: to the first byte of the response. "
    "Receive: to the last. Together the service time; connect and TLS handshake are not part of it."
)


class Single(Shape):
    """One trial of one server: counts, figures, steps, time parts, the script's output."""

    def blocks(self, part: PartView) -> list[Block]:
        return [*results(part), *step_blocks(part.trials), *time_part_blocks(part.trials), *script(part)]

    def chapters(self, part: PartView) -> list[Chapter | str]:
        against = " against a server that was already running" if part.external else ""
        lead = f"One trial{against}: nothing is said about how others would differ."
        parts = tuple(replace(block, title="", note="") for block in time_part_blocks(part.trials))
        return [
            Chapter("results", "Results", (*results(part), *script(part)), lead),
            steps_chapter(step_blocks(part.trials)),
            Chapter("parts", "Time parts", parts, PARTS),
            *("latency", "throughput", "cpu", "sockets"),
        ]


def results(part: PartView) -> list[Block]:
    """Counts and figures of the trial."""
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
    """What the trial's script in Lua printed."""
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
