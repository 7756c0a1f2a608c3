"""Findings of all trials of a part, gathered: each check once per status, with where it was found. Pure.

Must not know how a group is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.judge.finding import Finding, Status
from prony.report.result import SEVERITY, PartView, ResultView
from prony.report.wording import counted

MOST_REASONS, MOST_ADVICE, MOST_PLACES = 3, 2, 4
MOST_CONCERNS = 3
"""Groups that stand at the head of a result."""


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
    """One check with one status: where it was found, what was found there, and what to do."""

    check: str
    status: Status
    limit: str
    source: str
    places: tuple[Where, ...]
    reasons: tuple[str, ...]
    """What was found, at most MOST_REASONS; each with its cell where several cells differ."""
    advice: tuple[str, ...]
    """What to do, each sentence once, at most MOST_ADVICE of them."""
    more: int = 0
    """How many further sentences were left out."""
    everywhere: bool = False
    """Whether it was found in every trial of every cell; then there is no need to name them."""

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


def finding_groups(part: PartView, *, only: Status | None = None) -> tuple[FindingGroup, ...]:
    """Findings that are not valid (or those of one status), worst first, each check once per status. What is
    unknown and not essential is left out where a part has many cells.
    """
    many = part.part.shape == "matrix"
    gathered: dict[tuple[str, Status], list[tuple[str, Finding]]] = {}
    for cell in part.cells:
        for trial in cell.every:
            for finding in trial.judgement.findings:
                dull = many and finding.status is Status.UNKNOWN and not finding.essential
                if finding.status is only if only else finding.status is not Status.VALID and not dull:
                    found = gathered.setdefault((finding.check, finding.status), [])
                    found.append((cell.label, finding))
    groups = [_group(part, check, status, found) for (check, status), found in gathered.items()]
    shown = (f for f in part.findings if (f.status is only if only else f.status is not Status.VALID))
    groups += [_of_all(finding) for finding in shown]
    return tuple(sorted(groups, key=lambda group: SEVERITY[group.status]))


def concerns(view: ResultView) -> tuple[FindingGroup, ...]:
    """What a result is not valid for, worst first: of what is only unknown the essential checks."""
    essential = {
        finding.check
        for trial in view.trials
        for finding in trial.judgement.findings
        if finding.essential and finding.status is Status.UNKNOWN
    }
    found = [
        group
        for part in view.parts
        for group in finding_groups(part)
        if group.status is not Status.UNKNOWN or group.check in essential
    ]
    return tuple(sorted(found, key=lambda group: SEVERITY[group.status])[:MOST_CONCERNS])


def failures(view: ResultView) -> tuple[str, ...]:
    """Why trials have no evidence to judge, each cause once with its servers."""
    found: dict[str, list[str]] = {}
    for trial in view.trials:
        if trial.record.failure is not None:
            servers = found.setdefault(trial.record.failure, [])
            servers += [trial.record.server] if trial.record.server not in servers else []
    said = [
        why if all(one in why for one in servers) else f"{', '.join(servers)}: {why}"
        for why, servers in found.items()
    ]
    return tuple(said[:MOST_CONCERNS])


def _of_all(finding: Finding) -> FindingGroup:
    """A finding about the trials of a part together has no cell of its own."""
    return FindingGroup(
        check=finding.check,
        status=finding.status,
        limit=finding.limit,
        source=finding.source,
        places=(),
        reasons=(finding.reason,),
        advice=(finding.advice,) if finding.advice else (),
    )


def _group(part: PartView, check: str, status: Status, found: Sequence[tuple[str, Finding]]) -> FindingGroup:
    labels = [label for label, _ in found]
    totals = {cell.label: len(cell.every) for cell in part.cells}
    said = list(dict.fromkeys((label, finding.reason) for label, finding in found))
    alone = len({reason for _, reason in said}) == 1 or len(set(labels)) == 1
    reasons = list(dict.fromkeys(reason if alone else f"{label}: {reason}" for label, reason in said))
    advice = list(dict.fromkeys(finding.advice for _, finding in found if finding.advice))
    return FindingGroup(
        check=check,
        status=status,
        limit=found[0][1].limit,
        source=found[0][1].source,
        places=tuple(Where(label, labels.count(label), totals[label]) for label in totals if label in labels),
        reasons=tuple(reasons[:MOST_REASONS]),
        advice=tuple(advice[:MOST_ADVICE]),
        more=max(0, len(reasons) - MOST_REASONS),
        everywhere=len(found) == sum(totals.values()),
    )
