"""Histograms of several engines: as the reference library adds them up, and as the engine reads them out."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.load.histograms import COMPRESSED, HEADER, PLAIN, WORD, Counts, added, encoded, unpacked

HOUR_NS = 3_600_000_000_000
VALUES = st.lists(st.integers(1, HOUR_NS), min_size=1, max_size=60)


def recorded(values: list[int], digits: int = 3) -> HdrHistogram:
    made = HdrHistogram(1, HOUR_NS, digits)
    for value in values:
        made.record_value(value)
    return made


def text(values: list[int], digits: int = 3) -> str:
    made: bytes = recorded(values, digits).encode()
    return made.decode()


def decoded(text: str) -> Counts:
    return added([unpacked(text)])


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4))
def test_the_sum_has_the_buckets_of_all_values(parts: list[list[int]]) -> None:
    whole = [value for part in parts for value in part]
    together = added([unpacked(text(part)) for part in parts])
    reference = decoded(text(whole))
    assert together.places.tolist() == reference.places.tolist()
    assert together.counts.tolist() == reference.counts.tolist()


@settings(max_examples=60, deadline=None)
@given(VALUES, st.sampled_from([2, 3]))
def test_what_is_encoded_is_read_by_the_reference_library(values: list[int], digits: int) -> None:
    again = HdrHistogram.decode(encoded(decoded(text(values, digits))))
    assert again.get_total_count() == len(values)
    assert again.get_max_value() == recorded(values, digits).get_max_value()
    assert again.significant_figures == digits


def test_an_empty_histogram_adds_nothing() -> None:
    both = added([unpacked(text([])), unpacked(text([7])), unpacked(text([]))])
    assert (both.places.tolist(), both.counts.tolist()) == ([7], [1])


def test_what_is_no_histogram_is_refused() -> None:
    for wrong in ("", "AAAA", "not base64", "HISTFAAA"):
        with pytest.raises(ValueError, match="not an HdrHistogram"):
            decoded(wrong)
    with pytest.raises(ValueError, match="3 and 2 significant digits"):
        added([unpacked(text([1])), unpacked(text([1], 2))])


def forged(words: bytes, digits: int = 3, lowest: int = 1, highest: int = HOUR_NS) -> str:
    """A histogram of these counts, with a header of its own."""
    plain = HEADER.pack(PLAIN | WORD, len(words), 0, digits, lowest, highest, 1.0) + words
    packed = zlib.compress(plain, 9)
    return base64.b64encode(struct.pack(">ii", COMPRESSED | WORD, len(packed)) + packed).decode()


@pytest.mark.parametrize(
    "made",
    [
        forged(b"\x02" * 2**25),
        forged(b"\x80" * 2**20 + b"\x01"),
        forged(b"\xff" * 8 + b"\x7f"),
        forged(b"\xff\xff\xff\xff\x0f\x02"),
        forged(b"\xff\xff\xff\xff\xff\xff\xff\x01\x02"),
        forged(b"\xff\x0f" * 10_000 + b"\x02"),
        forged(b"\x02", digits=2**31 - 1),
        forged(b"\x02", digits=-1),
        forged(b"\x02", lowest=0),
        forged(b"\x02", lowest=2**62),
        forged(b"\x02", highest=-1),
    ],
    ids=lambda made: made[-20:],
)
def test_a_histogram_that_would_take_more_than_memory_is_refused(made: str) -> None:
    with pytest.raises(ValueError, match=r"histogram|Histogram"):
        added([unpacked(made)])
