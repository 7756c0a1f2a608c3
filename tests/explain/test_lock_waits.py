"""Waits for locks from recordings of which the truth is known; and what is no recording."""

from __future__ import annotations

import struct

import pytest

from prony_explain.exports.jfr import method
from prony_explain.exports.jfr_chunk import Chunk, Method
from prony_explain.profilers import lock_waits
from prony_explain.profilers.recording import HEADER, Unreadable, chunks
from prony_explain.sampling import MOST_EVENTS
from tests.explain.recordings import NO_TIME, STACK, WAITS, Wait, recording

S = 1_000_000_000
BEGUN = 8_000 * S + 5
"""Of the recording; the window began a second before it."""
WINDOW_S = 7_999.0
BEGAN_S = (7_999.9, 8_000.1)
FRAMES = (
    "java/lang/Thread.run_[0]",
    "app/Pages.render_[j]",
    "java/util/concurrent/locks/ReentrantLock.lock_[i]",
    "libjvm.so`Unsafe_Park",
    "futex_wait_[k]",
)


def test_each_wait_has_its_time_its_lock_and_where_it_waited() -> None:
    raw = recording(
        BEGUN,
        [
            Wait(8_000 * S + 500_000_000, 20_000_000, thread="exec-2"),
            Wait(8_001 * S, 3_000_000, lock="java/util/concurrent/locks/Reentrant", park=True),
        ],
    )
    locks, waits = lock_waits.read(raw, WINDOW_S, BEGAN_S, [8_002.0])
    assert (waits.count, waits.from_s, waits.to_s) == pytest.approx((2, 1.1, 3.0))
    first, second = waits.longest
    assert (first.start_s, first.duration_s) == pytest.approx((1.5, 0.02))
    assert (first.lock, first.where, first.thread) == ("java.lang.Object", "app.Pages.render", "exec-2")
    assert (second.start_s, second.duration_s) == pytest.approx((2.0, 0.003))
    assert second.lock == "java.util.concurrent.locks.Reentrant"
    assert locks.unit == "ns"
    assert locks.all_stacks() == {
        (*FRAMES, "java.lang.Object_[i]"): 20_000_000,
        (*FRAMES, "java.util.concurrent.locks.Reentrant_[i]"): 3_000_000,
    }


def test_a_wait_is_of_the_slice_in_which_it_ended() -> None:
    waits = [Wait(8_000 * S + at * 100_000_000, 50_000_000) for at in (1, 4, 6, 11)]
    locks, found = lock_waits.read(recording(BEGUN, waits), WINDOW_S, BEGAN_S, [8_000.43, 8_001.0])
    edges = [edge for one in locks.slices for edge in (one.start_s, one.end_s)]
    assert edges == pytest.approx([1.1, 1.43, 1.43, 2.0])
    assert [one.total for one in locks.slices] == [50_000_000, 150_000_000], "the last until it was stopped"
    assert len(found.longest) == 4


def test_of_several_chunks_the_longest_waits_are_kept_by_their_start() -> None:
    many = [Wait(8_000 * S + at * 1000, 1_000_000 + at) for at in range(MOST_EVENTS)]
    late = [Wait(8_002 * S, 7_000_000), Wait(8_001 * S, 5), Wait(8_003 * S, 9_000_000)]
    raw = recording(BEGUN, many) + recording(BEGUN + S, late)
    locks, found = lock_waits.read(raw, WINDOW_S, BEGAN_S, [8_004.0])
    assert found.count == MOST_EVENTS + 3
    assert len(found.longest) == MOST_EVENTS
    assert [round(one.duration_s * S) for one in found.longest[-2:]] == [7_000_000, 9_000_000]
    assert min(round(one.duration_s * S) for one in found.longest) == 1_000_002
    assert locks.total == sum(one.lasted_ns for one in (*many, *late))


def test_nothing_waited_for_is_an_empty_slice() -> None:
    locks, found = lock_waits.read(recording(BEGUN, []), WINDOW_S, BEGAN_S, [8_001.0])
    assert (found.count, found.longest, locks.total, len(locks.slices)) == (0, (), 0, 1)


