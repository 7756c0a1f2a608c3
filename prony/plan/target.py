"""What is measured, as a value: a server that Prony starts, or the URL of one that is running already.

A further kind is a class here and a class in prony.targets.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field

from prony import redaction
from prony.errors import UsageError
from prony.evidence.base import Record

Value = int | float | str
"""What a server's setting holds."""
_URL = re.compile(r"[A-Za-z][\w+.-]*://|unix:/|([^/\s:=+]+|\[[^/\s]+\]):\d+(/|$)")
"""How a URL begins, with a scheme or with HOST:PORT; no variant of a server is a number."""


class TlsOptions(Record):
    """How the engine speaks TLS with an https URL."""

    ca: Path | None = None
    """A PEM file with the certificates to trust instead of the system's."""
    insecure: bool = False
    """Any certificate is taken for the server's own."""
    client_cert: Path | None = None
    """A PEM file with the client's certificate chain; together with `client_key`."""
    client_key: Path | None = None
    sni: str | None = None
    """The name that the server is asked for, in place of the URL's host."""


class CountKeys(Record):
    """Where a server says how many requests it has read: a JSON response, and where in it the number stands.
    That request itself is not counted there.
    """

    path: str = Field(pattern="^/")
    pointer: str = Field(pattern="^/")
    """JSON pointer (RFC 6901)."""


class Launch(Record):
    """A server that Prony starts for each trial: its address, and what the plan sets."""

    kind: Literal["launch"] = "launch"
    owned: ClassVar[bool] = True
    """Prony starts and stops it."""
    address: str
    """NAME, NAME:VARIANT or NAME:VARIANT+setting=value; in place of NAME the absolute path of a server.yaml
    or of its folder.
    """
    known_as: str | None = None
    """In results, where that is not its own name: another folder of the plan has that name, too."""
    jdk: str | None = None
    heap: str | None = None
    jvm_flags: tuple[str, ...] = ()
    settings: dict[str, Value] = Field(default_factory=dict)
    machine: str | None = None
    """Of hosts.yaml: the group of the host that launches it; None: its only server's host, or this one."""


class Url(Record):
    """A server that is running already, and stays so: Prony neither starts, pins nor stops it."""

    kind: Literal["url"] = "url"
    owned: ClassVar[bool] = False
    url: str
    """Scheme, host and port (`http://127.0.0.1:8080`), or `unix:/PATH`; the paths stand in the workload."""
    tls: TlsOptions = TlsOptions()
    """Only used with https."""
    addresses: tuple[str, ...] = ()
    """HOST:PORT where connections go in place of the URL's host, such as a proxy; several in turn."""
    others: tuple[str, ...] = ()
    """Where the further servers are that the workload's steps name, as URLs."""
    counts: CountKeys | None = None
    """A server that counts its requests: the engine's own count is held against it."""

    @property
    def unix(self) -> str | None:
        """The path of a Unix socket, in place of host and port."""
        return self.url.removeprefix("unix:") if self.url.startswith("unix:") else None

    @property
    def https(self) -> bool:
        """Whether connections are secured."""
        return self.url.startswith("https:")

    @property
    def host(self) -> str:
        """The host of the URL."""
        return "localhost" if self.unix is not None else urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port of the URL; 0 of a Unix socket."""
        return 0 if self.unix is not None else urlsplit(self.url).port or (443 if self.https else 80)

    @property
    def all_addresses(self) -> tuple[tuple[str, int], ...]:
        """Hosts and ports that connections go to, in turn."""
        if not self.addresses:
            return ((self.host, self.port),)
        parts = (address.rpartition(":") for address in self.addresses)
        return tuple((host.strip("[]"), int(port)) for host, _, port in parts)

    @property
    def every_address(self) -> tuple[tuple[str, int], ...]:
        """Those of the further servers too."""
        others = (Url(url=other) for other in self.others)
        return (*self.all_addresses, *((other.host, other.port) for other in others))

    @property
    def first_address(self) -> tuple[str, int]:
        """Host and port of the first connection."""
        return self.all_addresses[0]


Target = Annotated[Launch | Url, Field(discriminator="kind")]


def is_url(word: str) -> bool:
    """Whether it says where a running server is: `http://HOST:PORT/PATH`, `HOST:PORT` or `unix:/PATH`."""
    return _URL.match(word) is not None


def is_path(address: str) -> bool:
    """Whether it names a folder or a file, and not a server of the catalogue."""
    name = address.partition(":")[0]
    return "/" in name or name in (".", "..") or name.endswith((".yaml", ".yml"))


def divided(address: str) -> tuple[str, str]:
    """The name or path of a server, and behind the colon its variants and settings. A path that is there may
    have colons of its own.
    """
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
    """The server that a command or a plan file names by NAME or by path, and how it is to be started. A path
    is relative to `folder` (by default the current one), and from then on means the same everywhere. Raises
    UsageError for a command line.
    """
    name, rest = divided(_absolute(address, folder) if is_path(address) else address)
    at = Path(name)
    if any(map(str.isspace, name.strip())) and not at.exists():
        raise _no_server(address, "a command line")
    if is_path(name):
        if at.is_file() and at.suffix not in (".yaml", ".yml"):
            raise _no_server(address, "no server.yaml")
        name = str(at.resolve())
    return Launch(
        address=":".join(filter(None, (name, rest))),
        jdk=jdk,
        heap=heap,
        jvm_flags=jvm_flags,
        settings=settings or {},
    )


def _absolute(address: str, folder: Path | None) -> str:
    return str((Path.cwd() if folder is None else folder.absolute()) / address)


def _no_server(word: str, what: str) -> UsageError:
    return UsageError(
        f"'{word}' is {what}; put the program into a server.yaml as its command: and name that folder "
        "(docs/servers.md)"
    )


def with_jdk(target: Target, jdk: str) -> Target | None:
    """The same on another JDK; None where that is not Prony's to choose."""
    return target.model_copy(update={"jdk": jdk}) if isinstance(target, Launch) else None


class RequestUrl(NamedTuple):
    """What a user typed: where it goes, and what is requested there."""

    target: Url
    path: str


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
        port = parts.port
    except ValueError as fault:
        raise UsageError(f"invalid URL: '{shown}' has no valid port; expected 1 to 65535") from fault
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"invalid URL: '{shown}' has the scheme '{parts.scheme}'; {expected}")
    if not parts.hostname or not parts.netloc.isprintable() or " " in parts.netloc:
        raise UsageError(f"invalid URL: '{shown}' names no host; {expected}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    default = 443 if parts.scheme == "https" else 80
    return RequestUrl(Url(url=f"{parts.scheme}://{host}:{port or default}"), path)


def _parse_unix(text: str) -> RequestUrl:
    """`unix:/path/of.sock`, and behind another colon what is requested: `unix:/run/app.sock:/hello`."""
    file, colon, path = text.removeprefix("unix:").partition(":/")
    if not file.startswith("/"):
        raise UsageError(
            f"invalid URL: '{text}' names no socket; expected unix:/PATH/OF.sock or unix:/PATH/OF.sock:/PATH"
        )
    return RequestUrl(Url(url=f"unix:{file}"), f"/{path}" if colon else "/")
