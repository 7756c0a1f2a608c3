"""Rows of JMeter's log: one per request, and rows of transactions and of samplers that send nothing, derived
from the requests around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from prony_frontends.jmeter.outline import (
    BEGIN,
    BETWEEN,
    FAULT,
    LABEL,
    SAMPLE,
    Outline,
    Place,
    Style,
    Transaction,
)
from prony_frontends.jmeter.uris import fault
from prony_frontends.request_log import COLUMNS, LoggedRequest

NS_PER_MS = 1_000_000
NOT_SENT = "Non HTTP response code: java.net.URISyntaxException"
FOLLOWED = (301, 302, 303, 307, 308)


@dataclass(slots=True)
class Made:
    """A row without a request."""

    label: str
    of: LoggedRequest
    """A request or note of the same thread that had just ended."""
    start_ms: int
    """Unix time."""
    elapsed_ms: int = 0
    idle_ms: int = 0
    message: str = "OK"
    kind: str = "text"
    success: bool = True
    bytes_in: int = 0
    bytes_out: int = 0
    latency_ms: int = 0
    connect_ms: int = 0
    code: str = "200"
    element: int = 0
    """Number of its sampler or controller."""
    url: str = "null"
    failed: LoggedRequest | Made | None = None
    """The first failed sample, whose code it has."""


@dataclass(frozen=True, slots=True)
class Chain(LoggedRequest):
    """A request with its redirects and embedded resources as one sample: their total time, and the status and
    URL of the last response.
    """

    last: LoggedRequest
    """The last response."""
    embedded: tuple[LoggedRequest, ...]
    """Embedded resources, each possibly a chain."""
    parts: tuple[LoggedRequest, ...]
    """All its samples, in order."""

    @property
    def requests(self) -> int:
        """Number of requests."""
        return sum(part.requests if isinstance(part, Chain) else 1 for part in self.parts)


@dataclass(slots=True)
class _Links:
    """Requests of a chain so far."""

    held_alone: bool = False
    """Whether assertions apply only to the chain as a whole."""
    hops: list[LoggedRequest] = field(default_factory=list)
    last: LoggedRequest | None = None
    embedded: list[_Links] = field(default_factory=list)

    @property
    def step_index(self) -> int:
        """Of its first request."""
        return self.hops[0].step_index if self.last is None else self.last.step_index

    @property
    def branch(self) -> int | None:
        """Parallel branch of embedded resources."""
        first = self.hops[0] if self.hops else self.last
        return None if first is None else first.branch

    def add(self, row: LoggedRequest, leads: bool) -> None:
        """Adds the next response; `leads`: it is not the last."""
        if leads:
            self.hops.append(row)
        else:
            self.last = row

    def takes(self, row: LoggedRequest, leads: bool, within: int | None) -> bool:
        """Whether the row belongs to this chain. `within`: the request that lists it as embedded."""
        if self.last is None:
            if self.step_index != row.step_index:
                return False
            self.add(row, leads)
            return True
        beside = next(
            (embedded for embedded in reversed(self.embedded) if embedded.branch == row.branch), None
        )
        if beside is not None and beside.takes(row, leads, within):
            return True
        if self.step_index != within:
            return False
        self.embedded.append(_Links(self.held_alone))
        self.embedded[-1].add(row, leads)
        return True

    def joined(self) -> LoggedRequest:
        """The chain as one sample, or its only request."""
        hops, last = self.hops, self.last
        if last is None:  # the run ended within the chain
            *hops, last = hops
        # In the page's order, not in order of completion.
        listed = sorted(self.embedded, key=lambda links: links.branch or 0)
        embedded = tuple(links.joined() for links in listed)
        parts = (*hops, last, *embedded)
        if len(parts) == 1:
            return last
        first = parts[0]
        own = {name: getattr(last, name) for name in COLUMNS}
        for name in ("start_unix_ms", "start_ns", "latency_ns", "connect_ns", "tls_ns"):
            own[name] = getattr(first, name)
        own["service_ns"] = max(part.start_ns + part.service_ns for part in parts) - first.start_ns
        own["first_byte_ns"] = first.service_ns if first.first_byte_ns is None else first.first_byte_ns
        own["error"] = next((part.error for part in parts if part.error is not None), None)
        for name in ("bytes_out", "bytes_in", "body_bytes"):
            own[name] = sum(getattr(part, name) for part in parts)
        if self.held_alone and _asserted(last):
            parts = (*hops, replace(last, error=None), *embedded)
        return Chain(**own, last=last, embedded=embedded, parts=parts)


def within(sample: LoggedRequest | Made, name: str) -> Iterator[LoggedRequest]:
    """Sub-samples with JMeter's names. `name`: the sampler's."""
    parts = sample.parts if isinstance(sample, Chain) else ()
    return (replace(part, step=f"{name}-{place}") for place, part in enumerate(parts))


Sample = LoggedRequest | Made


@dataclass(slots=True)
class _Walk:
    """A transaction in progress in a thread."""

    transaction: Transaction
    name: str
    start_ms: int
    within_parent: bool
    """Whether it is part of a transaction that is its samples' parent."""
    samples: int = 0
    failing: int = 0
    first_failed: Sample | None = None
    ended_inside: int = 0
    """Transactions that ended in it since the last sample."""
    elapsed_ms: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    latency_ms: int = 0
    connect_ms: int = 0
    last: LoggedRequest | None = None
    held: list[Sample] = field(default_factory=list)
    """Rows to write after its own."""

    def add(self, sample: Sample, samples: int = 1) -> None:
        self.samples += samples
        if not self.transaction.style.parent:  # JMeter counts its visits
            self.samples += self.ended_inside
        self.ended_inside = 0
        failed = not sample.success if isinstance(sample, Made) else sample.error is not None
        self.failing += failed
        if failed and self.first_failed is None:
            self.first_failed = sample
        self.elapsed_ms += sample.elapsed_ms if isinstance(sample, Made) else elapsed_ms(sample)
        self.bytes_in += sample.bytes_in
        self.bytes_out += sample.bytes_out
        self.connect_ms += sample.connect_ms if isinstance(sample, Made) else connect_ms(sample)
        self.latency_ms += sample.latency_ms if isinstance(sample, Made) else latency_ms(sample)
        self.last = sample.of if isinstance(sample, Made) else sample

    def row(self) -> Made:
        assert self.last is not None
        style = self.transaction.style
        whole_ms = max(ended_ms(self.last) - self.start_ms, self.elapsed_ms)
        row = Made(
            label=self.name,
            element=self.transaction.element,
            of=self.last,
            start_ms=self.start_ms,
            elapsed_ms=whole_ms if style.timers else self.elapsed_ms,
            idle_ms=0 if style.timers else whole_ms - self.elapsed_ms,
            kind="",
        )
        if style.parent or not self.within_parent:
            row.success = not self.failing
            row.code = "200" if row.success else ""
            row.failed = self.first_failed if style.parent else None
            row.bytes_in, row.bytes_out = self.bytes_in, self.bytes_out
            row.latency_ms = 0 if style.parent else self.latency_ms
            row.connect_ms = 0 if style.parent else self.connect_ms
        elif not style.timers:  # JMeter adds nothing to it
            row.elapsed_ms, row.idle_ms = 0, whole_ms
        row.message = (
            f"Number of samples in transaction : {self.samples}, "
            f"number of failing samples : {0 if row.success else self.failing}"
        )
        return row


