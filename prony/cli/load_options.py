"""The options of `prony load`, each with the key of a plan file that it gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ValidationError
from typer import Option

from prony import redaction
from prony.cli import options
from prony.cli.common import is_given
from prony.errors import UsageError
from prony.plan.load import RatePhase
from prony.plan.think import NO_THINK, Think

if TYPE_CHECKING:
    from prony.plan.workload import Workload

THINK_FORMS = "500ms, uniform:0.5s,1.5s, exponential:1s or gaussian:1s,0.2s"
PHASE_FORMS = "a time, @, and a rate or two: 10s@0..100,60s@100"


def think(text: str | None, option: str = "--think") -> Think:
    """A think time such as `500ms` or `uniform:0.5s,1.5s`. Raises UsageError."""
    if text is None:
        return NO_THINK
    kind, colon, rest = text.partition(":")
    if not colon:
        ms = options.seconds(text, option) * 1000
        return Think(kind="constant", ms=ms) if ms else NO_THINK
    parts = rest.split(",")
    wanted = {"constant": 1, "uniform": 2, "exponential": 1, "gaussian": 2}
    if wanted.get(kind) != len(parts):
        raise UsageError(f"{option} is '{text}'; expected {THINK_FORMS}")
    first, last = (options.seconds(parts[at], option) * 1000 for at in (0, -1))
    match kind:
        case "constant":
            return Think(kind="constant", ms=first)
        case "uniform":
            if last < first:
                raise UsageError(f"{option} is '{text}'; expected the shorter time first: {THINK_FORMS}")
            return Think(kind="uniform", min_ms=first, max_ms=last)
        case "exponential":
            return Think(kind="exponential", mean_ms=first)
        case _:
            return Think(kind="gaussian", mean_ms=first, stdev_ms=last)


def phases(text: str, option: str = "--phases") -> tuple[RatePhase, ...]:
    """`10s@0..100,60s@100`: ten seconds from 0 to 100 arrivals per second, then a minute at 100."""
    rate_phases: list[RatePhase] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([\d.]+\w*)@(\d+(?:\.\d+)?)(?:\.\.(\d+(?:\.\d+)?))?\s*", part)
        if match is None:
            raise UsageError(f"{option} has '{part}'; expected {PHASE_FORMS}")
        rates = (float(match[2]), float(match[3] or match[2]))
        if max(rates) > options.MAX_RATE_PER_S:
            raise UsageError(
                f"{option} has '{part}'; expected at most {options.MAX_RATE_PER_S:,.0f} per second"
            )
        length_s = options.seconds(match[1], option, at_least_s=0.001)
        rate_phases.append(RatePhase(duration_s=length_s, from_per_s=rates[0], to_per_s=rates[1]))
    if not any(phase.from_per_s or phase.to_per_s for phase in rate_phases):
        raise UsageError(f"{option} is '{text}', without any arrivals; expected {PHASE_FORMS}")
    return tuple(rate_phases)


def host_and_port(address: str, option: str) -> str:
    """The same, checked. Raises UsageError for what names no port."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"{option} is '{address}'; expected HOST:PORT, such as 127.0.0.2:8080 or [::1]:8080")
    return address


def resolved(given: list[str], host: str, port: int) -> list[str]:
    """HOST:PORT of the addresses that --resolve gives to a host. Raises UsageError for any other's."""
    addresses = []
    for entry in given:
        name, _, address = entry.partition(":")
        if name.startswith("["):
            name, _, address = entry.partition("]:")
        requested_port, colon, after = address.partition(":")
        if requested_port.isdecimal() and colon:
            address = after
        else:
            requested_port = str(port)
        try:
            ip = ip_address(address.strip("[]"))
        except ValueError as fault:
            raise UsageError(f"--resolve is '{entry}'; expected HOST:ADDRESS or HOST:PORT:ADDRESS") from fault
        if (name.strip("[").lower(), requested_port) != (host.lower(), str(port)):
            raise UsageError(f"--resolve is '{entry}'; expected the URL's host and port, {host}:{port}")
        addresses.append(f"[{ip}]:{port}" if ip.version == 6 else f"{ip}:{port}")
    return addresses


