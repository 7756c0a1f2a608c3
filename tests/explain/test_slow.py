"""Slow requests against what ran beside them, on simulated windows of which the truth is known."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from prony.evidence.profile import LockWait, LockWaits, Profile, Stalls, TimelineEvent
from prony_explain.sampling import MOST_EVENTS
from prony_explain.slow import (
    Beside,
    Requests,
    SlowRequests,
    Watched,
    beside,
    chance,
    effective,
    episodes,
    interval,
    kinds,
    merged,
    sentences,
    slow_requests,
    whole_percent,
)

WINDOW_S, PAUSE_S = 20.0, 0.02
TRIALS = 300


def pauses(draw: np.random.Generator, count: int = 40) -> tuple[TimelineEvent, ...]:
    """Collections spread over the window, 4 % of its time."""
    starts = (np.arange(count) + draw.uniform(0.1, 0.9, count)) * WINDOW_S / count
    return tuple(
        TimelineEvent(kind="collection", start_s=float(at), duration_s=PAUSE_S, text="Pause") for at in starts
    )


def made(starts: list[float], lengths: list[float]) -> Requests:
    """As many as are the slowest 0.1 % of a window."""
    order = sorted(zip(lengths, starts, strict=True), reverse=True)
    return Requests(
        tuple(start for _, start in order), tuple(length for length, _ in order), len(starts) * 1000
    )


def caused(draw: np.random.Generator, stops: tuple[TimelineEvent, ...], others: int = 60) -> Requests:
    """Each pause holds up some requests until its end; others are slow at any other time."""
    starts, lengths = list[float](), list[float]()
    for stop in stops:
        for into_s in draw.uniform(0, PAUSE_S / 2, int(draw.integers(1, 9))):
            starts.append(stop.start_s + float(into_s))
            lengths.append(PAUSE_S - float(into_s) + float(draw.exponential(0.001)))
    for _ in range(others):
        starts.append(float(draw.uniform(0, WINDOW_S - 0.03)))
        lengths.append(float(draw.uniform(0.01, 0.03)))
    return made(starts, lengths)


def apart(draw: np.random.Generator) -> Requests:
    """Bursts of slow requests that know nothing of any pause."""
    starts, lengths = list[float](), list[float]()
    for at in draw.uniform(0, WINDOW_S - 0.1, 50):
        for _ in range(int(draw.integers(1, 20))):
            starts.append(float(at + draw.uniform(0, 0.005)))
            lengths.append(float(draw.uniform(0.01, 0.03)))
    return made(starts, lengths)


def held(slow: Requests, stops: tuple[TimelineEvent, ...], confidence: float = 0.95) -> Beside:
    found = beside(slow, Watched("collection", 0.0, WINDOW_S, stops), confidence)
    assert found is not None
    return found


def test_planted_pauses_that_make_requests_slow_are_found_with_their_share() -> None:
    draw = np.random.default_rng(1)
    inside = shown = 0
    for _ in range(TRIALS):
        stops = pauses(draw)
        slow = caused(draw, stops)
        found = held(slow, stops)
        by_pauses = len(slow.starts_s) - 60
        # The others meet a pause when they start from 10 to 30 ms before its begin until its end.
        truth = (by_pauses + 60 * len(stops) * (PAUSE_S + 0.02) / WINDOW_S) / len(slow.starts_s)
        inside += found.low <= truth <= found.high
        shown += found.shown
        assert found.time_share == pytest.approx(0.04)
    assert inside >= 0.93 * TRIALS
    assert shown == TRIALS


def test_pauses_that_have_nothing_to_do_with_it_are_not_accused() -> None:
    draw = np.random.default_rng(2)
    accused = 0
    for _ in range(TRIALS):
        stops = pauses(draw)
        accused += held(apart(draw), stops).shown
    assert accused <= 0.04 * TRIALS


def test_requests_that_one_pause_made_slow_are_one_observation() -> None:
    stops = pauses(np.random.default_rng(3))[:1]
    (stop,) = stops
    slow = made([stop.start_s + at * 1e-5 for at in range(500)], [PAUSE_S] * 500)
    found = held(slow, stops)
    assert (found.share, len(episodes(slow.starts_s, slow.lengths_s))) == (1.0, 1)
    assert found.low == pytest.approx(0.025)
    assert held(slow, stops, 1 - 0.05 / 6).low < 0.01


def test_chance_is_what_intervals_of_the_same_lengths_meet() -> None:
    draw = np.random.default_rng(4)
    stops = [
        TimelineEvent(kind="collection", start_s=float(at), duration_s=float(size))
        for at, size in zip(draw.uniform(0, 20, 60), draw.exponential(0.05, 60), strict=True)
    ]
    lengths = draw.exponential(0.05, 20_000)
    begins, ends = merged(stops, 0.0, 20.0)
    starts = draw.uniform(0, 20.0 - lengths)
    met = [bool(((begins <= s + n) & (ends >= s)).any()) for s, n in zip(starts, lengths, strict=True)]
    assert chance(lengths, begins, ends, 0.0, 20.0) == pytest.approx(np.mean(met), abs=0.01)
    assert chance(lengths, begins[:0], ends[:0], 0.0, 20.0) == 0.0
    at_once = np.asarray([5.0])
    assert chance(np.asarray([2.0]), at_once, at_once, 0.0, 12.0) == pytest.approx(0.2)
    assert chance(np.asarray([30.0]), at_once, at_once, 0.0, 12.0) == 1.0


def test_events_that_overlap_are_merged_and_cut_to_the_span() -> None:
    events = [
        TimelineEvent(kind="disk", start_s=start, duration_s=size)
        for start, size in ((3.0, 1.0), (-1.0, 2.0), (3.5, 2.0), (9.0, 5.0), (20.0, 1.0))
    ]
    begins, ends = merged(events, 0.0, 10.0)
    assert (begins.tolist(), ends.tolist()) == ([0.0, 3.0, 9.0], [1.0, 5.5, 10.0])


def test_episodes_and_what_they_are_worth() -> None:
    assert episodes([0.0, 0.001, 0.5, 0.02, 0.9], [0.01] * 5) == [3, 1, 1]
    assert episodes([], []) == []
    assert effective([1] * 10) == 10
    assert effective([10]) == 1
    assert effective([3, 1]) == pytest.approx(1.6)


@pytest.mark.parametrize(
    ("hits", "number", "low", "high"),
    [(0, 10, 0.0, 0.3085), (5, 10, 0.1871, 0.8129), (10, 10, 0.6915, 1.0)],
)
def test_the_interval_is_clopper_and_pearsons(hits: int, number: int, low: float, high: float) -> None:
    assert interval(hits / number, number, 0.95) == pytest.approx((low, high), abs=1e-4)


def profile(**changes: object) -> Profile:
    values: dict[str, object] = {
        "runtime": "jvm",
        "profiler": "x",
        "ended_s": WINDOW_S,
        "timeline_from_s": 0.1,
    }
    return Profile.model_validate(values | changes)


def stalls(**columns: object) -> Stalls:
    ends = tuple(round(0.025 * (at + 1), 6) for at in range(800))
    return Stalls.model_validate({"begins_s": 0.0, "ends_s": ends} | columns)


def test_a_sentence_says_the_share_its_interval_and_the_share_by_chance() -> None:
    draw = np.random.default_rng(5)
    stops = pauses(draw)
    found = slow_requests(caused(draw, stops), profile(timeline=stops))
    (sentence,) = found.sentences
    assert sentence.startswith(f"{100 * found.beside[0].share:.0f} % [")
    assert f"{found.requests:,} requests" in sentence
    assert [one.kind for one in found.beside] == ["collection", "safepoint", "compilation"]
    assert [one.partition(":")[0] for one in found.unread] == [
        "waits for a CPU",
        "throttling",
        "disk reads",
        "waits for a lock",
    ]


def test_where_nothing_is_more_frequent_the_sentence_says_so() -> None:
    draw = np.random.default_rng(6)
    found = slow_requests(apart(draw), profile(timeline=pauses(draw)))
    assert len(found.sentences) == 1
    assert not any(event.shown for event in found.beside)


def test_what_nothing_was_read_beside_is_said_and_seconds_are_told_as_seconds() -> None:
    made = SlowRequests(27, 27_000, 1673.0, 5, (), (), ())
    (nothing,) = sentences(made)
    assert re.findall(r"[\d.]+", nothing) == ["0.1", "27", "1.67"]
    slow = replace(made, beside=(Beside("collection", 0.3, 0.0, 1.0, 0.07, events=3, time_share=0.03),))
    (sentence,) = sentences(slow)
    assert sentence.partition(":")[0] == nothing.partition(":")[0]
    assert sentence != nothing


def test_too_few_slow_requests_say_nothing() -> None:
    found = slow_requests(Requests((1.0, 2.0, 3.0), (0.3, 0.2, 0.1), 3000), profile())
    assert found.beside == ()
    (sentence,) = found.sentences
    assert re.findall(r"[\d.,]*\d", sentence) == ["0.1", "3", "3,000"]


def test_a_safepoint_of_a_collection_is_the_collections() -> None:
    timeline = tuple(
        TimelineEvent.model_validate({"kind": kind, "start_s": at, "duration_s": size})
        for kind, at, size in (
            ("safepoint", 0.999, 0.022),
            ("collection", 1.0, 0.02),
            ("safepoint", 5.0, 0.01),
            ("compilation", 6.0, 0.0),
        )
    )
    watched, _ = kinds(profile(timeline=timeline), 0.01)
    assert {one.kind: [e.start_s for e in one.events] for one in watched} == {
        "collection": [1.0],
        "safepoint": [5.0],
        "compilation": [6.0],
    }


def many(kind: str, count: int) -> tuple[TimelineEvent, ...]:
    """So many events of a millisecond, one after the other."""
    return tuple(
        TimelineEvent.model_validate({"kind": kind, "start_s": at / 100, "duration_s": 0.001})
        for at in range(count)
    )


@pytest.mark.parametrize(
    ("kind", "left", "named"),
    [
        ("compilation", ["collection", "safepoint"], ["compilations"]),
        ("safepoint", ["collection", "compilation"], ["safepoints"]),
        ("collection", ["compilation"], ["collections", "safepoints"]),
    ],
)
def test_a_kind_of_which_not_every_event_is_kept_is_not_held_against_requests(
    kind: str, left: list[str], named: list[str]
) -> None:
    watched, unread = kinds(profile(timeline=many(kind, MOST_EVENTS)), 0.01)
    assert [one.kind for one in watched] == left
    assert [one.partition(":")[0] for one in unread][: len(named)] == named
    watched, _ = kinds(profile(timeline=many(kind, MOST_EVENTS - 1)), 0.01)
    assert [one.kind for one in watched] == ["collection", "safepoint", "compilation"]


def test_rows_of_the_readings_are_events_where_a_wait_could_matter() -> None:
    waits = [0.0] * 800
    waits[10], waits[20], waits[30] = 4.0, 6.0, 100.0
    held_ms = [0.0] * 800
    held_ms[3] = 80.0
    read = [0] * 800
    read[7] = 4
    watched, unread = kinds(
        profile(
            runtime="native",
            timeline_from_s=None,
            stalls=stalls(run_queue_ms=tuple(waits), throttled_ms=tuple(held_ms), disk_kib=tuple(read)),
        ),
        over_s=0.010,
    )
    found = {one.kind: [(e.start_s, e.start_s + e.duration_s) for e in one.events] for one in watched}
    # Half of a slow request, 5 ms; a wait of 100 ms began before its row.
    assert found["run-queue"] == [pytest.approx((0.5, 0.525)), pytest.approx((0.675, 0.775))]
    assert found["throttled"] == [pytest.approx((0.075, 0.1))], "80 ms of several CPUs are no 80 ms"
    assert found["disk"] == [pytest.approx((0.175, 0.2))]
    (lock,) = unread
    assert "JVM" in lock


FROM_S = 18.0
"""Waits for locks are recorded from then on."""


def waits(*times: tuple[float, float], count: int | None = None, **changes: str) -> LockWaits:
    """By start and duration, of one lock in one place."""
    named = {"lock": "java.lang.Object", "where": "app.Pages.render", "thread": "exec-1"} | changes
    longest = tuple(
        LockWait.model_validate(named | {"start_s": start_s, "duration_s": duration_s})
        for start_s, duration_s in times
    )
    return LockWaits(
        from_s=FROM_S, to_s=WINDOW_S, count=len(longest) if count is None else count, longest=longest
    )


def held_up(draw: np.random.Generator, found: LockWaits, others: int) -> Requests:
    """Each wait is the most of one request; others are slow at any other time of the window."""
    starts, lengths = list[float](), list[float]()
    for one in found.longest:
        starts.append(one.start_s - float(draw.uniform(0, 0.001)))
        lengths.append(one.duration_s + 0.001)
    for _ in range(others):
        starts.append(float(draw.uniform(0, WINDOW_S - 0.01)))
        lengths.append(float(draw.uniform(0.005, 0.008)))
    return made(starts, lengths)


def test_waits_for_a_lock_that_make_requests_slow_are_named_with_the_lock() -> None:
    draw = np.random.default_rng(7)
    locks = waits(*((FROM_S + 0.1 * at + 0.05, 0.005 + 0.0001 * at) for at in range(18)))
    found = slow_requests(held_up(draw, locks, others=100), profile(lock_waits=locks))
    (lock,) = (one for one in found.beside if one.kind == "lock")
    assert lock.shown
    assert (lock.events, lock.watched_s) == pytest.approx((18, 2.0))
    assert 18 < lock.requests < 18 + 100 * 0.2, "those of the last two seconds alone"
    (named,) = lock.locks
    assert (named.name, named.waits) == ("java.lang.Object in app.Pages.render", 18)
    assert named.share == lock.share
    assert named.longest_ms == pytest.approx(6.7)
    (sentence,) = found.sentences
    share = f"{100 * lock.share:.0f} %"
    assert sentence.startswith(f"{share} [")
    assert f"] of {lock.requests} of the slowest 0.1 % (118 requests, " in sentence
    assert f"{named.name} ({share}, up to 6.7 ms)" in sentence
    assert " 2.0 s " in sentence
    assert found.unread[-1].startswith("disk reads: ")


def test_waits_for_a_lock_that_have_nothing_to_do_with_it_are_not_named() -> None:
    draw = np.random.default_rng(8)
    accused = 0
    for _ in range(TRIALS):
        times = ((float(at), 0.02) for at in draw.uniform(FROM_S, WINDOW_S - 0.02, 20))
        found = slow_requests(held_up(draw, waits(), others=400), profile(lock_waits=waits(*times)))
        (lock,) = (one for one in found.beside if one.kind == "lock")
        assert lock.events == 20
        accused += lock.shown
    assert accused <= 0.02 * TRIALS


def test_only_waits_for_half_the_time_of_a_slow_request_are_events() -> None:
    locks = waits((18.5, 0.004), (18.6, 0.005), (18.7, 0.3))
    watched, unread = kinds(profile(lock_waits=locks), over_s=0.010)
    assert [(one.start_s, one.duration_s) for one in watched[-1].events] == [(18.6, 0.005), (18.7, 0.3)]
    assert (watched[-1].kind, watched[-1].from_s, watched[-1].to_s) == ("lock", FROM_S, WINDOW_S)
    assert not any("lock" in one for one in unread)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"runtime": "python"}, "JVM"),
        ({"lock_waits": waits((18.5, 0.02), (18.6, 0.03), count=3)}, " 2 "),
    ],
)
def test_why_waits_for_a_lock_are_not_held_against_requests(changes: dict[str, object], said: str) -> None:
    watched, unread = kinds(profile(**changes), over_s=0.010)
    assert said in unread[-1]
    assert "lock" not in [one.kind for one in watched]


def test_of_locks_that_are_not_all_kept_those_that_matter_may_be() -> None:
    locks = waits((18.5, 0.002), (18.6, 0.03), count=900)
    watched, _ = kinds(profile(lock_waits=locks), over_s=0.010)
    assert [one.duration_s for one in watched[-1].events] == [0.03]


def test_too_few_slow_requests_while_locks_were_watched_are_said() -> None:
    early = made([0.5 * at for at in range(30)], [0.02] * 30)
    found = slow_requests(early, profile(lock_waits=waits((18.5, 0.02))))
    assert "lock" not in [one.kind for one in found.beside]
    assert re.findall(r"[\d.]+", found.unread[-1]) == ["10", "2.0"]


def test_of_many_locks_those_beside_most_slow_requests_are_named() -> None:
    every = [
        waits(*((FROM_S + 0.3 * at, 0.02) for at in range(number)), where=f"app.Pages.at{number}")
        for number in (2, 5, 4, 3)
    ]
    longest = tuple(one for of in every for one in of.longest)
    locks = LockWaits(from_s=FROM_S, to_s=WINDOW_S, count=len(longest), longest=longest)
    slow = made([FROM_S + 0.3 * (at % 5) + 0.001 for at in range(20)], [0.02] * 20)
    found = slow_requests(slow, profile(lock_waits=locks))
    (lock,) = (one for one in found.beside if one.kind == "lock")
    assert [(one.name[-3:], one.share) for one in lock.locks] == [("at5", 1.0), ("at4", 0.8), ("at3", 0.6)]


def test_only_the_slowest_of_those_that_are_known_are_looked_at() -> None:
    known = Requests((1.0, 2.0, 3.0), (0.3, 0.2, 0.1), 1500)
    assert known.slowest(0.001).lengths_s == (0.3, 0.2)
    assert known.slowest(0.5, most=1).lengths_s == (0.3,)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0"), (0.0003, "0.1"), (0.024, "2"), (0.9999, "100"), (1.0, "100")],
)
def test_shares_are_whole_per_cent_and_never_in_powers_of_ten(share: float, text: str) -> None:
    assert whole_percent(share) == text
