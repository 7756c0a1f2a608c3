"""What the tests need to know about a page: its elements, its colours, and what Chromium makes of it."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from prony.report.html import render_html
from prony.report.result import ResultView

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "path", "line", "rect", "circle"}
NAMES = ("chromium", "chromium-browser", "google-chrome")


@lru_cache(maxsize=16)
def rendered(make: Callable[[], ResultView]) -> str:
    """The page of a view; drawn once for all tests, as drawing takes seconds."""
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


def browser() -> str:
    """The path of Chromium; without one the test fails, unless PRONY_NO_BROWSER is set."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        if os.environ.get("PRONY_NO_BROWSER"):
            pytest.skip(
                "PRONY_NO_BROWSER is set and no Chromium was found: the page was not opened in a browser"
            )
        pytest.fail(
            "Chromium was not found; install it (apt-get install chromium), "
            "or set PRONY_NO_BROWSER=1 to go without"
        )
    return found


def chromium(page: Path, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Open the page without a window, with a profile of its own."""
    command = [
        browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={folder / 'profile'}",
        *flags,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def addresses(net_log: Path) -> list[str]:
    """Every address that the page, not the browser for itself, asked the network for (Chromium's own log)."""
    text = net_log.read_text(encoding="utf-8", errors="replace").rstrip().rstrip(",")
    try:
        log = json.loads(text)
    except ValueError:
        # A browser that ended in a hurry leaves the list open.
        log = json.loads(text + "]}")
    asked = [event["params"] for event in log["events"] if "url" in event.get("params", {})]
    by_page = (p["url"] for p in asked if "file://" in p.get("network_isolation_key", ""))
    return [url for url in by_page if not url.startswith(("file:", "data:"))]


def brightness(png: Path) -> float:
    """Mean of all colour values of an 8-bit PNG, 0 (black) to 1 (white)."""
    data = png.read_bytes()
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
