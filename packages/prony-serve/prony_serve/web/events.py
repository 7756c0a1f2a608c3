"""Server-sent events of a running experiment: the progress section of its page."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from prony_serve import running
from prony_serve.web.drawing import seconds_line
from prony_serve.web.refusal import Refusal
from prony_serve.web.site import Site

EVERY_S = 1.0
SILENT_BEATS = 15
"""After this many polls without news a comment is sent, which detects a closed connection."""
MOST_STREAMS = 50


class Streams:
    """The open streams of a site, at most MOST_STREAMS."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._open = 0

    async def events(self, request: Request) -> Response:
        """`GET /results/ID/events`."""
        which = request.path_params["which"]
        identifier = await anyio.to_thread.run_sync(lambda: self._site.store.experiment(which).id)
        if self._open >= MOST_STREAMS:
            raise Refusal(503, f"{MOST_STREAMS} readers follow; reload the page", {"Retry-After": "30"})
        headers = {"X-Accel-Buffering": "no"}  # proxies must not buffer events
        return StreamingResponse(self._news(identifier), headers=headers, media_type="text/event-stream")

    async def _news(self, identifier: str) -> AsyncIterator[str]:
        self._open += 1
        try:
            last, quiet = "", 0
            while True:
                state = await anyio.to_thread.run_sync(running.find, self._site.store.where, identifier)
                if state is None:
                    yield _event("ended", f"/results/{identifier}")
                    return
                line = seconds_line(state.seconds)
                text = self._site.text("progress.html.j2", state=state, line=line)
                quiet = 0 if text != last else quiet + 1
                if text != last:
                    yield _event("progress", text)
                elif quiet % SILENT_BEATS == 0:
                    yield ": nothing new\n\n"
                last = text
                await anyio.sleep(EVERY_S)
        finally:
            self._open -= 1


def _event(name: str, text: str) -> str:
    """JSON keeps any text on a single `data:` line."""
    return f"event: {name}\ndata: {json.dumps(text)}\n\n"
