"""Client timeouts: closes connections that send no request or read no response, longest idle first."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 500
HEAD_S = 10.0
"""For a whole request head, from the connect or the previous response on."""
READ_S = 300.0
"""For a client to read what was written."""


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1 connection with timeouts."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._deadline: asyncio.TimerHandle | None = None
        self._since_s = self.loop.time()
        """Start of the current wait, for the client or for the site."""
        self._busy = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Beyond MOST_CONNECTIONS, closes the connection that has waited longest for its client."""
        super().connection_made(transport)
        self._turn(HEAD_S)
        if len(self.connections) <= MOST_CONNECTIONS:
            return
        waiting = [
            other
            for other in self.connections
            if isinstance(other, Connection) and other is not self and other.waits_for_its_client
        ]
        min(waiting, key=lambda other: other._since_s, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancels the timeout."""
        self._turn(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A partial head does not extend the timeout."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Waits for the next request, unless it has arrived."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Waits for the client to read."""
        super().pause_writing()
        self._turn(READ_S)

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        self._turn(None if self._busy else HEAD_S)

    @property
    def waits_for_its_client(self) -> bool:
        """Whether the connection waits for its client to send or read."""
        return not self._busy or self.cycle.more_body or self.flow.write_paused

    def _look(self) -> None:
        """Restarts the wait when it passes from client to site or back."""
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy != self._busy:
            self._busy = busy
            self._turn(None if busy else HEAD_S)

    def _turn(self, within_s: float | None) -> None:
        """Starts a new wait; `within_s`: timeout of the client, None for the site."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._since_s = self.loop.time()
        self._deadline = None if within_s is None else self.loop.call_later(within_s, self.transport.abort)
