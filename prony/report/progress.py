"""What a person sees while a measurement runs: bars on a terminal, plain lines elsewhere, or nothing.

Must not know how trials are run, and must never disturb one: it redraws at most four times a second and every
fault of drawing ends in the log.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Concatenate, ParamSpec, Protocol, Self, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prony.evidence.engine import IntervalRow
from prony.judge.finding import Status
from prony.report.style import STATUS_STYLE
from prony.report.wording import clock, duration, milliseconds, number

log = logging.getLogger(__name__)

REDRAW_EVERY_S = 0.25
"""Shortest time between two redraws: the screen may not cost the client CPU that it is measuring with."""
PLAIN_LINE_EVERY_S = 5.0
"""How often the plain output tells where it is within a phase."""


class Progress(Protocol):
    """What the laboratory tells while it works. No method raises (except on an interrupt by the user)."""

    def experiment_started(self, total_trials: int, estimate_s: float) -> None:
        """So many trials are ahead, and about so many seconds."""

    def build(self, server: str, line: str) -> None:
        """A line from the build of a server."""

    def trial_started(self, index: int, server: str, block: int) -> None:
        """Trial number `index` (from 1) of this experiment begins."""

    def phase(self, name: str, expected_s: float | None) -> None:
        """The trial enters a phase that will take about so long (None: nobody knows)."""

    def row(self, row: IntervalRow) -> None:
        """One second of load has passed."""

    def trial_ended(self, verdict: Status, requests_per_s: float | None, seconds: float) -> None:
        """The trial is over; no rate when none may be printed."""

    def note(self, text: str) -> None:
        """Something worth a line that stays on the screen."""

    def finished(self) -> None:
        """Nothing more will come: leave the terminal as it was found. May be called twice."""


P = ParamSpec("P")
S = TypeVar("S")


def _harmless(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """A fault of the screen must not end a measurement: it goes to the log."""

    @functools.wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception:
            log.warning("progress output failed in %s", method.__name__, exc_info=True)

    return guarded


@dataclass(slots=True)
class _State:
    """Where the experiment stands; both visible forms draw from it."""

    clock: Callable[[], float]
    started_s: float = 0.0
    total: int = 0
    estimate_s: float = 0.0
    done: int = 0
    done_seconds: float = 0.0
    index: int = 0
    server: str = ""
    block: int = 0
    trial_started_s: float | None = None
    phase: str = ""
    phase_started_s: float = 0.0
    phase_expected_s: float | None = None
    row: IntervalRow | None = None

    def elapsed_s(self) -> float:
        return self.clock() - self.started_s

    def phase_elapsed_s(self) -> float:
        return self.clock() - self.phase_started_s

    def left_s(self) -> float | None:
        """Time still needed: from the trials that ended, else from the estimate; None when unknown."""
        if not self.total:
            return None
        each = self.done_seconds / self.done if self.done else self.estimate_s / self.total
        if each <= 0:
            return None
        running = 0.0 if self.trial_started_s is None else self.clock() - self.trial_started_s
        return max(0.0, each * (self.total - self.done) - min(running, each))

    def share(self) -> float:
        """Done share of the whole experiment, 0 … 1."""
        left = self.left_s()
        elapsed = self.elapsed_s()
        if self.total and self.done >= self.total:
            return 1.0
        return elapsed / (elapsed + left) if left is not None and elapsed + left > 0 else 0.0

    def start_trial(self, index: int, server: str, block: int) -> None:
        self.index, self.server, self.block, self.row = index, server, block, None
        self.trial_started_s = self.clock()
        self.start_phase("", None)

    def start_phase(self, name: str, expected_s: float | None) -> None:
        self.phase, self.phase_expected_s = name, expected_s
        self.phase_started_s = self.clock()

    def end_trial(self, seconds: float) -> None:
        self.done += 1
        self.done_seconds += seconds
        self.trial_started_s = None
        self.row = None

    def rates(self) -> str:
        """Rate and p99 of the last second."""
        if self.row is None:
            return ""
        text = f"{number(self.row.completed_per_s)}/s  p99 {milliseconds(self.row.p99_ns)}"
        return text + (f"  {number(self.row.failed)} failed" if self.row.failed else "")

    def phase_time(self) -> str:
        elapsed = f"{self.phase_elapsed_s():.0f}"
        expected = self.phase_expected_s
        return f"{elapsed} s" if expected is None else f"{elapsed} of {expected:.0f} s"


class SilentProgress:
    """Says nothing (for --json and for tests)."""

    def experiment_started(self, total_trials: int, estimate_s: float) -> None: ...
    def build(self, server: str, line: str) -> None: ...
    def trial_started(self, index: int, server: str, block: int) -> None: ...
    def phase(self, name: str, expected_s: float | None) -> None: ...
    def row(self, row: IntervalRow) -> None: ...
    def trial_ended(self, verdict: Status, requests_per_s: float | None, seconds: float) -> None: ...
    def note(self, text: str) -> None: ...
    def finished(self) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class PlainProgress:
    """One line per event, for logs and pipes: a line at each change of phase and one every five seconds."""

    def __init__(self, stream: IO[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._state = _State(clock, started_s=clock())
        self._next_line_s = 0.0

    def _say(self, text: str) -> None:
        self._stream.write(f"[{clock(self._state.elapsed_s())}] {text}\n")
        self._stream.flush()

    def _where(self) -> str:
        state = self._state
        return f"trial {state.index} of {state.total or '?'} {state.server}"

    @_harmless
    def experiment_started(self, total_trials: int, estimate_s: float) -> None:
        self._state.total, self._state.estimate_s = total_trials, estimate_s
        plural = "trial" if total_trials == 1 else "trials"
        self._say(f"{total_trials} {plural}, about {duration(estimate_s)}")

    @_harmless
    def build(self, server: str, line: str) -> None:
        self._say(f"build {server}: {line.rstrip()}")

    @_harmless
    def trial_started(self, index: int, server: str, block: int) -> None:
        self._state.start_trial(index, server, block)
        self._say(f"{self._where()} (block {block})")

    @_harmless
    def phase(self, name: str, expected_s: float | None) -> None:
        self._state.start_phase(name, expected_s)
        self._next_line_s = self._state.clock() + PLAIN_LINE_EVERY_S
        about = "" if expected_s is None else f", about {duration(expected_s)}"
        self._say(f"{self._where()}: {name}{about}")

    @_harmless
    def row(self, row: IntervalRow) -> None:
        state = self._state
        state.row = row
        if state.clock() < self._next_line_s:
            return
        self._next_line_s = state.clock() + PLAIN_LINE_EVERY_S
        self._say(f"{self._where()}: {state.phase} {state.phase_time()}, {state.rates()}")

    @_harmless
    def trial_ended(self, verdict: Status, requests_per_s: float | None, seconds: float) -> None:
        self._state.end_trial(seconds)
        rate = "no figure" if requests_per_s is None else f"{number(requests_per_s)} requests/s"
        left = self._state.left_s()
        ahead = f", about {duration(left)} left" if left and self._state.done < self._state.total else ""
        self._say(f"{self._where()}: {verdict.value}, {rate}, took {duration(seconds)}{ahead}")

    @_harmless
    def note(self, text: str) -> None:
        self._say(text)

    @_harmless
    def finished(self) -> None:
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finished()


class RichProgress:
    """Live bars: the running trial with phase, rate and p99, then the experiment; what ended stays above."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._state = _State(clock, started_s=clock())
        self._lock = threading.RLock()
        self._build_line = ""
        self._live = Live(console=console, auto_refresh=False, transient=True, get_renderable=self._drawing)
        self._stop = threading.Event()
        self._ticker: threading.Thread | None = None

    def _drawing(self) -> RenderableType:
        try:
            with self._lock:
                return self._draw()
        except Exception:
            log.warning("progress could not be drawn", exc_info=True)
            return Text("")

    def _draw(self) -> RenderableType:
        state = self._state
        if not state.total:
            return Text(self._build_line, style="dim", overflow="ellipsis", no_wrap=True)
        wide = self._console.width >= 100
        bar_width = 24 if wide else 12
        table = Table.grid(padding=(0, 1), expand=False)
        for column in range(4):
            table.add_column(no_wrap=True, overflow="ellipsis", ratio=1 if column == 3 else None)
        if state.trial_started_s is not None:
            expected = state.phase_expected_s
            reached = state.phase_elapsed_s()
            bar = (
                ProgressBar(total=None, pulse=True, width=bar_width)
                if expected is None
                else ProgressBar(total=max(expected, 0.1), completed=min(reached, expected), width=bar_width)
            )
            table.add_row(
                Text(f"{state.index}/{state.total} {state.server}", style="bold"),
                bar,
                Text(f"{state.phase} {state.phase_time()}".strip()),
                Text(state.rates(), style="cyan"),
            )
        left = state.left_s()
        table.add_row(
            Text(f"{state.done} of {state.total} trials done", style="dim"),
            ProgressBar(total=1.0, completed=state.share(), width=bar_width),
            Text(f"{clock(state.elapsed_s())} elapsed", style="dim"),
            Text("" if left is None else f"about {duration(left)} left", style="dim"),
        )
        if self._build_line:
            return Group(table, Text(self._build_line, style="dim", overflow="ellipsis", no_wrap=True))
        return table

    def _redraw(self) -> None:
        while not self._stop.wait(REDRAW_EVERY_S):
            try:
                self._live.refresh()
            except Exception:
                log.warning("progress could not be redrawn", exc_info=True)
                return

    def _begin(self) -> None:
        if self._ticker is None and not self._stop.is_set():
            self._live.start()
            self._ticker = threading.Thread(target=self._redraw, name="prony-progress", daemon=True)
            self._ticker.start()

    @_harmless
    def experiment_started(self, total_trials: int, estimate_s: float) -> None:
        with self._lock:
            self._state.total, self._state.estimate_s = total_trials, estimate_s
            self._build_line = ""
        plural = "trial" if total_trials == 1 else "trials"
        line = f"{total_trials} {plural}, about {duration(estimate_s)}"
        self._console.print(line, style="dim", highlight=False)
        self._begin()

    @_harmless
    def build(self, server: str, line: str) -> None:
        with self._lock:
            self._build_line = f"build {server}: {line.strip()}"
        self._begin()

    @_harmless
    def trial_started(self, index: int, server: str, block: int) -> None:
        with self._lock:
            self._build_line = ""
            self._state.start_trial(index, server, block)
        self._begin()

    @_harmless
    def phase(self, name: str, expected_s: float | None) -> None:
        with self._lock:
            self._state.start_phase(name, expected_s)

    @_harmless
    def row(self, row: IntervalRow) -> None:
        with self._lock:
            self._state.row = row

    @_harmless
    def trial_ended(self, verdict: Status, requests_per_s: float | None, seconds: float) -> None:
        with self._lock:
            state = self._state
            state.end_trial(seconds)
            rate = "no figure" if requests_per_s is None else f"{number(requests_per_s)} requests/s"
            style = STATUS_STYLE[verdict]
            line = (
                f"{state.index}/{state.total} {escape(state.server)}  [{style}]{verdict.value}[/]"
                f"  {rate}  [dim]{duration(seconds)}[/]"
            )
        self._console.print(line, highlight=False)

    @_harmless
    def note(self, text: str) -> None:
        self._console.print(Text(text), highlight=False)

    @_harmless
    def finished(self) -> None:
        self._stop.set()
        if self._ticker is not None:
            self._ticker.join(timeout=2.0)
            self._ticker = None
        self._live.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finished()


AnyProgress = RichProgress | PlainProgress | SilentProgress


def choose_progress(console: Console, *, silent: bool = False) -> AnyProgress:
    """The form that fits where the output goes: bars on a terminal, lines elsewhere, nothing when asked."""
    if silent:
        return SilentProgress()
    live = console.is_terminal and not console.is_dumb_terminal
    return RichProgress(console) if live else PlainProgress(console.file)
