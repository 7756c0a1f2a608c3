"""What a person sees while a measurement runs: bars on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prony.evidence.engine import IntervalRow
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement, Kind
from prony.report.blocks import KIND_STYLE
from prony.report.progress_state import SilentProgress, State, harmless, log
from prony.report.wording import clock, counted, duration, printable

REDRAWS_PER_S = 4.0
"""At the most: the screen may not cost the client CPU that it is measuring with."""
LEAST_BAR_WIDTH = 64
"""Terminals narrower than this get words without bars."""


class _Screen(Live):
    """What rich redraws from a thread of its own; a fault of the screen ends in the log."""

    def refresh(self) -> None:
        try:
            super().refresh()
        except Exception:
            log.info("progress could not be redrawn", exc_info=True)


class RichProgress(SilentProgress):
    """Live bars: the running trial with phase, rate and p99, then the experiment; what ended stays above."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        # Rich would end the program and redirect standard output; a lost screen is no reason for either.
        console.on_broken_pipe = self._screen_gone  # type: ignore[method-assign]
        self._state = State(clock, started_s=clock())
        self._lock = threading.RLock()
        self._build_line = ""
        self._live = _Screen(
            console=console,
            refresh_per_second=REDRAWS_PER_S,
            transient=True,
            get_renderable=self._drawing,
            redirect_stdout=False,  # results go there, and nothing else
            redirect_stderr=False,
        )

    def _screen_gone(self) -> None:
        self._console.quiet = True
        log.info("the terminal went away; progress is no longer shown")

    def _drawing(self) -> RenderableType:
        try:
            with self._lock:
                return self._draw()
        except Exception:
            log.info("progress could not be drawn", exc_info=True)
            return Text("")

    def _draw(self) -> RenderableType:
        state = self._state
        if not state.total:
            return Text(self._build_line, style="dim", overflow="ellipsis", no_wrap=True)
        if self._console.width < LEAST_BAR_WIDTH:
            return self._draw_narrow()
        wide = self._console.width >= 100
        bar_width = 24 if wide else 12
        table = Table.grid(padding=(0, 1), expand=False)
        for column in range(4):
            table.add_column(no_wrap=True, overflow="ellipsis", ratio=1 if column == 3 else None)
        if state.trial_started_s is not None:
            expected = state.phase_expected_s
            reached = None if expected is None else state.phase_elapsed_s() / max(expected, 0.1)
            bar = _bar(reached, bar_width, "cyan")
            table.add_row(
                Text(f"{state.index}/{state.every} {state.server}", style="bold"),
                bar,
                Text(f"{state.phase} {state.phase_time()}".strip()),
                Text(state.rates(), style="cyan"),
            )
        left = state.left_s()
        table.add_row(
            Text(f"{state.earlier + state.done} of {state.every} trials done", style="dim"),
            _bar(state.share(), bar_width, "green"),
            Text(f"{clock(state.elapsed_s())} elapsed", style="dim"),
            Text("" if left is None else f"about {duration(left)} left", style="dim"),
        )
        if self._build_line:
            return Group(table, Text(self._build_line, style="dim", overflow="ellipsis", no_wrap=True))
        return table

    def _draw_narrow(self) -> RenderableType:
        state = self._state
        left = state.left_s()
        lines = [
            f"{state.earlier + state.done}/{state.every} done"
            + ("" if left is None else f", about {duration(left)} left")
        ]
        if state.trial_started_s is not None:
            where = f"{state.phase} {state.phase_time()}".strip()
            lines = [f"{state.index}/{state.every} {state.server}", where, state.rates(), *lines]
        return Text("\n".join(line for line in lines if line), overflow="ellipsis", no_wrap=True)

    def _begin(self) -> None:
        if not self._live.is_started:
            self._live.start()

    @harmless
    def experiment_started(self, total_trials: int, estimate_s: float, ended: int = 0) -> None:
        with self._lock:
            self._state.begin(total_trials, estimate_s, ended)
            self._build_line = ""
        line = f"{counted(total_trials, 'trial')}, about {duration(estimate_s)}"
        self._console.print(line, style="dim", highlight=False)
        self._begin()

    @harmless
    def build(self, server: str, line: str) -> None:
        with self._lock:
            self._build_line = f"build {server}: {line.strip()}"
        self._begin()

    @harmless
    def trial_started(self, index: int, server: str, block: int, planned_s: float) -> None:
        with self._lock:
            self._build_line = ""
            self._state.start_trial(index, server, block, planned_s)
        self._begin()

    @harmless
    def phase(self, name: str, expected_s: float | None) -> None:
        with self._lock:
            self._state.start_phase(name, expected_s)

    @harmless
    def row(self, row: IntervalRow) -> None:
        with self._lock:
            self._state.row = row

    @harmless
    def trial_stored(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:  # noqa: ARG002
        with self._lock:
            self._state.evidence = record.evidence

    @harmless
    def trial_ended(self, judgement: Judgement, figures: Mapping[str, float], seconds: float) -> None:
        with self._lock:
            state = self._state
            which = f"{state.index}/{state.every} {state.server}  "
            state.end_trial(seconds)
            line = Text.assemble(
                which,
                (
                    state.outcome(judgement, figures),
                    "" if judgement.conforms else KIND_STYLE[Kind.NOT_CONFORMING],
                ),
                "  ",
                (duration(seconds), "dim"),
            )
        self._console.print(line, highlight=False)

    @harmless
    def note(self, text: str) -> None:
        self._console.print(Text(text), highlight=False)

    @harmless
    def finished(self) -> None:
        self._live.stop()


def _bar(share: float | None, width: int, style: str) -> ProgressBar:
    """A bar filled to `share`; moving where the duration is unknown."""
    if share is None:
        return ProgressBar(total=None, pulse=True, width=width, pulse_style=style)
    done = min(max(share, 0.0), 1.0)
    return ProgressBar(total=1.0, completed=done, width=width, complete_style=style, finished_style=style)


PLAIN_LINE_EVERY_S = 5.0
"""Interval of the plain output within a phase."""
ROW_S = 1.0
"""Seconds. Rows come once a second: the row nearest to the moment is printed."""


class PlainProgress(SilentProgress):
    """A line per event, for logs and pipes: at each change of phase and every five seconds."""

    def __init__(self, stream: IO[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._state = State(clock, started_s=clock())
        self._next_line_s = 0.0

    def _say(self, text: str) -> None:
        self._stream.write(f"[{clock(self._state.elapsed_s())}] {printable(text)}\n")
        self._stream.flush()

    def _where(self) -> str:
        state = self._state
        return f"trial {state.index} of {state.every or '?'} {state.server}"

    @harmless
    def experiment_started(self, total_trials: int, estimate_s: float, ended: int = 0) -> None:
        self._state.begin(total_trials, estimate_s, ended)
        self._say(f"{counted(total_trials, 'trial')}, about {duration(estimate_s)}")

    @harmless
    def build(self, server: str, line: str) -> None:
        self._say(f"build {server}: {line.rstrip()}")

    @harmless
    def trial_started(self, index: int, server: str, block: int, planned_s: float) -> None:
        self._state.start_trial(index, server, block, planned_s)
        self._say(f"{self._where()} (block {block + 1})")

    @harmless
    def phase(self, name: str, expected_s: float | None) -> None:
        self._state.start_phase(name, expected_s)
        self._next_line_s = self._state.clock() + PLAIN_LINE_EVERY_S
        about = "" if expected_s is None else f", about {duration(expected_s)}"
        self._say(f"{self._where()}: {name}{about}")

    @harmless
    def row(self, row: IntervalRow) -> None:
        state = self._state
        state.row = row
        if state.clock() < self._next_line_s - ROW_S / 2:
            return
        self._next_line_s = state.clock() + PLAIN_LINE_EVERY_S
        self._say(f"{self._where()}: {state.phase} {state.phase_time()}, {state.rates()}")

    @harmless
    def trial_stored(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:  # noqa: ARG002
        self._state.evidence = record.evidence

    @harmless
    def trial_ended(self, judgement: Judgement, figures: Mapping[str, float], seconds: float) -> None:
        where = self._where()
        self._state.end_trial(seconds)
        left = self._state.left_s()
        ahead = f", about {duration(left)} left" if left and self._state.done < self._state.total else ""
        outcome = f"{self._state.outcome(judgement, figures)}, took {duration(seconds)}{ahead}"
        self._say(f"{where}: {outcome}")

    @harmless
    def note(self, text: str) -> None:
        self._say(text)

    @harmless
    def finished(self) -> None:
        self._stream.flush()


def choose_progress(console: Console, *, silent: bool = False) -> SilentProgress:
    """Progress for this output: bars on a terminal, lines elsewhere, none if disabled."""
    if silent:
        return SilentProgress()
    live = console.is_terminal and not console.is_dumb_terminal
    return RichProgress(console) if live else PlainProgress(console.file)
