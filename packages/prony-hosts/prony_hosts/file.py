"""Reader of `hosts.yaml`: scheduler, servers' hosts and load hosts. Errors name the line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from prony.errors import UsageError
from prony.host.proc import parse_cpus
from prony.plan.yamlfile import read_mapping, validate

Role = Literal["server", "load"]
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def bits_per_s(text: object) -> object:
    """Bits per second from `10 Gbit/s`, `100M` or a number."""
    if isinstance(text, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?)(?:bit)?(?:/s|ps)?\s*", text, re.IGNORECASE)
        if match is None:
            raise ValueError("expected bits per second, such as 10 Gbit/s or 100M")
        return float(match[1]) * _UNITS[match[2].lower()]
    return text


def _cpus(text: object) -> object:
    """A list of CPUs; a single one may be a number."""
    if isinstance(text, int) and not isinstance(text, bool):
        text = str(text)
    if isinstance(text, str):
        try:
            parse_cpus(text)
        except UsageError as fault:
            raise ValueError(str(fault)) from fault
    return text


def is_loopback(host: str) -> bool:
    """Whether the address is loopback. Of names only localhost counts."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def transport_fault(
    scheduler: str, certificates: bool, insecure: bool, listen: Iterable[str | None] = ()
) -> str | None:
    """Why a transport is refused, or None. TLS needs certificates, plain TCP loopback or `insecure`."""
    try:
        parts = urlsplit(scheduler)
        port = parts.port
    except ValueError:
        port = None
    if port is None or parts.scheme not in ("tls", "tcp") or not parts.hostname:
        return f"'{scheduler}' is not a scheduler's address; expected tls://ADDRESS:PORT, such as tls://10.0.0.1:8786"
    if parts.scheme == "tls":
        return None if certificates else "tls:// needs certificates; prony hosts certificates DIR makes them"
    if insecure or all(is_loopback(address) for address in (parts.hostname, *listen) if address):
        return None
    return (
        "tcp:// beyond loopback lets every client of the port run programs on all hosts; use tls:// "
        "with certificates, or insecure (hosts.yaml: insecure: true, the worker: --insecure)"
    )


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LabKeys(_Keys):
    """Address and certificates of the laboratory's scheduler."""

    scheduler: str
    """`tls://ADDRESS:PORT`; `tcp://` on loopback or with `insecure`."""
    certificates: Path | None = None
    """Folder made by `prony hosts certificates`; relative to the file."""
    insecure: bool = False
    """Plain TCP beyond loopback: every client of the port can run programs on all hosts."""

    @model_validator(mode="after")
    def _transport(self) -> LabKeys:
        fault = transport_fault(self.scheduler, self.certificates is not None, self.insecure)
        if fault is not None:
            raise ValueError(fault)
        return self

    @property
    def host(self) -> str:
        """The scheduler's address without the port."""
        return urlsplit(self.scheduler).hostname or ""


class HostKeys(_Keys):
    """A host, reached by ssh or by a worker started there by hand."""

    ssh: str | None = None
    """`[USER@]HOST[:PORT]`, resolved by ~/.ssh/config."""
    connect: str | None = None
    """Name of a worker started with `prony hosts worker --name NAME`."""
    name: str | None = None
    """Name in results; by default the value of `ssh` or `connect` without the user."""
    prony: str = "prony"
    """The command on that host."""
    address: str | None = None
    """Address at which load hosts reach this host; by default its worker's listening address."""
    listen: str | None = None
    """Listening address of the worker; by default the host's address towards the scheduler."""
    cpus: Annotated[str | None, BeforeValidator(_cpus)] = None
    """CPUs of the server on a server's host, of the engine on a load host, such as 0-15."""
    link: Annotated[float | None, BeforeValidator(bits_per_s), Field(gt=0)] = None
    """Link speed in bits per second where the host cannot read it, such as 10 Gbit/s."""

    @model_validator(mode="after")
    def _one_way(self) -> HostKeys:
        if (self.ssh is None) == (self.connect is None):
            raise ValueError("expected either ssh: [USER@]HOST or connect: NAME")
        return self

    @property
    def named(self) -> str:
        """Name of the host in results and messages."""
        return self.name or self.connect or ssh_parts(self.ssh or "")[1]


