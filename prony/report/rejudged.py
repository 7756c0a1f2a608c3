"""What judging stored trials again changed, as a table and as JSON. Must not judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from prony import __version__
from prony.experiment.rejudge import Change, Rejudged
from prony.report.out import Out, Verdict


class ChangeOut(Out):
    """One check that found something else, or says it in other words."""

    check: str
    before: Verdict | None = Field(description="null: there was no finding")
    after: Verdict | None
    limit: str = Field(description="the limit that is in force now, in words")
    reason: str


class RejudgedTrialOut(Out):
    """One trial and its two verdicts."""

    id: str
    server: str
    before: Verdict
    after: Verdict
    changes: list[ChangeOut]
    figures_changed: list[str]


class RejudgedOut(Out):
    """`prony results rejudge --json`."""

    schema_: Literal[2] = Field(default=2, alias="schema")
    kind: Literal["rejudge"] = "rejudge"
    id: str
    prony_version: str
    limits: dict[str, float] = Field(description="those that were given")
    trials: list[RejudgedTrialOut] = Field(description="all of them, also those that are judged as before")


def as_out(identifier: str, limits: Mapping[str, float], found: Sequence[Rejudged]) -> RejudgedOut:
    """The JSON."""
    return RejudgedOut(
        id=identifier,
        prony_version=__version__,
        limits=dict(limits),
        trials=[
            RejudgedTrialOut(
                id=one.record.id,
                server=one.record.server,
                before=one.before.verdict.value,
                after=one.after.verdict.value,
                changes=[_change(change) for change in one.changes],
                figures_changed=list(one.figures_changed),
            )
            for one in found
        ],
    )


def _change(change: Change) -> ChangeOut:
    before, after = change.statuses
    return ChangeOut(
        check=change.shown.check,
        before=before and before.value,
        after=after and after.value,
        limit=change.shown.limit,
        reason=change.shown.reason,
    )


def render(identifier: str, limits: Mapping[str, float], found: Sequence[Rejudged], console: Console) -> None:
    """A line of summary, then the checks whose status differs, trial by trial."""
    under = ", ".join(f"{key}={value:g}" for key, value in limits.items())
    changed = sum(one.changed for one in found)
    verdicts = sum(one.before.verdict is not one.after.verdict for one in found)
    console.print(
        f"{identifier}: {len(found)} trials judged again by Prony {__version__}, limits of the plan"
        + (f" and {under}" if under else "")
        + f". {verdicts} verdicts differ; {changed} new judgements stored, the earlier ones kept."
    )
    for one in found:
        differing = [change for change in one.changes if change.statuses[0] is not change.statuses[1]]
        if differing or one.before.verdict is not one.after.verdict:
            verdict = _arrow(one.before.verdict, one.after.verdict)
            console.print(f"\n[bold]{escape(one.record.id)}[/bold]  {escape(one.record.server)}: {verdict}")
        for change in differing:
            said = f"{change.shown.check}: {_arrow(*change.statuses)}; limit: {change.shown.limit}"
            console.print(Padding(escape(said), (0, 0, 0, 2)))
            console.print(Padding(escape(change.shown.reason), (0, 0, 0, 4)))


def _arrow(before: str | None, after: str | None) -> str:
    return str(after) if before == after else f"{before or 'absent'} → {after or 'absent'}"
