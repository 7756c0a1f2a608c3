"""Parses h2load's command line."""

from __future__ import annotations

import getopt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from prony import redaction
from prony.errors import UsageError
from prony_frontends.base import Refused

TOOL = "h2load"
MOST_NUMBER = 2**31 - 1
LONGEST_S = 366 * 24 * 3600.0
SMALLEST_FRAME, LARGEST_FRAME = 16_384, 2**24 - 1
MOST_TABLE = 65_536
"""Maximum of the engine, in bytes."""
USAGE = """\
Usage: prony h2load [OPTIONS]... [URI]...

Load:
  -n, --requests=N               Requests of all clients together (default 1)
  -c, --clients=N                Clients, each with a connection (default 1)
  -m, --max-concurrent-streams=N Streams at once on a connection; HTTP/1.1: requests in a row (default 1)
  -t, --threads=N                Threads of the load, at most one for each CPU (default 1)
  -D, --duration=T               Duration, in place of -n
      --warm-up-time=T           Warm-up before -D, not measured
  -r, --rate=N                   New connections per period
      --rate-period=T            The period of -r (default 1s)
      --rps=N                    Requests per second of each client
      --timing-script-file=FILE  Lines of milliseconds, a tab and a URI: requests of each client
  -T, --connection-active-timeout=T
                                 Time limit of the run
  -N, --connection-inactivity-timeout=T
                                 Response timeout
Requests:
  -i, --input-file=FILE          URIs, one on a line; - is standard input
  -H, --header=NAME:VALUE        A header (repeatable); :authority and :method too
  -d, --data=FILE                POST this file
  -B, --base-uri=URI             Scheme, host and port for all URIs, or unix:PATH
      --connect-to=HOST[:PORT]   Address to connect to, in place of the URI's host
Protocol:
  -p, --no-tls-proto=PROTO       Without TLS: h2c or http/1.1 (default h2c)
      --npn-list=LIST, --alpn-list=LIST
                                 With TLS: the first supported is requested (default h2)
      --h1                       HTTP/1.1 in both cases
  -w, --window-bits=N            Window of a stream: 2^N-1 bytes (default 30)
  -W, --connection-window-bits=N Window of a connection: 2^N-1 bytes (default 30)
  -f, --max-frame-size=SIZE      16K only
      --header-table-size=SIZE, --encoder-header-table-size=SIZE
                                 Table of header compression, the same either way (default 4K)
      --sni=NAME                 With TLS: server name to request
      --log-file=FILE            A line per request: start in us, status, duration in us
  -v, --verbose                  Accepted, without effect
      --version                  The version
  -h, --help                     This text
Refused over TLS: --ciphers, --tls13-ciphers, --groups. QUIC's options and --ktls change nothing.
"""
_SHORT = "hvW:c:d:m:n:p:t:w:f:H:i:r:T:N:D:B:"
_NAMES = {"-W": "connection-window-bits", "-c": "clients", "-d": "data", "-m": "max-concurrent-streams",
          "-n": "requests", "-p": "no-tls-proto", "-t": "threads", "-w": "window-bits",
          "-f": "max-frame-size", "-H": "header", "-i": "input-file", "-r": "rate",
          "-T": "connection-active-timeout", "-N": "connection-inactivity-timeout", "-D": "duration",
          "-B": "base-uri", "-h": "help", "-v": "verbose"}  # fmt: skip
_LONG = ["requests=", "clients=", "data=", "threads=", "max-concurrent-streams=", "window-bits=",
         "max-frame-size=", "connection-window-bits=", "input-file=", "header=", "no-tls-proto=", "verbose",
         "help", "version", "ciphers=", "tls13-ciphers=", "rate=", "connection-active-timeout=",
         "connection-inactivity-timeout=", "duration=", "timing-script-file=", "base-uri=", "npn-list=",
         "alpn-list=", "rate-period=", "h1", "header-table-size=", "encoder-header-table-size=",
         "warm-up-time=", "log-file=", "connect-to=", "rps=", "groups=", "no-udp-gso", "qlog-file-base=",
         "max-udp-payload-size=", "ktls", "sni="]  # fmt: skip
_INERT = ("verbose", "no-udp-gso", "qlog-file-base", "max-udp-payload-size", "ktls")
H2 = ("h2", "h2-16", "h2-14")
"""h2load's name for HTTP/2 over TLS."""


class WrongUsage(UsageError):
    """h2load would print this message and exit with 1."""


