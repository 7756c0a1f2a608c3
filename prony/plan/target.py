"""Targets: a server that Prony launches, or the URL of a running one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator

from prony import redaction
from prony.errors import UsageError
from prony.evidence.base import Record
from prony.plan.step import Auth, Basic

Value = int | float | str
"""Value of a server's setting."""
_URL = re.compile(r"[A-Za-z][\w+.-]*://|unix:/|localhost(/|$)|([^/\s:=+]+|\[[^/\s]+\]):\d+(/|$)")
"""Start of a URL: a scheme or HOST:PORT (variants of servers are not numbers)."""


IMAGE = "image:"
"""Before the name of a container image."""


class TlsOptions(Record):
    """TLS options of an https URL."""

    ca: Path | None = None
    """PEM file of trusted certificates, instead of the system's."""
    insecure: bool = False
    """Whether any certificate is accepted."""
    client_cert: Path | None = None
    """PEM file of the client's certificate chain; with `client_key`."""
    client_key: Path | None = None
    sni: str | None = None
    """Server name in the handshake, in place of the URL's host."""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.ca is not None and self.insecure:
            raise ValueError("ca and insecure exclude each other: with insecure nothing is checked")
        if (self.client_cert is None) != (self.client_key is None):
            raise ValueError("client_cert and client_key need each other: give both or neither")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(file for file in (self.ca, self.client_cert, self.client_key) if file is not None)


class CountKeys(Record):
    """A server's request counter: a path with a JSON response, and the pointer to the number."""

    path: str = Field(pattern="^/")
    pointer: str = Field(pattern="^/")
    """JSON pointer (RFC 6901)."""


class Launch(Record):
    """A server that Prony launches for each trial, with the plan's settings."""

    kind: Literal["launch"] = "launch"
    owned: ClassVar[bool] = True
    """Whether Prony starts and stops it."""
    address: str
    """NAME, NAME:VARIANT or NAME:VARIANT+setting=value; NAME may be the absolute path of a server.yaml or of
    its folder; or image:NAME. With `folder` a command line.
    """
    folder: Path | None = None
    """Where a command line runs, absolute."""
    known_as: str | None = None
    """Name in results, where another folder of the plan has the same name."""
    jdk: str | None = None
    heap: str | None = None
    jvm_flags: tuple[str, ...] = ()
    settings: dict[str, Value] = Field(default_factory=dict)
    machine: str | None = None
    """Group in hosts.yaml of the launching host; None: the only server's host, or this one."""


class Url(Record):
    """A running server: Prony does not start, pin or stop it."""

    kind: Literal["url"] = "url"
    owned: ClassVar[bool] = False
    url: str
    """Scheme, host and port (`http://127.0.0.1:8080`), or `unix:/PATH`; paths are in the workload."""
    tls: TlsOptions = TlsOptions()
    """Only used with https."""
    addresses: tuple[str, ...] = ()
    """HOST:PORT to connect to instead of the URL's host, such as a proxy; several round-robin."""
    others: tuple[str, ...] = ()
    """URLs of further servers named by the workload's steps."""
    counts: CountKeys | None = None
    """The server's request counter, to compare with the engine's count."""

    @property
    def unix(self) -> str | None:
        return self.url.removeprefix("unix:") if self.url.startswith("unix:") else None

    @property
    def https(self) -> bool:
        return self.url.startswith("https:")

    @property
    def host(self) -> str:
        return "localhost" if self.unix is not None else urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        return 0 if self.unix is not None else urlsplit(self.url).port or (443 if self.https else 80)

    @property
    def all_addresses(self) -> tuple[tuple[str, int], ...]:
        """(host, port) of connections, round-robin."""
        if not self.addresses:
            return ((self.host, self.port),)
        parts = (address.rpartition(":") for address in self.addresses)
        return tuple((host.strip("[]"), int(port)) for host, _, port in parts)

    @property
    def every_address(self) -> tuple[tuple[str, int], ...]:
        others = (Url(url=other) for other in self.others)
        return (*self.all_addresses, *((other.host, other.port) for other in others))

    @property
    def first_address(self) -> tuple[str, int]:
        return self.all_addresses[0]


Target = Annotated[Launch | Url, Field(discriminator="kind")]


def is_url(word: str) -> bool:
    """Whether it is `http://HOST:PORT/PATH`, `HOST:PORT` or `unix:/PATH`."""
    return _URL.match(word) is not None


def is_image(word: str) -> bool:
    """Whether it is a container image, such as `image:nginx:1.29`."""
    return word.startswith(IMAGE)


