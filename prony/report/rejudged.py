"""What judging stored trials again changed, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from prony import __version__
from prony.experiment.conclude import Change, Rejudged
from prony.judge.finding import Judgement, Kind
from prony.report.blocks import KIND_WORDS
from prony.report.out import Out
from prony.report.wording import counted


class ChangeOut(Out):
    """A check whose finding or wording changed."""

    check: str
    code: str
    before: Kind | None = Field(description="null: there was no finding")
    after: Kind | None
    limit: str = Field(description="the limit that is in force now, in words")
    reason: str


class RejudgedTrialOut(Out):
    """A trial and its two judgements."""

    id: str
    server: str
    conformed: bool
    conforms: bool
    changes: list[ChangeOut]
    figures_changed: list[str]


class RejudgedOut(Out):
    """`prony results rejudge --json`."""

    schema_: Literal[3] = Field(default=3, alias="schema")
    kind: Literal["rejudge"] = "rejudge"
    id: str
    prony_version: str
    limits: dict[str, float] = Field(description="those that were given")
    trials: list[RejudgedTrialOut] = Field(description="all of them, also those that are judged as before")


def as_out(identifier: str, limits: Mapping[str, float], trials: Sequence[Rejudged]) -> RejudgedOut:
    return RejudgedOut(
        id=identifier,
        prony_version=__version__,
        limits=dict(limits),
        trials=[
            RejudgedTrialOut.filled(
                t.record,
                conformed=t.before.conforms,
                conforms=t.after.conforms,
                changes=[_change(change) for change in t.changes],
                figures_changed=t.figures_changed,
            )
            for t in trials
        ],
    )


def _change(change: Change) -> ChangeOut:
    before, after = change.kinds
    return ChangeOut.filled(change.shown, before=before, after=after)


def render(name: str, limits: Mapping[str, float], trials: Sequence[Rejudged], console: Console) -> None:
    """A summary line, then per trial the checks whose finding changed in kind."""
    under = ", ".join(f"{key}={value:g}" for key, value in limits.items())
    changed = sum(t.changed for t in trials)
    before, after = sum(t.before.conforms for t in trials), sum(t.after.conforms for t in trials)
    console.print(
        f"{name}: {counted(len(trials), 'trial')} judged again by Prony {__version__}, limits of the "
        + (f"plan and {under}" if under else "plan")
        + f". {after} conform{'' if before == after else f', before {before}'}; {changed} new judgements "
        "stored; earlier judgements are kept."
    )
    for t in trials:
        differing = [change for change in t.changes if _differs(*change.kinds)]
        if differing or t.figures_changed:
            conforms = _arrow(_word(t.before), _word(t.after))
            console.print(f"\n[bold]{escape(t.record.id)}[/bold]  {escape(t.record.server)}: {conforms}")
        for change in differing:
            words = (None if kind is None else KIND_WORDS[kind] for kind in change.kinds)
            limit = f"; limit: {change.shown.limit}" if change.shown.limit else ""
            console.print(Padding(escape(f"{change.shown.check}: {_arrow(*words)}{limit}"), (0, 0, 0, 2)))
            console.print(Padding(escape(change.shown.reason), (0, 0, 0, 4)))
        if t.figures_changed:
            console.print(Padding(f"figures: {', '.join(t.figures_changed)}", (0, 0, 0, 2)))


def _differs(before: Kind | None, after: Kind | None) -> bool:
    return before is not after and {before, after} != {None, Kind.FINE}


def _word(judgement: Judgement) -> str:
    return KIND_WORDS[Kind.FINE if judgement.conforms else Kind.NOT_CONFORMING]


def _arrow(before: str | None, after: str | None) -> str:
    return str(after) if before == after else f"{before or 'absent'} → {after or 'absent'}"
