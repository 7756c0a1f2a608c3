"""One figure of a server under a workload and a load over time: every stored trial, where the host or the JDK
changed, and where the figure's level did. Pure, but for what a caller hands in to look a trial up.

A setting is one fingerprint, one JDK and one plan of the cell. Levels are sought among the conforming trials
of one setting, so what differs between two hosts is a break and never a change of the server.
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
from prony_serve.trends.levels import FEWEST, FEWEST_EACH, Change, changes

JDK = "jdk"
"""Its name among the versions of a server."""
Difference = tuple[str, str, str]
"""(what, before, after)."""
Direction = Literal["better", "worse", "changed"]
Lookup = Callable[[str, str], Sequence[Difference]]
"""(id of the earlier trial, id of the later one) -> what differs between them."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What may not differ within a series."""

    fingerprint_key: str
    jdk: str = ""
    plan_key: str = ""
    """Of the cell: target, load, window, what is measured (prony.store)."""

    @property
    def words(self) -> str:
        """As a legend says it."""
        jdk = f", JDK {self.jdk}" if self.jdk else ""
        return f"host {self.fingerprint_key}{jdk}{f', plan {self.plan_key[:6]}' if self.plan_key else ''}"


@dataclass(frozen=True, slots=True)
class TrendTrial:
    """One stored trial, as far as a trend needs it."""

    id: str
    experiment_id: str
    started: datetime
    setting: Setting
    conforms: bool
    value: float | None
    """None where no figure may be printed, or the trial has none of this name."""
    quick: bool = False
    control: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the server."""
    reason: str = ""
    """Why it does not conform."""

    @property
    def counts(self) -> bool:
        """Whether its value takes part in the search: it conforms, is of full length, and no control."""
        printed = self.value is not None and math.isfinite(self.value) and self.value > 0
        return printed and self.conforms and not self.quick and not self.control

    @property
    def commit(self) -> str:
        """Of the server's source; empty where it is not known."""
        return self.versions.get(COMMIT, "")


@dataclass(frozen=True, slots=True)
class Break:
    """A setting that is seen for the first time, after another one."""

    trial: TrendTrial
    """The first one of it."""
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change of the level within one setting."""

    trial: TrendTrial
    """The first trial of the new level."""
    last: TrendTrial
    """The last one of the level before."""
    change: Change
    better: bool | None
    """None for a figure of which neither more nor less is better."""
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """A stretch of one setting without a change, for a chart."""

    setting: Setting
    first: TrendTrial
    last: TrendTrial
    value: float
    trials: int


@dataclass(frozen=True)
class TrendView:
    """All that a page shows of one series."""

    server: str
    workload: str
    load: str
    figure: str
    trials: tuple[TrendTrial, ...]
    """In the order in which they were stored: a clock that went back changes nothing."""
    settings: tuple[Setting, ...]
    """In the order in which they were first seen."""
    breaks: tuple[Break, ...]
    changes: tuple[ChangePoint, ...]
    levels: tuple[Level, ...]
    note: str = ""
    """Why no change was sought; empty where it was."""

    @property
    def title(self) -> str:
        """What it is a trend of."""
        return f"{label_of(self.figure)}: {self.server}, {self.workload}, {self.load}"

    @property
    def counting(self) -> int:
        """Trials that took part in the search."""
        return sum(trial.counts for trial in self.trials)

    @property
    def words(self) -> str:
        """What was found, in a sentence or two."""
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
    """The trend of these trials, in the order in which they were stored."""
    ordered = tuple(trials)
    settings = tuple(dict.fromkeys(one.setting for one in ordered))
    found: list[ChangePoint] = []
    levels: list[Level] = []
    note = ""
    try:
        for setting in settings:
            own = [one for one in ordered if one.setting == setting and one.counts]
            nights = [one.experiment_id for one in own]
            points = changes([one.value or 0.0 for one in own], nights)
            found += [_point(own, one, figure, differences) for one in points]
            levels += _levels(own, points)
        if not any(sum(t.counts for t in ordered if t.setting == one) >= FEWEST for one in settings):
            note = (
                f"Changes are not sought: no setting has {FEWEST} trials that count yet "
                f"({FEWEST_EACH} on either side of a change)."
            )
    except EnvironmentFault as missing:
        note = f"Changes are not sought: {missing}."
    return TrendView(
        server=server,
        workload=workload,
        load=load,
        figure=figure,
        trials=ordered,
        settings=settings,
        breaks=tuple(_breaks(ordered, differences)),
        changes=tuple(sorted(found, key=lambda one: ordered.index(one.trial))),
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
    edges = [0, *(one.index for one in points), len(own)]
    made = []
    for begin, end in pairwise(edges):
        values = [one.value for one in own[begin:end] if one.value]
        if values:
            middle = math.exp(math.fsum(map(math.log, values)) / len(values))
            made.append(Level(own[begin].setting, own[begin], own[end - 1], middle, len(values)))
    return made


def _breaks(ordered: Sequence[TrendTrial], differences: Lookup) -> list[Break]:
    seen: set[Setting] = set()
    made = []
    for before, one in zip((None, *ordered), ordered, strict=False):
        if before is not None and one.setting not in seen:
            made.append(Break(one, tuple(differences(before.id, one.id))))
        seen.add(one.setting)
    return made


def change_words(view: TrendView, point: ChangePoint) -> str:
    """requests/s −5.1 %: 7,250 → 6,880 (24 trials before, 31 after)."""
    found = point.change
    unit = unit_of(view.figure)
    before, after = rounded(view.figure, found.before), rounded(view.figure, found.after)
    sign = "+" if found.ratio > 1 else ""
    share = f"{sign}{number((found.ratio - 1) * 100, 1)} %"
    return (
        f"{label_of(view.figure)} {share}: {before} → {after}{f' {unit}' if unit else ''} "
        f"({counted(found.trials_before, 'trial')} before, {found.trials_after} after)"
    )


def direction(point: ChangePoint) -> Direction:
    """better, worse or changed."""
    if point.better is None:
        return "changed"
    return "better" if point.better else "worse"
