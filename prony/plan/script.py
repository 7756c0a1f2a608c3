"""A script that says what is sent (in Lua, in the interface of wrk), or that blocks of the scenarios call (in
JavaScript, in that of Artillery's processors).
"""

from __future__ import annotations

from pydantic import Field

from prony.evidence.base import Record


class Script(Record):
    """Without calls the workload's one step is the request of a script that says nothing else."""

    file: str
    args: tuple[str, ...] = ()
    """What `init` is given, after the URL; of one in JavaScript its surroundings, as JSON."""
    url: str | None = None
    """As it was given: number 0 of what `init` is given."""
    threads: int = Field(default=1, ge=1, le=1000)
    """Interpreters, among which the users are shared out."""
    call_timeout_ms: float = Field(default=10_000.0, ge=100)
    """A call into the script that takes longer is ended, and the run with it."""

    @property
    def is_called(self) -> bool:
        """It writes no requests: blocks call it."""
        return self.file.endswith((".js", ".cjs", ".mjs"))
