"""Holds what Prony says of each lie and its twin against what it must say. Must not know the staging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.judge.finding import Status
from prony.selftest.lies.model import Entry, Setup, Staged
from prony.selftest.lies.plain import plain
from prony.selftest.lies.stage import lacking, stage

ATTEMPTS = 4
DISTURBED = ("isolation", "host")
"""Findings that say that something else was at work on this machine: what it did to a twin proves nothing."""


@dataclass(frozen=True, slots=True)
class Told:
    """A line of the table: a lie, what plain tools printed, what Prony said, and what was wrong with that."""

    number: int
    name: str
    lie: str
    plain: str = ""
    said: str = ""
    twin: str = ""
    faults: tuple[str, ...] = ()
    lacking: str = ""
    """Why it could not be put on here; then nothing was proved."""


def prove(entry: Entry, *, tools: bool = False) -> Told:
    """Stage the lie and its twin. A twin on a machine that was disturbed is repeated; when it stays
    disturbed, the findings that name the disturbance are forgiven, and said.
    """
    told = Told(entry.number, entry.name, entry.lie)
    missing = lacking(entry.setup) or lacking(entry.twin)
    if missing:
        return _with(told, lacking=missing)
    printed = plain(entry.setup) if tools and entry.plain else ""
    staged = stage(entry.setup)
    faults = [_unnamed(entry, staged), entry.also(staged)]
    twin = _quietest(entry.twin)
    faults.append(_accused(entry, twin))
    return _with(
        told,
        plain=printed,
        said=_said(entry, staged),
        twin=_twin_said(twin),
        faults=tuple(fault for fault in faults if fault),
    )


def _with(told: Told, **changes: object) -> Told:
    values = {name: getattr(told, name) for name in Told.__slots__}
    return Told(**(values | changes))


def _unnamed(entry: Entry, staged: Staged) -> str | None:
    if any(check in staged.accused for check in entry.named_by):
        return None
    return f"the lie was not named by {' or '.join(entry.named_by)}; accused: {_listed(staged) or 'nothing'}"


def _quietest(setup: Setup) -> Staged:
    """The first attempt that nobody disturbed, else the last."""
    staged = stage(setup)
    for seed in range(2, ATTEMPTS + 1):
        if not staged.accused:
            break
        staged = stage(setup, seed)
    return staged


def _accused(entry: Entry, twin: Staged) -> str | None:
    """Why the twin's verdict is wrong; None when it is right, or when the machine was disturbed and the
    check in question is not the entry's own.
    """
    disturbed = any(check in twin.accused for check in DISTURBED)
    own = [c for c in entry.named_by if c in twin.accused and c not in DISTURBED]
    if own and not disturbed:
        return f"the honest twin was accused by {', '.join(own)}: {twin.reason(own[0])}"
    if disturbed or twin.judgement.verdict is Status.VALID:
        return None
    why = _listed(twin) or "an essential check is unknown"
    return f"the honest twin is {twin.judgement.verdict.value}: {why}"


def _said(entry: Entry, staged: Staged) -> str:
    check = next((c for c in entry.named_by if c in staged.accused), None)
    if check is None:
        return staged.judgement.verdict.value
    return f"{staged.accused[check].value}, {check}: {staged.reason(check)}"


def _twin_said(twin: Staged) -> str:
    listed = _listed(twin)
    return twin.judgement.verdict.value + (f" ({listed}: this machine)" if listed else "")


def _listed(staged: Staged) -> str:
    return ", ".join(staged.accused)


def markdown(rows: Sequence[Told]) -> str:
    """The table of docs/truth.md."""
    lines = [
        "| | lie | what plain tools printed | what Prony said | the honest twin |",
        "|---|---|---|---|---|",
    ]
    for told in rows:
        if told.lacking:
            said, twin = f"not put on: it needs {told.lacking}", ""
        else:
            said, twin = told.said + "".join(f" **{fault}**" for fault in told.faults), told.twin
        cells = (str(told.number), f"**{told.name}**: {told.lie}", told.plain, said, twin)
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return "\n".join(lines)
