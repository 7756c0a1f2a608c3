"""Samples of a scenario in order: its requests and its notes, with the transactions around each. A note is a
row of the request log for what other rows lack: a sampler that sends nothing, the label of the next request,
the begin and the end of a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from prony.plan.step import Block, Entry, Step
from prony.plan.workload import Workload
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.marks import marked, parted

SAMPLE, FAULT, LABEL, BEGIN, END = "=", "!", "@", ">", "<"
"""First character of a note: sample without a request, failed, next label, begin and end of transaction."""
BETWEEN = "\x1f"
"""Between the label and the URL of a failed sample."""


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
    """Place that it always starts with; None when it varies."""
    last: int | None = None
    """Place that it always ends with."""
    loops: list[range] = field(default_factory=list)
    """Places in its loops, which may repeat before it ends."""

    def restarts(self, before: int, place: int) -> bool:
        """Whether a place after another one of the transaction starts its next pass."""
        if self.first is not None:
            return place == self.first
        again = any(before in loop and place in loop for loop in self.loops)
        return place <= before and not again


@dataclass(frozen=True, slots=True)
class Place:
    """A request or a note, with the transactions around it, outermost first."""

    number: int
    within: tuple[Transaction, ...]
    element: int
    """Number of its sampler or controller."""


@dataclass(slots=True)
class Outline:
    """A scenario; requests and notes are identified by their positions, as in the log."""

    requests: list[Place] = field(default_factory=list)
    notes: list[Place] = field(default_factory=list)
    follows: set[int] = field(default_factory=set)
    """Requests with followed redirects."""
    asserted_as_whole: set[int] = field(default_factory=set)
    """Requests whose assertions apply to the main sample only."""
    embedded: dict[int, int] = field(default_factory=dict)
    """Requests for embedded resources -> the request that lists them, for the page or another resource."""


def outlines(
    workload: Workload, styles: Mapping[str, Style], asserted_within: Collection[int] = ()
) -> dict[str, Outline]:
    """By scenario. `asserted_within`: numbers of samplers whose assertions include sub-samples."""
    return {walk.name: _Reader(styles, asserted_within).read(walk.steps) for walk in workload.walks}


@dataclass(frozen=True, slots=True)
class _Ends:
    """First and last place of a part of the plan, where constant."""

    first: int | None = None
    last: int | None = None
    counts: bool = True


NOTHING = _Ends(counts=False)


class _Reader:
    def __init__(self, styles: Mapping[str, Style], asserted_within: Collection[int]) -> None:
        self._styles, self._held_within = styles, asserted_within
        self._found = Outline()
        self._count = 0
        self._open: list[Transaction] = []
        self._pages: dict[str, int] = {}
        """Lists of embedded resources -> the page's request."""
        self._page: int | None = None
        """The request whose resources are being read."""

    def read(self, steps: Sequence[Entry]) -> Outline:
        self._list(steps)
        return self._found

    def _list(self, entries: Sequence[Entry]) -> _Ends:
        ends = [end for end in map(self._entry, entries) if end.counts]
        return _Ends(ends[0].first, ends[-1].last) if ends else NOTHING

    def _place(self, element: int) -> Place:
        self._count += 1
        return Place(self._count - 1, tuple(self._open), element)

    def _entry(self, entry: Entry) -> _Ends:
        if isinstance(entry, Step):
            return self._step(entry)
        if entry.note is not None:
            place = self._place(parted(entry.note)[1])
            self._found.notes.append(place)
            return NOTHING if entry.note.startswith(LABEL) else _Ends(place.number, place.number)
        if entry.transaction is not None:
            return self._transaction(entry, entry.transaction)
        begin = self._count
        if entry.each is not None and entry.each in self._pages:
            before, self._page = self._page, self._pages[entry.each]
            self._list(entry.steps)
            self._page = before
            return NOTHING  # part of the page's own sample
        inside = self._list(entry.steps)
        other = self._list(entry.otherwise)
        if entry.loop is not None or entry.parallel is not None:
            self._looped(begin)
        if not (inside.counts or other.counts):
            return NOTHING
        return inside if entry.group else _Ends()

    def _step(self, step: Step) -> _Ends:
        number, found = len(self._found.requests), self._found
        place = self._place(parted(step.name)[1])
        found.requests.append(place)
        if step.skip_if is not None:  # its note is the failed sample
            found.notes.append(place)
        if place.element not in self._held_within:
            found.asserted_as_whole.add(number)
        if step.follow_redirects:
            found.follows.add(number)
        if self._page is not None:
            found.embedded[number] = self._page
        if step.resources is not None:
            self._pages[step.resources.into] = number
        if step.repeat == 1:
            return _Ends(place.number, place.number)
        self._looped(place.number)
        return _Ends()

    def _transaction(self, entry: Block, name: str) -> _Ends:
        transaction = Transaction(*parted(name), self._styles.get(name, Style()))
        self._open.append(transaction)
        inside = self._list(entry.steps)
        self._open.pop()
        transaction.first, transaction.last = inside.first, inside.last
        return inside

    def _looped(self, begin: int) -> None:
        for transaction in self._open:
            transaction.loops.append(range(begin, self._count))


def note(kind: str, text: str, node: JmxNode) -> Block:
    """A note of this element; `text` in the engine's syntax."""
    return Block(note=marked(f"{kind}{text}", node))


def noted(entry: Entry) -> str | None:
    """Text of a note that is a sample."""
    if isinstance(entry, Step) or entry.note is None or not entry.note.startswith((SAMPLE, FAULT)):
        return None
    return entry.note


def sample_is_certain(entries: Sequence[Entry], last: bool = False) -> bool:
    """Whether the first, or the last, of these entries that may be a sample always is one."""
    for entry in reversed(entries) if last else entries:
        if isinstance(entry, Step):
            return entry.repeat == 1
        if entry.transaction is not None or noted(entry) is not None:
            return True
        if entry.group:
            return sample_is_certain(entry.steps, last)
        if entry.steps:
            return False
    return False
