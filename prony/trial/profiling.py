"""What an explained trial asks of whoever collects a profile beside its load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from prony.evidence.profile import Profile
from prony.targets.base import OnLine, ServerUnderTest


class ProfileCollector(Protocol):
    """Of one trial. None of its methods raises: what goes wrong is a sentence in the profile."""

    def attach(self, pids: Iterable[int]) -> None:
        """Under load, before the window: what takes long."""

    def begin(self, window_s: float) -> None:
        """The window is open, for so many seconds at the most."""

    def end(self) -> Profile:
        """It is closed, or the server ended."""

    def detach(self) -> None:
        """Leave the server alone; may be called at any time, twice as well."""


class Profilers(Protocol):
    """The profilers of an experiment, of which some must be fetched."""

    def prepare(self, targets: Sequence[ServerUnderTest], on_line: OnLine) -> None:
        """Fetch what these servers need. A profiler that cannot be had is said by the profile."""

    def collector(self) -> ProfileCollector:
        """For one explained trial."""
