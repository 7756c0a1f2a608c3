"""A line of `prony doctor`: reading, reason, remedy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from prony.host.readings import Readings

Health = Literal["ok", "warn", "bad", "unknown"]
"""`bad`: figures would be wrong or impossible; `warn`: they may vary; `unknown`: not readable."""
Verdict = tuple[Health, str] | tuple[Health, str, str]
"""Status, reading, remedy."""


@dataclass(frozen=True, slots=True)
class HostCheck:
    """A check of the host; `what_to_do` is empty if nothing is."""

    name: str
    status: Health
    found: str
    why: str
    what_to_do: str = ""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """A check for any readings; a verdict of None: it does not apply."""

    name: str
    why: str
    verdict_on: Callable[[Readings], Verdict | None]

    def __call__(self, readings: Readings) -> HostCheck | None:
        verdict = self.verdict_on(readings)
        if verdict is None:
            return None
        status, reading, *remedy = verdict
        return HostCheck(self.name, status, reading, self.why, *remedy)


def doctor_check(name: str, why: str) -> Callable[[Callable[[Readings], Verdict | None]], DoctorCheck]:
    return lambda verdict_on: DoctorCheck(name, why, verdict_on)
