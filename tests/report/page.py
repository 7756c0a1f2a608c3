"""What the tests need to know about a page: its elements, its colours."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from html.parser import HTMLParser

from prony.report.html import render_html
from prony.report.result import ResultView

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "path", "line", "rect", "circle"}


@lru_cache(maxsize=16)
def rendered(make: Callable[[], ResultView]) -> str:
    """The page of a view; drawn once for all tests."""
    return render_html(make())


@dataclass
class Element:
    """One element with its attributes and all text inside it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    inside: list[str] = field(default_factory=list)


class Page(HTMLParser):
    """Every element of a page in order; complains about tags that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.faults: list[str] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()
        self.faults += [f"<{e.tag}> is never closed" for e in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {k: v or "" for k, v in attrs}, inside=[e.tag for e in self._open])
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {k: v or "" for k, v in attrs}, inside=[e.tag for e in self._open]))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self._open or self._open[-1].tag != tag:
            self.faults.append(f"</{tag}> closes {self._open[-1].tag if self._open else 'nothing'}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str) -> list[Element]:
        """Every element of this tag."""
        return [e for e in self.elements if e.tag == tag]

    def ids(self) -> list[str]:
        """All ids in order."""
        return [e.attributes["id"] for e in self.elements if "id" in e.attributes]


def brightness(data: bytes) -> float:
    """Mean of all colour values of an 8-bit PNG, 0 (black) to 1 (white)."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG"
    position, width, height, channels, packed = 8, 0, 0, 0, b""
    while position < len(data):
        (length,) = struct.unpack(">I", data[position : position + 4])
        kind, body = data[position + 4 : position + 8], data[position + 8 : position + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert (depth, interlace) == (8, 0), "an unexpected kind of PNG"
            channels = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            packed += body
        position += 12 + length
    raw = zlib.decompress(packed)
    stride = width * channels
    previous = bytearray(stride)
    total = 0
    for line in range(height):
        start = line * (stride + 1)
        current = _unfilter(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), previous, channels)
        total += sum(sum(current[c::channels]) for c in range(3))
        previous = current
    return total / (width * height * 3 * 255)


def _unfilter(kind: int, line: bytearray, above: bytearray, step: int) -> bytearray:
    for i in range(len(line) if kind else 0):
        left = line[i - step] if i >= step else 0
        up = above[i]
        corner = above[i - step] if i >= step else 0
        if kind == 1:
            guess = left
        elif kind == 2:
            guess = up
        elif kind == 3:
            guess = (left + up) // 2
        else:
            estimate = left + up - corner
            guess = min((left, up, corner), key=lambda v: abs(estimate - v))
        line[i] = (line[i] + guess) & 255
    return line
