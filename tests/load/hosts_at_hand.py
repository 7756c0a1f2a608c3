"""Engines of several hosts without hosts: real ones on this machine, and canned ones that say what they are
given.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from typing import Any

from prony.load.base import HostLost
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony_hosts.load.clock import ClockEstimate


class EngineHere:
    """A real engine, as a handle: the clocks are the same."""

    def __init__(self, name: str, load: EngineLoad) -> None:
        self._name, self.run = name, EngineRun(load)

    @property
    def name(self) -> str:
        return self._name

    def send(self, command: dict[str, Any]) -> None:
        self.run.send(command)

    def events(self, timeout_s: float) -> Sequence[dict[str, Any]] | None:
        event = self.run.next_event(timeout_s)
        return [event] if event is not None else None if self.run.finished else []

    def clock(self) -> ClockEstimate:
        return ClockEstimate(time.monotonic_ns(), 0.0, 0.0, 1000.0, 10)

    def close(self) -> None:
        self.run.close()


class Canned:
    """Says what it is given; `answers` makes events of a command."""

    def __init__(
        self,
        name: str,
        answers: Callable[[dict[str, Any]], Sequence[dict[str, Any]] | None] = lambda _: (),
        *,
        offset_ns: float = 0.0,
    ) -> None:
        self._name, self._answers, self._offset_ns = name, answers, offset_ns
        self.commands: list[dict[str, Any]] = []
        self.closed = False
        self._says: queue.SimpleQueue[Sequence[dict[str, Any]] | HostLost | None] = queue.SimpleQueue()

    @property
    def name(self) -> str:
        return self._name

    def say(self, *events: dict[str, Any]) -> None:
        self._says.put(events)

    def end(self) -> None:
        self._says.put(None)

    def vanish(self) -> None:
        self._says.put(HostLost(f"{self._name} is lost: its worker is gone"))

    def send(self, command: dict[str, Any]) -> None:
        self.commands.append(command)
        said = self._answers(command)
        if said is None:
            self.end()
        elif said:
            self.say(*said)

    def events(self, timeout_s: float) -> Sequence[dict[str, Any]] | None:
        try:
            said = self._says.get(timeout=timeout_s)
        except queue.Empty:
            return ()
        if isinstance(said, HostLost):
            raise said
        return said

    def clock(self) -> ClockEstimate:
        return ClockEstimate(0.0, self._offset_ns, 0.0, 1000.0, 10)

    def close(self) -> None:
        self.closed = True
        self.end()
