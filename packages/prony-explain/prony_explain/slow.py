"""Events during the slowest requests: for each kind, the share of these requests that overlap an event,
against the share expected by chance. Pure.

Chance is exact: an interval of a request's length, placed uniformly in the watched span, overlaps an event
from a known share of its starts. Longer requests meet more events by chance, so each has its own length.

A pause slows down many requests at once, which are one observation. Requests that overlap, or follow within
the time of one, form an episode, treated as fully correlated: the effective number of requests is (sum of the
sizes)^2 / sum of their squares (Kish, Survey Sampling, 1965, section 8.2). Intervals are Clopper and
Pearson's with that number (Korn and Graubard, Survey Methodology 24, 1998), simultaneous over all kinds
(Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from scipy import special as untyped_special

from prony.evidence.engine import EngineReport
from prony.evidence.profile import EventKind, Profile, Stalls, TimelineEvent
from prony.numbers import milliseconds
from prony_explain.sampling import MOST_EVENTS

special: Any = untyped_special

SHARE = 0.001
"""Slowest share of the window's requests."""
MOST = 5_000
"""Upper limit of their number."""
LEAST = 10
"""Minimum number of requests for a conclusion."""
CONFIDENCE = 0.95
MOST_LOCKS = 3
"""Named locks: those of most slow requests."""

NAMES: Mapping[EventKind, str] = {
    "collection": "pause for garbage collection", "safepoint": "other safepoint",
    "compilation": "compilation begun (C2)", "run-queue": "thread waits for a CPU",
    "throttled": "throttled by the CPU quota", "disk": "read from disk", "lock": "thread waits for a lock",
}  # fmt: skip
OF_THE_RUNTIME: Mapping[EventKind, str] = {
    "collection": "collections",
    "safepoint": "safepoints",
    "compilation": "compilations",
}
"""Kinds reported by the runtime itself, in the plural."""
DURING: Mapping[EventKind, str] = {
    "collection": "during a pause for garbage collection",
    "safepoint": "during a safepoint other than a collection",
    "compilation": "while the C2 compiler began a method",
    "run-queue": "while a thread of the server waited for a CPU",
    "throttled": "while its CPU quota held the server back",
    "disk": "while the server read from disk",
    "lock": "while a thread of the server waited for a lock",
}


@dataclass(frozen=True, slots=True)
class Watched:
    """Events of one kind, and the span in which none was missed; s from the start of the window."""

    kind: EventKind
    from_s: float
    to_s: float
    events: tuple[TimelineEvent, ...]


@dataclass(frozen=True, slots=True)
class Lock:
    """Waits for locks of one class in one function, during slow requests."""

    name: str
    """Class and function."""
    share: float
    """Share of the slow requests that overlap such a wait."""
    waits: int
    longest_ms: float


@dataclass(frozen=True, slots=True)
class Beside:
    """Overlap of slow requests with events of a kind. `low`, `high`: 95 %, simultaneous over all kinds."""

    kind: EventKind
    share: float
    """Share of the slow requests that overlap an event."""
    low: float
    high: float
    chance: float
    """The share expected if requests ran at any time of the window."""
    events: int
    time_share: float
    """Share of the watched time covered by events."""
    requests: int = 0
    """Slow requests wholly within the watched time."""
    watched_s: float = 0.0
    locks: tuple[Lock, ...] = ()
    """Most frequent locks, at most `MOST_LOCKS`."""

    @property
    def shown(self) -> bool:
        """Whether the share is above chance."""
        return self.low > self.chance


@dataclass(frozen=True, slots=True)
class SlowRequests:
    """The slowest requests of an explained trial's window."""

    requests: int
    of: int
    """Number of all requests of the window."""
    over_ms: float
    """Service time of the fastest slow request."""
    episodes: int
    beside: tuple[Beside, ...]
    """In the order of `NAMES`; only kinds that were read."""
    unread: tuple[str, ...]
    """Kinds that could not be compared, and why."""
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Requests:
    """The slowest known requests of a window, slowest first: start and duration."""

    starts_s: tuple[float, ...]
    """From the start of the window."""
    lengths_s: tuple[float, ...]
    of: int

    def slowest(self, share: float, most: int = MOST) -> Requests:
        """The slowest `share` of all requests, as far as known."""
        count = min(math.ceil(self.of * share), most)
        return Requests(self.starts_s[:count], self.lengths_s[:count], self.of)


