"""Requests as samples: redirects and embedded resources joined to one, and the times of a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from prony_frontends.jmeter.outline import Outline
from prony_frontends.request_log import COLUMNS, LoggedRequest

NS_PER_MS = 1_000_000
FOLLOWED = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Chain(LoggedRequest):
    """A request, its redirects and embedded resources as one sample: total time, last status and URL."""

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

    asserted_as_whole: bool = False
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
        self.embedded.append(_Links(self.asserted_as_whole))
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
        if self.asserted_as_whole and _asserted(last):
            parts = (*hops, replace(last, error=None), *embedded)
        return Chain(**own, last=last, embedded=embedded, parts=parts)


def chains(rows: Iterable[LoggedRequest], outlines: Mapping[str, Outline]) -> Iterator[LoggedRequest]:
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
            links = held[row.user] = _Links(
                outline is not None and row.step_index in outline.asserted_as_whole
            )
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
