"""How long the server waits for a client: a connection that sends no whole request, or reads no response, is
closed, and is the first to go where there are too many.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 500
HEAD_S = 10.0
"""For a whole head, from the connect or the response before it, however many pieces it comes in."""
READ_S = 300.0
"""For what has been written to be read."""


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1, which would wait for ever."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._deadline: asyncio.TimerHandle | None = None
        self._since_s = self.loop.time()
        """Since when its client, or the site, has had its turn."""
        self._busy = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A place for one more: that of the one whose client keeps the server waiting longest."""
        super().connection_made(transport)
        self._turn(HEAD_S)
        if len(self.connections) <= MOST_CONNECTIONS:
            return
        waiting = [
            one
            for one in self.connections
            if isinstance(one, Connection) and one is not self and one.waits_for_its_client
        ]
        min(waiting, key=lambda one: one._since_s, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for."""
        self._turn(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A piece of a head moves no deadline."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """The client's turn, unless its next request is there."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """What has been written waits to be read."""
        super().pause_writing()
        self._turn(READ_S)

    def resume_writing(self) -> None:
        """It was read."""
        super().resume_writing()
        self._turn(None if self._busy else HEAD_S)

    @property
    def waits_for_its_client(self) -> bool:
        """Whether the site has nothing to do for it until its client sends or reads."""
        return not self._busy or self.cycle.more_body or self.flow.write_paused

    def _look(self) -> None:
        """Whose turn is it now?"""
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy != self._busy:
            self._busy = busy
            self._turn(None if busy else HEAD_S)

    def _turn(self, within_s: float | None) -> None:
        """From now on; `within_s`: of the client, for so long."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._since_s = self.loop.time()
        self._deadline = None if within_s is None else self.loop.call_later(within_s, self.transport.abort)