@dataclass(slots=True)
class H2loadArguments:
    """Arguments of h2load, with its defaults."""

    uris: tuple[str, ...] = ()
    requests: int | None = None
    clients: int = 1
    streams: int = 1
    threads: int = 1
    duration_s: float = 0.0
    """0: ended by a number of requests."""
    warm_up_s: float = 0.0
    rate: int | None = None
    rate_period_s: float = 1.0
    per_client_s: float = 0.0
    """--rps; 0: no limit."""
    timing_file: str | None = None
    active_s: float = 0.0
    inactive_s: float = 0.0
    input_file: str | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    data: Path | None = None
    base: str | None = None
    connect_to: str | None = None
    clear_protocol: str = "h2c"
    protocols: tuple[str, ...] = (*H2, "http/1.1")
    window_bits: int = 30
    connection_window_bits: int = 30
    table_bytes: int | None = None
    log: Path | None = None
    suites: list[str] = field(default_factory=list)
    """TLS options, as given."""
    inert: list[str] = field(default_factory=list)
    sni: str | None = None
    help: bool = False
    version: bool = False

    def http_version(self, https: bool) -> str:
        """`2` or `1.1`. Raises Refused for unsupported protocols."""
        if not https:
            return "2" if self.clear_protocol == "h2c" else "1.1"
        for name in self.protocols:
            if name in H2:
                return "2"
            if name == "http/1.1":
                return "1.1"
        given = ",".join(self.protocols) or "nothing"
        raise Refused("--npn-list", TOOL, None, given, "use h2 or http/1.1")


def parse(argv: Sequence[str]) -> H2loadArguments:
    """Raises WrongUsage for arguments that h2load refuses, Refused for unsupported ones."""
    try:
        given, rest = getopt.gnu_getopt(list(argv), _SHORT, _LONG)
    except getopt.GetoptError as fault:
        raise WrongUsage(f"{TOOL}: {fault.msg}") from fault
    arguments = H2loadArguments(uris=tuple(rest))
    for flag, value in given:
        name = _NAMES.get(flag, flag.removeprefix("--"))
        _take(arguments, name, value, flag)
    if not (arguments.help or arguments.version):
        _check(arguments)
    return arguments


def _take(into: H2loadArguments, name: str, value: str, flag: str) -> None:
    if name in ("help", "version"):
        setattr(into, name, True)
    elif name in _INERT:
        into.inert.append(flag)
    elif name in ("ciphers", "tls13-ciphers", "groups"):
        into.suites.append(flag)
    elif name == "h1":
        into.clear_protocol, into.protocols = "http/1.1", ("http/1.1",)
    else:
        _VALUED[name](into, value, flag)


def _check(args: H2loadArguments) -> None:
    if not args.clients:
        _wrong("-c: the number of clients must be strictly greater than 0.")
    if not args.threads:
        _wrong("-t: the number of threads must be strictly greater than 0.")
    if not args.streams:
        _wrong("-m: the max concurrent streams must be strictly greater than 0.")
    if args.requests == 0 and not args.duration_s:
        _wrong(
            "-n: the number of requests must be strictly greater than 0 if timing-based test is not being "
            "run."
        )
    if args.timing_file is not None and args.per_client_s:
        _wrong("--timing-script-file, --rps: they are mutually exclusive.")
    if args.duration_s and args.rate is not None:
        _wrong("-r, -D: they are mutually exclusive.")
    counted = args.requests if args.requests is not None else 1
    if not args.duration_s and args.timing_file is None and counted < args.clients:
        _wrong("-n, -c: the number of requests must be greater than or equal to the clients.")
    if args.clients < args.threads:
        _wrong("-c, -t: the number of clients must be greater than or equal to the number of threads.")
    if args.rate is not None:
        if args.rate < args.threads:
            _wrong("-r, -t: the connection rate must be greater than or equal to the number of threads.")
        if args.rate > args.clients:
            _wrong("-r, -c: the connection rate must be smaller than or equal to the number of clients.")
    for what, given in (("-D", args.duration_s), ("--rps", args.per_client_s), ("-r", args.rate)):
        if args.timing_file is not None and given:
            raise Refused(what, TOOL, None, "together with --timing-script-file", "use only one", "conflict")
    if args.per_client_s and args.rate is not None:
        raise Refused("-r", TOOL, None, "together with --rps", "use only one", "conflict")
    if args.active_s and args.rate is not None:
        raise Refused("-T", TOOL, None, "together with -r", "use only one", "conflict")


def _number(attribute: str) -> Callable[[H2loadArguments, str, str], None]:
    def take(into: H2loadArguments, value: str, flag: str) -> None:
        if not value.isdigit() or int(value) > MOST_NUMBER:
            _wrong(f"{_short(flag)}: bad option value: {value}")
        setattr(into, attribute, int(value))

    return take


def _rate(into: H2loadArguments, value: str, flag: str) -> None:
    _number("rate")(into, value, flag)
    if not into.rate:
        _wrong("-r: the rate at which connections are made must be positive.")


def seconds(text: str) -> float | None:
    """Seconds for h2load's durations: 10, 10s, 500ms, 2m, 1h; None for other texts."""
    match = re.fullmatch(r"(\d+)(h|m|s|ms)?", text)
    if match is None:
        return None
    value = int(match[1]) * {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}[match[2] or "s"]
    return value if value <= LONGEST_S else None


