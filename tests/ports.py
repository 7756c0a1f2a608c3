"""Ports for tests. A port that was free a moment ago is another test's by now: these are held."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def refusing() -> Iterator[int]:
    """A port of 127.0.0.1 at which every connection is refused: it is bound, and nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])
