"""Parses wrk's command line."""

from __future__ import annotations

import getopt
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prony import redaction
from prony.errors import UsageError
from prony_frontends.base import Addressed, Refused

TOOL = "wrk"
FEW_CONNECTIONS = "number of connections must be >= threads"
USAGE = """\
Usage: prony wrk <options> <url> [-- script arguments]

  -c, --connections N   Connections (default 10)
  -d, --duration    T   Duration (default 10s)
  -t, --threads     N   Threads: the script's interpreters, and the groups of Req/Sec (default 2)
  -s, --script      S   A script in Lua
  -H, --header      H   A header of the request, 'Name: value' (repeatable)
  -L, --latency         Print the latency distribution
      --timeout     T   Response timeout (default 2s)
  -v, --version         Print the version

Numbers may have a unit (1k, 1M, 1G), times too (2s, 2m, 2h).
"""
USAGE_2 = USAGE.replace("prony wrk ", "prony wrk2 ").replace(
    "  -v, --version", "  -R, --rate        N   Requests per second, of all connections together (required)\n"
    "  -D, --dist        D   Arrivals: fixed or exp (default fixed)\n"
    "  -U, --u_latency       Also print the latency from the send\n  -v, --version"
) + "Not supported: --batch_latency, and other distributions.\n"  # fmt: skip
_LONG = [
    "connections=", "duration=", "threads=", "script=", "header=", "latency", "timeout=", "help", "version",
]  # fmt: skip
_SHORT = {"-c": "--connections", "-d": "--duration", "-t": "--threads", "-s": "--script", "-H": "--header",
          "-L": "--latency", "-T": "--timeout", "-h": "--help", "-v": "--version"}  # fmt: skip
_LONG_2 = [*_LONG, "rate=", "u_latency", "dist=", "batch_latency"]
_SHORT_2 = {**_SHORT, "-R": "--rate", "-U": "--u_latency", "-D": "--dist", "-B": "--batch_latency"}
_METRIC = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_TIME = {"": 1, "s": 1, "m": 60, "h": 3600}
LONGEST_S = 366 * 24 * 3600


class WrongUsage(UsageError):
    """wrk would print its usage after this message."""


@dataclass(slots=True)
class WrkArguments(Addressed):
    """Arguments of wrk or wrk2."""

    url: str = ""
    connections: int = 10
    threads: int = 2
    duration_s: int = 10
    timeout_s: int = 2
    script: Path | None = None
    headers: dict[str, str] = field(default_factory=dict)
    latency: bool = False
    version: bool = False
    rate_per_s: int | None = None
    """wrk2 only: an open load."""
    poisson: bool = False
    uncorrected: bool = False
    rest: tuple[str, ...] = ()
    dropped: list[str] = field(default_factory=list)
    """Headers that wrk drops."""

    @property
    def path(self) -> str:
        """The path as wrk sends it: from the first slash after the host, or a single slash."""
        behind_host = re.fullmatch(r"[^/]*//[^/?#]*(/.*)?.*", self.url, re.DOTALL)
        return (behind_host and behind_host[1]) or "/"

    @property
    def open_connections(self) -> int:
        """Rounded down to the same number per thread, as in wrk."""
        return self.connections // self.threads * self.threads


def parse(argv: Sequence[str], second: bool = False) -> WrkArguments:
    """Parses wrk's or wrk2's arguments. Raises WrongUsage as the tool would, Refused where unsupported."""
    names = _SHORT_2 if second else _SHORT
    try:
        if second:
            options, rest = getopt.gnu_getopt(list(argv), "c:d:t:s:H:T:R:D:ULBhv", _LONG_2)
        else:
            options, rest = getopt.gnu_getopt(list(argv), "c:d:t:s:H:T:Lhv", _LONG)
    except getopt.GetoptError as fault:
        raise WrongUsage(f"wrk: {fault.msg}") from fault
    arguments = WrkArguments()
    for given, value in options:
        _take(arguments, names.get(given, given), given, value)
    if arguments.version and not rest:
        return arguments
    if not rest:
        raise WrongUsage("wrk: no URL was given")
    arguments.url, arguments.rest = rest[0], tuple(rest[1:])
    if "://" not in arguments.url or re.search(r"[^!-~]", arguments.url):
        raise WrongUsage(f"invalid URL: {arguments.url}")
    if not arguments.threads or not arguments.duration_s:
        raise WrongUsage("wrk: --threads and --duration must be at least 1")
    if second and not arguments.rate_per_s:
        raise WrongUsage("Throughput MUST be specified with the --rate or -R option")
    if arguments.connections < arguments.threads:
        raise WrongUsage(FEW_CONNECTIONS)
    if arguments.threads > 1000:
        raise Refused("--threads", TOOL, None, f"{arguments.threads} threads", "use at most 1000", "limit")
    return arguments


def _take(args: WrkArguments, name: str, given: str, value: str) -> None:
    if name == "--help":
        raise WrongUsage("")
    if name == "--version":
        args.version = True
    elif name == "--latency":
        args.latency = True
    elif name == "--script":
        args.script = _script(given, value)
    elif name == "--header":
        key, _, text = value.partition(":")
        if not text.startswith(" "):
            args.dropped.append(value)
            return
        text = text[1:]
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", key) or re.search(r"[\r\n]", text):
            raise Refused("--header", TOOL, None, f"'{redaction.beginning(value)}'", "write 'Name: value'")
        args.headers[key] = text
    elif name == "--connections":
        args.connections = _scaled(given, value, _METRIC)
    elif name == "--threads":
        args.threads = _scaled(given, value, _METRIC)
    elif name == "--duration":
        args.duration_s = _scaled(given, value, _TIME)
        if args.duration_s > LONGEST_S:
            raise Refused("--duration", TOOL, None, value, "use at most a year", "limit")
    elif name == "--rate":
        args.rate_per_s = _scaled(given, value, _METRIC)
    elif name == "--u_latency":
        args.uncorrected = args.latency = True
    elif name == "--dist":
        if value not in ("fixed", "exp"):
            raise Refused("--dist", TOOL, None, f"'{value}'", "use fixed or exp")
        args.poisson = value == "exp"
    elif name == "--batch_latency":
        raise Refused("--batch_latency", TOOL, None, "latency of batches", "leave it out")
    elif name == "--timeout":
        args.timeout_s = _scaled(given, value, _TIME)


def _script(given: str, value: str) -> Path:
    """The script, which every interpreter opens again. Raises UsageError."""
    script = Path(value)
    if script.is_fifo():
        raise UsageError(f"wrk: {value} can be read only once; write the script to a file for {given}")
    if script.is_absolute() and script.parts[1] in ("dev", "proc"):
        # A descriptor of this process, such as /dev/stdin, means another file in the engine.
        script = script.resolve()
    if not script.is_file():
        raise UsageError(f"wrk: {value} cannot be opened; expected a script in Lua after {given}")
    return script


def _scaled(given: str, text: str, units: dict[str, int]) -> int:
    """A whole number with a unit. Raises WrongUsage."""
    match = re.fullmatch(r"(\d{1,15})([A-Za-z]?)", text)
    if match is None or match[2].lower() not in units:
        raise WrongUsage(f"wrk: {given} is '{text}'; expected a whole number, as 10 or 1{list(units)[1]}")
    return int(match[1]) * units[match[2].lower()]
