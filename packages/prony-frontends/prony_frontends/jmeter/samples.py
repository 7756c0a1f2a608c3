"""Rows of JMeter's log: one per request, and rows of transactions and of samplers that send nothing, derived
from the requests around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from prony_frontends.jmeter.outline import Outline, Silent, Transaction
from prony_frontends.request_log import COLUMNS, LoggedRequest

NS_PER_MS = 1_000_000
NOT_SENT = "Non HTTP response code: java.net.URISyntaxException"
FOLLOWED = (301, 302, 303, 307, 308)


@dataclass(slots=True)
class Made:
    """A row without a request."""

    label: str
    of: LoggedRequest
    """A request of the same thread that had just ended."""
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
    """Rows to write after its own."""

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
            element=self.transaction.element,
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
    """State of a user."""

    open: list[_Walk] = field(default_factory=list)
    """The outermost first."""
    before: LoggedRequest | None = None


def samples(rows: Iterable[LoggedRequest], outlines: Mapping[str, Outline]) -> Iterator[Sample]:
    """Samples in order of completion per thread. A transaction cut off by the end of the run has no row."""
    threads: dict[int, _Thread] = {}
    for row in _chains(rows, outlines):
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


def _chains(rows: Iterable[LoggedRequest], outlines: Mapping[str, Outline]) -> Iterator[LoggedRequest]:
    """A row per chain, at its end: a final response, or the next row of the thread."""
    pages = {name: frozenset(outline.embedded.values()) for name, outline in outlines.items()}
    if not any(pages.values()) and not any(outline.follows for outline in outlines.values()):
        yield from rows
        return
    held: dict[int, _Links] = {}
    for row in rows:
        outline = outlines.get(row.scenario)
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
    for _, silent in outline.before.get(number, ()):
        yield from _silent(thread, silent, row, begin_ms)
    for walk in thread.open:
        walk.add(row)
    yield from _held(thread, row)
    for depth, silent in sorted(outline.after.get(number, ()), key=lambda at: -at[0]):
        while len(thread.open) > depth:
            yield from _closed(thread)
        yield from _silent(thread, silent, row, ended_ms(row))
    while thread.open and thread.open[-1].transaction.last == number:
        yield from _closed(thread)


def _silent(thread: _Thread, silent: Silent, row: LoggedRequest, at_ms: int) -> Iterator[Sample]:
    row_without_request = Made(silent.name, row, at_ms, element=silent.element)
    if silent.fault:
        row_without_request.success, row_without_request.code, row_without_request.message = (
            False,
            NOT_SENT,
            f"Non HTTP response message: {silent.fault}",
        )
    for walk in thread.open:
        walk.samples += 1
        walk.failing += not row_without_request.success
    yield from _held(thread, row_without_request)


def _closed(thread: _Thread) -> Iterator[Sample]:
    """Ends the innermost transaction."""
    walk = thread.open.pop()
    for sample in (walk.row(), *walk.held):
        yield from _held(thread, sample)


def _held(thread: _Thread, sample: Sample) -> Iterator[Sample]:
    """Rows within a parent sample come after its own."""
    parent = next((walk for walk in reversed(thread.open) if walk.transaction.style.parent), None)
    if parent is None:
        yield sample
    else:
        parent.held.append(sample)


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
