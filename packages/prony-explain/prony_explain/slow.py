"""What the server did while its slowest requests ran: for each kind of event the share of these requests that
ran beside one, against the share that would by chance. Pure functions.

Chance is computed, not drawn: an interval as long as the request is placed anywhere in the watched span, all
starts alike; the share of the starts from which it meets an event is exact. A long request meets more events
than a short one also by chance, so each has its own length.

A pause makes many requests slow at once, and those are one observation. Requests that overlap, or follow each
other within the time of one, are an episode, taken as wholly alike: the effective number of requests is
(sum of the sizes)^2 / sum of their squares (Kish, Survey Sampling, 1965, section 8.2, with a correlation of
one). Intervals are Clopper and Pearson's with that number (Korn and Graubard, Survey Methodology 24, 1998),
at a confidence at which those of all kinds hold together (Bonferroni).
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
from prony.evidence.profile import MOST_EVENTS, EventKind, Profile, Stalls, TimelineEvent
from prony.numbers import milliseconds

special: Any = untyped_special

SHARE = 0.001
"""Of the window's requests: the slowest of them."""
MOST = 5_000
"""Of the slowest that are looked at, where the share is more."""
LEAST = 10
"""With fewer requests nothing is said."""
CONFIDENCE = 0.95
MOST_LOCKS = 3
"""That are named: those beside which most of the slow requests ran."""

NAMES: Mapping[EventKind, str] = {
    "collection": "pause for garbage collection",
    "safepoint": "other safepoint",
    "compilation": "compilation begun (C2)",
    "run-queue": "thread waits for a CPU",
    "throttled": "throttled by the CPU quota",
    "disk": "read from disk",
    "lock": "thread waits for a lock",
}
OF_THE_RUNTIME: Mapping[EventKind, str] = {
    "collection": "collections",
    "safepoint": "safepoints",
    "compilation": "compilations",
}
"""What the runtime says of itself, in the plural."""
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
    """The events of one kind, and the span in which none of them was missed; s from the window's start."""

    kind: EventKind
    from_s: float
    to_s: float
    events: tuple[TimelineEvent, ...]


@dataclass(frozen=True, slots=True)
class Lock:
    """Waits for locks of one class in one function, beside which slow requests ran."""

    name: str
    """Class and function."""
    share: float
    """Of the slow requests that ran beside such a wait."""
    waits: int
    longest_ms: float


@dataclass(frozen=True, slots=True)
class Beside:
    """Slow requests and one kind of event. `low` and `high`: 95 % over all kinds."""

    kind: EventKind
    share: float
    """Of the slow requests that ran beside such an event."""
    low: float
    high: float
    chance: float
    """That share if the requests had run at any other time of the window."""
    events: int
    time_share: float
    """Of the watched time in which such an event went on."""
    requests: int = 0
    """Of the slow ones: those that ran wholly within the watched time."""
    watched_s: float = 0.0
    locks: tuple[Lock, ...] = ()
    """Of waits for locks: which, the most frequent first; at most `MOST_LOCKS`."""

    @property
    def shown(self) -> bool:
        """Whether more of them ran beside one than by chance."""
        return self.low > self.chance


@dataclass(frozen=True, slots=True)
class SlowRequests:
    """The slowest requests of the window of one explained trial."""

    requests: int
    of: int
    """All requests of the window."""
    over_ms: float
    """Service time of the fastest of them."""
    episodes: int
    beside: tuple[Beside, ...]
    """In the order of `NAMES`; kinds that were read."""
    unread: tuple[str, ...]
    """What could not be held against them, and why."""
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Requests:
    """The slowest requests that are known of a window, slowest first: when each began, how long it took."""

    starts_s: tuple[float, ...]
    """From the window's start."""
    lengths_s: tuple[float, ...]
    of: int

    def slowest(self, share: float, most: int = MOST) -> Requests:
        """Of all requests of the window this share, as far as they are known."""
        count = min(math.ceil(self.of * share), most)
        return Requests(self.starts_s[:count], self.lengths_s[:count], self.of)


def requests_of(engine: EngineReport | None, profile: Profile | None) -> Requests | None:
    """The slowest requests on the profile's clock; None where engine or profile does not tell them."""
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
    """The slowest of the window against everything that was read beside them."""
    slow = known.slowest(SHARE)
    over_s = min(slow.lengths_s, default=0.0)
    watched, unread = kinds(profile, over_s)
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(watched))
    enough = len(slow.lengths_s) >= LEAST
    found = [beside(slow, one, confidence) for one in watched] if enough else []
    made = SlowRequests(
        len(slow.lengths_s),
        slow.of,
        over_s * 1000,
        len(episodes(slow.starts_s, slow.lengths_s)),
        tuple(one for one in found if one is not None),
        (*unread, *_too_few(watched, found)),
        (),
    )
    return replace(made, sentences=sentences(made))


