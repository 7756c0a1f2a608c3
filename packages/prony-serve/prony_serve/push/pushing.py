"""Pushes stored results: a whole experiment, or each trial of a running one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.plan.cell import Cell
from prony.report import tidy
from prony.report.cell_view import TrialView
from prony.report.progress_state import SilentProgress
from prony.report.reading import load_result, viewed
from prony.report.result import ResultView
from prony.report.wording import counted
from prony.store import Store
from prony_serve.documents import Origin, judged_as, of_experiment, of_trial
from prony_serve.push.cluster import Cluster, Sent
from prony_serve.push.faults import PushFault
from prony_serve.push.remembered import Remembered


@dataclass(slots=True)
class Pushed:
    """Outcome of a push."""

    identifier: str
    where: str
    trials: int = 0
    before: int = 0
    """Trials acknowledged by an earlier push and not sent again."""
    sent: Sent = field(default_factory=Sent)

    def sentence(self) -> str:
        """For a terminal."""
        there = f" ({self.before} already pushed)" if self.before else ""
        documents = counted(self.sent.created, "new document")
        known = f" ({self.sent.there} already present)" if self.sent.there else ""
        trials = counted(self.trials, "trial")
        return f"pushed {self.identifier} to {self.where}: {trials}{there}; {documents}{known}"


def push(store: Store, which: str, cluster: Cluster, *, again: bool = False) -> Pushed:
    """Sends what is not acknowledged (`again`: everything). Raises PushFault; a later push continues."""
    view = load_result(store, which)
    if not cluster.identity:
        cluster.prepare()
    origin = Origin.of(view)
    remembered = _remembered(cluster, origin)
    if again:
        remembered.forget()
    pushed = Pushed(view.id, cluster.where)
    for part in view.parts:
        for cell, trial in tidy.every(part):
            pushed.trials += 1
            repeated = tidy.is_repeated(cell, trial)
            if _key(trial, repeated=repeated) in remembered:
                pushed.before += 1
            else:
                pushed.sent.add(_trial(cluster, remembered, origin, cell.cell, trial, repeated=repeated))
    pushed.sent.add(_experiment(cluster, remembered, origin, view))
    return pushed


def _trial(
    cluster: Cluster,
    remembered: Remembered,
    origin: Origin,
    cell: Cell,
    trial: TrialView,
    *,
    repeated: bool = False,
) -> Sent:
    sent = cluster.send(list(of_trial(origin, cell, trial, repeated=repeated)))
    if not sent.rejected:
        remembered.add(_key(trial, repeated=repeated))
    return sent


def _experiment(cluster: Cluster, remembered: Remembered, origin: Origin, view: ResultView) -> Sent:
    document = of_experiment(origin, view)
    if document.id in remembered:
        return Sent()
    sent = cluster.send([document])
    if not sent.rejected:
        remembered.add(document.id)
    return sent


def _remembered(cluster: Cluster, origin: Origin) -> Remembered:
    remembered = Remembered(cluster.identity, f"{origin.fingerprint_key}-{origin.id}")
    if not cluster.had_streams:  # they were deleted
        remembered.forget()
    return remembered


def _key(trial: TrialView, *, repeated: bool = False) -> str:
    return f"{trial.record.id}:{judged_as(trial, repeated=repeated)}"


class PushTrials(SilentProgress):
    """Progress listener that sends each trial when it is stored, while no load is on. A failure is reported
    once; missing trials, and those repeated since, are sent at the end.
    """

    def __init__(self, store: Store, cluster: Cluster, say: Callable[[str], None]) -> None:
        self._store = store
        self._cluster = cluster
        self._say = say
        self._said = ""
        self.identifier = ""

    def begin(self) -> None:
        """Reports a faulty cluster before the first trial; it is retried after each trial."""
        try:
            self._cluster.prepare()
        except PushFault as fault:
            self._once(f"not pushed now: {fault}; retried after each trial")

    def trial_stored(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> None:
        """Sends the trial. A failing cluster does not end the experiment."""
        from prony.experiment.stored import plan_of

        self.identifier = record.experiment_id
        try:
            if not self._cluster.identity:
                self._cluster.prepare()
            row = self._store.experiment(record.experiment_id)
            plan = plan_of(row)
            host = row.fingerprint
            origin = Origin(row.id, row.name, plan.command, row.created, row.quick, host.hostname, host.key)
            cell = plan.cell(record.cell)
            trial = viewed(record, judgement, figures)
            sent = _trial(self._cluster, _remembered(self._cluster, origin), origin, cell, trial)
            for document in sent.rejected[:1]:
                self._once(f"{self._cluster.where} rejected {document}")
        except PushFault as fault:
            self._once(f"not pushed now: {fault}; retried after each trial")

    def _once(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            self._say(sentence)
