"""Reads, writes and adds up HdrHistograms (V2: bucket counts as ZigZag LEB128, negative: empty ones)."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PLAIN, COMPRESSED = 0x1C849303, 0x1C849304
"""Cookies of V2, without the word size."""
WORD = 0x10
HEADER = struct.Struct(">iiiiqqd")
"""Cookie, length of the counts, offset of the index, significant digits, lowest and highest value, ratio."""
MOST_BYTES = 2**24
"""Unpacked, which an engine's never reach."""
MOST_WORD = 9
"""Bytes of a count."""


def half_bits(digits: int) -> int:
    """The logarithm of half the buckets of a power of two."""
    return (int(2 * 10**digits) - 1).bit_length() - 1


@dataclass(frozen=True, slots=True)
class Counts:
    """Filled buckets: ascending indices, and their counts."""

    digits: int
    lowest_ns: int
    highest_ns: int
    places: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def bounds_ns(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lowest and highest value of the buckets at these indices."""
        # Buckets of equal width come in halves of a power of two, the first half of them once more.
        half = half_bits(self.digits)
        unit = self.lowest_ns.bit_length() - 1
        power = places >> half
        within = np.where(power == 0, places, (places & ((1 << half) - 1)) + (1 << half))
        shift = np.maximum(0, power - 1) + unit
        return within << shift, ((within + 1) << shift) - 1


@dataclass(frozen=True, slots=True)
class Packed:
    digits: int
    lowest_ns: int
    highest_ns: int
    words: bytes


def unpacked(text: str) -> Packed:
    """Decodes a V2 compressed base64 histogram. Raises ValueError."""
    try:
        packed = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", packed)
        data = zlib.decompressobj().decompress(packed[8 : 8 + length], MOST_BYTES)
        plain, size, _, digits, lowest, highest, _ = HEADER.unpack_from(data)
    except (ValueError, struct.error, zlib.error) as cause:
        raise ValueError(f"not an HdrHistogram (V2 compressed, base64): {cause}") from cause
    words = data[HEADER.size : HEADER.size + size]
    if cookie & ~0xF0 != COMPRESSED & ~0xF0 or plain & ~0xF0 != PLAIN & ~0xF0:
        raise ValueError("not an HdrHistogram (V2 compressed, base64): another version")
    if len(words) != size or (words and words[-1] >= 0x80):
        raise ValueError("not an HdrHistogram (V2 compressed, base64): it ends too early")
    if not (1 <= digits <= 5 and 1 <= lowest <= highest):
        raise ValueError("not an HdrHistogram (V2 compressed, base64): impossible bounds")
    return Packed(digits, lowest, highest, words)


def added(parts: Sequence[Packed]) -> Counts:
    """Sum of one or more histograms. Raises ValueError if their buckets differ."""
    first = parts[0]
    for part in parts[1:]:
        if (part.digits, part.lowest_ns) != (first.digits, first.lowest_ns):
            raise ValueError(
                f"histograms of {first.digits} and {part.digits} significant digits cannot be added up"
            )
    words = np.frombuffer(b"".join(part.words for part in parts), dtype=np.uint8)
    ends = np.flatnonzero(words < 0x80)
    highest_ns = max(part.highest_ns for part in parts)
    if not ends.size:
        none = np.empty(0, dtype=np.int64)
        return Counts(first.digits, first.lowest_ns, highest_ns, none, none)
    starts = np.concatenate(([0], ends[:-1] + 1))
    if (ends - starts).max() >= MOST_WORD:
        raise ValueError("a histogram has impossible counts")
    zigzag = _numbers(words, starts, ends)
    values = (zigzag >> 1) ^ -(zigzag & 1)
    steps = np.where(values < 0, -values, 1)
    # 64 powers of two have no more buckets, and counts are below 2^53.
    if zigzag.max() > 2**54 or steps.sum(dtype=np.float64) > len(parts) * (64 << half_bits(first.digits)):
        raise ValueError("a histogram has impossible counts")
    behind = np.cumsum(steps)
    # Each part counts its buckets from 0.
    borders = np.searchsorted(starts, np.cumsum([0, *(len(part.words) for part in parts[:-1])]))
    before = np.concatenate(([0], behind))[borders]
    sizes = np.diff([*borders.tolist(), values.size])
    places = behind - steps - np.repeat(before, sizes)
    filled = values > 0
    # Counts are below 2^53, so sums of floating-point numbers are exact.
    whole = np.rint(np.bincount(places[filled], weights=values[filled])).astype(np.int64)
    there = np.flatnonzero(whole)
    return Counts(first.digits, first.lowest_ns, highest_ns, there, whole[there])


def _numbers(words: NDArray[np.uint8], starts: NDArray[Any], ends: NDArray[Any]) -> NDArray[np.int64]:
    """LEB128 numbers (7 bits per byte, lowest first), byte position by byte position."""
    numbers: NDArray[np.int64] = (words[starts] & 0x7F).astype(np.int64)
    further, place = np.flatnonzero(ends > starts), 1
    while further.size:
        numbers[further] |= (words[starts[further] + place] & 0x7F).astype(np.int64) << (7 * place)
        place += 1
        further = further[ends[further] - starts[further] >= place]
    return numbers


def encoded(counts: Counts) -> str:
    words = bytearray()
    behind = 0
    for place, count in zip(counts.places.tolist(), counts.counts.tolist(), strict=True):
        if place > behind:
            _put(words, 2 * (place - behind) - 1)
        _put(words, 2 * count)
        behind = place + 1
    header = HEADER.pack(PLAIN | WORD, len(words), 0, counts.digits, counts.lowest_ns, counts.highest_ns, 1.0)
    packed = zlib.compress(header + bytes(words))
    return base64.b64encode(struct.pack(">ii", COMPRESSED | WORD, len(packed)) + packed).decode()


def _put(words: bytearray, value: int) -> None:
    while value >= 0x80:
        words.append(value & 0x7F | 0x80)
        value >>= 7
    words.append(value)
