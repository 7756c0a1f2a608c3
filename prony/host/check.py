"""A line of `prony doctor`: reading, reason, remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Health = Literal["ok", "warn", "bad", "unknown"]
"""`bad`: figures would be wrong or impossible; `warn`: they may vary; `unknown`: not readable."""


@dataclass(frozen=True, slots=True)
class HostCheck:
    """A check of the host; `what_to_do` is empty if nothing is."""

    name: str
    status: Health
    found: str
    why: str
    what_to_do: str = ""
