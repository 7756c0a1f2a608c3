"""CPU profiles for pprof: compressed `perftools.profiles.Profile` (google/pprof). Pure."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from itertools import count

from prony.evidence.profile import Stack
from prony.report.exports import Exported, Format
from prony.report.result import ResultView
from prony_explain.report.profiles import cpu_profiles, rooted

SAMPLE_TYPE, SAMPLE, LOCATION, FUNCTION, STRING_TABLE = 1, 2, 4, 5, 6
"""Fields of a Profile."""
VARINT, BYTES = 0, 2
"""Wire types of protocol buffers."""


def write(view: ResultView) -> Exported:
    """One profile with the samples of all servers. Raises UsageError without profiles."""
    return Exported(gzip.compress(message(rooted(cpu_profiles(view))), mtime=0))


def message(rows: Iterable[tuple[Stack, int]]) -> bytes:
    """The stacks as a Profile; without addresses a location is a function."""
    strings: dict[str, int] = {"": 0}
    functions: dict[str, int] = {}
    numbers = count(1)

    def text(words: str) -> int:
        return strings.setdefault(words, len(strings))

    out = bytearray(_bytes(SAMPLE_TYPE, _varint(1, text("samples")) + _varint(2, text("count"))))
    for stack, weight in rows:
        ids = [functions[frame] if frame in functions else functions.setdefault(frame, next(numbers))
               for frame in reversed(stack)]  # fmt: skip
        out += _bytes(SAMPLE, _bytes(1, b"".join(map(_raw, ids))) + _bytes(2, _raw(weight)))
    for frame, number in functions.items():
        place, mark, name = frame.rpartition("`")
        named = _varint(1, number) + _varint(2, text(name)) + _varint(3, text(frame))
        out += _bytes(FUNCTION, named + (_varint(4, text(place)) if mark else b""))
        out += _bytes(LOCATION, _varint(1, number) + _bytes(4, _varint(1, number)))
    for words in strings:
        out += _bytes(STRING_TABLE, words.encode())
    return bytes(out)


def _varint(field: int, value: int) -> bytes:
    return _raw(field << 3 | VARINT) + _raw(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _raw(field << 3 | BYTES) + _raw(len(value)) + value


def _raw(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


FORMAT = Format("CPU profiles of explained trials for go tool pprof", write, ".pb.gz", binary=True)
