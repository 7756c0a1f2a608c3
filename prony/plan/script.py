"""Scripts that write requests (Lua, as wrk's) or that blocks call (JavaScript, as Artillery's)."""

from __future__ import annotations

from pydantic import Field

from prony.evidence.base import Record


class Script(Record):
    """A script. Without calls the workload's single step is its default request."""

    file: str
    args: tuple[str, ...] = ()
    """Arguments of `init` after the URL; for JavaScript its environment as JSON."""
    url: str | None = None
    """The URL as given: argument 0 of `init`."""
    threads: int = Field(default=1, ge=1, le=1000)
    """Number of interpreters; users are divided among them."""
    call_timeout_ms: float = Field(default=10_000.0, ge=100)
    """Longest call into the script; exceeding it ends the run."""

    @property
    def is_called(self) -> bool:
        """Whether blocks call it and it writes no requests."""
        return self.file.endswith((".js", ".cjs", ".mjs"))
