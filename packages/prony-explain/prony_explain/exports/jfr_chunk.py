"""One chunk of a recording of the JDK's Flight Recorder, version 2: header, metadata that says how events are
laid out, a checkpoint with the constants that they refer to by number, events.

As `jdk.jfr.internal.consumer` of the JDK reads it. Integers are compressed: seven bits in a byte, the lowest
first. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, NamedTuple

MAGIC, MAJOR, MINOR = b"FLR\0", 2, 0
HEADER_BYTES = 68
COMPRESSED_INTEGERS = 1
METADATA, CHECKPOINT = 0, 1
"""Types of events that every chunk has."""
CONSTANTS = 10_000_000
"""More than a chunk has."""
NO_LINE = 0xFFFF_FFFF
"""-1 as an int of 32 bits."""

ANNOTATION, EVENT = "java.lang.annotation.Annotation", "jdk.jfr.Event"
Field = tuple[str, str, str]
"""Name, type, and of `c` (a constant's number), `[` (an array), `t` (ticks), `b` (bytes) what holds."""


class _Type(NamedTuple):
    number: int
    above: str = ""
    simple: bool = False
    fields: tuple[Field, ...] = ()


TYPES: dict[str, _Type] = {
    "boolean": _Type(4),
    "int": _Type(5),
    "long": _Type(6),
    "java.lang.String": _Type(7),
    "java.lang.Class": _Type(
        20,
        fields=(
            ("classLoader", "jdk.types.ClassLoader", "c"),
            ("name", "jdk.types.Symbol", "c"),
            ("package", "jdk.types.Package", "c"),
            ("modifiers", "int", ""),
        ),
    ),
    "java.lang.Thread": _Type(
        21,
        fields=(
            ("osName", "java.lang.String", ""),
            ("osThreadId", "long", ""),
            ("javaName", "java.lang.String", ""),
            ("javaThreadId", "long", ""),
        ),
    ),
    "jdk.types.ClassLoader": _Type(
        22, fields=(("type", "java.lang.Class", "c"), ("name", "jdk.types.Symbol", "c"))
    ),
    "jdk.types.FrameType": _Type(23, simple=True, fields=(("description", "java.lang.String", ""),)),
    "jdk.types.ThreadState": _Type(24, simple=True, fields=(("name", "java.lang.String", ""),)),
    "jdk.types.StackTrace": _Type(
        25, fields=(("truncated", "boolean", ""), ("frames", "jdk.types.StackFrame", "["))
    ),
    "jdk.types.StackFrame": _Type(
        26,
        fields=(
            ("method", "jdk.types.Method", "c"),
            ("lineNumber", "int", ""),
            ("bytecodeIndex", "int", ""),
            ("type", "jdk.types.FrameType", "c"),
        ),
    ),
    "jdk.types.Method": _Type(
        27,
        fields=(
            ("type", "java.lang.Class", "c"),
            ("name", "jdk.types.Symbol", "c"),
            ("descriptor", "jdk.types.Symbol", "c"),
            ("modifiers", "int", ""),
            ("hidden", "boolean", ""),
        ),
    ),
    "jdk.types.Package": _Type(28, fields=(("name", "jdk.types.Symbol", "c"),)),
    "jdk.types.Symbol": _Type(29, simple=True, fields=(("string", "java.lang.String", ""),)),
    "jdk.ExecutionSample": _Type(
        100,
        EVENT,
        fields=(
            ("startTime", "long", "t"),
            ("sampledThread", "java.lang.Thread", "c"),
            ("stackTrace", "jdk.types.StackTrace", "c"),
            ("state", "jdk.types.ThreadState", "c"),
        ),
    ),
    "jdk.ObjectAllocationSample": _Type(
        101,
        EVENT,
        fields=(
            ("startTime", "long", "t"),
            ("eventThread", "java.lang.Thread", "c"),
            ("stackTrace", "jdk.types.StackTrace", "c"),
            ("objectClass", "java.lang.Class", "c"),
            ("weight", "long", "b"),
        ),
    ),
    "jdk.jfr.Timestamp": _Type(200, ANNOTATION, fields=(("value", "java.lang.String", ""),)),
    "jdk.jfr.DataAmount": _Type(201, ANNOTATION, fields=(("value", "java.lang.String", ""),)),
}
MARKS = {"t": ("jdk.jfr.Timestamp", "TICKS"), "b": ("jdk.jfr.DataAmount", "BYTES")}


class Method(NamedTuple):
    """A frame: `owner` is its class, with slashes as the JVM has them."""

    owner: str
    name: str
    kind: str


class Chunk:
    """Events, added in the order of their times, and then the bytes."""

    def __init__(self, begun_unix_ns: int, duration_ns: int, first: int = 1) -> None:
        """`first`: the number of the first constant. Readers keep the constants of the chunk before, so that
        chunks of one file must share no number.
        """
        self._first = first
        self._begun_unix_ns = begun_unix_ns
        self._duration_ns = duration_ns
        self._events = bytearray()
        self._pools: dict[str, dict[Hashable, tuple[int, bytes]]] = {}

    def execution_sample(self, at_ns: int, thread: tuple[str, int], stack: Iterable[Method]) -> None:
        """The outermost frame first; a thread is its name and its number."""
        self._event(
            "jdk.ExecutionSample",
            at_ns,
            self._thread(thread),
            self._stack(tuple(stack)),
            self._constant("jdk.types.ThreadState", "STATE_RUNNABLE", lambda: _text("STATE_RUNNABLE")),
        )

    def allocation_sample(
        self, at_ns: int, thread: tuple[str, int], stack: Iterable[Method], what: str, size_bytes: int
    ) -> None:
        """Bytes of a class, allocated by the stack."""
        at = self._thread(thread)
        self._event(
            "jdk.ObjectAllocationSample", at_ns, at, self._stack(tuple(stack)), self._class(what), size_bytes
        )

    def content(self) -> bytes:
        """The whole chunk."""
        metadata, checkpoint = _sized(_metadata()), _sized(self._checkpoint())
        size = HEADER_BYTES + len(metadata) + len(checkpoint) + len(self._events)
        head = struct.pack(
            ">4sHHQQQQQQQI",
            MAGIC,
            MAJOR,
            MINOR,
            size,
            HEADER_BYTES + len(metadata),  # the checkpoint
            HEADER_BYTES,  # the metadata
            self._begun_unix_ns,
            self._duration_ns,
            0,  # ticks at the begin
            1_000_000_000,  # ticks in a second
            COMPRESSED_INTEGERS,
        )
        return b"".join((head, metadata, checkpoint, self._events))

    def _event(self, kind: str, *values: int) -> None:
        self._events += _sized(_numbers(TYPES[kind].number, *values))

    def _checkpoint(self) -> bytes:
        out = bytearray(_numbers(CHECKPOINT, 0, 0, 0))  # begin, duration, the checkpoint before: none
        out += b"\x01" + _numbers(len(self._pools))
        for kind, pool in self._pools.items():
            out += _numbers(TYPES[kind].number, len(pool))
            for number, content in pool.values():
                out += _numbers(number) + content
        return bytes(out)

    def _constant(self, kind: str, key: Hashable, content: Callable[[], bytes]) -> int:
        """The number of a constant; 0 is none."""
        pool = self._pools.setdefault(kind, {})
        if key not in pool:
            made = content()  # adds the constants that it refers to, none of its own kind
            pool[key] = (self._first + len(pool), made)
        return pool[key][0]

    def _symbol(self, text: str) -> int:
        return self._constant("jdk.types.Symbol", text, lambda: _text(text))

    def _class(self, name: str) -> int:
        return self._constant("java.lang.Class", name, lambda: _numbers(0, self._symbol(name), 0, 0))

    def _thread(self, thread: tuple[str, int]) -> int:
        name, number = thread
        return self._constant(
            "java.lang.Thread",
            thread,
            lambda: _text(name) + _numbers(number) + _text(name) + _numbers(0),
        )

    def _method(self, method: Method) -> int:
        return self._constant(
            "jdk.types.Method",
            (method.owner, method.name),
            lambda: _numbers(self._class(method.owner), self._symbol(method.name), self._symbol("()V"), 0, 0),
        )

    def _stack(self, stack: tuple[Method, ...]) -> int:
        def frames() -> bytes:
            out = bytearray(_numbers(0, len(stack)))  # not truncated
            for one in reversed(stack):
                kind = self._constant("jdk.types.FrameType", one.kind, partial(_text, one.kind))
                out += _numbers(self._method(one), NO_LINE, NO_LINE, kind)
            return bytes(out)

        return self._constant("jdk.types.StackTrace", stack, frames)


class _Element(NamedTuple):
    """Of the metadata's tree."""

    name: str
    attributes: dict[str, str]
    below: list[Any]


def _tree() -> _Element:
    """The types and their fields, and where times are from."""
    types = []
    for name, kind in TYPES.items():
        given = {"name": name, "id": str(kind.number)}
        given |= {"superType": kind.above} if kind.above else {}
        given |= {"simpleType": "true"} if kind.simple else {}
        types.append(_Element("class", given, [_field(one) for one in kind.fields]))
    region = _Element("region", {"locale": "en_US", "gmtOffset": "0"}, [])
    return _Element("root", {}, [_Element("metadata", {}, types), region])


def _field(field: Field) -> _Element:
    name, kind, how = field
    given = {"name": name, "class": str(TYPES[kind].number)}
    given |= {"constantPool": "true"} if how == "c" else {}
    given |= {"dimension": "1"} if how == "[" else {}
    marks = []
    if how in MARKS:
        mark, value = MARKS[how]
        marks.append(_Element("annotation", {"class": str(TYPES[mark].number), "value": value}, []))
    return _Element("field", given, marks)


def _metadata() -> bytes:
    strings: dict[str, int] = {}

    def number(text: str) -> int:
        return strings.setdefault(text, len(strings))

    def element(one: _Element) -> bytes:
        out = bytearray(_numbers(number(one.name), len(one.attributes)))
        for key, value in one.attributes.items():
            out += _numbers(number(key), number(value))
        out += _numbers(len(one.below))
        for child in one.below:
            out += element(child)
        return bytes(out)

    tree = element(_tree())
    texts = b"".join(map(_text, strings))
    return (
        _numbers(METADATA, 0, 0, 1, len(strings)) + texts + tree
    )  # begin, duration, number of this metadata


def _sized(content: bytes) -> bytes:
    """With its length in front, which counts itself."""
    for width in range(1, 6):
        head = _numbers(len(content) + width)
        if len(head) == width:
            return head + content
    raise ValueError(f"an event of {len(content)} bytes")


def _text(text: str) -> bytes:
    """As UTF-8 with its length; 3 says so."""
    raw = text.encode()
    return b"\x03" + _numbers(len(raw)) + raw


def _numbers(*values: int) -> bytes:
    out = bytearray()
    for value in values:
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
    return bytes(out)
