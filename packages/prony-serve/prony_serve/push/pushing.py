"""Stored results to a cluster: a whole experiment, or trial by trial while it runs."""

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
    """What a push came to."""

    identifier: str
    where: str
    trials: int = 0
    before: int = 0
    """Trials that had been acknowledged before, and were not sent again."""
    sent: Sent = field(default_factory=Sent)

    def sentence(self) -> str:
        """For a terminal."""
        there = f", {self.before} of them before" if self.before else ""
        documents = counted(self.sent.created, "new document")
        known = f" ({self.sent.there} were there already)" if self.sent.there else ""
        trials = counted(self.trials, "trial")
        return f"pushed {self.identifier} to {self.where}: {trials}{there}; {documents}{known}"


def push(store: Store, which: str, cluster: Cluster, *, again: bool = False) -> Pushed:
    """Everything of one experiment that the cluster has not acknowledged. `again`: whatever is remembered.
    Raises PushFault when it does not take all; what it took is remembered.
    """
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
    found = Remembered(cluster.identity, f"{origin.fingerprint_key}-{origin.id}")
    if not cluster.had_streams:  # somebody deleted them
        found.forget()
    return found


def _key(trial: TrialView, *, repeated: bool = False) -> str:
    return f"{trial.record.id}:{judged_as(trial, repeated=repeated)}"


class PushTrials(SilentProgress):
    """A listener of a running experiment: each trial is sent when it is stored, before the next one begins,
    so that no load is on meanwhile. What does not arrive is said once and sent at the end, and so is that a
    trial was run again.
    """

    def __init__(self, store: Store, cluster: Cluster, say: Callable[[str], None]) -> None:
        self._store = store
        self._cluster = cluster
        self._say = say
        self._said = ""
        self.identifier = ""

    def begin(self) -> None:
        """Finds at once what is wrong with the cluster; it may come back until the first trial has ended."""
        try:
            self._cluster.prepare()
        except PushFault as fault:
            self._once(f"not pushed now: {fault}; it is tried again after each trial")

    def trial_stored(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, float]) -> None:
        """Sends the trial. A cluster that fails ends nothing."""
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
            for one in sent.rejected[:1]:
                self._once(f"{self._cluster.where} rejected {one}")
        except PushFault as fault:
            self._once(f"not pushed now: {fault}; it is tried again after each trial")

    def _once(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            self._say(sentence)
