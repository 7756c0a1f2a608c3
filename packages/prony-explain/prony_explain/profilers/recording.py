"""Reads JDK Flight Recorder recordings as written by async-profiler: chunks of version 2, each with metadata
(event layouts) and constants by number.

Integers as in `jdk.jfr.internal.consumer.RecordingInput`: seven bits per byte, lowest first, the ninth byte
whole. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

HEADER = struct.Struct(">4sHHqqqqqqqI")
"""Magic, version, size, offsets, start and duration (Unix ns), start and rate of ticks, features."""
MAGIC, VERSION = b"FLR\0", 2
INTEGERS = ("char", "short", "int", "long")
BYTES = ("boolean", "byte")
FLOATS: Mapping[str, struct.Struct] = {"float": struct.Struct(">f"), "double": struct.Struct(">d")}
STRING = "java.lang.String"
NO_STRINGS, UTF_8, CHARACTERS, LATIN_1 = (0, 1), 3, 4, 5
"""String encodings: null and empty; bytes; characters as integers."""


_MALFORMED = (IndexError, KeyError, ValueError, OverflowError, RecursionError, struct.error)
"""Raised when the bytes are not a recording."""


class Unreadable(Exception):
    """Not a recording, or an incomplete one; `str()` says why."""


class _Field(NamedTuple):
    name: str
    kind: int
    constant: bool
    """Whether its value is the number of a constant."""
    array: bool


class _Type(NamedTuple):
    name: str
    fields: tuple[_Field, ...] = ()
    integers: tuple[str, ...] | None = None
    """Names of the fields if all are integers, as in most events."""


Types = dict[int, _Type]
Fields = dict[str, Any]
"""An object's values by field name; constants as numbers."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk of a recording."""

    begun_ticks: int
    """Start on the recording's clock; events are in ticks, too."""
    ticks_per_s: int
    constants: Mapping[str, Mapping[int, Any]]
    """By type and number."""
    _raw: bytes
    _from: int
    _to: int
    _types: Types

    def events(self, *names: str) -> Iterator[tuple[str, Fields]]:
        """Events of these types, in the order of writing. Raises Unreadable."""
        wanted = {number: kind for number, kind in self._types.items() if kind.name in names}
        reader = _Reader(self._raw, self._from, self._types)
        try:
            while reader.at < self._to:
                begins = reader.at
                size, number = reader.number(), reader.number()
                if size <= 0:
                    raise Unreadable(f"an event of {size} bytes at byte {begins}")
                if number in wanted:
                    yield wanted[number].name, reader.fields(wanted[number])
                reader.at = begins + size
        except _MALFORMED as fault:
            raise Unreadable(f"an event is truncated at byte {reader.at}") from fault
        if reader.at != self._to:
            raise Unreadable(f"events end at byte {reader.at}, but the chunk at byte {self._to}")


def chunks(raw: bytes) -> Iterator[Chunk]:
    """The chunks of a recording. Raises Unreadable."""
    at = 0
    while at < len(raw):
        chunk, size = _chunk(raw, at)
        yield chunk
        at += size


def _chunk(raw: bytes, at: int) -> tuple[Chunk, int]:
    if len(raw) < at + HEADER.size:
        raise Unreadable(f"{len(raw) - at} bytes at the start of a chunk; expected {HEADER.size} or more")
    magic, major, minor, size, constants, metadata, _, _, ticks, per_s, _ = HEADER.unpack_from(raw, at)
    if magic != MAGIC or major != VERSION:
        raise Unreadable(f"no chunk of version {VERSION} at byte {at}: {magic!r}, version {major}.{minor}")
    if size < HEADER.size or at + size > len(raw) or constants <= 0 or metadata <= 0:
        raise Unreadable("an unfinished chunk")
    try:
        types = _types(_Reader(raw, at + metadata, {}))
        pools = _constants(_Reader(raw, at + constants, types))
    except _MALFORMED as fault:
        raise Unreadable(f"a chunk's constants are malformed: {type(fault).__name__}: {fault}") from fault
    return Chunk(ticks, per_s, pools, raw, at + HEADER.size, at + size, types), size


