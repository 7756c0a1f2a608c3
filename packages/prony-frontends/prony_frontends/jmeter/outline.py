"""Transactions around each request of a scenario, and positions of samplers that send nothing: data for
JMeter's log that the request log lacks.
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
    """Whether it is the parent sample of its samples."""
    timers: bool = False
    """Whether its time includes pauses."""


@dataclass(eq=False, slots=True)
class Transaction:
    """A transaction at a position of a scenario."""

    name: str
    element: int
    """Number of its controller."""
    style: Style
    first: int | None = None
    """Request that it always starts with; None when it varies."""
    last: int | None = None
    """Request that it always ends with."""
    loops: list[range] = field(default_factory=list)
    """Requests in its loops, which may repeat before it ends."""

    def begins_anew(self, before: int, request: int) -> bool:
        """Whether a request after another request of the transaction starts its next pass."""
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
    """JMeter's error message."""


@dataclass(slots=True)
class Outline:
    """A scenario; requests are identified by position, as in the log."""

    elements: list[int] = field(default_factory=list)
    """Sampler's number by request."""
    within: list[tuple[Transaction, ...]] = field(default_factory=list)
    """Transactions around each request, outermost first."""
    after: dict[int, list[tuple[int, Silent]]] = field(default_factory=dict)
    """Samplers that send nothing after a request, each with its depth of transactions."""
    before: dict[int, list[tuple[int, Silent]]] = field(default_factory=dict)
    follows: set[int] = field(default_factory=set)
    """Requests with followed redirects."""
    held_alone: set[int] = field(default_factory=set)
    """Requests whose assertions apply to the main sample only."""
    embedded: dict[int, int] = field(default_factory=dict)
    """Requests for embedded resources -> the request that lists them, for the page or another resource."""
    unplaced: list[str] = field(default_factory=list)
    """Requests with varying neighbours."""


def outlines(
    workload: Workload,
    styles: Mapping[str, Style],
    faults: Mapping[int, str] | None = None,
    held_within: Collection[int] = (),
) -> dict[str, Outline]:
    """By scenario, for a workload with marked names. `styles`: by transaction name; `faults`: of samplers
    that fail without sending, by number; `held_within`: numbers of samplers whose assertions include
    sub-samples.
    """
    return {walk.name: _Reader(styles, faults or {}, held_within).read(walk.steps) for walk in workload.walks}


@dataclass(frozen=True, slots=True)
class _Ends:
    """First and last request of a part of the plan, where constant."""

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
        """Lists of embedded resources -> the page's request."""
        self._page: int | None = None
        """The request whose resources are being read."""

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
        sending = [end for end in ends if end.sends]
        return _Ends(sending[0].first, sending[-1].last) if sending else NOTHING

    def _place(self, marked: str, before: Sequence[_Ends], after: Sequence[_Ends]) -> None:
        last = next((end.last for end in reversed(before) if end.sends), None)
        first = next((end.first for end in after if end.sends), None)
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
            return NOTHING  # part of the page's own sample
        inside = self._list(entry.steps)
        other = self._list(entry.otherwise)
        if entry.loop is not None:
            self._looped(number)
        if not (inside.sends or other.sends):
            return NOTHING
        return inside if entry.group else _Ends()

    def _transaction(self, entry: Block, name: str) -> _Ends:
        transaction = Transaction(*parted(name), self._styles.get(name, Style()))
        self._open.append(transaction)
        inside = self._list(entry.steps)
        self._open.pop()
        transaction.first, transaction.last = inside.first, inside.last
        return inside

    def _looped(self, begin: int) -> None:
        for transaction in self._open:
            transaction.loops.append(range(begin, len(self._found.within)))


def silent(name: str) -> Block:
    """A sample without a request, with a row in the log. `name`: with its sampler's mark."""
    return Block(transaction=name, steps=(Block(pause=Think(kind="constant", ms=0.0)),))


def silent_name(entry: Entry) -> str | None:
    """The name of such a sample."""
    if isinstance(entry, Step) or entry.transaction is None or len(entry.steps) != 1:
        return None
    (only,) = entry.steps
    alone = isinstance(only, Block) and only.pause is not None and only.pause.ms == 0
    return entry.transaction if alone else None
