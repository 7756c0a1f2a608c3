"""One figure of a server under a workload and a load over time: every stored trial, the breaks (host, JDK or
plan changed) and the changes of level. Pure except for the caller's `differences`.

A setting is one fingerprint, one JDK and one plan of the cell. Levels are compared within a setting only, so
a difference between two hosts is never reported as a change of the server.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Literal

from prony.compare.claim import BAND
from prony.errors import EnvironmentFault
from prony.evidence.server import COMMIT
from prony.judge.figures import FIGURE
from prony.report.labels import label_of, rounded, unit_of
from prony.report.wording import counted, number
from prony_serve.trends.levels import FEWEST, FEWEST_EACH, Change, changes, level

JDK = "jdk"
"""Key of the JDK in a server's versions."""
Difference = tuple[str, str, str]
"""(what, before, after)."""
Direction = Literal["better", "worse", "changed"]
Lookup = Callable[[str, str], Sequence[Difference]]
"""(id of the earlier trial, id of the later trial) -> differences between them."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is constant within a setting of a series."""

    fingerprint_key: str
    jdk: str = ""
    plan_key: str = ""
    """Key of the cell: target, load, window, figures (prony.store)."""

    @property
    def words(self) -> str:
        """Text of a legend."""
        jdk = f", JDK {self.jdk}" if self.jdk else ""
        return f"host {self.fingerprint_key}{jdk}{f', plan {self.plan_key[:6]}' if self.plan_key else ''}"


@dataclass(frozen=True, slots=True)
class TrendTrial:
    """A stored trial, with the fields that a trend needs."""

    id: str
    experiment_id: str
    started: datetime
    setting: Setting
    conforms: bool
    value: float | None
    """None where no figure may be printed, or the trial lacks it."""
    bias: float = 0.0
    """The figure's whole budget on the log scale, its larger side; infinite where that is not bounded."""
    quick: bool = False
    control: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the server."""
    reason: str = ""
    """Why the trial does not conform."""

    @property
    def counts(self) -> bool:
        """Whether its value takes part in the search: conforming, bounded, no control."""
        printed = self.value is not None and math.isfinite(self.value) and self.value > 0
        return printed and self.conforms and math.isfinite(self.bias) and not self.control

    @property
    def weight(self) -> float:
        """1 without a bias, a half where its budget is as large as a change that counts."""
        return 1 / (1 + (self.bias / math.log1p(BAND)) ** 2)

    @property
    def commit(self) -> str:
        """Commit of the server's source; empty when unknown."""
        return self.versions.get(COMMIT, "")


@dataclass(frozen=True, slots=True)
class Break:
    """A setting measured for the first time, after another."""

    trial: TrendTrial
    """Its first trial."""
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change of the level within one setting."""

    trial: TrendTrial
    """The first trial of the new level."""
    last: TrendTrial
    """The last trial of the level before."""
    change: Change
    better: bool | None
    """None for a figure without a better direction."""
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """Consecutive trials of one setting without a change."""

    setting: Setting
    first: TrendTrial
    last: TrendTrial
    value: float
    trials: int


@dataclass(frozen=True)
class TrendView:
    """The contents of a series' page."""

    server: str
    workload: str
    load: str
    figure: str
    trials: tuple[TrendTrial, ...]
    """In the order of storing, so a clock set back has no effect."""
    settings: tuple[Setting, ...]
    """In the order of first appearance."""
    breaks: tuple[Break, ...]
    changes: tuple[ChangePoint, ...]
    levels: tuple[Level, ...]
    note: str = ""
    """Why changes were not searched for; empty if they were."""

    @property
    def title(self) -> str:
        """Figure, server, workload and load."""
        return f"{label_of(self.figure)}: {self.server}, {self.workload}, {self.load}"

    @property
    def counting(self) -> int:
        """Number of trials that took part in the search."""
        return sum(trial.counts for trial in self.trials)

    @property
    def words(self) -> str:
        """The outcome in one or two sentences."""
        if self.note:
            return self.note
        n = f"{self.counting} of {counted(len(self.trials), 'trial')}"
        broken = (
            f" Host, JDK or plan changed {counted(len(self.breaks), 'time')}; nothing is compared across it."
            if self.breaks
            else ""
        )
        if not self.changes:
            return f"No change of {BAND:.0%} or more among {n}.{broken}"
        return f"{counted(len(self.changes), 'change')} of {BAND:.0%} or more among {n}.{broken}"