def _time(attribute: str, sentence: str) -> Callable[[H2loadArguments, str, str], None]:
    def take(into: H2loadArguments, value: str, _flag: str) -> None:
        parsed_s = seconds(value)
        if parsed_s is None:
            _wrong(sentence.format(value))
        setattr(into, attribute, parsed_s)

    return take


def _per_client(into: H2loadArguments, value: str, _flag: str) -> None:
    try:
        into.per_client_s = float(value)
    except ValueError:
        _wrong(f"--rps: Invalid value {value}")
    if not 0 <= into.per_client_s <= 1e6:
        _wrong(f"--rps: Invalid value {value}")


def _bits(attribute: str) -> Callable[[H2loadArguments, str, str], None]:
    def take(into: H2loadArguments, value: str, flag: str) -> None:
        if not value.isdigit() or int(value) > 30:
            _wrong(f"{_short(flag)}: specify the integer in the range [0, 30], inclusive")
        setattr(into, attribute, int(value))

    return take


def _size(flag: str, value: str) -> int:
    match = re.fullmatch(r"(\d+)([kmgKMG]?)", value)
    if match is None:
        _wrong(f"{flag}: Bad option value: {value}")
    return int(match[1]) << 10 * " kmg".index(match[2].lower() or " ")


def _frame(_into: H2loadArguments, value: str, _flag: str) -> None:
    size = _size("--max-frame-size", value)
    if size < SMALLEST_FRAME:
        _wrong(f"--max-frame-size: minimum {SMALLEST_FRAME}")
    if size > LARGEST_FRAME:
        _wrong(f"--max-frame-size: maximum {LARGEST_FRAME}")
    if size > SMALLEST_FRAME:
        raise Refused("-f", TOOL, None, f"frames of {value}", "leave it out: Prony takes frames of 16 KiB")


def _table(into: H2loadArguments, value: str, flag: str) -> None:
    size = _size(flag, value)
    if size > MOST_TABLE:
        raise Refused(flag, TOOL, None, f"a table of {value}", "use at most 64K", "limit")
    if into.table_bytes not in (None, size):
        raise Refused(
            flag, TOOL, None, "a different size from the other table", "use the same size", "conflict"
        )
    into.table_bytes = size


def _header(into: H2loadArguments, value: str, _flag: str) -> None:
    name, colon, rest = value[1:].partition(":")
    name = value[:1] + name
    if not colon or not name.strip() or not rest.strip() or re.search(r"[\r\n]", value):
        _wrong(f"-H: invalid header: {redaction.beginning(value)}")
    into.headers.append((name.strip().lower(), rest.strip()))


def _data(into: H2loadArguments, value: str, _flag: str) -> None:
    if not Path(value).is_file():
        _wrong(f"-d: Could not open file {value}")
    into.data = Path(value)


def _clear(into: H2loadArguments, value: str, _flag: str) -> None:
    if value not in ("h2c", "http/1.1"):
        _wrong(f"-p: unsupported protocol {value}")
    into.clear_protocol = value


def _protocols(into: H2loadArguments, value: str, _flag: str) -> None:
    into.protocols = tuple(value.split(","))


def _text(attribute: str) -> Callable[[H2loadArguments, str, str], None]:
    def take(into: H2loadArguments, value: str, _flag: str) -> None:
        setattr(into, attribute, value)

    return take


def _log(into: H2loadArguments, value: str, _flag: str) -> None:
    into.log = Path(value)


_VALUED: dict[str, Callable[[H2loadArguments, str, str], None]] = {
    "requests": _number("requests"),
    "clients": _number("clients"),
    "max-concurrent-streams": _number("streams"),
    "threads": _number("threads"),
    "rate": _rate,
    "rate-period": _time("rate_period_s", "--rate-period: value error {}"),
    "duration": _time("duration_s", "-D: value error {}"),
    "warm-up-time": _time("warm_up_s", "--warm-up-time: value error {}"),
    "connection-active-timeout": _time("active_s", "-T: bad value for the conn_active_timeout wait time: {}"),
    "connection-inactivity-timeout": _time(
        "inactive_s", "-N: bad value for the conn_inactivity_timeout wait time: {}"
    ),
    "rps": _per_client,
    "timing-script-file": _text("timing_file"),
    "input-file": _text("input_file"),
    "base-uri": _text("base"),
    "connect-to": _text("connect_to"),
    "sni": _text("sni"),
    "window-bits": _bits("window_bits"),
    "connection-window-bits": _bits("connection_window_bits"),
    "max-frame-size": _frame,
    "header-table-size": _table,
    "encoder-header-table-size": _table,
    "header": _header,
    "data": _data,
    "no-tls-proto": _clear,
    "npn-list": _protocols,
    "alpn-list": _protocols,
    "log-file": _log,
}


def _short(flag: str) -> str:
    """The name in h2load's messages: the letter where there is one."""
    return next((short for short, name in _NAMES.items() if f"--{name}" == flag), flag)


def _wrong(sentence: str) -> NoReturn:
    raise WrongUsage(sentence)
