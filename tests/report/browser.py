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


def opened(page: Path, folder: Path, *, scheme: str = "light", width: int = 500, height: int = 400) -> Seen:
    """The page, once it is loaded; `scheme` is what the reader prefers: light or dark. The profile of the
    browser goes into the folder.
    """
    with _devtools(folder) as (call, events, await_event):
        target = call("Target.createTarget", url="about:blank")["targetId"]
        session = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            call(f"{domain}.enable", session)
        preferred = [{"name": "prefers-color-scheme", "value": scheme}]
        call("Emulation.setEmulatedMedia", session, features=preferred)
        call(
            "Emulation.setDeviceMetricsOverride",
            session,
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        call("Page.navigate", session, url=page.as_uri())
        await_event("Page.loadEventFired")
        outer = call("Runtime.evaluate", session, expression="document.documentElement.outerHTML")
        picture = base64.b64decode(call("Page.captureScreenshot", session)["data"])
    asked = [one["request"]["url"] for name, one in events if name == "Network.requestWillBeSent"]
    return Seen(
        html=outer["result"]["value"],
        console=tuple(filter(None, (_printed(name, one) for name, one in events))),
        addresses=tuple(url for url in asked if not url.startswith(("file:", "data:"))),
        picture=picture,
    )


def _printed(event: str, about: dict[str, Any]) -> str:
    if event == "Runtime.consoleAPICalled":
        return " ".join(str(one.get("value", one.get("description", ""))) for one in about["args"])
    if event == "Runtime.exceptionThrown":
        return str(about["exceptionDetails"]["text"])
    return str(about["entry"]["text"]) if event == "Log.entryAdded" else ""


Call = Callable[..., dict[str, Any]]
Events = list[tuple[str, dict[str, Any]]]


@contextmanager
def _devtools(folder: Path) -> Iterator[tuple[Call, Events, Callable[[str], None]]]:
    """A browser: a function that calls a method, the events so far, and one that waits for an event."""
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

    def await_event(name: str) -> None:
        while all(one != name for one, _ in events):
            received()

    try:
        yield call, events, await_event
        call("Browser.close")
        browser.wait(PATIENCE_S)
    finally:
        if browser.poll() is None:
            browser.kill()
            browser.wait()
        for end in (ours, our_end):
            os.close(end)