def requests_of(engine: EngineReport | None, profile: Profile | None) -> Requests | None:
    """The slowest requests on the profile's clock; None if engine or profile lacks them."""
    if engine is None or engine.window is None or engine.window.slowest is None:
        return None
    histogram = engine.window.service_time
    if profile is None or profile.begun_monotonic_s is None or histogram is None:
        return None
    started_s = engine.ready.started_monotonic_ns / 1e9 - profile.begun_monotonic_s
    return Requests(
        tuple(started_s + start_ns / 1e9 for start_ns, _ in engine.window.slowest),
        tuple(length_ns / 1e9 for _, length_ns in engine.window.slowest),
        histogram.count,
    )


def slow_requests(known: Requests, profile: Profile) -> SlowRequests:
    """Compares the slowest requests with every kind of event that was read."""
    slow = known.slowest(SHARE)
    over_s = min(slow.lengths_s, default=0.0)
    watched, unread = kinds(profile, over_s)
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(watched))
    enough = len(slow.lengths_s) >= LEAST
    results = [beside(slow, kind, confidence) for kind in watched] if enough else []
    summary = SlowRequests(
        len(slow.lengths_s),
        slow.of,
        over_s * 1000,
        len(episodes(slow.starts_s, slow.lengths_s)),
        tuple(result for result in results if result is not None),
        (*unread, *_too_few(watched, results)),
        (),
    )
    return replace(summary, sentences=sentences(summary))


def kinds(profile: Profile, over_s: float) -> tuple[list[Watched], tuple[str, ...]]:
    """Kinds of events that were read, for requests of at least `over_s`, and a sentence per unread kind."""
    watched, unread = list[Watched](), list[str]()
    if profile.timeline_from_s is not None:
        watched, unread = _of_the_runtime(profile, profile.timeline_from_s)
    elif profile.runtime != "native":
        unread.append("collections and compilations: this runtime does not report them")
    stalls = profile.stalls
    rows = None if stalls is None or not stalls.ends_s else stalls
    least_ms = _least_ms(rows, over_s) if rows is not None else 0.0
    run_queue = _held(rows, rows.run_queue_ms if rows else None, "run-queue", least_ms)
    throttled = _held(rows, rows.throttled_ms if rows else None, "throttled", 0.0)
    disk = _held(rows, rows.disk_kib if rows else None, "disk", 0.0)
    watched += [kind for kind in (run_queue, throttled, disk) if kind is not None]
    if run_queue is None:
        unread.append("waits for a CPU: the kernel's schedstat is not readable")
    if throttled is None:
        unread.append("throttling: cpu.stat of the server's control group is not readable")
    if disk is None:
        unread.append("disk reads: /proc/PID/io is not readable; run Prony as the server's user or as root")
    locks = _lock_waits(profile, over_s)
    if isinstance(locks, str):
        unread.append(f"waits for a lock: {locks}")
    else:
        watched.append(locks)
    return watched, tuple(unread)


def _lock_waits(profile: Profile, over_s: float) -> Watched | str:
    """Waits of at least half such a request's time; or why they are unknown."""
    waits = profile.lock_waits
    if waits is None:
        outside = profile.runtime != "jvm"
        return "outside a JVM their times are unknown" if outside else "their times were not recorded"
    long = [wait for wait in waits.longest if wait.duration_s >= over_s / 2]
    if len(long) == len(waits.longest) < waits.count:
        return f"more than {len(long):,} waits were that long, and not all are kept"
    events = (
        TimelineEvent(
            kind="lock",
            start_s=wait.start_s,
            duration_s=wait.duration_s,
            text=f"{wait.lock} in {wait.where}" if wait.where else wait.lock,
        )
        for wait in long
    )
    return Watched("lock", waits.from_s, waits.to_s, tuple(events))


def _too_few(watched: Sequence[Watched], compared: Sequence[Beside | None]) -> Iterator[str]:
    """Kinds watched for a part of the window with too few slow requests."""
    for kind in (kind for kind, held in zip(watched, compared, strict=False) if held is None):
        yield (
            f"{NAMES[kind.kind]}: fewer than {LEAST} of the slowest requests ran within the "
            f"{kind.to_s - kind.from_s:.1f} s in which it was watched; measure for longer"
        )


