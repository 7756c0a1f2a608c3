"""Parses fhb's command line."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from prony.errors import UsageError
from prony.plan.target import parse_url
from prony_frontends.base import Note, Refused

TOOL = "fhb"
LONGEST_S = 7 * 24 * 3600.0
USAGE = """\
usage: prony fhb [options] URL
    -c clients            Clients at once (default 1)
    -r up/steady/down     Seconds of each part of the run (default 300/300/120); steady is measured
    -W milliseconds       Pause between a response and the next request (default 0)
    -t seconds            Target for the 90th percentile (default 1.0)
    -p file               POST the data of this file
    -b                    ... as application/octet-stream
    -z types              The Accept header
    -s                    Save summary.xml in the output directory
    -D directory          The output directory (default: fhb in the system's folder for temporary files)
    -J option             An option of Java, without effect
    -k                    Accepted; connections are always kept alive
    -V                    The version
    -h                    This text
Not supported: -f, -K, -S, -n.
"""


@dataclass(slots=True)
class FhbArguments:
    """Arguments of fhb, with its defaults."""

    url: str = ""
    clients: int = 1
    ramp_up_s: float = 300.0
    steady_s: float = 300.0
    ramp_down_s: float = 120.0
    think: str = "0"
    """Milliseconds, as typed."""
    target_s: float = 1.0
    data: Path | None = None
    binary: bool = False
    accept: str | None = None
    save: bool = False
    folder: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "fhb")
    notes: list[Note] = field(default_factory=list)
    version: bool = False
    help: bool = False

    @property
    def think_ms(self) -> float:
        """The pause in ms."""
        return float(self.think)


def parse(argv: Sequence[str]) -> FhbArguments:
    """Raises UsageError for arguments that fhb refuses, Refused for unsupported ones."""
    arguments = FhbArguments()
    words = list(argv)
    while words and words[0].startswith("-") and len(words[0]) > 1:
        word = words.pop(0)
        flag, joined = word[:2], word[2:]
        if flag in _VALUED:
            if not joined and not words:
                _wrong(f"{flag} needs a value")
            _VALUED[flag](arguments, joined or words.pop(0))
        else:
            _switch(arguments, flag)
    if arguments.help or arguments.version:
        return arguments
    if not words:
        _wrong("expected a URL at the end, found none")
    if len(words) > 1:
        _wrong(f"expected one URL at the end, found {' '.join(words)}")
    arguments.url = words[0]
    if not arguments.url.startswith(("http://", "https://")):
        _wrong(f"the URL is '{arguments.url}'; expected http://HOST:PORT/PATH or https://…")
    parse_url(arguments.url)
    if arguments.binary and arguments.data is None:
        _wrong("-b needs -p FILE")
    return arguments


def _switch(into: FhbArguments, flag: str) -> None:
    match flag:
        case "-s":
            into.save = True
        case "-b":
            into.binary = True
        case "-k":
            into.notes.append(Note("no_effect", "no effect: connections are always kept alive", "-k"))
        case "-V":
            into.version = True
        case "-h":
            into.help = True
        case "-S":
            instead = "use ${random int 1 9} in a workload of prony run (docs/workloads.md)"
            raise Refused(flag, TOOL, None, "Faban's substitutions", instead)
        case _:
            _wrong(f"unknown option {flag}")


def _clients(into: FhbArguments, text: str) -> None:
    if not text.isdigit() or not 1 <= int(text) <= 1_000_000:
        _wrong(f"-c is '{text}'; expected 1 to 1000000 clients")
    into.clients = int(text)


def _times(into: FhbArguments, text: str) -> None:
    parts = text.split("/")
    if len(parts) != 3:
        _wrong(f"-r is '{text}'; expected three numbers of seconds: 60/300/30")
    into.ramp_up_s, into.steady_s, into.ramp_down_s = (_number("-r", part, 0.0, LONGEST_S) for part in parts)
    if into.steady_s < 1:
        _wrong(f"-r is '{text}'; expected a steady part of at least a second")


def _think(into: FhbArguments, text: str) -> None:
    _number("-W", text, 0.0, LONGEST_S * 1000)
    into.think = text


def _target(into: FhbArguments, text: str) -> None:
    into.target_s = _number("-t", text, 0.0, LONGEST_S)


def _data(into: FhbArguments, text: str) -> None:
    if not Path(text).is_file():
        _wrong(f"-p names {text}, which is not a readable file")
    into.data = Path(text)


def _accept(into: FhbArguments, text: str) -> None:
    into.accept = text


def _folder(into: FhbArguments, text: str) -> None:
    into.folder = Path(text)


def _java(into: FhbArguments, text: str) -> None:
    into.notes.append(Note("no_effect", f"no effect of {text}: nothing here runs on Java", "-J"))


def _speed(_into: FhbArguments, text: str) -> None:
    raise Refused("-K", TOOL, None, f"sockets of {text} kB/s", "shape the traffic on the host: tc")


def _file(_into: FhbArguments, text: str) -> None:
    instead = "give its settings as options, or write a plan (docs/plans.md)"
    raise Refused("-f", text, None, "a run configuration of Faban", instead)


def _count(_into: FhbArguments, text: str) -> None:
    raise Refused("-n", TOOL, None, f"{text} requests", "give times with -r, as with fhb, or use prony ab -n")


_VALUED = {"-c": _clients, "-r": _times, "-W": _think, "-t": _target, "-p": _data, "-z": _accept,
           "-D": _folder, "-J": _java, "-K": _speed, "-f": _file, "-n": _count}  # fmt: skip


def _number(flag: str, text: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        _wrong(f"{flag} has '{text}'; expected a number")
    if not least <= value <= most:
        _wrong(f"{flag} has {text}; expected {least:g} to {most:g}")
    return value


def _wrong(sentence: str) -> NoReturn:
    raise UsageError(f"fhb: {sentence}; see prony fhb -h")
