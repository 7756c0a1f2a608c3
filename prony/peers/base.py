"""What every adapter of another load generator offers: build the command, run it, read what it claims.

Must not know any tool.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class Offered(Protocol):
    """A way of offering load, alike to every tool."""

    @property
    def connections(self) -> int:
        """Open at once."""
        ...

    @property
    def tls(self) -> bool:
        """Over https."""
        ...

    @property
    def per_request(self) -> bool:
        """A new connection for every request."""
        ...

    @property
    def rate_per_s(self) -> int | None:
        """Requests per second; None: a closed loop, as fast as the answers come."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """What a tool is asked for: a load on a server, for whole seconds that begin with a warm-up."""

    case: Offered
    url: str
    seconds: int
    warm_s: float
    body: str
    cpu: int
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run and what it reads on its standard input, which then stays open."""

    argv: tuple[str, ...]
    stdin: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Name -> text: written into the folder in which it is started."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a tool says about its own run."""

    requests: int
    """Requests that it says were answered, over its whole life."""
    errors: int = 0
    per_s: float | None = None
    """Requests per second, as it prints them; None where it prints none."""
    abandoned: int = 0
    """Requests that it says it left in flight at the end."""
    send_lag_p50_us: float | None = None
    """Open loop: how much later than intended it sent, by its own account."""
    send_lag_p99_us: float | None = None


class NotOffered(Exception):
    """The tool does not do this case; `str()` is the reason in one sentence."""


class Tool(Protocol):
    """One load generator."""

    @property
    def name(self) -> str:
        """How it is called in tables and in --tools."""
        ...

    @property
    def install(self) -> str:
        """How to get it."""
        ...

    def find(self) -> Path | None:
        """Its program, None when it is not here."""
        ...

    def version(self, program: Path) -> str:
        """The version that it prints."""
        ...

    def command(self, program: Path, request: Request) -> Command:
        """How to ask it. Raises NotOffered."""
        ...

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:
        """What it says. Raises NotOffered when it refused, ValueError when its output cannot be read."""
        ...


def on_path(name: str) -> Path | None:
    """A program of this name on the PATH."""
    found = shutil.which(name)
    return Path(found) if found else None


def output_of(program: Path, *arguments: str) -> str:
    """What a program prints when asked for something like its version; empty when it cannot be asked."""
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).strip()


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
