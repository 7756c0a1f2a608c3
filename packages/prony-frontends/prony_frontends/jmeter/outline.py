"""Which transactions each request of a scenario stands in, and where samplers stand that send nothing: what
the log of requests does not say and JMeter's log has rows for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from prony.plan.step import Block, Entry, Step
from prony.plan.think import Think
from prony.plan.workload import Workload
from prony_frontends.jmeter.marks import parted


@dataclass(frozen=True, slots=True)
class Style:
    """How a Transaction Controller counts."""

    parent: bool = False
    """Its row stands above those of its samples."""
    timers: bool = False
    """Its time includes pauses."""


@dataclass(eq=False, slots=True)
class Transaction:
    """At one place of a scenario."""

    name: str
    element: int
    """The number of its controller."""
    style: Style
    first: int | None = None
    """The request that it always begins with; None where that depends."""
    last: int | None = None
    """The request that it always ends with."""
    loops: list[range] = field(default_factory=list)
    """Requests of loops within it, which may be sent again before it ends."""

    def begins_anew(self, before: int, request: int) -> bool:
        """Whether a request after another one of it belongs to its next walk."""
        if self.first is not None:
            return request == self.first
        again = any(before in loop and request in loop for loop in self.loops)
        return request <= before and not again


@dataclass(frozen=True, slots=True)
class Silent:
    """A sampler that sends nothing."""

    name: str
    element: int
    fault: str = ""
    """Why it fails, in JMeter's words."""


@dataclass(slots=True)
class Outline:
    """One scenario; requests are known by their place in it, as in the log."""

    elements: list[int] = field(default_factory=list)
    """By request: the number of its sampler."""
    within: list[tuple[Transaction, ...]] = field(default_factory=list)
    """By request: the transactions that it stands in, the outermost first."""
    after: dict[int, list[tuple[int, Silent]]] = field(default_factory=dict)
    """Samplers that send nothing after a request: how many transactions they stand in, and what they are."""
    before: dict[int, list[tuple[int, Silent]]] = field(default_factory=dict)
    follows: set[int] = field(default_factory=set)
    """Requests whose redirects are followed."""
    held_alone: set[int] = field(default_factory=set)
    """Requests whose assertions look at the sampler's own sample, and at none within it."""
    embedded: dict[int, int] = field(default_factory=dict)
    """Requests for what a page embeds -> the request that names it, for the page or for another of them."""
    unplaced: list[str] = field(default_factory=list)
    """Those of which it is not known beforehand which request comes before or after them."""


def outlines(
    workload: Workload,
    styles: Mapping[str, Style],
    faults: Mapping[int, str] | None = None,
    held_within: Collection[int] = (),
) -> dict[str, Outline]:
    """By scenario, of a workload whose names have their marks. `styles`: by the name of the transaction;
    `faults`: of samplers that fail and send nothing, by their numbers; `held_within`: numbers of samplers
    whose assertions look at sub-samples too.
    """
    return {walk.name: _Reader(styles, faults or {}, held_within).read(walk.steps) for walk in workload.walks}


@dataclass(frozen=True, slots=True)
class _Ends:
    """The requests that a part of the plan begins and ends with, where they are the same each time."""

    first: int | None = None
    last: int | None = None
    sends: bool = True


NOTHING = _Ends(sends=False)


class _Reader:
    def __init__(
        self, styles: Mapping[str, Style], faults: Mapping[int, str], held_within: Collection[int]
    ) -> None:
        self._styles, self._faults, self._held_within = styles, faults, held_within
        self._found = Outline()
        self._open: list[Transaction] = []
        self._pages: dict[str, int] = {}
        """Lists of what pages embed -> the request for the page."""
        self._page: int | None = None
        """That whose resources are read."""

    def read(self, steps: Sequence[Entry]) -> Outline:
        self._list(steps)
        return self._found

    def _list(self, entries: Sequence[Entry]) -> _Ends:
        ends: list[_Ends] = []
        silent: list[tuple[int, str]] = []
        for place, entry in enumerate(entries):
            name = silent_name(entry)
            if name is not None:
                silent.append((place, name))
            ends.append(NOTHING if name is not None else self._entry(entry))
        for place, name in silent:
            self._place(name, ends[:place], ends[place + 1 :])
        sending = [one for one in ends if one.sends]
        return _Ends(sending[0].first, sending[-1].last) if sending else NOTHING

    def _place(self, marked: str, before: Sequence[_Ends], after: Sequence[_Ends]) -> None:
        last = next((one.last for one in reversed(before) if one.sends), None)
        first = next((one.first for one in after if one.sends), None)
        name, element = parted(marked)
        at = (len(self._open), Silent(name, element, self._faults.get(element, "")))
        if last is not None:
            self._found.after.setdefault(last, []).append(at)
        elif first is not None:
            self._found.before.setdefault(first, []).append(at)
        else:
            self._found.unplaced.append(name)

    def _entry(self, entry: Entry) -> _Ends:
        number = len(self._found.within)
        if isinstance(entry, Step):
            self._found.within.append(tuple(self._open))
            element = parted(entry.name)[1]
            self._found.elements.append(element)
            if element not in self._held_within:
                self._found.held_alone.add(number)
            if entry.follow_redirects:
                self._found.follows.add(number)
            if self._page is not None:
                self._found.embedded[number] = self._page
            if entry.resources is not None:
                self._pages[entry.resources.into] = number
            alone = entry.repeat == 1
            if not alone:
                self._looped(number)
            return _Ends(number, number) if alone else _Ends()
        if entry.transaction is not None:
            return self._transaction(entry, entry.transaction)
        if entry.each is not None and entry.each in self._pages:
            before, self._page = self._page, self._pages[entry.each]
            self._list(entry.steps)
            self._page = before
            return NOTHING  # they are part of the page's own sample
        inside = self._list(entry.steps)
        other = self._list(entry.otherwise)
        if entry.loop is not None:
            self._looped(number)
        if not (inside.sends or other.sends):
            return NOTHING
        return inside if entry.group else _Ends()

    def _transaction(self, entry: Block, name: str) -> _Ends:
        made = Transaction(*parted(name), self._styles.get(name, Style()))
        self._open.append(made)
        inside = self._list(entry.steps)
        self._open.pop()
        made.first, made.last = inside.first, inside.last
        return inside

    def _looped(self, begin: int) -> None:
        for transaction in self._open:
            transaction.loops.append(range(begin, len(self._found.within)))


def silent(name: str) -> Block:
    """A sample without a request, which has a row in the log. `name`: with the mark of its sampler."""
    return Block(transaction=name, steps=(Block(pause=Think(kind="constant", ms=0.0)),))


def silent_name(entry: Entry) -> str | None:
    """The name of such a sample."""
    if isinstance(entry, Step) or entry.transaction is None or len(entry.steps) != 1:
        return None
    (only,) = entry.steps
    alone = isinstance(only, Block) and only.pause is not None and only.pause.ms == 0
    return entry.transaction if alone else None
