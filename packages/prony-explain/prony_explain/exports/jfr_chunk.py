"""A JDK Flight Recorder chunk, version 2: header, metadata (event layouts), a checkpoint (constants by
number), events. Read by `jdk.jfr.internal.consumer`. Integers are LEB128. Pure.
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
"""Event types of every chunk."""
CONSTANTS = 10_000_000
"""Number range per chunk; exceeds the constants of any chunk."""
NO_LINE = 0xFFFF_FFFF
"""-1 as a 32-bit int."""

ANNOTATION, EVENT = "java.lang.annotation.Annotation", "jdk.jfr.Event"
Field = tuple[str, str, str]
"""Name, type, flag: `c` (number of a constant), `[` (array), `t` (ticks), `b` (bytes), or empty."""


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
    "java.lang.Class": _Type(20,
        fields=(("classLoader", "jdk.types.ClassLoader", "c"), ("name", "jdk.types.Symbol", "c"),
            ("package", "jdk.types.Package", "c"), ("modifiers", "int", ""))),
    "java.lang.Thread": _Type(21,
        fields=(("osName", "java.lang.String", ""), ("osThreadId", "long", ""),
            ("javaName", "java.lang.String", ""), ("javaThreadId", "long", ""))),
    "jdk.types.ClassLoader": _Type(22,
        fields=(("type", "java.lang.Class", "c"), ("name", "jdk.types.Symbol", "c"))),
    "jdk.types.FrameType": _Type(23, simple=True, fields=(("description", "java.lang.String", ""),)),
    "jdk.types.ThreadState": _Type(24, simple=True, fields=(("name", "java.lang.String", ""),)),
    "jdk.types.StackTrace": _Type(25,
        fields=(("truncated", "boolean", ""), ("frames", "jdk.types.StackFrame", "["))),
    "jdk.types.StackFrame": _Type(26,
        fields=(("method", "jdk.types.Method", "c"), ("lineNumber", "int", ""), ("bytecodeIndex", "int", ""),
            ("type", "jdk.types.FrameType", "c"))),
    "jdk.types.Method": _Type(27,
        fields=(("type", "java.lang.Class", "c"), ("name", "jdk.types.Symbol", "c"),
            ("descriptor", "jdk.types.Symbol", "c"), ("modifiers", "int", ""), ("hidden", "boolean", ""))),
    "jdk.types.Package": _Type(28, fields=(("name", "jdk.types.Symbol", "c"),)),
    "jdk.types.Symbol": _Type(29, simple=True, fields=(("string", "java.lang.String", ""),)),
    "jdk.ExecutionSample": _Type(100, EVENT,
        fields=(("startTime", "long", "t"), ("sampledThread", "java.lang.Thread", "c"),
            ("stackTrace", "jdk.types.StackTrace", "c"), ("state", "jdk.types.ThreadState", "c"))),
    "jdk.ObjectAllocationSample": _Type(101, EVENT,
        fields=(("startTime", "long", "t"), ("eventThread", "java.lang.Thread", "c"),
            ("stackTrace", "jdk.types.StackTrace", "c"), ("objectClass", "java.lang.Class", "c"),
            ("weight", "long", "b"))),
    "jdk.jfr.Timestamp": _Type(200, ANNOTATION, fields=(("value", "java.lang.String", ""),)),
    "jdk.jfr.DataAmount": _Type(201, ANNOTATION, fields=(("value", "java.lang.String", ""),)),
}  # fmt: skip
MARKS = {"t": ("jdk.jfr.Timestamp", "TICKS"), "b": ("jdk.jfr.DataAmount", "BYTES")}


class Method(NamedTuple):
    """A frame; `owner` is its class with slashes."""

    owner: str
    name: str
    kind: str


class Chunk:
    """Collects events in order of time, then returns the bytes."""

    def __init__(self, begun_unix_ns: int, duration_ns: int, first: int = 1) -> None:
        """`first`: number of the first constant; chunks of a file must not share numbers."""
        self._first = first
        self._begun_unix_ns = begun_unix_ns
        self._duration_ns = duration_ns
        self._events = bytearray()
        self._pools: dict[str, dict[Hashable, tuple[int, bytes]]] = {}

    def execution_sample(self, at_ns: int, thread: tuple[str, int], stack: Iterable[Method]) -> None:
        """`stack`: outermost frame first; `thread`: name and number."""
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
        """`size_bytes` of the class `what`, allocated by the stack."""
        at = self._thread(thread)
        self._event(
            "jdk.ObjectAllocationSample", at_ns, at, self._stack(tuple(stack)), self._class(what), size_bytes
        )

    def content(self) -> bytes:
        """The chunk's bytes."""
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
            0,  # ticks at the start
            1_000_000_000,  # ticks per second
            COMPRESSED_INTEGERS,
        )
        return b"".join((head, metadata, checkpoint, self._events))

    def _event(self, kind: str, *values: int) -> None:
        self._events += _sized(_numbers(TYPES[kind].number, *values))

    def _checkpoint(self) -> bytes:
        out = bytearray(_numbers(CHECKPOINT, 0, 0, 0))  # start, duration, previous checkpoint: none
        out += b"\x01" + _numbers(len(self._pools))
        for kind, pool in self._pools.items():
            out += _numbers(TYPES[kind].number, len(pool))
            for number, content in pool.values():
                out += _numbers(number) + content
        return bytes(out)

    def _constant(self, kind: str, key: Hashable, content: Callable[[], bytes]) -> int:
        """The number of a constant; 0: none."""
        pool = self._pools.setdefault(kind, {})
        if key not in pool:
            raw = content()  # may add constants of other kinds
            pool[key] = (self._first + len(pool), raw)
        return pool[key][0]

    def _symbol(self, text: str) -> int:
        return self._constant("jdk.types.Symbol", text, lambda: _text(text))

    def _class(self, name: str) -> int:
        return self._constant("java.lang.Class", name, lambda: _numbers(0, self._symbol(name), 0, 0))

    def _thread(self, thread: tuple[str, int]) -> int:
        name, number = thread
        return self._constant(
            "java.lang.Thread", thread, lambda: _text(name) + _numbers(number) + _text(name) + _numbers(0)
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
            for method in reversed(stack):
                kind = self._constant("jdk.types.FrameType", method.kind, partial(_text, method.kind))
                out += _numbers(self._method(method), NO_LINE, NO_LINE, kind)
            return bytes(out)

        return self._constant("jdk.types.StackTrace", stack, frames)


class _Element(NamedTuple):
    """An element of the metadata tree."""

    name: str
    attributes: dict[str, str]
    below: list[Any]


def _tree() -> _Element:
    """Types, their fields, and the time zone."""
    types = []
    for name, kind in TYPES.items():
        attributes = {"name": name, "id": str(kind.number)}
        attributes |= {"superType": kind.above} if kind.above else {}
        attributes |= {"simpleType": "true"} if kind.simple else {}
        types.append(_Element("class", attributes, [_field(field) for field in kind.fields]))
    region = _Element("region", {"locale": "en_US", "gmtOffset": "0"}, [])
    return _Element("root", {}, [_Element("metadata", {}, types), region])


def _field(field: Field) -> _Element:
    name, kind, how = field
    attributes = {"name": name, "class": str(TYPES[kind].number)}
    attributes |= {"constantPool": "true"} if how == "c" else {}
    attributes |= {"dimension": "1"} if how == "[" else {}
    marks = []
    if how in MARKS:
        mark, value = MARKS[how]
        marks.append(_Element("annotation", {"class": str(TYPES[mark].number), "value": value}, []))
    return _Element("field", attributes, marks)


def _metadata() -> bytes:
    strings: dict[str, int] = {}

    def number(text: str) -> int:
        return strings.setdefault(text, len(strings))

    def element(node: _Element) -> bytes:
        out = bytearray(_numbers(number(node.name), len(node.attributes)))
        for key, value in node.attributes.items():
            out += _numbers(number(key), number(value))
        out += _numbers(len(node.below))
        for child in node.below:
            out += element(child)
        return bytes(out)

    tree = element(_tree())
    texts = b"".join(map(_text, strings))
    return (
        _numbers(METADATA, 0, 0, 1, len(strings)) + texts + tree
    )  # start, duration, number of this metadata


def _sized(content: bytes) -> bytes:
    """Prefixed with its length, which includes the prefix."""
    for width in range(1, 6):
        head = _numbers(len(content) + width)
        if len(head) == width:
            return head + content
    raise ValueError(f"an event of {len(content)} bytes is too long")


def _text(text: str) -> bytes:
    """UTF-8 (encoding 3) with its length."""
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
