"""Writes the progress of an experiment to a file next to the store, for `prony serve` in another process.

A thread writes at most once a second, so a slow or full disk delays nothing but the file.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from prony.evidence.engine import IntervalRow
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.report.progress_state import SilentProgress, State
from prony.store import owner
from prony_serve import running
from prony_serve.running import MOST_NOTES, MOST_SECONDS, MOST_TEXT, MOST_TRIALS, EndedTrial, Running, Second

log = logging.getLogger("prony_serve.journal")

LEAST_BETWEEN_S = 1.0
"""Minimum interval between writes; a few kilobytes per second do not disturb the client."""
HEARTBEAT_S = 5.0
"""Maximum interval between writes, so that a reader can tell a dead process from a slow phase."""


class Journal(SilentProgress):
    """Progress listener for one experiment of the store at `where` (`Store.where`); a context manager."""

    def __init__(self, where: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._where = where
        self._lock = threading.Lock()
        self._state = State(clock, started_s=clock())
        self._id, self._title = "", ""
        self._started = datetime.now(UTC)
        self._seconds: deque[Second] = deque(maxlen=MOST_SECONDS)
        self._ended: deque[EndedTrial] = deque(maxlen=MOST_TRIALS)
        self._notes: deque[str] = deque(maxlen=MOST_NOTES)
        self._news: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """True: the experiment is over. `put` is one C call; a Ctrl-C inside `threading.Event.set` would keep
        its lock and block the next phase.
        """
        self._writer: threading.Thread | None = None

    def experiment_started(self, total_trials: int, estimate_s: float, ended: int = 0) -> None:
        with self._lock:
            self._state.begin(total_trials, estimate_s, ended)

    def stored_as(self, identifier: str, title: str) -> None:
        with self._lock:
            self._id, self._title = identifier, title[:MOST_TEXT]
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_on, name="progress journal", daemon=True)
            self._writer.start()

    def trial_started(self, index: int, server: str, block: int, planned_s: float) -> None:
        with self._lock:
            self._state.start_trial(index, server, block, planned_s)
            self._seconds.clear()
        self._news.put(False)

    def phase(self, name: str, expected_s: float | None) -> None:
        with self._lock:
            self._state.start_phase(name, expected_s)
        self._news.put(False)

    def row(self, row: IntervalRow) -> None:
        p99_ms = None if row.p99_ns is None else row.p99_ns / 1e6
        with self._lock:
            self._seconds.append(
                Second(
                    at_s=row.t_ms / 1000,
                    completed_per_s=row.completed_per_s,
                    p99_ms=p99_ms,
                    failed=row.failed,
                )
            )
        self._news.put(False)

    def trial_stored(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:  # noqa: ARG002
        with self._lock:
            self._state.evidence = record.evidence

    def trial_ended(self, judgement: Judgement, figures: Mapping[str, float], seconds: float) -> None:
        with self._lock:
            state = self._state
            self._ended.append(
                EndedTrial(
                    index=state.index,
                    server=state.server,
                    conforms=judgement.conforms,
                    requests_per_s=figures.get("requests_per_s") if judgement.conforms else None,
                    took_s=seconds,
                    outcome=state.outcome(judgement, figures)[:MOST_TEXT],
                )
            )
            state.end_trial(seconds)
        self._news.put(False)

    def note(self, text: str) -> None:
        with self._lock:
            self._notes.append(text[:MOST_TEXT])
        self._news.put(False)

    def finished(self) -> None:
        """Stops the writer and removes the file."""
        self._news.put(True)
        if self._writer is not None:
            self._writer.join(LEAST_BETWEEN_S)
            running.remove(self._where, self._id)
            self._writer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finished()

    def now(self) -> Running:
        """The current progress."""
        with self._lock:
            state = self._state
            return Running(
                id=self._id,
                title=self._title,
                owner=owner.this_process(),
                started=self._started,
                trials=state.every,
                done=state.earlier + state.done,
                elapsed_s=state.elapsed_s(),
                left_s=state.left_s(),
                trial=state.index,
                server=state.server,
                block=state.block,
                phase=state.phase if state.index else "",
                phase_s=state.phase_elapsed_s() if state.phase else 0.0,
                phase_expected_s=state.phase_expected_s,
                seconds=tuple(self._seconds),
                ended=tuple(self._ended),
                notes=tuple(self._notes),
            )

    def _write_on(self) -> None:
        over = False
        while not over:
            try:
                running.write(self._where, self.now())
            except OSError as fault:
                log.info("progress journal not written: %s", fault)
            over = self._wait(time.monotonic())
        # A slow last write may outlive the join in `finished`.
        running.remove(self._where, self._id)

    def _wait(self, written_s: float) -> bool:
        """Waits for news, LEAST_BETWEEN_S at least, or for the heartbeat. True: the experiment is over."""
        until_s = written_s + HEARTBEAT_S
        while True:
            try:
                if self._news.get(timeout=max(0.0, until_s - time.monotonic())):
                    return True
                until_s = written_s + LEAST_BETWEEN_S
            except queue.Empty:
                return False