@dataclass(slots=True)
class _Thread:
    """State of a user."""

    open: list[_Walk] = field(default_factory=list)
    """The outermost first."""
    before: LoggedRequest | None = None
    place: int = -1
    """Of the row before."""
    label: tuple[int, str] | None = None
    """Of the next request: the number of its sampler, and the text."""

    @property
    def parent(self) -> _Walk | None:
        """The innermost open transaction that is its samples' parent."""
        return next((walk for walk in reversed(self.open) if walk.transaction.style.parent), None)


def samples(rows: Iterable[LoggedRequest], outlines: Mapping[str, Outline]) -> Iterator[Sample]:
    """Samples in order of completion per thread. A transaction cut off by the end of the run has no row."""
    threads: dict[int, _Thread] = {}
    for row in _chains(rows, outlines):
        outline = outlines.get(row.scenario)
        places = () if outline is None else outline.requests if row.note is None else outline.notes
        if row.step_index >= len(places):
            if row.note is None:
                yield row
            continue
        thread = threads.setdefault(row.user, _Thread())
        if row.note is not None and row.note.startswith(LABEL):
            thread.label = (places[row.step_index].element, row.note[1:])
            continue
        yield from _event(thread, row, places[row.step_index])
        thread.before, thread.place = row, places[row.step_index].number
    for thread in threads.values():
        while thread.open:
            walk = thread.open[-1]
            if walk.last is not None and walk.transaction.last in (None, thread.place):
                yield from _closed(thread)
            else:
                thread.open.pop()


def _chains(rows: Iterable[LoggedRequest], outlines: Mapping[str, Outline]) -> Iterator[LoggedRequest]:
    """A row per chain, at its end: a final response, or the next row of the thread."""
    pages = {name: frozenset(outline.embedded.values()) for name, outline in outlines.items()}
    if not any(pages.values()) and not any(outline.follows for outline in outlines.values()):
        yield from rows
        return
    held: dict[int, _Links] = {}
    for row in rows:
        outline = outlines.get(row.scenario)
        if row.note is not None:
            if row.user in held:
                yield held.pop(row.user).joined()
            yield row
            continue
        leads = outline is not None and row.step_index in outline.follows and _leads(row)
        named_by = None if outline is None else outline.embedded.get(row.step_index)
        links = held.get(row.user)
        if links is None or not links.takes(row, leads, named_by):
            if links is not None:
                yield links.joined()
            links = held[row.user] = _Links(outline is not None and row.step_index in outline.held_alone)
            links.add(row, leads)
        if links.last is not None and links.last.step_index not in pages.get(row.scenario, ()):
            yield links.joined()
            del held[row.user]
    for links in held.values():
        yield links.joined()