def _as_typed(value: object, _option: str) -> object:
    return value


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Requests, load model and measured part of `prony load`."""

    method: Annotated[
        str | None, Option("--method", "-X", help="Request method [default: GET, with a body POST].")
    ] = None
    header: Annotated[
        list[str] | None, Option("--header", "-H", help="Request header, such as 'Accept: */*'; repeatable.")
    ] = None
    body: Annotated[
        str | None,
        Option("--body", "--data", help="Request body; @FILE sends a file. ${…} placeholders: "
               "docs/engine.md."),
    ] = None  # fmt: skip
    body_file: Annotated[
        Path | None, Option("--body-file", help="Request body from a file, byte for byte.")
    ] = None
    users: Annotated[
        int | None,
        Option("--users", "-c", help="Closed loop: number of users, a connection each [default: 10]."),
    ] = None
    think: Annotated[
        str | None,
        Option("--think", help="Think time after each response: 500ms, uniform:0.5s,1.5s, "
               "exponential:1s or gaussian:1s,0.2s."),
    ] = None  # fmt: skip
    rate: Annotated[
        float | None, Option("--rate", "-r", help="Open loop: requests per second, independent of responses.")
    ] = None
    arrivals: Annotated[
        str | None, Option("--arrivals", help="Open loop: arrivals constant or poisson [default: constant].")
    ] = None
    max_users: Annotated[
        int | None,
        Option("--max-users", help="Open loop: maximum concurrent requests; one more is blocked and "
               "counted [default: a second's worth, 100 to 10000]."),
    ] = None  # fmt: skip
    phases: Annotated[
        str | None, Option("--phases", help="Open loop: the rate over time, such as 10s@0..100,60s@100.")
    ] = None
    sessions: Annotated[
        bool, Option("--sessions", help="Open loop: each arrival is a user who runs the workload once.")
    ] = False
    deadline: Annotated[
        str | None, Option("--deadline", help="Open loop: deadline of a request, from its due time.")
    ] = None
    ramp_up: Annotated[
        str | None, Option("--ramp-up", help="Ramp-up duration of users or rate, such as 10s.")
    ] = None
    ramp_down: Annotated[str | None, Option("--ramp-down", help="Ramp-down duration of a closed loop.")] = (
        None
    )
    workload: Annotated[
        str | None,
        Option("--workload", "-w", help="Run this workload (a name, or a .yaml file) instead of "
               "one request."),
    ] = None  # fmt: skip
    duration: Annotated[
        str | None,
        Option("--duration", "-d", help="Measurement time, such as 30s [default: until the "
               "throughput is good to ±5 %, 10s to 60s]."),
    ] = None  # fmt: skip
    requests: Annotated[
        int | None, Option("--requests", "-n", help="Number of requests, measured from the first.")
    ] = None
    whole: Annotated[
        bool, Option("--whole", help="With --duration: measure from the first request, ramps included.")
    ] = False
    iterations: Annotated[
        int | None, Option("--iterations", help="Iterations per user, measured from the first.")
    ] = None
    warmup: Annotated[
        str | None,
        Option("--warmup", help="Warm-up load before the measured part, such as 5s [default: the "
               "ramp and 3s; with -n none]."),
    ] = None  # fmt: skip
    connection_per_request: Annotated[
        bool, Option("--connection-per-request", help="No keep-alive: a new connection per request.")
    ] = False
    requests_per_connection: Annotated[
        int | None,
        Option("--requests-per-connection", help="Requests per connection; the client then closes it."),
    ] = None
    close: Annotated[
        str | None,
        Option("--close", help="Who closes a connection first: client, wait (for the server, at most 1 s) or "
               "reset [default: client]."),
    ] = None  # fmt: skip
    pipeline: Annotated[
        int,
        Option("--pipeline", help="Pipelining: requests sent together before the first response is awaited."),
    ] = 1
    http_version: Annotated[str, Option("--http-version", help="1.1, 2 or 1.0.")] = "1.1"
    streams: Annotated[int, Option("--streams", help="HTTP/2: concurrent streams per connection.")] = 1
    address: Annotated[
        list[str] | None,
        Option("--address", help="Connect to HOST:PORT instead of the URL's host; repeatable, used "
               "round-robin."),
    ] = None  # fmt: skip
    source: Annotated[
        list[str] | None,
        Option("--source", help="Source address of connections; repeatable, used round-robin."),
    ] = None
    ca: Annotated[
        Path | None, Option("--ca", help="https: PEM file of trusted certificates, instead of the system's.")
    ] = None
    insecure: Annotated[
        bool, Option("--insecure", help="https: accept any certificate; the report says so.")
    ] = False
    client_cert: Annotated[
        Path | None,
        Option("--client-cert", help="https: the client's certificate chain (PEM); with --client-key."),
    ] = None
    client_key: Annotated[Path | None, Option("--client-key", help="https: the client's key (PEM).")] = None
    sni: Annotated[
        str | None, Option("--sni", help="https: server name (SNI) [default: the URL's host].")
    ] = None
    tls_version: Annotated[
        str | None, Option("--tls-version", help="https: only 1.2 or only 1.3 [default: both].")
    ] = None
    no_resumption: Annotated[bool, Option("--no-resumption", help="The same as --tls-sessions none.")] = False
    tls_sessions: Annotated[
        str | None,
        Option("--tls-sessions", help="https: sessions that a new connection resumes: of its user, shared or "
               "none [default: user]."),
    ] = None  # fmt: skip
    ipv4: Annotated[bool, Option("--ipv4", "-4", help="Connect to IPv4 addresses only.")] = False
    ipv6: Annotated[bool, Option("--ipv6", "-6", help="Connect to IPv6 addresses only.")] = False
    resolve: Annotated[
        list[str] | None,
        Option("--resolve", help="HOST:ADDRESS, or HOST:PORT:ADDRESS: connect to ADDRESS for this host; "
               "repeatable."),
    ] = None  # fmt: skip
    log: Annotated[
        Path | None,
        Option("--log", help="Also write a row per request to this CSV file (docs/engine.md)."),
    ] = None
    trials: Annotated[int, Option("--trials", help="Number of trials.")] = 1

    def keys(self) -> dict[str, dict[str, Any]]:
        """Section -> key -> value, of the options that were given. Raises UsageError."""
        sections: dict[str, dict[str, Any]] = {section: {} for section in KEYS}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in READ and is_given(value, field.default):
                section, key, read = READ[field.name]
                sections[section][key] = read(value, KEYS[section][key])
        return sections


def _s(at_least_s: float = 0.0, times: float = 1.0) -> Callable[[str, str], float]:
    return lambda text, option: times * options.seconds(text, option, at_least_s=at_least_s)


def _one_of(*known: str) -> Callable[[str, str], str]:
    return lambda word, option: options.one_of(word, option, known)


READ: dict[str, tuple[str, str, Callable[[Any, str], Any]]] = {
    "users": ("loads", "users", lambda number, _: options.users(number)),
    "think": ("loads", "think", think),
    "rate": ("loads", "rate_per_s", lambda rate, _: options.rate(rate)),
    "arrivals": ("loads", "arrivals", _one_of("constant", "poisson")),
    "max_users": ("loads", "max_users", lambda number, _: options.max_users(number)),
    "phases": ("loads", "phases", phases),
    "sessions": ("loads", "session", lambda *_: "user"),
    "deadline": ("loads", "deadline_ms", _s(0.001, times=1000)),
    "ramp_up": ("loads", "ramp_up_s", _s()),
    "ramp_down": ("loads", "ramp_down_s", _s()),
    "duration": ("measured", "window_s", _s(1.0)),
    "requests": ("measured", "total_requests", lambda number, _: options.requests(number)),
    "iterations": ("measured", "iterations_per_user", lambda number, _: options.requests(number)),
    "connection_per_request": ("connections", "keep_alive", lambda *_: False),
    "requests_per_connection": ("connections", "max_requests", _as_typed),
    "close": ("connections", "close", _one_of("client", "wait", "reset")),
    "pipeline": ("connections", "pipeline", _as_typed),
    "http_version": ("connections", "http_version", _one_of("1.0", "1.1", "2")),
    "streams": ("connections", "streams", _as_typed),
    "tls_version": ("connections", "tls_version", _one_of("1.2", "1.3")),
    "no_resumption": ("connections", "tls_sessions", lambda *_: "none"),
    "tls_sessions": ("connections", "tls_sessions", _one_of("user", "shared", "none")),
    "ipv4": ("connections", "family", lambda *_: "ipv4"),
    "ipv6": ("connections", "family", lambda *_: "ipv6"),
    "address": (
        "servers",
        "addresses",
        lambda each, option: [host_and_port(address, option) for address in each],
    ),
    "source": ("servers", "source_addresses", _as_typed),
    "ca": ("servers", "ca", lambda file, _: str(file)),
    "client_cert": ("servers", "client_cert", lambda file, _: str(file)),
    "client_key": ("servers", "client_key", lambda file, _: str(file)),
    "insecure": ("servers", "insecure", _as_typed),
    "sni": ("servers", "sni", _as_typed),
}
"""Option -> section and key of a plan file, and its value from what was typed (value, option)."""
KEYS: dict[str, dict[str, str]] = {section: {} for section, _, _ in READ.values()}
"""Section -> key -> the option that gives it."""
for _name, (_section, _key, _) in READ.items():
    KEYS[_section][_key] = f"--{_name.replace('_', '-')}"


def in_options(fault: ValidationError, section: str) -> str:
    """What a model of the plan file says of its keys, in the words of the options that gave them."""
    error = fault.errors(include_url=False)[0]
    names = KEYS[section] | KEYS["loads"] if section == "measured" else KEYS[section]
    message = (
        str(error["msg"])
        .removeprefix("Value error, ")
        .replace("session: user", "session")
        .replace("keep_alive: false", "keep_alive")
    )
    message = re.sub(r"'([\d.]+)'", r"\1", message)
    message = re.sub(r" and (populations|count)\b", "", message)  # keys that are no options
    message = re.sub(r"\b[a-z_]+\b(?! time)", lambda word: names.get(word[0], word[0]), message)
    message = message.replace("Input should", "it should")
    option = names.get(str(error["loc"][-1])) if error["loc"] else None
    return message if option is None else f"{option} is {error['input']}; {message}"


def request(
    path: str, method: str | None, headers: list[str], body: str | None, body_file: Path | None
) -> Workload:
    """A workload of a repeated request. Raises UsageError for an invalid request."""
    from pydantic import ValidationError

    from prony.plan.step import METHODS
    from prony.plan.workload import from_url

    if body is not None and body.startswith("@"):
        if body_file is not None:
            raise UsageError("--data @FILE and --body-file exclude each other")
        body_file = Path(body[1:])
        body = None
    if body is not None and body_file is not None:
        raise UsageError("--body and --body-file exclude each other")
    if body_file is not None and not body_file.is_file():
        raise UsageError(f"the body's file {body_file} is not there; name a file that can be read")
    word = method.upper() if method is not None else "GET" if body is None and body_file is None else "POST"
    chosen = options.one_of(word, "--method", METHODS)
    for option, text in (*(("--header", line) for line in headers), ("--body", body or "")):
        if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise UsageError(f"{option} holds bytes that are not UTF-8; send such bytes by --body-file")
    pairs: dict[str, tuple[str, ...]] = {}
    for line in headers:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or "\n" in line or "\r" in line:
            shown = redaction.beginning(line)
            raise UsageError(f"--header is '{shown}'; expected a name, a colon and a value: 'Accept: */*'")
        pairs[name.strip()] = (*pairs.get(name.strip(), ()), value.strip())
    sent = {name: values[0] if len(values) == 1 else values for name, values in pairs.items()}
    try:
        return from_url(path, chosen, sent, body, None if body_file is None else str(body_file.resolve()))
    except ValidationError as fault:
        reason = str(fault.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"the request cannot be sent: {reason}") from fault