def kinds(profile: Profile, over_s: float) -> tuple[list[Watched], tuple[str, ...]]:
    """The kinds of events that were read beside requests of at least so many seconds, and a sentence on each
    that was not.
    """
    found, unread = list[Watched](), list[str]()
    if profile.timeline_from_s is not None:
        found, unread = _of_the_runtime(profile, profile.timeline_from_s)
    elif profile.runtime != "native":
        unread.append("collections and compilations: this runtime does not say when they were")
    stalls = profile.stalls
    rows = None if stalls is None or not stalls.ends_s else stalls
    least_ms = _least_ms(rows, over_s) if rows is not None else 0.0
    run_queue = _held(rows, rows.run_queue_ms if rows else None, "run-queue", least_ms)
    throttled = _held(rows, rows.throttled_ms if rows else None, "throttled", 0.0)
    disk = _held(rows, rows.disk_kib if rows else None, "disk", 0.0)
    found += [one for one in (run_queue, throttled, disk) if one is not None]
    if run_queue is None:
        unread.append("waits for a CPU: the kernel's schedstat cannot be read")
    if throttled is None:
        unread.append("throttling: cpu.stat of the server's control group cannot be read")
    if disk is None:
        unread.append(
            "reads from disk: /proc/PID/io cannot be read; run Prony as the server's user or as root"
        )
    locks = _lock_waits(profile, over_s)
    if isinstance(locks, str):
        unread.append(f"waits for a lock: {locks}")
    else:
        found.append(locks)
    return found, tuple(unread)


def _lock_waits(profile: Profile, over_s: float) -> Watched | str:
    """Waits of a thread for half the time of such a request; or why they cannot be told."""
    waits = profile.lock_waits
    if waits is None:
        outside = profile.runtime != "jvm"
        return "outside a JVM nothing says when they were" if outside else "their times were not recorded"
    long = [one for one in waits.longest if one.duration_s >= over_s / 2]
    if len(long) == len(waits.longest) < waits.count:
        return f"there were more than {len(long):,} that long, of which not all are kept"
    events = (
        TimelineEvent(
            kind="lock",
            start_s=one.start_s,
            duration_s=one.duration_s,
            text=f"{one.lock} in {one.where}" if one.where else one.lock,
        )
        for one in long
    )
    return Watched("lock", waits.from_s, waits.to_s, tuple(events))


def _too_few(watched: Sequence[Watched], found: Sequence[Beside | None]) -> Iterator[str]:
    """Of what was read for a part of the window in which hardly any of the slow requests ran."""
    for one in (kind for kind, held in zip(watched, found, strict=False) if held is None):
        yield (
            f"{NAMES[one.kind]}: fewer than {LEAST} of the slowest requests ran within the "
            f"{one.to_s - one.from_s:.1f} s in which it was watched; measure for longer"
        )


def _of_the_runtime(profile: Profile, from_s: float) -> tuple[list[Watched], list[str]]:
    """Collections, safepoints without the pauses of collections, and compilations: until the profiler's last
    slice, with which it stops to ask for them. A kind of which not all are kept is a sentence instead.
    """
    every: dict[EventKind, list[TimelineEvent]] = {
        kind: [one for one in profile.timeline if one.kind == kind] for kind in OF_THE_RUNTIME
    }
    unread: dict[EventKind, str] = {
        kind: f"{OF_THE_RUNTIME[kind]}: there were {MOST_EVENTS:,} or more, of which not all are kept"
        for kind, events in every.items()
        if len(events) >= MOST_EVENTS
    }
    if "collection" in unread:
        unread.setdefault("safepoint", "safepoints: not all collections are known, which have safepoints too")
    every["safepoint"] = [one for one in every["safepoint"] if not _meets(one, every["collection"])]
    to_s = profile.timeline_to_s
    kept = ((kind, events) for kind, events in every.items() if kind not in unread)
    return [Watched(kind, from_s, to_s, tuple(events)) for kind, events in kept], list(unread.values())


def _meets(event: TimelineEvent, others: Sequence[TimelineEvent]) -> bool:
    end_s = event.start_s + event.duration_s
    return any(o.start_s <= end_s and o.start_s + o.duration_s >= event.start_s for o in others)


def _least_ms(stalls: Stalls, over_s: float) -> float:
    """How long one thread has to wait within a row, all its waits together, to matter to such a request: half
    of its time, or half a row where that is less.
    """
    row_s = median(np.diff([stalls.begins_s, *stalls.ends_s]).tolist())
    return float(1000 * min(over_s, row_s) / 2)


