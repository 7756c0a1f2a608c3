"""One line of `prony doctor`: what was found, why it matters, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Health = Literal["ok", "warn", "bad", "unknown"]
"""`bad`: figures from this host would be wrong or impossible; `warn`: they may vary; `unknown`:
not readable.
"""


@dataclass(frozen=True, slots=True)
class HostCheck:
    """One check. `what_to_do` is empty when there is nothing to do."""

    name: str
    status: Health
    found: str
    why: str
    what_to_do: str = ""
