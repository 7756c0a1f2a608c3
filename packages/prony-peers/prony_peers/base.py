"""The interface of an adapter for another load generator: command, run, claim."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from prony.server.cache import installed


class Offered(Protocol):
    """A load in terms common to all tools."""

    @property
    def connections(self) -> int:
        """Concurrent connections."""
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
        """Requests per second; None: a closed loop."""
        ...

    @property
    def streams(self) -> int | None:
        """HTTP/2: requests at once on each connection; None: HTTP/1.1."""
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """An `Offered` load as a value."""

    connections: int
    tls: bool = False
    per_request: bool = False
    rate_per_s: int | None = None
    streams: int | None = None


@dataclass(frozen=True, slots=True)
class PeerLoad:
    """A load for a tool, in whole seconds that include its warm-up."""

    case: Offered
    url: str
    seconds: int
    warm_s: float
    body: str
    cpu: int
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, and a standard input that stays open."""

    argv: tuple[str, ...]
    stdin: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to write into its working directory: name -> text."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A tool's own figures for its run."""

    requests: int
    """Completed requests over the whole run, by its own count."""
    errors: int = 0
    per_s: float | None = None
    """Requests per second as printed; None where the tool prints none."""
    abandoned: int = 0
    """Requests in flight at the end, by its own count."""
    send_lag_p50_us: float | None = None
    """Send lag of an open loop, by its own figures."""
    send_lag_p99_us: float | None = None


class NotOffered(Exception):
    """The tool cannot offer this load; `str()` is the reason in one sentence."""


def only_http_1(load: Offered) -> None:
    """Raises NotOffered for a load over HTTP/2."""
    if load.streams is not None:
        raise NotOffered("it speaks HTTP/1 only")


class LoadGenerator(Protocol):
    """One load generator."""

    @property
    def name(self) -> str:
        """Name in tables, and for `prony second-opinion --with` and `python -m bench --tools`."""
        ...

    @property
    def install(self) -> str:
        """How to install it."""
        ...

    def find(self) -> Path | None:
        """The installed program, or None."""
        ...

    def version(self, program: Path) -> str:
        """The version that the program prints."""
        ...

    def command(self, program: Path, request: PeerLoad) -> Command:
        """The command line for a load. Raises NotOffered."""
        ...

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:
        """Parses the tool's output. Raises NotOffered for a refusal, ValueError for unreadable output."""
        ...


class InstalledTool:
    """A tool on the PATH, or installed by `make peers`."""

    name: str
    version_pattern: str
    version_options: tuple[str, ...] = ("--version",)

    def find(self) -> Path | None:
        return installed(self.name)

    def version(self, program: Path) -> str:
        match = re.search(self.version_pattern, output_of(program, *self.version_options), re.MULTILINE)
        return match[1] if match else "unknown"


def output_of(program: Path, *arguments: str) -> str:
    """Output of a command such as `--version`; empty on failure."""
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
    """The last non-empty line."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no output")
