"""What an explained trial asks of whoever collects a profile beside its load."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from prony.evidence.profile import Profile


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
