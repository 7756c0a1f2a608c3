"""`hosts.yaml`: the laboratory's scheduler, the servers' hosts and the load hosts, with errors that name the
line.
"""

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
    """`10 Gbit/s`, `100M` or a number, in bits per second."""
    if isinstance(text, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?)(?:bit)?(?:/s|ps)?\s*", text, re.IGNORECASE)
        if found is None:
            raise ValueError("expected bits per second, such as 10 Gbit/s or 100M")
        return float(found[1]) * _UNITS[found[2].lower()]
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
    """Whether only this host can reach the address. Of names only localhost is known to be so."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def transport_fault(
    scheduler: str, certificates: bool, insecure: bool, listen: Iterable[str | None] = ()
) -> str | None:
    """Why a scheduler may not be reached so, or workers may not listen there; None when they may. TLS takes
    certificates, plain TCP loopback addresses or the user's word.
    """
    try:
        parts = urlsplit(scheduler)
        port = parts.port
    except ValueError:
        port = None
    if port is None or parts.scheme not in ("tls", "tcp") or not parts.hostname:
        return f"'{scheduler}' is no address of a scheduler; expected tls://ADDRESS:PORT, such as tls://10.0.0.1:8786"
    if parts.scheme == "tls":
        return None if certificates else "tls:// needs certificates; prony hosts certificates DIR makes them"
    if insecure or all(is_loopback(one) for one in (parts.hostname, *listen) if one):
        return None
    return (
        "tcp:// beyond loopback lets everybody who reaches the port run programs on every host; use tls:// "
        "with certificates, or insecure (hosts.yaml: insecure: true, the worker: --insecure)"
    )


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LabKeys(_Keys):
    """Where the laboratory's scheduler listens."""

    scheduler: str
    """`tls://ADDRESS:PORT`; `tcp://` on loopback, or with `insecure`."""
    certificates: Path | None = None
    """The folder that `prony hosts certificates` made; relative to the file."""
    insecure: bool = False
    """Plain TCP beyond loopback: whoever reaches the port can run programs on every host."""

    @model_validator(mode="after")
    def _transport(self) -> LabKeys:
        fault = transport_fault(self.scheduler, self.certificates is not None, self.insecure)
        if fault is not None:
            raise ValueError(fault)
        return self

    @property
    def host(self) -> str:
        """The address of the scheduler without the port."""
        return urlsplit(self.scheduler).hostname or ""


class HostKeys(_Keys):
    """One host: reached by ssh, or by a worker that somebody started there."""

    ssh: str | None = None
    """`[USER@]HOST[:PORT]`, as ~/.ssh/config knows it."""
    connect: str | None = None
    """The name of a worker that somebody started with `prony hosts worker --name NAME`."""
    name: str | None = None
    """How results call the host; by default what stands after `ssh` or `connect`, without the user."""
    prony: str = "prony"
    """The command on that host."""
    address: str | None = None
    """Where load hosts reach this host; by default the address on which its worker listens."""
    listen: str | None = None
    """Where the worker listens; by default the address from which it reaches the scheduler."""
    cpus: Annotated[str | None, BeforeValidator(_cpus)] = None
    """CPUs of the server on a server's host, of the engine on a load host, such as 0-15."""
    link: Annotated[float | None, BeforeValidator(bits_per_s), Field(gt=0)] = None
    """Speed of the link in bits per second, where the host cannot read it, such as 10 Gbit/s."""

    @model_validator(mode="after")
    def _one_way(self) -> HostKeys:
        if (self.ssh is None) == (self.connect is None):
            raise ValueError("expected one of ssh: [USER@]HOST and connect: NAME")
        return self

    @property
    def named(self) -> str:
        """The name of the host in results and messages."""
        return self.name or self.connect or ssh_parts(self.ssh or "")[1]


class LoadKeys(HostKeys):
    """A load host."""

    weight: Annotated[float, Field(gt=0, le=1_000)] = 1.0
    """Its share of users and rates is weight ÷ sum of the weights."""


class HostsFile(_Keys):
    """The whole file. `server` and `servers` may both be left out: only load hosts, for a server at a URL."""

    lab: LabKeys
    server: HostKeys | None = None
    servers: dict[str, HostKeys] = Field(default_factory=dict)
    """Groups of one host each, such as x86 and arm: the thing compared is the pair (server, machine)."""
    load: Annotated[tuple[LoadKeys, ...], Field(min_length=1, max_length=256)]

    @model_validator(mode="after")
    def _once(self) -> HostsFile:
        if self.server is not None and self.servers:
            raise ValueError("expected one of server: (one host) and servers: (a host for each name)")
        twice = [name for name, times in Counter(host.name for host in self.hosts()).items() if times > 1]
        if twice:
            raise ValueError(f"two hosts are called '{twice[0]}'; give each a name: of its own")
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
        """Every host of the file: servers' hosts, then load hosts."""
        grouped = {"": self.server} if self.server else self.servers
        servers = [
            Host(group=group, role="server", weight=1.0, keys=keys)
            for group, keys in grouped.items()
            if keys is not None
        ]
        return (*servers, *(Host(group="", role="load", weight=one.weight, keys=one) for one in self.load))


class Host(BaseModel):
    """One host and what it is for."""

    model_config = ConfigDict(frozen=True)

    group: str
    """The name under `servers:`; empty for `server:` and load hosts."""
    role: Role
    weight: float
    keys: HostKeys

    @property
    def name(self) -> str:
        """In results and messages: the group's name where there is one."""
        return self.keys.name or self.group or self.keys.named

    @property
    def worker(self) -> str:
        """How its worker calls itself to the scheduler."""
        return self.keys.connect or self.name


def read(path: Path, *, insecure: bool = False) -> HostsFile:
    """The file as a model; the folder of certificates becomes absolute. Raises UsageError."""
    data, lines = read_mapping(path)
    lab = data.get("lab")
    if insecure and isinstance(lab, dict):
        data["lab"] = {**lab, "insecure": True}
    found = validate(HostsFile, data, path, lines)
    folder = found.lab.certificates
    if folder is None:
        return found
    absolute = (path.parent / folder.expanduser()).resolve()
    if found.lab.scheduler.startswith("tls://") and not absolute.is_dir():
        raise UsageError(
            f"{path}:{lines.get(('lab', 'certificates'), 1)}: there is no folder {absolute}; make it: "
            f"prony hosts certificates {absolute}"
        )
    return found.model_copy(update={"lab": found.lab.model_copy(update={"certificates": absolute})})


def ssh_parts(text: str) -> tuple[str | None, str, int | None]:
    """User, host and port of `[USER@]HOST[:PORT]`; an IPv6 address with a port stands in brackets."""
    user, _, rest = text.rpartition("@")
    found = re.fullmatch(r"(?:\[([^]]+)\]|([^:]+))(?::(\d+))?", rest)
    if found is None:
        return user or None, rest, None
    return user or None, found[1] or found[2], int(found[3]) if found[3] else None
