"""Findings of all trials, gathered: each check once per status, with where it was found. Pure.

Must not know how a group is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.judge.finding import Finding, Status
from prony.report.model import SEVERITY, ExperimentView
from prony.report.wording import counted


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """One check with one status: where it was found, what was found there, and what to do."""

    check: str
    status: Status
    limit: str
    source: str
    places: tuple[tuple[str, int, int], ...]
    """(server, in so many trials, of so many)."""
    reasons: tuple[str, ...]
    """What was found, each sentence once, at most REASONS_SHOWN of them."""
    advice: tuple[str, ...]
    """What to do, each sentence once, at most ADVICE_SHOWN of them."""
    more: int = 0
    """How many further sentences were left out."""
    everywhere: bool = False
    """Whether it was found in every trial of every server; then there is no need to name them."""

    @property
    def where(self) -> str:
        """spring-tomcat 3 of 3 trials, spring-jetty 1 of 3 trials."""
        if self.everywhere:
            trials = sum(of for _, _, of in self.places)
            return f"all {trials} trials" if trials > 1 else ""
        return ", ".join(f"{server} {n} of {counted(of, 'trial')}" for server, n, of in self.places)


REASONS_SHOWN = 3
ADVICE_SHOWN = 2


def finding_groups(view: ExperimentView, *, only: Status | None = None) -> tuple[FindingGroup, ...]:
    """Findings that are not valid (or those of one status), worst first, each check once per status."""
    gathered: dict[tuple[str, Status], list[tuple[str, Finding]]] = {}
    for trial in view.trials:
        for finding in trial.judgement.findings:
            wanted = finding.status is only if only else finding.status is not Status.VALID
            if wanted:
                found = gathered.setdefault((finding.check, finding.status), [])
                found.append((trial.record.server, finding))
    groups = (_group(view, check, status, found) for (check, status), found in gathered.items())
    return tuple(sorted(groups, key=lambda g: SEVERITY[g.status]))


def _group(
    view: ExperimentView, check: str, status: Status, found: Sequence[tuple[str, Finding]]
) -> FindingGroup:
    servers = [server for server, _ in found]
    order = dict.fromkeys([s.address for s in view.servers] + servers)
    totals = {s: sum(1 for t in view.trials if t.record.server == s) for s in order}
    reasons = list(dict.fromkeys(finding.reason for _, finding in found))
    advice = list(dict.fromkeys(finding.advice for _, finding in found if finding.advice))
    return FindingGroup(
        check=check,
        status=status,
        limit=found[0][1].limit,
        source=found[0][1].source,
        places=tuple((s, servers.count(s), totals[s]) for s in order if s in servers),
        reasons=tuple(reasons[:REASONS_SHOWN]),
        advice=tuple(advice[:ADVICE_SHOWN]),
        more=max(0, len(reasons) - REASONS_SHOWN),
        everywhere=len(found) == len(view.trials),
    )