class _Reader:
    """Decodes values from an offset on."""

    __slots__ = ("at", "raw", "types")

    def __init__(self, raw: bytes, at: int, types: Types) -> None:
        self.raw, self.at, self.types = raw, at, types

    def number(self) -> int:
        """An unsigned integer of up to 64 bits."""
        raw, at = self.raw, self.at
        byte = raw[at]
        value = byte & 0x7F
        shift = 7
        while byte > 0x7F:
            at += 1
            byte = raw[at]
            if shift == 56:
                value |= byte << shift
                break
            value |= (byte & 0x7F) << shift
            shift += 7
        self.at = at + 1
        return value

    def text(self) -> str:
        how = self.raw[self.at]
        self.at += 1
        if how in NO_STRINGS:
            return ""
        if how not in (UTF_8, CHARACTERS, LATIN_1):
            raise Unreadable(f"unknown string encoding {how} at byte {self.at - 1}")
        length = self.number()
        if how == CHARACTERS:
            return "".join(chr(self.number()) for _ in range(length))
        begins, self.at = self.at, self.at + length
        if self.at > len(self.raw):
            raise IndexError(self.at)
        return self.raw[begins : self.at].decode("utf-8" if how == UTF_8 else "latin-1", errors="replace")

    def fields(self, kind: _Type) -> Fields:
        if kind.integers is not None:
            return {name: self.number() for name in kind.integers}
        return {field.name: self._array(field) if field.array else self._one(field) for field in kind.fields}

    def _array(self, field: _Field) -> list[Any]:
        length = self.number()
        if length > len(self.raw):
            raise IndexError(length)
        return [self._one(field) for _ in range(length)]

    def value(self, number: int) -> Any:
        """A value of the type with this number."""
        kind = self.types[number]
        if kind.fields:
            return self.fields(kind)
        if kind.name in INTEGERS:
            return self.number()
        if kind.name == STRING:
            return self.text()
        if kind.name in BYTES:
            self.at += 1
            return self.raw[self.at - 1]
        if kind.name in FLOATS:
            (value,) = FLOATS[kind.name].unpack_from(self.raw, self.at)
            self.at += FLOATS[kind.name].size
            return value
        return {}

    def _one(self, field: _Field) -> Any:
        return self.number() if field.constant else self.value(field.kind)


def _types(reader: _Reader) -> Types:
    """Types by number, from the metadata's tree of elements."""
    for _ in range(5):  # size, type, begin, duration, number of the metadata
        reader.number()
    strings = [reader.text() for _ in range(reader.number())]
    types: Types = {}

    def element() -> tuple[str, dict[str, str], list[_Field]]:
        name = strings[reader.number()]
        attributes = {strings[reader.number()]: strings[reader.number()] for _ in range(reader.number())}
        below = [element() for _ in range(reader.number())]
        fields = [_field(values) for kind, values, _ in below if kind == "field"]
        if name == "class":
            types[int(attributes["id"])] = _Type(attributes["name"], tuple(fields))
        return name, attributes, fields

    element()
    return {number: kind._replace(integers=_integers(kind, types)) for number, kind in types.items()}


def _field(given: Mapping[str, str]) -> _Field:
    constant = given.get("constantPool") == "true"
    return _Field(given["name"], int(given["class"]), constant, given.get("dimension", "0") != "0")


def _integers(kind: _Type, types: Types) -> tuple[str, ...] | None:
    plain = all(
        not field.array and (field.constant or types[field.kind].name in INTEGERS) for field in kind.fields
    )
    return tuple(field.name for field in kind.fields) if kind.fields and plain else None


def _constants(reader: _Reader) -> dict[str, dict[int, Any]]:
    """All constant pools of a chunk; checkpoints are linked backwards by offset."""
    pools: dict[str, dict[int, Any]] = {}
    while True:
        begins = reader.at
        for _ in range(4):  # size, type, begin, duration
            reader.number()
        before = reader.number()
        reader.at += 1  # cause of the checkpoint
        for _ in range(reader.number()):
            kind = reader.number()
            pool = pools.setdefault(reader.types[kind].name, {})
            for _ in range(reader.number()):
                number = reader.number()
                pool.setdefault(number, reader.value(kind))
        before -= (before >> 63) << 64  # signed
        if before >= 0:
            return pools
        reader.at = begins + before