@pytest.mark.parametrize(
    ("stack", "where"),
    [
        (STACK, "app.Pages.render"),
        (STACK[:1], "java.lang.Thread.run"),
        (STACK[3:], ""),
        ((), ""),
    ],
    ids=["own", "class library alone", "no Java", "no stack"],
)
def test_where_a_thread_waits(stack: tuple[Method, ...], where: str) -> None:
    raw = recording(BEGUN, [Wait(8_001 * S, 7, stack=stack)])
    _, found = lock_waits.read(raw, WINDOW_S, BEGAN_S, [8_002.0])
    assert found.longest[0].where == where


@pytest.mark.parametrize(
    ("began_s", "ticks_per_s"), [((7_000.0, 7_000.1), S), ((8_000.2, 8_000.3), S), (BEGAN_S, 2_445_000_000)]
)
def test_times_of_another_clock_are_not_believed(began_s: tuple[float, float], ticks_per_s: int) -> None:
    raw = recording(BEGUN, [Wait(8_001 * S, 7)], ticks_per_s=ticks_per_s)
    with pytest.raises(Unreadable, match=r"start 8000\.000 s"):
        lock_waits.read(raw, WINDOW_S, began_s, [8_002.0])


def test_a_recording_that_ends_anywhere_is_no_recording() -> None:
    raw = recording(BEGUN, [Wait(8_001 * S, 7)])
    for length in range(len(raw)):
        with pytest.raises(Unreadable):
            lock_waits.read(raw[:length], WINDOW_S, BEGAN_S, [8_002.0])


def test_bytes_that_were_changed_are_read_or_refused() -> None:
    """No other error: a defect here must not cost the CPU samples."""
    raw = recording(BEGUN, [Wait(8_001 * S, 7), Wait(8_001 * S, 9, park=True)])
    for place in range(HEADER.size, len(raw)):
        for value in (0, 0xFF):
            changed = bytearray(raw)
            changed[place] = value
            try:
                lock_waits.read(bytes(changed), WINDOW_S, BEGAN_S, [8_002.0])
            except Unreadable:
                continue


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"main;app/Work.do 7\n" * 9, r"byte 0: b'main'"),
        (b"FLR\0", "4 bytes .*68"),
        (HEADER.pack(b"FLR\0", 2, 0, 1 << 30, 0, 0, 0, 0, 0, S, 1), "chunk"),
    ],
)
def test_what_is_no_recording_is_said(raw: bytes, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        list(chunks(raw))


def test_values_of_every_kind_are_read_back() -> None:
    made = Chunk(7, 9)
    made.allocation_sample(123_456_789_012, ("täst", 41), [method("a/B.c_[1]")], "java.lang.String", 1 << 20)
    (chunk,) = chunks(made.content())
    ((name, event),) = chunk.events("jdk.ObjectAllocationSample")
    assert name == "jdk.ObjectAllocationSample"
    assert (event["startTime"], event["weight"]) == (123_456_789_012, 1 << 20)
    assert chunk.constants["java.lang.Thread"][event["eventThread"]]["javaName"] == "täst"
    (park,) = next(chunks(recording(BEGUN, [Wait(3, 4, park=True)]))).events("jdk.ThreadPark")
    assert park[1]["until"] == NO_TIME
    assert [one[0] for one in WAITS["jdk.ThreadPark"].fields] == list(park[1])


def test_a_checkpoint_names_the_one_before_it() -> None:
    """As a recording of the JDK has them; the newer constant counts."""
    raw = bytearray(recording(BEGUN, [Wait(8_001 * S, 7)]))
    (size,) = struct.unpack_from(">q", raw, 8)
    (constants,) = struct.unpack_from(">q", raw, 16)
    # size, type, begin, duration; -distance in nine bytes; flag; no pools
    newer = bytes((15, 1, 0, 0))
    back = (constants - size) & (1 << 64) - 1
    newer += bytes(back >> shift & 0x7F | 0x80 for shift in range(0, 56, 7)) + bytes((back >> 56, 1, 0))
    assert len(newer) == 15
    raw += newer
    struct.pack_into(">qq", raw, 8, size + len(newer), size)
    _, found = lock_waits.read(bytes(raw), WINDOW_S, BEGAN_S, [8_002.0])
    assert found.longest[0].lock == "java.lang.Object"
