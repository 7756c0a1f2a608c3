"""Parses ab's command line."""

from __future__ import annotations

import getopt
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from prony import redaction
from prony.errors import UsageError
from prony.plan.target import parse_url
from prony_frontends.base import Addressed, Refused

TOOL = "ab"
MOST_AT_ONCE = 20_000
"""ab's own bound."""
TIMED_REQUESTS = 50_000
"""Value of -n that -t implies."""
_FLAGS = "n:c:t:b:T:p:u:v:lrkVhwiIx:y:z:C:H:P:A:g:X:de:SqB:m:Z:f:E:s:"
_VERSIONS = {"TLS1.2": "1.2", "TLS1.3": "1.3", "ALL": None}
USAGE = """\
Usage: prony ab [options] [http[s]://]hostname[:port]/path

Load:
    -n requests     Requests in all (default 1)
    -c concurrency  Connections at once (default 1)
    -t seconds      Time limit; implies -n 50000
    -s seconds      Response timeout (default 30)
Requests:
    -i              HEAD in place of GET
    -m method       Another method
    -p file         POST this file; see -T
    -u file         PUT this file; see -T
    -T type         Content-type of the file (default text/plain)
    -H 'Name: x'    A header line (repeatable)
    -C name=value   A cookie; as in ab only the last is sent
    -A user:pass    Basic authentication
    -P user:pass    Basic authentication for the proxy
    -X host:port    Use this proxy
    -k              Keep connections alive (HTTP/1.0 with Connection: Keep-Alive)
    -B address      Source address of this host
    -E file         Client certificate and key (PEM)
    -f protocol     TLS1.2, TLS1.3 or ALL
Counting and output:
    -l              The length of responses may vary
    -r              Continue after a broken connection
    -e file         Percentiles as CSV
    -g file         A line per request, for gnuplot
    -w              HTML tables; -x, -y, -z: attributes of table, tr, td
    -d              No table of percentiles
    -S              No standard deviations, medians and warnings
    -q              No progress
    -v level        2 shows the request, 3 the responses' status codes
    -V              The version
    -h              This text
Not supported: -b, -I, -Z, and TLS older than 1.2.
"""


class ExitCodeOne(UsageError):
    """Exits with 1 in ab: unreadable file of -p or -u, two methods, wrong number of requests."""


@dataclass(slots=True)
class AbArguments(Addressed):
    """Arguments of ab, with its defaults."""

    url: str = ""
    requests: int = 1
    concurrency: int = 1
    limit_s: float | None = None
    timeout_s: float = 30.0
    method: str | None = None
    body: Path | None = None
    content_type: str = "text/plain"
    headers: list[str] = field(default_factory=list)
    cookie: str | None = None
    authorizations: list[tuple[str, str]] = field(default_factory=list)
    """Header name and user:password, in order."""
    proxy: str | None = None
    keep_alive: bool = False
    source: str | None = None
    certificate: Path | None = None
    tls_version: str | None = None
    any_length: bool = False
    carry_on: bool = False
    csv: Path | None = None
    gnuplot: Path | None = None
    html: bool = False
    table: str = ""
    row: str = ""
    cell: str = ""
    percentiles: bool = True
    confidence: bool = True
    quiet: bool = False
    verbosity: int = 0
    version: bool = False
    help: bool = False

    @property
    def path(self) -> str:
        """As given, from the first slash after the host, blanks and fragment too."""
        return "/" + self.url.partition("://")[2].partition("/")[2]


def parse(argv: Sequence[str]) -> AbArguments:
    """Raises UsageError for arguments that ab refuses, Refused for unsupported ones."""
    try:
        given, rest = getopt.getopt(list(argv), _FLAGS)
    except getopt.GetoptError as fault:
        raise UsageError(f"ab: {fault.msg}; see prony ab -h") from fault
    found = AbArguments()
    for flag, value in given:
        _take(found, flag, value)
    if found.help or found.version:
        return found
    if len(rest) != 1:
        _wrong(f"expected one URL at the end, found {' '.join(rest) or 'none'}")
    found.url = _url(rest[0])
    if found.concurrency > found.requests:
        _wrong(
            f"-c {found.concurrency} is more than -n {found.requests}; expected at most as many connections "
            "as requests"
        )
    return found


