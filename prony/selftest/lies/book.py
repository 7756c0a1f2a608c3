"""All entries of the catalogue by number, of one trial or of many. Must not stage them itself."""

from __future__ import annotations

from collections.abc import Iterator

from prony.selftest.lies.catalogue import ENTRIES
from prony.selftest.lies.many import MANY
from prony.selftest.lies.prove import Told, prove

ONE = {entry.number: entry for entry in ENTRIES}
ALL: tuple[int, ...] = tuple(sorted({*ONE, *MANY}))


def prove_entry(number: int, *, tools: bool = False) -> Told:
    """Stage it and its twin. `tools`: let wrk and ab look at it first."""
    return prove(ONE[number], tools=tools) if number in ONE else MANY[number](tools)


def titles() -> Iterator[tuple[int, str]]:
    """Number and title of each entry."""
    for number in ALL:
        if number in ONE:
            yield number, f"{ONE[number].name}: {ONE[number].lie}"
        else:
            yield number, (MANY[number].__doc__ or "").partition(": ")[2].rstrip(".")