def _leads(row: LoggedRequest) -> bool:
    """Whether its response is a followed redirect."""
    return row.status in FOLLOWED and row.error is None


def _asserted(row: LoggedRequest) -> bool:
    """Whether an assertion failed the response."""
    error = row.error or ""
    return (row.status or 400) < 400 and error.startswith("expect_") and error != "expect_redirect"


def _event(thread: _Thread, row: LoggedRequest, place: Place) -> Iterator[Sample]:
    kept = 0
    for walk, transaction in zip(thread.open, place.within, strict=False):
        same = walk.transaction is transaction
        if not same or transaction.begins_anew(thread.place, place.number):
            break
        kept += 1
    while len(thread.open) > kept:
        yield from _closed(thread)
    begin_ms = start_ms(row) if thread.before is None else ended_ms(thread.before)
    for transaction in place.within[kept:]:
        thread.open.append(
            _Walk(transaction, transaction.name, begin_ms, within_parent=thread.parent is not None)
        )
    sample: Sample | None = row
    if row.note is not None:
        sample = _without_request(row, place)
        if row.note.startswith(BEGIN):
            thread.open[-1].name = row.note[1:]
    elif thread.label is not None and thread.label[0] == place.element:
        sample = replace(row, step=thread.label[1])
    if sample is not None:
        _counted(thread, sample)
        yield from _held(thread, sample)
    while thread.open and thread.open[-1].transaction.last == place.number:
        yield from _closed(thread)


def _without_request(row: LoggedRequest, place: Place) -> Made | None:
    """The sample of a note; None for the begin or the end of a transaction."""
    note = row.note or ""
    if note.startswith(FAULT):
        label, url, *parameters = note[1:].split(BETWEEN)
        url = url.replace(" ", "%20") + "".join(parameters)
        return Made(
            label, row, start_ms(row), element=place.element, url=url, success=False, code=NOT_SENT,
            message=f"Non HTTP response message: {fault(url)}",
        )  # fmt: skip
    return Made(note[1:], row, start_ms(row), element=place.element) if note.startswith(SAMPLE) else None


def _counted(thread: _Thread, sample: Sample, samples: int = 1) -> None:
    """Adds a sample to its transactions, up to the parent that takes it in."""
    for walk in reversed(thread.open):
        walk.add(sample, samples)
        if walk.transaction.style.parent:
            return


def _closed(thread: _Thread) -> Iterator[Sample]:
    """Ends the innermost transaction."""
    walk = thread.open.pop()
    if walk.last is None:
        return
    row = walk.row()
    if walk.transaction.style.parent:  # JMeter visits it once for each of its samples, and at its end
        outer = thread.open[-1].transaction.style if thread.open else Style()
        _counted(thread, row, 1 if outer.parent else walk.samples + 1)
    if thread.open:
        thread.open[-1].ended_inside += 1
    if walk.within_parent and not walk.transaction.style.parent:
        yield row
        return
    for sample in (row, *walk.held):
        yield from _held(thread, sample)


def _held(thread: _Thread, sample: Sample) -> Iterator[Sample]:
    """Rows within a parent sample come after its own."""
    if thread.parent is None:
        yield sample
    else:
        thread.parent.held.append(sample)


def connect_ms(row: LoggedRequest) -> int:
    """Connect time in ms, in the row of the connection's first request."""
    return ((row.connect_ns or 0) + (row.tls_ns or 0)) // NS_PER_MS


def elapsed_ms(row: LoggedRequest) -> int:
    """Time in ms, with connect time as in JMeter."""
    return (row.service_ns + (row.connect_ns or 0) + (row.tls_ns or 0)) // NS_PER_MS


def latency_ms(row: LoggedRequest) -> int:
    """Time to first byte in ms; 0 without a response."""
    if row.status is None:
        return 0
    first_ns = row.service_ns if row.first_byte_ns is None else row.first_byte_ns
    return (first_ns + (row.connect_ns or 0) + (row.tls_ns or 0)) // NS_PER_MS


def start_ms(row: LoggedRequest) -> int:
    """Unix time in ms, before connecting."""
    return row.start_unix_ms - connect_ms(row)


def ended_ms(row: LoggedRequest) -> int:
    """Unix time."""
    return start_ms(row) + elapsed_ms(row)
