"""Holds what Prony says of each lie and its twin against what it must say. Must not know the staging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.selftest.lies.model import Entry, Staged
from prony.selftest.lies.plain import plain
from prony.selftest.lies.stage import lacking, stage
from prony.selftest.lies.twins import Acquittal, acquit


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
    """Stage the lie once and its twin until it is acquitted (`prony.selftest.lies.twins`)."""
    told = Told(entry.number, entry.name, entry.lie)
    missing = lacking(entry.setup) or lacking(entry.twin)
    if missing:
        return with_(told, lacking=missing)
    printed = plain(entry.setup) if tools and entry.plain else ""
    staged = stage(entry.setup)
    other = entry.beside(staged)
    twin = acquit(entry.twin)
    faults = (
        _unnamed(entry, staged),
        entry.also(staged),
        other.fault if other is not None else None,
        _accused(twin),
    )
    return with_(
        told,
        plain=printed,
        said=_said(entry, staged) + (f"; {other.said}" if other is not None else ""),
        twin=twin.told,
        faults=tuple(fault for fault in faults if fault),
    )


def with_(told: Told, **changes: object) -> Told:
    """The same line with these cells changed."""
    values = {name: getattr(told, name) for name in Told.__slots__}
    return Told(**(values | changes))


def _unnamed(entry: Entry, staged: Staged) -> str | None:
    if any(check in staged.accused for check in entry.named_by):
        return None
    return f"the lie was not named by {' or '.join(entry.named_by)}; accused: {_listed(staged) or 'nothing'}"


def _accused(twin: Acquittal) -> str | None:
    if not twin.stayed:
        return None
    words = "; ".join(f"{check}: {reason}" for check, reason in twin.stayed.items())
    return f"the honest twin was accused {twin.attempts} times out of {twin.attempts} by {words}"


def _said(entry: Entry, staged: Staged) -> str:
    check = next((c for c in entry.named_by if c in staged.accused), None)
    if check is None:
        return staged.judgement.verdict.value
    return f"{staged.accused[check].value}, {check}: {staged.reason(check)}"


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
