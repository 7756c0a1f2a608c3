"""All entries of the catalogue, by number."""

from __future__ import annotations

from collections.abc import Iterator

from prony.errors import EnvironmentFault
from prony_selftest.faults.catalogue import ENTRIES
from prony_selftest.faults.several_trials import MANY
from prony_selftest.faults.single_trial import EntryResult, run_entry, without_log

ONE = {entry.number: entry for entry in ENTRIES}
ALL: tuple[int, ...] = tuple(sorted({*ONE, *MANY}))


def run_number(number: int, *, tools: bool = False) -> EntryResult:
    """An entry and its clean run; `tools`: wrk and ab first. A trial that does not run fails the entry."""
    try:
        return run_entry(ONE[number], tools=tools) if number in ONE else MANY[number](tools)
    except EnvironmentFault as fault:
        name, _, title = dict(titles())[number].partition(": ")
        return EntryResult(number, name, title, reported="not measured", failures=(without_log(str(fault)),))


def titles() -> Iterator[tuple[int, str]]:
    """(number, title) of each entry."""
    for number in ALL:
        if number in ONE:
            yield number, f"{ONE[number].name}: {ONE[number].fault}"
        else:
            yield number, (MANY[number].__doc__ or "").partition(": ")[2].rstrip(".")
