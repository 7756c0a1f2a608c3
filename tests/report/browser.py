"""A page in Chromium without a window, driven by the DevTools protocol over two pipes: what it drew, printed
to its console, and asked the network for. Any Chromium will do, also one that was built without commands
such as --dump-dom. Must not know what the page is.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.programs import program

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
PATIENCE_S = 60.0
Call = Callable[..., dict[str, Any]]
Events = list[tuple[str, dict[str, Any]]]
READS, WRITES = 3, 4
"""The descriptors that --remote-debugging-pipe uses."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of a page."""

    html: str
    """Of the document, after its scripts."""
    console: tuple[str, ...]
    """What it printed, and what the browser had to say about it."""
    addresses: tuple[str, ...]
    """What it asked for, but for files and data in the page itself."""
    picture: bytes
    """A PNG of what is to be seen without scrolling."""


class Tab:
    """A page in a browser, and what it did since it was opened."""

    def __init__(self, call: Call, events: Events, receive: Callable[[], Any], session: str) -> None:
        self._call, self._events, self._receive, self._session = call, events, receive, session

    def go(self, address: str) -> None:
        """To this address, until it is loaded."""
        seen = len(self._events)
        self._call("Page.navigate", self._session, url=address)
        self._await_load(seen)

    def follow(self, act: Callable[[], None]) -> None:
        """Do something that leads to another page, until that is loaded."""
        seen = len(self._events)
        act()
        self._await_load(seen)

    def _await_load(self, seen: int) -> None:
        while all(name != "Page.loadEventFired" for name, _ in self._events[seen:]):
            self._receive()

    def run(self, script: str) -> Any:
        """The value of an expression in the page, of a promise what it comes to."""
        done = self._call(
            "Runtime.evaluate", self._session, expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until an expression is true in the page."""
        script = (
            f"new Promise((done, fail) => {{ const end = Date.now() + {PATIENCE_S * 500}; const look = () => "
            f"({condition}) ? done(true) : Date.now() > end ? fail('never: ' + {json.dumps(condition)}) : "
            "setTimeout(look, 20); look(); })"
        )
        assert self.run(script)

    def arrive(self, path: str) -> None:
        """Wait for the page at this path, to which another page leads by itself, to be loaded."""

        def there() -> bool:
            done = [params["frame"]["url"] for name, params in self._events if name == "Page.frameNavigated"]
            at = [k for k, (name, _) in enumerate(self._events) if name == "Page.frameNavigated"]
            loaded = [k for k, (name, _) in enumerate(self._events) if name == "Page.loadEventFired"]
            return bool(done) and done[-1].endswith(path) and bool(loaded) and loaded[-1] > at[-1]

        while not there():
            self._receive()

    def press(self, key: str, *, shift: bool = False) -> None:
        """One of KEYS, or a character."""
        code, text = KEYS.get(key, (0, key))
        about = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        more = {"text": text} if text else {}
        self._call("Input.dispatchKeyEvent", self._session, type="keyDown", **about, **more)
        self._call("Input.dispatchKeyEvent", self._session, type="keyUp", **about)

    def type(self, text: str) -> None:
        """Into what has the focus."""
        self._call("Input.insertText", self._session, text=text)

    def point_at(self, x: float, y: float) -> None:
        """The pointer, in CSS pixels of what is to be seen."""
        self._call("Input.dispatchMouseEvent", self._session, type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float) -> None:
        """The left button, once, at CSS pixels of what is to be seen."""
        about = {"x": x, "y": y, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", self._session, type=kind, **about)

    def picture(self, side: int | None = None) -> bytes:
        """A PNG of what is to be seen without scrolling, or of a square of so many pixels in its corner."""
        corner = {"x": 0, "y": 0, "width": side, "height": side, "scale": 1}
        about = {} if side is None else {"clip": corner}
        return base64.b64decode(self._call("Page.captureScreenshot", self._session, **about)["data"])

    @property
    def console(self) -> tuple[str, ...]:
        """What pages printed, and what the browser had to say about them."""
        return tuple(filter(None, (_printed(name, params) for name, params in self._events)))

    @property
    def addresses(self) -> tuple[str, ...]:
        """What was asked for, but for files and data in the page itself."""
        urls = [sent["request"]["url"] for name, sent in self._events if name == "Network.requestWillBeSent"]
        return tuple(url for url in urls if not url.startswith(("file:", "data:")))


KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " "), "Escape": (27, "")}
"""Key -> its code, and the text that it types."""


@contextmanager
def browsing(
    folder: Path, *, scheme: str = "light", width: int = 500, height: int = 400, scripts: bool = True
) -> Iterator[Tab]:
    """A browser with an empty page; `scheme` is what the reader prefers: light or dark. The profile of the
    browser goes into the folder.
    """
    with _devtools(folder) as (call, events, receive):
        target = call("Target.createTarget", url="about:blank")["targetId"]
        session = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            call(f"{domain}.enable", session)
        preferred = [{"name": "prefers-color-scheme", "value": scheme}]
        call("Emulation.setEmulatedMedia", session, features=preferred)
        call("Emulation.setScriptExecutionDisabled", session, value=not scripts)
        call(
            "Emulation.setDeviceMetricsOverride",
            session,
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        yield Tab(call, events, receive, session)


def opened(page: Path, folder: Path, *, scheme: str = "light", width: int = 500, height: int = 400) -> Seen:
    """A file, once it is loaded."""
    with browsing(folder, scheme=scheme, width=width, height=height) as tab:
        tab.go(page.as_uri())
        html = tab.run("document.documentElement.outerHTML")
        picture = tab.picture()
        return Seen(html=html, console=tab.console, addresses=tab.addresses, picture=picture)


def _printed(event: str, about: dict[str, Any]) -> str:
    if event == "Runtime.consoleAPICalled":
        return " ".join(str(params.get("value", params.get("description", ""))) for params in about["args"])
    if event == "Runtime.exceptionThrown":
        return str(about["exceptionDetails"]["text"])
    return str(about["entry"]["text"]) if event == "Log.entryAdded" else ""


@contextmanager
def _devtools(folder: Path) -> Iterator[tuple[Call, Events, Callable[[], Any]]]:
    """A browser: a function that calls a method, the events so far, and one that awaits the next message."""
    its_end, ours = os.pipe()
    our_end, its = os.pipe()

    def descriptors() -> None:  # first out of the way: a pipe may have the number that it is to get
        high = os.dup2(its_end, 200), os.dup2(its, 201)
        os.dup2(high[0], READS), os.dup2(high[1], WRITES)

    command = [
        program("chromium"),
        *FLAGS,
        "--remote-debugging-pipe",
        f"--user-data-dir={folder / 'profile'}",
    ]
    with (folder / "browser.log").open("wb") as log:
        browser = subprocess.Popen(
            command, preexec_fn=descriptors, close_fds=False, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    for end in (its_end, its):
        os.close(end)
    events: Events = []
    pending = bytearray()
    calls = 0

    def received() -> dict[str, Any]:
        while b"\0" not in pending:
            if not select.select([our_end], [], [], PATIENCE_S)[0]:
                raise AssertionError(f"Chromium said nothing for {PATIENCE_S:g} s: {folder / 'browser.log'}")
            piece = os.read(our_end, 1 << 16)
            if not piece:
                raise AssertionError(f"Chromium ended: {(folder / 'browser.log').read_text()[-2000:]}")
            pending.extend(piece)
        text, _, rest = bytes(pending).partition(b"\0")
        pending[:] = rest
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            events.append((message["method"], message["params"]))
        return message

    def call(method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        message = {"id": calls, "method": method, "params": params}
        message |= {} if session is None else {"sessionId": session}
        os.write(ours, json.dumps(message).encode() + b"\0")
        while (reply := received()).get("id") != calls:
            pass
        assert "error" not in reply, f"{method}: {reply['error']}"
        result: dict[str, Any] = reply["result"]
        return result

    try:
        yield call, events, received
        call("Browser.close")
        browser.wait(PATIENCE_S)
    finally:
        if browser.poll() is None:
            browser.kill()
            browser.wait()
        for end in (ours, our_end):
            os.close(end)
