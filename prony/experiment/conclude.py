"""What follows from a trial the moment it ends: its judgement and its figures."""

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
    """Judgement and figures of one trial."""

    judgement: Judgement
    figures: dict[str, float]


def conclude(record: TrialRecord, limits: CheckLimits | None = None) -> Conclusion:
    """Judge one trial, under these limits or the default ones, and derive its figures."""
    judgement = judge(record.evidence, limits)
    if record.failure is not None:
        judgement = _failed(judgement, record.failure)
    return Conclusion(judgement, figures(record.evidence, limits).numbers())


def _failed(judgement: Judgement, failure: str) -> Judgement:
    """Ended early is the reason; what was not measured is left out. A lost host is no server's fault."""
    hosts = judgement.finding("hosts")
    cause = (
        hosts
        if hosts is not None and not hosts.conforms
        else Finding(
            check="identity",
            code="ended_early",
            conforms=False,
            reason=failure,
            limit="the server that was started answers until it is told to stop",
            advice="look at the server's log, fix it, and repeat",
        )
    )
    known = tuple(
        f
        for f in judgement.findings
        if f.code not in {"unread", "no_window"} and f.check not in {cause.check, "identity"}
    )
    return judgement.model_copy(update={"conforms": False, "findings": (cause, *known)})


def unjudged(end: BaseException) -> Judgement:
    """Of a trial whose judging failed or was interrupted: it has no figure until it is judged again."""
    finding = Finding(
        check="identity",
        code="not_judged",
        conforms=False,
        reason=f"it was not judged: {type(end).__name__}{f' ({end})' if str(end) else ''}",
        advice="judge the stored trial again: prony results rejudge",
    )
    return Judgement(conforms=False, findings=(finding,))


@dataclass(frozen=True, slots=True)
class Change:
    """One check whose finding differs from the earlier one."""

    before: Finding | None
    """None: there was no finding of this check."""
    after: Finding | None

    @property
    def shown(self) -> Finding:
        """The new one, or the old one where there is none now."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def kinds(self) -> tuple[Kind | None, Kind | None]:
        """Before and after."""
        return (
            None if self.before is None else self.before.kind,
            None if self.after is None else self.after.kind,
        )


@dataclass(frozen=True, slots=True)
class Rejudged:
    """One trial and its two judgements."""

    record: TrialRecord
    before: Judgement
    after: Judgement
    changes: tuple[Change, ...]
    figures_changed: tuple[str, ...]
    """Names of figures whose value differs, that are gone, or that are new."""

    @property
    def changed(self) -> bool:
        """Whether a finding or a figure differs; everything else follows from these."""
        return bool(self.changes or self.figures_changed)


def rejudge(store: Store, which: str, limits: Mapping[str, Any]) -> tuple[Rejudged, ...]:
    """Judge every trial again under its plan's limits, some replaced by `limits`. Judgements that differ
    from the newest stored ones are stored beside them, in one transaction.
    """
    row = store.experiment(which)
    trials = store.trials(row.id)
    plan = plan_of(row)
    planned = {cell.id: cell.limits for cell in plan.cells}
    made: dict[str, tuple[Judgement, Mapping[str, Any]]] = {}
    found: list[Rejudged] = []
    for trial in trials:
        own = {**planned.get(trial.record.cell, {}), **limits}
        ended = conclude(trial.record, CheckLimits.among(own))
        found.append(_compared(trial, ended))
        if found[-1].changed:
            made[trial.record.id] = (ended.judgement, ended.figures)
    if made:
        store.add_judgements(made)
    return tuple(found)


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