def _held(
    stalls: Stalls | None, values: Sequence[float] | None, kind: EventKind, least: float
) -> Watched | None:
    """The rows in which a value was at least so much and above zero. Where one thread waited for longer than
    the row, it began before it.
    """
    if stalls is None or values is None:
        return None
    events = []
    begins_s = (stalls.begins_s, *stalls.ends_s[:-1])
    for begin_s, end_s, value in zip(begins_s, stalls.ends_s, values, strict=True):
        if value > 0 and value >= least:
            # Throttling is summed over CPUs: of a row it says that there was some, not for how long.
            waited_s = value / 1000 if kind == "run-queue" else 0.0
            start_s = max(stalls.begins_s, min(begin_s, end_s - waited_s))
            events.append(TimelineEvent(kind=kind, start_s=start_s, duration_s=end_s - start_s))
    return Watched(kind, stalls.begins_s, stalls.ends_s[-1], tuple(events))


def beside(slow: Requests, watched: Watched, confidence: float) -> Beside | None:
    """The requests that ran wholly within the watched span; None where there are too few."""
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
    """Those beside which most of the requests ran."""
    of: dict[str, list[TimelineEvent]] = {}
    for event in watched.events:
        of.setdefault(event.text, []).append(event)
    found = [
        Lock(
            name,
            float(_met(starts, lengths, *merged(events, watched.from_s, watched.to_s)).mean()),
            len(events),
            1000 * max(event.duration_s for event in events),
        )
        for name, events in of.items()
    ]
    met = sorted((one for one in found if one.share > 0), key=lambda one: (-one.share, one.name))
    return tuple(met[:MOST_LOCKS])


def merged(events: Sequence[TimelineEvent], from_s: float, to_s: float) -> tuple[Times, Times]:
    """Begins and ends of the spans in which any of the events went on, in order and apart."""
    spans: list[list[float]] = []
    for one in sorted(events, key=lambda one: one.start_s):
        begin_s, end_s = max(one.start_s, from_s), min(one.start_s + one.duration_s, to_s)
        if end_s < begin_s:
            continue
        if spans and begin_s <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end_s)
        else:
            spans.append([begin_s, end_s])
    made = np.asarray(spans, dtype=np.float64).reshape(-1, 2)
    return made[:, 0], made[:, 1]


def _met(starts: Times, lengths: Times, begins: Times, ends: Times) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each request ran beside an event: the last that began before its end ended after its start."""
    if not len(begins):
        return np.zeros(len(starts), dtype=np.bool_)
    last = np.searchsorted(begins, starts + lengths, side="right") - 1
    return np.asarray((last >= 0) & (ends[np.maximum(last, 0)] >= starts), dtype=np.bool_)


def chance(lengths: Times, begins: Times, ends: Times, from_s: float, to_s: float) -> float:
    """The mean share of the places of each length in the span from which it meets an event."""
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
    """The sizes of the episodes: requests that overlap, or follow within the time of the shortest of all."""
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
    """How many independent requests are worth as much as these episodes."""
    return sum(sizes) ** 2 / sum(size**2 for size in sizes)


def interval(share: float, number: float, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's, of a share of so many independent requests, which may be a fraction."""
    tail = (1 - confidence) / 2
    hits = share * number
    low = 0.0 if hits <= 0 else float(special.betaincinv(hits, number - hits + 1, tail))
    high = 1.0 if hits >= number else float(special.betaincinv(hits + 1, number - hits, 1 - tail))
    return low, high


def sentences(found: SlowRequests) -> tuple[str, ...]:
    """What the intervals carry."""
    part = f"{100 * found.requests / max(1, found.of):.2g} %"
    who = f"the slowest {part} ({found.requests:,} requests, {milliseconds(found.over_ms)} and more)"
    if found.requests < LEAST:
        return (
            f"the slowest 0.1 % are {found.requests} of {found.of:,} requests: too few to say anything of "
            "them; measure for longer",
        )
    if not found.beside:
        return (f"{who}: nothing was read beside enough of them to say anything",)
    shown = sorted((one for one in found.beside if one.shown), key=lambda one: -one.share)
    if not shown:
        return (f"{who}: nothing that was read ran beside more of them than by chance",)
    return tuple(_sentence(one, who) for one in shown)


def _sentence(one: Beside, who: str) -> str:
    """Of locks also how few of the requests it is of, as they are watched for the last slice alone."""
    of = f"{one.requests:,} of {who}" if one.kind == "lock" else who
    ran = (
        f"{whole_percent(one.share)} % [{whole_percent(one.low)}, {whole_percent(one.high)}] of {of} ran "
        f"{DURING[one.kind]}, by chance {whole_percent(one.chance)} %"
    )
    if one.kind != "lock":
        return ran
    named = ", ".join(
        f"{lock.name} ({whole_percent(lock.share)} %, up to {milliseconds(lock.longest_ms)})"
        for lock in one.locks
    )
    return f"{ran}: {named}; locks were watched in the last {one.watched_s:.1f} s of the window only"


def whole_percent(share: float) -> str:
    """Whole per cent; below one with a digit, so that little is not nothing."""
    value = share * 100
    return f"{value:.0f}" if value >= 1 or value == 0 else f"{max(0.1, value):.1f}"