def _of_the_runtime(profile: Profile, from_s: float) -> tuple[list[Watched], list[str]]:
    """Collections, safepoints other than their pauses, and compilations, until the profiler's last slice,
    where the log ends. A kind of which not all events are kept is a sentence instead.
    """
    by_kind: dict[EventKind, list[TimelineEvent]] = {
        kind: [event for event in profile.timeline if event.kind == kind] for kind in OF_THE_RUNTIME
    }
    unread: dict[EventKind, str] = {
        kind: f"{OF_THE_RUNTIME[kind]}: {MOST_EVENTS:,} or more, and not all are kept"
        for kind, events in by_kind.items()
        if len(events) >= MOST_EVENTS
    }
    if "collection" in unread:
        unread.setdefault("safepoint", "safepoints: collections, which have safepoints too, are incomplete")
    by_kind["safepoint"] = [
        event for event in by_kind["safepoint"] if not _meets(event, by_kind["collection"])
    ]
    to_s = profile.timeline_to_s
    kept = ((kind, events) for kind, events in by_kind.items() if kind not in unread)
    return [Watched(kind, from_s, to_s, tuple(events)) for kind, events in kept], list(unread.values())


def _meets(event: TimelineEvent, others: Sequence[TimelineEvent]) -> bool:
    end_s = event.start_s + event.duration_s
    return any(o.start_s <= end_s and o.start_s + o.duration_s >= event.start_s for o in others)


def _least_ms(stalls: Stalls, over_s: float) -> float:
    """Minimum wait of a thread in a row to matter: half the request's time, or half a row if less."""
    row_s = median(np.diff([stalls.begins_s, *stalls.ends_s]).tolist())
    return float(1000 * min(over_s, row_s) / 2)


def _held(
    stalls: Stalls | None, values: Sequence[float] | None, kind: EventKind, least: float
) -> Watched | None:
    """Rows with a value above zero and of at least `least`. A wait longer than its row began before it."""
    if stalls is None or values is None:
        return None
    events = []
    begins_s = (stalls.begins_s, *stalls.ends_s[:-1])
    for begin_s, end_s, value in zip(begins_s, stalls.ends_s, values, strict=True):
        if value > 0 and value >= least:
            # Throttling is summed over CPUs, so its duration within a row is unknown.
            waited_s = value / 1000 if kind == "run-queue" else 0.0
            start_s = max(stalls.begins_s, min(begin_s, end_s - waited_s))
            events.append(TimelineEvent(kind=kind, start_s=start_s, duration_s=end_s - start_s))
    return Watched(kind, stalls.begins_s, stalls.ends_s[-1], tuple(events))


def beside(slow: Requests, watched: Watched, confidence: float) -> Beside | None:
    """For requests wholly within the watched span; None with fewer than LEAST."""
    starts, lengths = np.asarray(slow.starts_s), np.asarray(slow.lengths_s)
    inside = (starts >= watched.from_s) & (starts + lengths <= watched.to_s)
    starts, lengths = starts[inside], lengths[inside]
    if len(starts) < LEAST:
        return None
    begins, ends = merged(watched.events, watched.from_s, watched.to_s)
    share = float(_met(starts, lengths, begins, ends).mean())
    low, high = interval(share, effective(episodes(starts.tolist(), lengths.tolist())), confidence)
    span_s = watched.to_s - watched.from_s
    return Beside(
        watched.kind,
        share,
        low,
        high,
        chance(lengths, begins, ends, watched.from_s, watched.to_s),
        len(watched.events),
        float((ends - begins).sum()) / span_s,
        len(starts),
        span_s,
        _locks(starts, lengths, watched) if watched.kind == "lock" else (),
    )


Times = np.ndarray[Any, np.dtype[np.float64]]


def _locks(starts: Times, lengths: Times, watched: Watched) -> tuple[Lock, ...]:
    """The locks of most of the requests."""
    of: dict[str, list[TimelineEvent]] = {}
    for event in watched.events:
        of.setdefault(event.text, []).append(event)
    locks = [
        Lock(
            name,
            float(_met(starts, lengths, *merged(events, watched.from_s, watched.to_s)).mean()),
            len(events),
            1000 * max(event.duration_s for event in events),
        )
        for name, events in of.items()
    ]
    met = sorted((lock for lock in locks if lock.share > 0), key=lambda lock: (-lock.share, lock.name))
    return tuple(met[:MOST_LOCKS])


