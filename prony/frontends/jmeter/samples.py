"""The rows of JMeter's log: one for each request, and those of transactions and of samplers that send
nothing, where the requests around them say that they were walked.

Must not know how a row is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prony.frontends.jmeter.outline import Outline, Transaction
from prony.load.request_log import LoggedRequest

NS_PER_MS = 1_000_000


@dataclass(slots=True)
class Made:
    """A row that is no request."""

    label: str
    of: LoggedRequest
    """A request of the same thread, at whose end it was there."""
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


Sample = LoggedRequest | Made


@dataclass(slots=True)
class _Walk:
    """A transaction that a thread is in."""

    transaction: Transaction
    start_ms: int
    samples: int = 0
    failing: int = 0
    elapsed_ms: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    latency_ms: int = 0
    connect_ms: int = 0
    last: LoggedRequest | None = None
    held: list[Sample] = field(default_factory=list)
    """Rows that come after its own."""

    def add(self, row: LoggedRequest) -> None:
        self.samples += 1
        self.failing += row.error is not None
        self.elapsed_ms += elapsed_ms(row)
        self.bytes_in += row.bytes_in
        self.bytes_out += row.bytes_out
        self.connect_ms += connect_ms(row)
        self.latency_ms += latency_ms(row)
        self.last = row

    def row(self) -> Made:
        assert self.last is not None
        style = self.transaction.style
        whole_ms = max(ended_ms(self.last) - self.start_ms, self.elapsed_ms)
        return Made(
            label=self.transaction.name,
            of=self.last,
            start_ms=self.start_ms,
            elapsed_ms=whole_ms if style.timers else self.elapsed_ms,
            idle_ms=0 if style.timers else whole_ms - self.elapsed_ms,
            message=f"Number of samples in transaction : {self.samples}, "
            f"number of failing samples : {self.failing}",
            kind="",
            success=not self.failing,
            code="" if self.failing and not style.parent else "200",
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            latency_ms=0 if style.parent else self.latency_ms,
            connect_ms=0 if style.parent else self.connect_ms,
        )


@dataclass(slots=True)
class _Thread:
    """A user on its way."""

    open: list[_Walk] = field(default_factory=list)
    """The outermost first."""
    before: LoggedRequest | None = None


def samples(rows: Iterable[LoggedRequest], outlines: Mapping[str, Outline]) -> Iterator[Sample]:
    """In the order in which they end, for each thread. A transaction that the end of the run has cut off has
    no row.
    """
    threads: dict[int, _Thread] = {}
    for row in rows:
        outline = outlines.get(row.scenario)
        if outline is None or row.step_index >= len(outline.within):
            yield row
            continue
        thread = threads.setdefault(row.user, _Thread())
        yield from _request(thread, row, outline)
        thread.before = row
    for thread in threads.values():
        while thread.open:
            walk = thread.open[-1]
            ended = walk.transaction.last is None or (
                thread.before is not None and thread.before.step_index == walk.transaction.last
            )
            if ended:
                yield from _closed(thread)
            else:
                thread.open.pop()


def _request(thread: _Thread, row: LoggedRequest, outline: Outline) -> Iterator[Sample]:
    within, number = outline.within[row.step_index], row.step_index
    kept = 0
    for walk, transaction in zip(thread.open, within, strict=False):
        assert thread.before is not None
        same = walk.transaction is transaction
        if not same or transaction.begins_anew(thread.before.step_index, number):
            break
        kept += 1
    while len(thread.open) > kept:
        yield from _closed(thread)
    begin_ms = start_ms(row) if thread.before is None else ended_ms(thread.before)
    thread.open += [_Walk(transaction, begin_ms) for transaction in within[kept:]]
    for _, name in outline.before.get(number, ()):
        yield from _silent(thread, name, row, begin_ms)
    for walk in thread.open:
        walk.add(row)
    yield from _held(thread, row)
    for depth, name in sorted(outline.after.get(number, ()), key=lambda at: -at[0]):
        while len(thread.open) > depth:
            yield from _closed(thread)
        yield from _silent(thread, name, row, ended_ms(row))
    while thread.open and thread.open[-1].transaction.last == number:
        yield from _closed(thread)


def _silent(thread: _Thread, name: str, row: LoggedRequest, at_ms: int) -> Iterator[Sample]:
    for walk in thread.open:
        walk.samples += 1
    yield from _held(thread, Made(name, row, at_ms))


def _closed(thread: _Thread) -> Iterator[Sample]:
    """The innermost transaction has ended."""
    walk = thread.open.pop()
    for sample in (walk.row(), *walk.held):
        yield from _held(thread, sample)


def _held(thread: _Thread, sample: Sample) -> Iterator[Sample]:
    """Rows within a parent come after its own."""
    parent = next((walk for walk in reversed(thread.open) if walk.transaction.style.parent), None)
    if parent is None:
        yield sample
    else:
        parent.held.append(sample)


def connect_ms(row: LoggedRequest) -> int:
    """Of the connection, in the row of its first request."""
    return ((row.connect_ns or 0) + (row.tls_ns or 0)) // NS_PER_MS


def elapsed_ms(row: LoggedRequest) -> int:
    """Connecting belongs to a sample of JMeter."""
    return (row.service_ns + (row.connect_ns or 0) + (row.tls_ns or 0)) // NS_PER_MS


def latency_ms(row: LoggedRequest) -> int:
    """To the first byte of the response; 0 without one."""
    if row.status is None:
        return 0
    first_ns = row.service_ns if row.first_byte_ns is None else row.first_byte_ns
    return (first_ns + (row.connect_ns or 0) + (row.tls_ns or 0)) // NS_PER_MS


def start_ms(row: LoggedRequest) -> int:
    """Unix time; connecting lies at its start."""
    return row.start_unix_ms - connect_ms(row)


def ended_ms(row: LoggedRequest) -> int:
    """Unix time."""
    return start_ms(row) + elapsed_ms(row)
