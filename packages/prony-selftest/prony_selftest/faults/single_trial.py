"""Runs an entry that needs one trial, and compares its findings with the expected findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prony.errors import EnvironmentFault
from prony.judge.finding import Finding, Kind
from prony_selftest.faults.clean_run import MAIN_FIGURE, CleanResult, disturbed, run_clean
from prony_selftest.faults.model import Entry, SetupResult, bias_range, overlaps
from prony_selftest.faults.other_tools import run_tools
from prony_selftest.faults.trial import missing_for, run_setup


@dataclass(frozen=True, slots=True)
class EntryResult:
    """A row of the table: a fault, other tools' output, Prony's report, and failures."""

    number: int
    name: str
    fault: str
    other_tools: str = ""
    reported: str = ""
    clean: str = ""
    failures: tuple[str, ...] = ()
    missing: str = ""
    """Missing requirements of this host; the entry was not run."""
    disturbed: bool = False
    """Another process than an injected one disturbed a trial, by this host's readings."""


def run_entry(entry: Entry, *, tools: bool = False) -> EntryResult:
    """Repeats the faulty trial if it failed while disturbed, and the clean run until it conforms."""
    result = EntryResult(entry.number, entry.name, entry.fault)
    absent = missing_for(entry.setup) or missing_for(entry.clean)
    if absent:
        return with_(result, missing=absent)
    if entry.refused:
        return _refused(entry, result)
    printed = run_tools(entry.setup) if tools and entry.other_tools else ""
    outcome = run_setup(entry.setup)
    reported, failures = _compared(entry, outcome)
    if failures and disturbed(outcome):
        outcome = run_setup(entry.setup, 2)
        reported, failures = _compared(entry, outcome)
        reported += " (second attempt; another process disturbed the first)"
    clean = run_clean(entry.clean)
    further = (_false_alarms(clean), _found_in_clean(entry, outcome, clean), _outside(entry, outcome, clean))
    return with_(
        result,
        other_tools=printed,
        reported=reported,
        clean=clean.summary,
        failures=(*failures, *(failure for failure in further if failure)),
        disturbed=disturbed(clean.outcome) or (entry.setup.disturbance is None and disturbed(outcome)),
    )


def _refused(entry: Entry, result: EntryResult) -> EntryResult:
    refused, clean = refusal(lambda: run_setup(entry.setup)) or "measured", run_clean(entry.clean)
    failures = [alarms] if (alarms := _false_alarms(clean)) is not None else []
    if entry.refused not in refused:
        failures.append(f"not refused for {entry.refused}")
    reported = f"refused: {without_log(refused)}"
    return with_(result, reported=reported, clean=clean.summary, failures=tuple(failures))


def refusal(start: Callable[[], object]) -> str | None:
    """The error message; None without a refusal."""
    try:
        start()
    except EnvironmentFault as fault:
        return str(fault)
    return None


def without_log(text: str) -> str:
    """A message without the path of its log, which is of this host."""
    return re.sub(r" \(log: [^)]*\)", "", text)


def _compared(entry: Entry, outcome: SetupResult) -> tuple[str, tuple[str, ...]]:
    """Prony's report on a faulty trial, and its failures."""
    other = entry.second_case(outcome)
    failures = (
        _undetected(entry, outcome),
        _unmarked(entry, outcome),
        entry.requirement(outcome),
        other.failure if other is not None else None,
    )
    reported = _finding(entry, outcome) + (f"; {other.reported}" if other is not None else "")
    return reported, tuple(failure for failure in failures if failure)


def with_(result: EntryResult, **changes: object) -> EntryResult:
    """The row with some cells changed."""
    values = {name: getattr(result, name) for name in EntryResult.__slots__}
    return EntryResult(**(values | changes))


def _undetected(entry: Entry, outcome: SetupResult) -> str | None:
    if any(check in outcome.detections for check in entry.named_by):
        return None
    findings = ", ".join(outcome.detections) or "nothing"
    return f"not detected by {' or '.join(entry.named_by)}; findings: {findings}"


def _unmarked(entry: Entry, outcome: SetupResult) -> str | None:
    """A run with injected faults must report them, and not conform."""
    injected = ", ".join(entry.setup.injected_faults)
    finding = outcome.judgement.finding("injected_faults")
    if injected == ("" if finding is None or finding.conforms else finding.value):
        return None
    return f"the run does not report its injected faults ({injected or 'none'})"


def _false_alarms(clean: CleanResult) -> str | None:
    if not clean.false_alarms:
        return None
    findings = "; ".join(f"{check}: {reason}" for check, reason in clean.false_alarms.items())
    return f"false alarm in the clean run, {clean.attempts} of {clean.attempts} attempts: {findings}"


def _found_in_clean(entry: Entry, outcome: SetupResult, clean: CleanResult) -> str | None:
    """The clean run must not have the same finding and condition; a bound must be less than half as large."""
    named = _detected(entry, outcome)
    same = None if named is None else clean.outcome.detections.get(named.check)
    if named is None or same is None or disturbed(clean.outcome):
        return None
    if (same.code, same.provided) != (named.code, named.provided):
        return None
    if any(2 * same.of(name).size < bias.size for name, bias in named.bias.items()):
        return None
    if same.plateau and any(
        2 * plateau.bias.size < named.plateau[name].bias.size for name, plateau in same.plateau.items()
    ):
        return None
    return f"{named.check} reports {same.code} for the clean run, too: {same.reason}"


def _outside(entry: Entry, outcome: SetupResult, clean: CleanResult) -> str | None:
    """A figure of a conforming faulty trial whose bounds miss the clean run's value."""
    if not outcome.judgement.conforms:
        return None
    for name in entry.biased:
        faulty, true = outcome.estimates.get(name), clean.outcome.estimates.get(name)
        if faulty is None or true is None:
            return f"{name} was not measured in both runs"
        if not overlaps(true, faulty):
            return f"{name}: {faulty.value:.5g} {bias_range(faulty.bias)}, in the clean run {true.value:.5g}"
    return None


def _detected(entry: Entry, outcome: SetupResult) -> Finding | None:
    findings = (outcome.detections.get(check) for check in entry.named_by)
    return next((finding for finding in findings if finding is not None), None)


def _finding(entry: Entry, outcome: SetupResult) -> str:
    first = _detected(entry, outcome)
    if first is None:
        return "conforms" if outcome.judgement.conforms else "does not conform"
    return f"{_does(first)}, {first.check}: {first.reason}"


def _does(f: Finding) -> str:
    if f.kind is Kind.BUDGET:
        main = f.bias.get(MAIN_FIGURE)
        name, bias = max(f.bias.items(), key=lambda of: of[1].size)
        return bias_range(main, MAIN_FIGURE) if main is not None and main.counts else bias_range(bias, name)
    if f.plateau and f.kind is Kind.FINE:
        name, plateau = next(iter(f.plateau.items()))
        return f"later {bias_range(plateau.bias, name)}"
    return {Kind.NOT_CONFORMING: "does not conform", Kind.PROVIDED: "a condition"}.get(f.kind, "detected")


def markdown(rows: Sequence[EntryResult]) -> str:
    """The table of docs/results/truth/catalogue.md."""
    lines = ["| | injected fault | other tools | Prony | clean run |", "|---|---|---|---|---|"]
    for row in rows:
        if row.missing:
            reported, clean = f"not run: needs {row.missing}", ""
        else:
            reported, clean = row.reported + "".join(f" **{why}**" for why in row.failures), row.clean
        cells = (str(row.number), f"**{row.name}**: {row.fault}", row.other_tools, reported, clean)
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return "\n".join(lines)