def is_command(word: str) -> bool:
    """Whether it is a command line such as `python3 app.py --port={port}`."""
    is_line = "{port}" in word or any(map(str.isspace, word.strip()))
    return is_line and not is_url(word) and not Path(divided(word)[0]).exists()


def is_path(address: str) -> bool:
    name = address.partition(":")[0]
    return "/" in name or name in (".", "..") or name.endswith((".yaml", ".yml"))


def divided(address: str) -> tuple[str, str]:
    """(name or path of a server, variants and settings after the colon). Existing paths may hold colons."""
    ends = [len(address), *(match.start() for match in re.finditer(":", address))] if is_path(address) else []
    there = next((end for end in ends if Path(address[:end]).exists()), None)
    if there is not None:
        return address[:there], address[there + 1 :]
    name, _, rest = address.partition(":")
    return name, rest


def launched(
    address: str,
    *,
    folder: Path | None = None,
    jdk: str | None = None,
    heap: str | None = None,
    jvm_flags: tuple[str, ...] = (),
    settings: dict[str, Value] | None = None,
) -> Launch:
    """The server named by NAME, path or command line, with its launch options. A path is relative to `folder`
    (default: the current one) and becomes absolute. Raises UsageError for a program without its port.
    """
    beside = Path.cwd() if folder is None else folder.absolute()
    if command := is_command(address):
        name, rest = address.strip(), ""
    else:
        name, rest = divided(str(beside / address) if is_path(address) else address)
    if not command and is_path(name):
        at = Path(name)
        if at.is_file() and at.suffix not in (".yaml", ".yml"):
            raise UsageError(
                f"'{address}' is a program; name its command line with {{port}}, such as "
                f"'{address} --port={{port}}', or a folder with a server.yaml (docs/servers.md)"
            )
        name = str(at.resolve())
    return Launch(
        address=":".join(filter(None, (name, rest))),
        folder=beside if command else None,
        jdk=jdk,
        heap=heap,
        jvm_flags=jvm_flags,
        settings=settings or {},
    )


def with_jdk(target: Target, jdk: str) -> Target | None:
    return target.model_copy(update={"jdk": jdk}) if isinstance(target, Launch) else None


class RequestUrl(NamedTuple):
    """A URL as target and request path, and its user and password."""

    target: Url
    path: str
    auth: Auth | None = None


def parse_url(text: str) -> RequestUrl:
    """`http://HOST:PORT/PATH` or `unix:/PATH/OF.sock:/PATH`. Raises UsageError."""
    if text.startswith("unix:"):
        return _parse_unix(text)
    shown, expected = redaction.url(text), "expected http://HOST:PORT/PATH"
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
    except ValueError as fault:
        raise UsageError(f"invalid URL: '{shown}' ({redaction.url(str(fault))}); {expected}") from fault
    try:
        if (port := parts.port) == 0:
            raise ValueError
    except ValueError as fault:
        raise UsageError(f"invalid URL: '{shown}' has no valid port; expected 1 to 65535") from fault
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"invalid URL: '{shown}' has the scheme '{parts.scheme}'; {expected}")
    if not parts.hostname or not parts.netloc.isprintable() or " " in parts.netloc:
        raise UsageError(f"invalid URL: '{shown}' names no host; {expected}")
    name, _, _ = parts.hostname.partition("%")
    host = f"[{name}]" if ":" in name else parts.hostname
    port = port or (443 if parts.scheme == "https" else 80)
    zone = parts.hostname.removeprefix(name).replace("%25", "%") if ":" in name else ""
    addresses = (f"[{name}{zone}]:{port}",) if zone else ()
    # An empty query is one, and urlsplit does not tell it from none.
    query = f"?{parts.query}" if parts.query or text.partition("#")[0].endswith("?") else ""
    auth = None
    if parts.username is not None:
        auth = Auth(basic=Basic(user=unquote(parts.username), password=unquote(parts.password or "")))
    at = Url(url=f"{parts.scheme}://{host}:{port}", addresses=addresses)
    return RequestUrl(at, (parts.path or "/") + query, auth)


def _parse_unix(text: str) -> RequestUrl:
    file, colon, path = text.removeprefix("unix:").partition(":/")
    if not file.startswith("/"):
        raise UsageError(
            f"invalid URL: '{text}' names no socket; expected unix:/PATH/OF.sock or unix:/PATH/OF.sock:/PATH"
        )
    return RequestUrl(Url(url=f"unix:{file}"), f"/{path}" if colon else "/")