def merged(events: Sequence[TimelineEvent], from_s: float, to_s: float) -> tuple[Times, Times]:
    """Starts and ends of the merged spans of events, in order."""
    spans: list[list[float]] = []
    for event in sorted(events, key=lambda event: event.start_s):
        begin_s, end_s = max(event.start_s, from_s), min(event.start_s + event.duration_s, to_s)
        if end_s < begin_s:
            continue
        if spans and begin_s <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end_s)
        else:
            spans.append([begin_s, end_s])
    edges = np.asarray(spans, dtype=np.float64).reshape(-1, 2)
    return edges[:, 0], edges[:, 1]


def _met(starts: Times, lengths: Times, begins: Times, ends: Times) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each request overlaps an event: the last event begun before its end ended after its start."""
    if not len(begins):
        return np.zeros(len(starts), dtype=np.bool_)
    last = np.searchsorted(begins, starts + lengths, side="right") - 1
    return np.asarray((last >= 0) & (ends[np.maximum(last, 0)] >= starts), dtype=np.bool_)


def chance(lengths: Times, begins: Times, ends: Times, from_s: float, to_s: float) -> float:
    """Mean over the requests of the share of starts in the span from which each overlaps an event."""
    if not len(begins):
        return 0.0
    before = np.concatenate(([-np.inf], ends[:-1]))
    each, counts = np.unique(lengths, return_counts=True)
    total = 0.0
    for length, count in zip(each.tolist(), counts.tolist(), strict=True):
        room_s = to_s - from_s - length
        if room_s <= 0:
            total += count
            continue
        lowest = np.maximum(np.maximum(begins - length, before), from_s)
        highest = np.minimum(ends, to_s - length)
        total += count * float(np.maximum(0.0, highest - lowest).sum()) / room_s
    return min(1.0, total / len(lengths))


def episodes(starts_s: Sequence[float], lengths_s: Sequence[float]) -> list[int]:
    """Sizes of the episodes: requests that overlap, or follow within the time of the shortest request."""
    if not starts_s:
        return []
    near_s = min(lengths_s)
    sizes: list[int] = []
    until_s = -math.inf
    for start_s, length_s in sorted(zip(starts_s, lengths_s, strict=True)):
        if start_s <= until_s + near_s:
            sizes[-1] += 1
        else:
            sizes.append(1)
        until_s = max(until_s, start_s + length_s)
    return sizes


def effective(sizes: Sequence[int]) -> float:
    """Effective number of independent requests."""
    return sum(sizes) ** 2 / sum(size**2 for size in sizes)


def interval(share: float, number: float, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share; `number` of independent requests may be a fraction."""
    tail = (1 - confidence) / 2
    hits = share * number
    low = 0.0 if hits <= 0 else float(special.betaincinv(hits, number - hits + 1, tail))
    high = 1.0 if hits >= number else float(special.betaincinv(hits + 1, number - hits, 1 - tail))
    return low, high


def sentences(slow: SlowRequests) -> tuple[str, ...]:
    """The conclusions that the intervals allow."""
    part = f"{100 * slow.requests / max(1, slow.of):.2g} %"
    who = f"the slowest {part} ({slow.requests:,} requests, {milliseconds(slow.over_ms)} and more)"
    if slow.requests < LEAST:
        return (
            f"the slowest 0.1 % are {slow.requests} of {slow.of:,} requests, too few for a conclusion; "
            "measure for longer",
        )
    if not slow.beside:
        return (f"{who}: too few ran while events were watched for a conclusion",)
    shown = sorted((kind for kind in slow.beside if kind.shown), key=lambda kind: -kind.share)
    if not shown:
        return (f"{who}: no event was more frequent than by chance",)
    return tuple(_sentence(kind, who) for kind in shown)


def _sentence(event: Beside, who: str) -> str:
    """For locks also the number of requests, as locks are watched in the last slice only."""
    of = f"{event.requests:,} of {who}" if event.kind == "lock" else who
    share, low, high, chance = map(whole_percent, (event.share, event.low, event.high, event.chance))
    ran = f"{share} % [{low}, {high}] of {of} ran {DURING[event.kind]}, by chance {chance} %"
    if event.kind != "lock":
        return ran
    named = ", ".join(
        f"{lock.name} ({whole_percent(lock.share)} %, up to {milliseconds(lock.longest_ms)})"
        for lock in event.locks
    )
    return f"{ran}: {named}; locks were watched in the last {event.watched_s:.1f} s of the window only"


def whole_percent(share: float) -> str:
    """Whole per cent; below 1 % with a decimal."""
    value = share * 100
    return f"{value:.0f}" if value >= 1 or value == 0 else f"{max(0.1, value):.1f}"
