"""Several listeners to one experiment as one `Progress`: a screen, the progress journal, live metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from prony import redaction
from prony.evidence.engine import IntervalRow
from prony.evidence.trial import TrialRecord
from prony.experiment.testbed import Progress
from prony.judge.finding import Judgement

log = logging.getLogger("prony.experiment.listeners")


class Listeners:
    """Tells each in turn, without credentials. A fault of one goes to the log: it ends neither the
    measurement nor what the others hear.
    """

    def __init__(self, *listeners: Progress) -> None:
        self._listeners = listeners

    def experiment_started(self, total_trials: int, estimate_s: float, ended: int = 0) -> None:
        self._each(lambda one: one.experiment_started(total_trials, estimate_s, ended))

    def stored_as(self, identifier: str, title: str) -> None:
        self._each(lambda one: one.stored_as(identifier, title))

    def build(self, server: str, line: str) -> None:
        said = redaction.text(line)
        self._each(lambda one: one.build(server, said))

    def trial_started(self, index: int, server: str, block: int, planned_s: float) -> None:
        self._each(lambda one: one.trial_started(index, server, block, planned_s))

    def phase(self, name: str, expected_s: float | None) -> None:
        self._each(lambda one: one.phase(name, expected_s))

    def row(self, row: IntervalRow) -> None:
        self._each(lambda one: one.row(row))

    def trial_stored(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:
        self._each(lambda one: one.trial_stored(record, judgement, figures))

    def trial_ended(self, judgement: Judgement, figures: Mapping[str, Any], seconds: float) -> None:
        self._each(lambda one: one.trial_ended(judgement, figures, seconds))

    def note(self, text: str) -> None:
        said = redaction.text(text)
        self._each(lambda one: one.note(said))

    def _each(self, tell: Callable[[Progress], None]) -> None:
        for one in self._listeners:
            try:
                tell(one)
            except Exception:
                log.info("a listener failed: %s", type(one).__name__, exc_info=True)
