"""Rows of JMeter's log: one per request, transaction, and sampler that sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from prony_frontends.jmeter.chains import (
    Chain,
    chains,
    connect_ms,
    elapsed_ms,
    ended_ms,
    latency_ms,
    start_ms,
)
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
from prony_frontends.request_log import LoggedRequest

NOT_SENT = "Non HTTP response code: java.net.URISyntaxException"


@dataclass(slots=True)
class DerivedSample:
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
    failed: LoggedRequest | DerivedSample | None = None
    """The first failed sample, whose code it has."""


def within(sample: LoggedRequest | DerivedSample, name: str) -> Iterator[LoggedRequest]:
    """Sub-samples with JMeter's names. `name`: the sampler's."""
    parts = sample.parts if isinstance(sample, Chain) else ()
    return (replace(part, step=f"{name}-{place}") for place, part in enumerate(parts))


Sample = LoggedRequest | DerivedSample


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
        failed = not sample.success if isinstance(sample, DerivedSample) else sample.error is not None
        self.failing += failed
        if failed and self.first_failed is None:
            self.first_failed = sample
        self.elapsed_ms += sample.elapsed_ms if isinstance(sample, DerivedSample) else elapsed_ms(sample)
        self.bytes_in += sample.bytes_in
        self.bytes_out += sample.bytes_out
        self.connect_ms += sample.connect_ms if isinstance(sample, DerivedSample) else connect_ms(sample)
        self.latency_ms += sample.latency_ms if isinstance(sample, DerivedSample) else latency_ms(sample)
        self.last = sample.of if isinstance(sample, DerivedSample) else sample

    def row(self) -> DerivedSample:
        assert self.last is not None
        style = self.transaction.style
        whole_ms = max(ended_ms(self.last) - self.start_ms, self.elapsed_ms)
        row = DerivedSample(
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
    for row in chains(rows, outlines):
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


def _event(thread: _Thread, row: LoggedRequest, place: Place) -> Iterator[Sample]:
    kept = 0
    for walk, transaction in zip(thread.open, place.within, strict=False):
        same = walk.transaction is transaction
        if not same or transaction.restarts(thread.place, place.number):
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


def _without_request(row: LoggedRequest, place: Place) -> DerivedSample | None:
    """The sample of a note; None for the begin or the end of a transaction."""
    note = row.note or ""
    if note.startswith(FAULT):
        label, url, *parameters = note[1:].split(BETWEEN)
        url = url.replace(" ", "%20") + "".join(parameters)
        return DerivedSample(
            label, row, start_ms(row), element=place.element, url=url, success=False, code=NOT_SENT,
            message=f"Non HTTP response message: {fault(url)}",
        )  # fmt: skip
    return (
        DerivedSample(note[1:], row, start_ms(row), element=place.element)
        if note.startswith(SAMPLE)
        else None
    )


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