class LoadKeys(HostKeys):
    """A load host."""

    weight: Annotated[float, Field(gt=0, le=1_000)] = 1.0
    """Its share of users and rates is weight ÷ sum of all weights."""


class HostsFile(_Keys):
    """The whole file. Without `server` and `servers` the target is a server at a URL."""

    lab: LabKeys
    server: HostKeys | None = None
    servers: dict[str, HostKeys] = Field(default_factory=dict)
    """Groups of one host each, such as x86 and arm; the pairs (server, machine) are compared."""
    load: Annotated[tuple[LoadKeys, ...], Field(min_length=1, max_length=256)]

    @model_validator(mode="after")
    def _once(self) -> HostsFile:
        if self.server is not None and self.servers:
            raise ValueError("expected either server: (one host) or servers: (one host per name)")
        twice = [name for name, times in Counter(host.name for host in self.hosts()).items() if times > 1]
        if twice:
            raise ValueError(f"two hosts have the name '{twice[0]}'; give each its own name:")
        return self

    @model_validator(mode="after")
    def _listens(self) -> HostsFile:
        lab = self.lab
        listen = [host.keys.listen for host in self.hosts()]
        fault = transport_fault(lab.scheduler, lab.certificates is not None, lab.insecure, listen)
        if fault is not None:
            raise ValueError(fault)
        return self

    def hosts(self) -> tuple[Host, ...]:
        """All hosts of the file: servers' hosts, then load hosts."""
        grouped = {"": self.server} if self.server else self.servers
        servers = [
            Host(group=group, role="server", weight=1.0, keys=keys)
            for group, keys in grouped.items()
            if keys is not None
        ]
        return (*servers, *(Host(group="", role="load", weight=keys.weight, keys=keys) for keys in self.load))


class Host(BaseModel):
    """A host with its role."""

    model_config = ConfigDict(frozen=True)

    group: str
    """The name under `servers:`; empty for `server:` and load hosts."""
    role: Role
    weight: float
    keys: HostKeys

    @property
    def name(self) -> str:
        """Name in results and messages: the group's where there is one."""
        return self.keys.name or self.group or self.keys.named

    @property
    def worker(self) -> str:
        """Name under which its worker registers."""
        return self.keys.connect or self.name


def read(path: Path, *, insecure: bool = False) -> HostsFile:
    """Reads the file; the certificates' folder becomes absolute. Raises UsageError."""
    data, lines = read_mapping(path)
    lab = data.get("lab")
    if insecure and isinstance(lab, dict):
        data["lab"] = {**lab, "insecure": True}
    hosts = validate(HostsFile, data, path, lines)
    folder = hosts.lab.certificates
    if folder is None:
        return hosts
    absolute = (path.parent / folder.expanduser()).resolve()
    if hosts.lab.scheduler.startswith("tls://") and not absolute.is_dir():
        raise UsageError(
            f"{path}:{lines.get(('lab', 'certificates'), 1)}: folder {absolute} does not exist; create it: "
            f"prony hosts certificates {absolute}"
        )
    return hosts.model_copy(update={"lab": hosts.lab.model_copy(update={"certificates": absolute})})


def ssh_parts(text: str) -> tuple[str | None, str, int | None]:
    """User, host and port of `[USER@]HOST[:PORT]`; IPv6 addresses with a port stand in brackets."""
    user, _, rest = text.rpartition("@")
    match = re.fullmatch(r"(?:\[([^]]+)\]|([^:]+))(?::(\d+))?", rest)
    if match is None:
        return user or None, rest, None
    return user or None, match[1] or match[2], int(match[3]) if match[3] else None