def _take(into: AbArguments, flag: str, value: str) -> None:
    match flag:
        case "-n":
            try:
                into.requests = _whole(flag, value, 1, 2**31 - 1)
            except UsageError as fault:
                raise ExitCodeOne(str(fault)) from None
        case "-c":
            into.concurrency = _whole(flag, value, 1, MOST_AT_ONCE)
        case "-t":
            into.limit_s = _seconds(flag, value)
            into.requests = TIMED_REQUESTS
        case "-s":
            into.timeout_s = _seconds(flag, value)
        case "-v":
            into.verbosity = _whole(flag, value, 0, 100)
        case "-i":
            _one_method(into, flag)
            into.method = "HEAD"
        case "-m":
            into.method = value.upper()
        case "-p" | "-u":
            _one_method(into, flag)
            into.method = "POST" if flag == "-p" else "PUT"
            into.body = _body(value)
        case "-A":
            into.authorizations.append(("Authorization", value.strip()))
        case "-P":
            into.authorizations.append(("Proxy-Authorization", value.strip()))
        case "-f":
            _tls_version(into, value)
        case "-E":
            into.certificate = _file(flag, value)
        case "-e":
            into.csv = _writable(flag, value)
        case "-g":
            into.gnuplot = _writable(flag, value)
        case "-H":
            into.headers.append(value)
        case _:
            _plain(into, flag, value)


def _plain(into: AbArguments, flag: str, value: str) -> None:
    """Flags that are stored as given, or refused."""
    texts = {"-T": "content_type", "-C": "cookie", "-X": "proxy", "-B": "source",
             "-x": "table", "-y": "row", "-z": "cell"}  # fmt: skip
    switches = {"-k": "keep_alive", "-l": "any_length", "-r": "carry_on", "-w": "html", "-q": "quiet",
                "-V": "version", "-h": "help"}  # fmt: skip
    unset = {"-d": "percentiles", "-S": "confidence"}
    if flag in texts:
        setattr(into, texts[flag], value)
    elif flag in switches:
        setattr(into, switches[flag], True)
    elif flag in unset:
        setattr(into, unset[flag], False)
    else:
        what, instead = {
            "-b": (f"a socket buffer of {value} bytes", "leave it out: the kernel sizes buffers by itself"),
            "-I": ("TLS without a server name", "leave it out, or use the server's IP address"),
            "-Z": (f"the cipher suites {value}", "leave it out, or choose the version with -f TLS1.2"),
        }[flag]
        raise Refused(flag, TOOL, None, what, instead)


def _one_method(into: AbArguments, flag: str) -> None:
    if into.method is not None:
        raise ExitCodeOne(f"ab: {flag} comes after the method {into.method}; expected -i, -p, -u, or -m last")


def _tls_version(into: AbArguments, value: str) -> None:
    if value.upper() not in _VERSIONS:
        raise Refused("-f", TOOL, None, f"the protocol {value}", "use TLS1.2, TLS1.3 or ALL")
    into.tls_version = _VERSIONS[value.upper()]


def _url(text: str) -> str:
    plain = text if "://" in text else f"http://{text}"
    if parse_url(plain).auth is not None:
        _wrong(f"the URL '{redaction.url(text)}' names a user, which ab cannot; give -A USER:PASSWORD")
    if "/" not in plain.partition("://")[2]:
        _wrong(f"the URL '{text}' has no path; expected at least a slash at its end: {text}/")
    return plain


def _whole(flag: str, text: str, least: int, most: int) -> int:
    try:
        value = int(text)
    except ValueError:
        _wrong(f"{flag} is '{text}'; expected a whole number")
    if not least <= value <= most:
        _wrong(f"{flag} is {value}; expected {least} to {most}")
    return value


def _seconds(flag: str, text: str) -> float:
    return float(_whole(flag, text, 1, 7 * 24 * 3600))


def _file(flag: str, text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        _wrong(f"{flag} names {text}, which is not a readable file")
    return path


def _body(text: str) -> Path:
    path = Path(text)
    try:
        with path.open("rb") as file:
            file.read(1)
    except IsADirectoryError as fault:
        raise ExitCodeOne(f"ab: Could not read POST data file: {fault.strerror}") from fault
    except (OSError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise ExitCodeOne(f"ab: Could not open POST data file ({text}): {why}") from fault
    return path


def _writable(flag: str, text: str) -> Path:
    path = Path(text)
    place = path if path.exists() else path.absolute().parent
    if path.is_dir() or not path.absolute().parent.is_dir() or not os.access(place, os.W_OK):
        _wrong(f"{flag} names {text}, which cannot be written; name a file in an existing folder")
    return path


def _wrong(sentence: str) -> NoReturn:
    raise UsageError(f"ab: {sentence}; see prony ab -h")