def trend(
    trials: Sequence[TrendTrial],
    *,
    server: str,
    workload: str,
    load: str,
    figure: str,
    differences: Lookup = lambda _before, _after: (),
) -> TrendView:
    """The trend of trials given in the order of storing."""
    ordered = tuple(trials)
    settings = tuple(dict.fromkeys(trial.setting for trial in ordered))
    points: list[ChangePoint] = []
    levels: list[Level] = []
    note = ""
    try:
        for setting in settings:
            own = [trial for trial in ordered if trial.setting == setting and trial.counts]
            nights = [trial.experiment_id for trial in own]
            weights = [trial.weight for trial in own]
            own_changes = changes([trial.value or 0.0 for trial in own], nights, weights)
            points += [_point(own, change, figure, differences) for change in own_changes]
            levels += _levels(own, own_changes)
        if not any(sum(t.counts for t in ordered if t.setting == setting) >= FEWEST for setting in settings):
            note = (
                f"Not searched for changes: no setting has {FEWEST} trials that count yet "
                f"({FEWEST_EACH} on either side of a change)."
            )
    except EnvironmentFault as missing:
        note = f"Not searched for changes: {missing}."
    return TrendView(
        server=server,
        workload=workload,
        load=load,
        figure=figure,
        trials=ordered,
        settings=settings,
        breaks=tuple(_breaks(ordered, differences)),
        changes=tuple(sorted(points, key=lambda point: ordered.index(point.trial))),
        levels=tuple(levels),
        note=note,
    )


def _point(own: Sequence[TrendTrial], change: Change, figure: str, differences: Lookup) -> ChangePoint:
    known = FIGURE.get(figure)
    more_is_better = None if known is None else known.higher_is_better
    last, first = own[change.index - 1], own[change.index]
    return ChangePoint(
        trial=first,
        last=last,
        change=change,
        better=None if more_is_better is None else (change.ratio > 1) == more_is_better,
        differences=tuple(differences(last.id, first.id)),
    )


def _levels(own: Sequence[TrendTrial], points: Sequence[Change]) -> list[Level]:
    edges = [0, *(point.index for point in points), len(own)]
    levels = []
    for begin, end in pairwise(edges):
        part = own[begin:end]
        if part:
            middle = level([trial.value or 0.0 for trial in part], [trial.weight for trial in part])
            levels.append(Level(part[0].setting, part[0], part[-1], middle, len(part)))
    return levels


def _breaks(ordered: Sequence[TrendTrial], differences: Lookup) -> list[Break]:
    seen: set[Setting] = set()
    breaks = []
    for before, trial in zip((None, *ordered), ordered, strict=False):
        if before is not None and trial.setting not in seen:
            breaks.append(Break(trial, tuple(differences(before.id, trial.id))))
        seen.add(trial.setting)
    return breaks


def change_words(view: TrendView, point: ChangePoint) -> str:
    """requests/s −5.1 %: 7,250 → 6,880 (24 trials before, 31 after)."""
    change = point.change
    unit = unit_of(view.figure)
    before, after = rounded(view.figure, change.before), rounded(view.figure, change.after)
    sign = "+" if change.ratio > 1 else ""
    share = f"{sign}{number((change.ratio - 1) * 100, 1)} %"
    return (
        f"{label_of(view.figure)} {share}: {before} → {after}{f' {unit}' if unit else ''} "
        f"({counted(change.trials_before, 'trial')} before, {change.trials_after} after)"
    )


def direction(point: ChangePoint) -> Direction:
    """better, worse or changed."""
    if point.better is None:
        return "changed"
    return "better" if point.better else "worse"
