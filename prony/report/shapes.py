"""Every shape of a part by its name, a cross-check's from its package; and what all parts show. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from prony import seams
from prony.judge.finding import GRAVEST_FIRST, Finding, Kind
from prony.plan.part import Shape as Name
from prony.report.blocks import Block, Lines
from prony.report.comparison import Comparison, SameServer
from prony.report.gate import Gate
from prony.report.hosts import host_blocks
from prony.report.matrix import Matrix
from prony.report.out import filled
from prony.report.result import PartView
from prony.report.scaling import Capacity, Sweep
from prony.report.shape import Shape
from prony.report.trial_tables import Single
from prony.report.wording import counted

MOST_LISTED = 12
SHAPES: Mapping[Name, Shape] = {
    "comparison": Comparison(),
    "matrix": Matrix(),
    "sweep": Sweep(),
    "capacity": Capacity(),
    "single": Single(),
    "aa": SameServer(),
    "gate": Gate(),
}


class CrossChecked(Matrix):
    """A cross-check without the package that compares the load generators."""

    def blocks(self, part: PartView) -> list[Block]:
        needed = seams.OWN[seams.HOOKS, "cross-check"].package
        line = f"{needed} compares the other load generators"
        return [*super().blocks(part), Lines("Load generators side by side", (line,), marked=False)]


@cache
def shape_named(shape: Name) -> Shape:
    if shape != "cross-check":
        return SHAPES[shape]
    made: Shape = (seams.found(seams.HOOKS, shape) or CrossChecked)()
    return made


def shape_of(part: PartView) -> Shape:
    return shape_named(part.layout)


def blocks(part: PartView) -> list[Block]:
    """What a part shows before its hosts, its trials without a figure, and findings."""
    return [] if part.failure else shape_of(part).everything(part)


def hosts(part: PartView) -> list[Block]:
    """Of the trials that count; where none does, of all: a lost host or a full link is the reason then."""
    counting = [trial for cell in part.cells for trial in cell.counting]
    return host_blocks(counting or [trial for cell in part.cells for trial in cell.every])


def not_conforming(part: PartView) -> tuple[Lines, ...]:
    """Each with its cause; of many cells only repeated ones, as findings name the others."""
    lines = []
    for cell in part.cells:
        for trial in cell.superseded:
            why = trial.why_not or "interrupted, or disturbed"
            lines.append(f"{cell.label}, block {trial.record.block + 1}: {why}; run again")
        for trial in cell.every if shape_named(part.part.shape).lists_failures else ():
            if trial.why_not is not None:
                lines.append(f"{cell.label}, block {trial.record.block + 1}: {trial.why_not}")
    more = len(lines) - MOST_LISTED
    if more > 1:
        lines = [*lines[:MOST_LISTED], f"… and {counted(more, 'more trial')}"]
    return (Lines("Trials without a figure", tuple(lines), note="on record"),) if lines else ()


MOST_REASONS, MOST_ADVICE, MOST_PLACES = 3, 2, 4


@dataclass(frozen=True, slots=True)
class Where:
    """A cell by its label: in `n` of its `of` trials."""

    label: str
    n: int
    of: int

    def __str__(self) -> str:
        return self.label if self.of == 1 else f"{self.label} {self.n} of {counted(self.of, 'trial')}"


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of a check and code: cells, reasons, effect on figures, and advice."""

    check: str
    code: str
    kind: Kind
    limit: str
    source: str
    places: tuple[Where, ...]
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    more: int = 0
    everywhere: bool = False

    @property
    def where(self) -> str:
        """spring-tomcat 3 of 3 trials, spring-jetty 1 of 3 trials."""
        if self.everywhere:
            trials = sum(place.of for place in self.places)
            return f"all {trials} trials" if trials > 1 else ""
        named = [str(place) for place in self.places[:MOST_PLACES]]
        more = len(self.places) - MOST_PLACES
        between = "; " if any("," in place.label for place in self.places) else ", "
        return between.join(named) + (f" and {counted(more, 'more cell')}" if more > 0 else "")


def finding_groups(part: PartView, *, fine: bool = False) -> tuple[FindingGroup, ...]:
    """Those that do something to a figure, the gravest first; or those that do nothing (`fine`)."""
    gathered: dict[tuple[str, str, Kind], list[tuple[str, Finding]]] = {}
    for cell in part.cells:
        for trial in cell.every:
            for finding in trial.judgement.findings:
                if (finding.kind is Kind.FINE) is fine:
                    members = gathered.setdefault((finding.check, finding.code, finding.kind), [])
                    members.append((cell.label, finding))
    groups = [_group(part, members) for members in gathered.values()]
    groups += [_of_all(finding) for finding in part.findings if (finding.kind is Kind.FINE) is fine]
    return tuple(sorted(groups, key=lambda group: GRAVEST_FIRST.index(group.kind)))


def _of_all(finding: Finding) -> FindingGroup:
    advice = (finding.advice,) if finding.advice else ()
    return filled(FindingGroup, finding, places=(), reasons=(finding.reason,), advice=advice)


def _group(part: PartView, labelled: Sequence[tuple[str, Finding]]) -> FindingGroup:
    labels = [label for label, _ in labelled]
    totals = {cell.label: len(cell.every) for cell in part.cells}
    distinct = list(dict.fromkeys((label, finding.reason) for label, finding in labelled))
    alone = len({reason for _, reason in distinct}) == 1 or len(set(labels)) == 1
    reasons = list(dict.fromkeys(reason if alone else f"{label}: {reason}" for label, reason in distinct))
    advice = list(dict.fromkeys(finding.advice for _, finding in labelled if finding.advice))
    return filled(
        FindingGroup,
        labelled[0][1],
        places=tuple(Where(label, labels.count(label), totals[label]) for label in totals if label in labels),
        reasons=tuple(reasons[:MOST_REASONS]),
        advice=tuple(advice[:MOST_ADVICE]),
        more=max(0, len(reasons) - MOST_REASONS),
        everywhere=len(labelled) == sum(totals.values()),
    )
