"""Terminal styles of a verdict. Must not know where they are used."""

from __future__ import annotations

from prony.judge.finding import Status

STATUS_STYLE = {
    Status.VALID: "green",
    Status.SUSPECT: "yellow",
    Status.INVALID: "bold red",
    Status.UNKNOWN: "cyan",
}
