"""Runs an entry that takes one trial and compares the findings with the expected ones. Must not know how a
trial is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.judge.finding import Status
from prony.selftest.faults.clean_run import CleanResult, disturbed, run_clean
from prony.selftest.faults.model import Entry, SetupResult
from prony.selftest.faults.other_tools import run_tools
from prony.selftest.faults.trial import missing_for, run_setup


@dataclass(frozen=True, slots=True)
class EntryResult:
    """A row of the table: a fault, what other tools printed, what Prony reported, and how that failed."""

    number: int
    name: str
    fault: str
    other_tools: str = ""
    reported: str = ""
    clean: str = ""
    failures: tuple[str, ...] = ()
    missing: str = ""
    """What this host lacks; the entry was then not run."""


def run_entry(entry: Entry, *, tools: bool = False) -> EntryResult:
    """Run the faulty trial, once more where it failed and the host's readings show another process on its
    CPUs, and the clean one until it is valid (`prony.selftest.faults.clean_run`).
    """
    told = EntryResult(entry.number, entry.name, entry.fault)
    absent = missing_for(entry.setup) or missing_for(entry.clean)
    if absent:
        return with_(told, missing=absent)
    printed = run_tools(entry.setup) if tools and entry.other_tools else ""
    outcome = run_setup(entry.setup)
    reported, failures = _compared(entry, outcome)
    if failures and disturbed(outcome):
        reported, failures = _compared(entry, run_setup(entry.setup, 2))
        reported += " (second attempt; another process disturbed the first)"
    clean = run_clean(entry.clean)
    alarms = _false_alarms(clean)
    return with_(
        told,
        other_tools=printed,
        reported=reported,
        clean=clean.summary,
        failures=(*failures, alarms) if alarms else failures,
    )


def _compared(entry: Entry, outcome: SetupResult) -> tuple[str, tuple[str, ...]]:
    """What Prony reported of a faulty trial, and how that differs from what it has to."""
    other = entry.beside(outcome)
    failures = (
        _undetected(entry, outcome),
        _unmarked(entry, outcome),
        entry.also(outcome),
        other.failure if other is not None else None,
    )
    reported = _finding(entry, outcome) + (f"; {other.reported}" if other is not None else "")
    return reported, tuple(failure for failure in failures if failure)


def with_(told: EntryResult, **changes: object) -> EntryResult:
    """The same row with these cells changed."""
    values = {name: getattr(told, name) for name in EntryResult.__slots__}
    return EntryResult(**(values | changes))


def _undetected(entry: Entry, outcome: SetupResult) -> str | None:
    found_by = {**outcome.unread, **outcome.fired} if entry.unknown else outcome.fired
    if any(check in found_by for check in entry.named_by):
        return None
    found = ", ".join(found_by) or "nothing"
    return f"not detected by {' or '.join(entry.named_by)}; found: {found}"


def _unmarked(entry: Entry, outcome: SetupResult) -> str | None:
    """A run with injected faults says so and is invalid, whatever else its figures look like."""
    injected = ", ".join(entry.setup.injected_faults)
    if outcome.reason("injected_faults").endswith(injected) and bool(injected) == (
        outcome.status("injected_faults") is Status.INVALID
    ):
        return None
    return f"its injected faults ({injected or 'none'}) are not what the run reports"


def _false_alarms(clean: CleanResult) -> str | None:
    if not clean.false_alarms:
        return None
    findings = "; ".join(f"{check}: {reason}" for check, reason in clean.false_alarms.items())
    return f"false alarm in the clean run, {clean.attempts} of {clean.attempts} attempts: {findings}"


def _finding(entry: Entry, outcome: SetupResult) -> str:
    found_by = {**outcome.unread, **outcome.fired} if entry.unknown else outcome.fired
    check = next((c for c in entry.named_by if c in found_by), None)
    if check is None:
        return outcome.judgement.verdict.value
    return f"{found_by[check].value}, {check}: {outcome.reason(check)}"


def markdown(rows: Sequence[EntryResult]) -> str:
    """The table of docs/truth.md."""
    lines = [
        "| | injected fault | other tools | Prony | clean run |",
        "|---|---|---|---|---|",
    ]
    for told in rows:
        if told.missing:
            reported, clean = f"not run: needs {told.missing}", ""
        else:
            reported, clean = told.reported + "".join(f" **{why}**" for why in told.failures), told.clean
        cells = (str(told.number), f"**{told.name}**: {told.fault}", told.other_tools, reported, clean)
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return "\n".join(lines)
