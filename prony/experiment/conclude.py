"""Judgement and figures of a trial, derived when it ends or judged again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prony.evidence.trial import TrialRecord
from prony.experiment.stored import plan_of
from prony.judge.figures import figures
from prony.judge.finding import Finding, Judgement, Kind
from prony.judge.judging import judge
from prony.judge.limits import CheckLimits
from prony.store import Store, StoredTrial


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Judgement and figures of a trial."""

    judgement: Judgement
    figures: dict[str, float]


def conclude(record: TrialRecord, limits: CheckLimits | None = None) -> Conclusion:
    """Judge a trial under these or the default limits, and derive its figures."""
    judgement = judge(record.evidence, limits)
    if record.failure is not None:
        judgement = _failed(judgement, record.failure)
    return Conclusion(judgement, figures(record.evidence, limits).numbers())


def _failed(judgement: Judgement, failure: str) -> Judgement:
    """Does not conform, as it ended early or a host was lost; without findings on unread evidence."""
    hosts = judgement.finding("hosts")
    cause = (
        hosts
        if hosts is not None and not hosts.conforms
        else Finding(
            check="identity",
            code="ended_early",
            conforms=False,
            reason=failure,
            limit="the started server responds until it is stopped",
            advice="read the server's log, fix the cause, and repeat",
        )
    )
    known = tuple(
        f
        for f in judgement.findings
        if f.code not in {"unread", "no_window"} and f.check not in {cause.check, "identity"}
    )
    return judgement.model_copy(update={"conforms": False, "findings": (cause, *known)})


def unjudged(end: BaseException) -> Judgement:
    """Judgement of a trial whose judging failed or was interrupted: no figures until judged again."""
    finding = Finding(
        check="identity",
        code="not_judged",
        conforms=False,
        reason=f"not judged: {type(end).__name__}{f' ({end})' if str(end) else ''}",
        advice="judge it again: prony results rejudge",
    )
    return Judgement(conforms=False, findings=(finding,))


@dataclass(frozen=True, slots=True)
class Change:
    """A check whose finding changed."""

    before: Finding | None
    """None: no finding of this check."""
    after: Finding | None

    @property
    def shown(self) -> Finding:
        """The new finding, else the old."""
        finding = self.after or self.before
        assert finding is not None
        return finding

    @property
    def kinds(self) -> tuple[Kind | None, Kind | None]:
        """Before and after."""
        return (
            None if self.before is None else self.before.kind,
            None if self.after is None else self.after.kind,
        )


@dataclass(frozen=True, slots=True)
class Rejudged:
    """A trial and its two judgements."""

    record: TrialRecord
    before: Judgement
    after: Judgement
    changes: tuple[Change, ...]
    figures_changed: tuple[str, ...]
    """Figures changed, removed or added."""

    @property
    def changed(self) -> bool:
        """Whether a finding or a figure changed."""
        return bool(self.changes or self.figures_changed)


def rejudge(store: Store, which: str, limits: Mapping[str, Any]) -> tuple[Rejudged, ...]:
    """Judge every trial again under its plan's limits, overridden by `limits`. Changed judgements are stored
    in a single transaction; earlier ones stay.
    """
    row = store.experiment(which)
    trials = store.trials(row.id)
    plan = plan_of(row)
    planned = {cell.id: cell.limits for cell in plan.cells}
    made: dict[str, tuple[Judgement, Mapping[str, Any]]] = {}
    rejudged: list[Rejudged] = []
    for trial in trials:
        own = {**planned.get(trial.record.cell, {}), **limits}
        ended = conclude(trial.record, CheckLimits.among(own))
        rejudged.append(_compared(trial, ended))
        if rejudged[-1].changed:
            made[trial.record.id] = (ended.judgement, ended.figures)
    if made:
        store.add_judgements(made)
    return tuple(rejudged)


def _compared(trial: StoredTrial, ended: Conclusion) -> Rejudged:
    before = {finding.check: finding for finding in trial.judgement.findings}
    after = {finding.check: finding for finding in ended.judgement.findings}
    changes = [
        Change(before.get(check), after.get(check))
        for check in {**after, **before}
        if before.get(check) != after.get(check)
    ]
    names = {*trial.figures, *ended.figures}
    differing = sorted(name for name in names if trial.figures.get(name) != ended.figures.get(name))
    return Rejudged(trial.record, trial.judgement, ended.judgement, tuple(changes), tuple(differing))
