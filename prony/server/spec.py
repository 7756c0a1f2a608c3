"""The contents of `server.yaml`, `defaults.yaml` and `services/*.yaml`. A server's keys overlay those of its
runtime's `defaults.yaml` (which may inherit another runtime's); the keys of its variants overlay both.
Mappings are merged key by key, everything else replaces.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.base import Record
from prony.evidence.conformance import CHECKS, CLEAN_UP, PREPARE, STOP
from prony.plan.catalogue_roots import roots
from prony.plan.target import CountKeys
from prony.plan.yamlfile import nearest, read_mapping, validate

NATIVE = "native"
"""A server without a runtime."""


class BuildKeys(Record):
    """`tool` runs with `args` in a copy of `dir`; `artifact` is its result there."""

    tool: Literal["maven", "npm", "pip"]
    dir: str
    """In a file: relative to it (default: its directory); in a `ServerSpec`: absolute."""
    args: tuple[str, ...] = ()
    artifact: str = "."
    """`.` is the whole copy, sources included."""


class JdkRange(Record):
    """Supported majors; without `prefer` installed, the newest LTS in range."""

    min: int = Field(default=8, ge=8)
    max: int | None = None
    prefer: int | None = None

    @model_validator(mode="after")
    def _in_order(self) -> JdkRange:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"expected max to be at least min ({self.min})")
        if self.prefer is not None and not self.holds(self.prefer):
            raise ValueError(f"expected prefer within {self}")
        return self

    def holds(self, major: int) -> bool:
        return self.min <= major and (self.max is None or major <= self.max)

    def __str__(self) -> str:
        return f"{self.min} or newer" if self.max is None else f"{self.min} to {self.max}"


class ReadyKeys(Record):
    """The readiness request when the workload gives none."""

    path: str = Field(default="/", pattern="^/")
    status: int = 200


class Ceilings(Record):
    """Declared limits other than CPU."""

    worker_threads: int | None = Field(default=None, ge=1)
    worker_threads_per_cpu: int | None = Field(default=None, ge=1)
    worker_threads_min: int | None = Field(default=None, ge=1)
    max_connections: int | None = Field(default=None, ge=1)
    closes_after: int | None = Field(default=None, ge=1)
    """Requests after which the server closes a connection despite keep-alive."""

    def workers(self, granted_cpus: int) -> int | None:
        """Number of worker threads; None when unlimited."""
        if self.worker_threads is not None:
            return self.worker_threads
        if self.worker_threads_per_cpu is None:
            return None
        return max(self.worker_threads_per_cpu * granted_cpus, self.worker_threads_min or 1)


Scheme = Literal["http", "https"]
HttpVersion = Literal["1.1", "2"]
Heap = Annotated[str, Field(pattern=r"^[1-9]\d*[kmgKMG]$")]
"""Heap size as in -Xmx."""
Value = bool | int | float | str
"""Value of a setting or an option."""


class Layer(Record):
    """The keys of a `defaults.yaml`: a server's, all optional."""

    title: str | None = None
    runtime: str | None = None
    versions: dict[str, str] | None = None
    workloads: tuple[str, ...] | None = None
    build: dict[str, object] | None = None
    jdk: JdkRange | None = None
    command: tuple[str, ...] | None = None
    options: dict[str, Value | None] | None = None
    settings: dict[str, Value] | None = None
    env: dict[str, str] | None = None
    workdir: str | None = None
    scheme: Scheme | None = None
    http_version: HttpVersion | None = None
    jvm_flags: tuple[str, ...] | None = None
    heap: Heap | None = None
    ready: ReadyKeys | None = None
    ceilings: Ceilings | None = None
    services: tuple[str, ...] | None = None
    reports: str | None = None
    counts: CountKeys | None = None
    forwards: bool | None = None
    url: str | None = None
    deviates: dict[str, str] | None = None


class Variant(Layer):
    group: str | None = None
    """Variants of different groups combine; without a group a variant stands alone."""


class ServerSpec(Record):
    """A server, or a variant of it, with everything inherited."""

    name: str
    """Address: `tomcat` or `tomcat:async`."""
    file: Path
    title: str = ""
    runtime: str = NATIVE
    versions: dict[str, str] = Field(default_factory=dict)
    workloads: tuple[str, ...] = ()
    """Empty: none declared, any may be tried."""
    build: BuildKeys | None = None
    jdk: JdkRange = JdkRange()
    command: tuple[str, ...] = Field(min_length=1)
    """Template, see `prony.server.command`."""
    options: dict[str, Value | None] = Field(default_factory=dict)
    """For `{options}`, as `--name=value`; True: the name alone, None: omitted."""
    settings: dict[str, Value] = Field(default_factory=dict)
    """A plan or an address may set them (`name:workers=4`); each is a placeholder."""
    env: dict[str, str] = Field(default_factory=dict)
    workdir: str | None = None
    """Where it runs, relative to the folder; None: an empty directory of its own."""
    scheme: Scheme = "http"
    http_version: HttpVersion = "1.1"
    """Of load and conformance; with 2 it also answers over 1.1, as for readiness."""
    jvm_flags: tuple[str, ...] = ()
    """After Prony's."""
    heap: Heap | None = None
    """Initial and maximum heap; None: the JVM's own choice."""
    jdk_asked: str | None = None
    """Requested major version or path; None: chosen by `jdk`."""
    ready: ReadyKeys = ReadyKeys()
    ceilings: Ceilings = Ceilings()
    services: tuple[str, ...] = ()
    """Files in `services/` beside the servers; started before it."""
    reports: str | None = None
    """First word of the line on which the application prints its figures (JSON) once ready."""
    counts: CountKeys | None = None
    """Its request counter, compared with the client's."""
    forwards: bool = False
    """A proxy: the header Via in its responses is its own."""
    url: str | None = None
    """Fixed address; None: the laboratory chooses the port."""
    deviates: dict[str, str] = Field(default_factory=dict)
    """Conformance check, or WORKLOAD/CHECK -> why this server may fail it."""
    variants: dict[str, Variant] = Field(default_factory=dict)
    image: str | None = None
    """The container image that it is, in place of a command."""

    @field_validator("deviates")
    @classmethod
    def _deviates_from_checks(cls, deviates: dict[str, str]) -> dict[str, str]:
        known = (*CHECKS, PREPARE, CLEAN_UP, STOP)
        for name in (key.rpartition("/")[2] for key in deviates):
            if name not in known:
                raise ValueError(f"unknown check '{name}'{nearest(name, known)}; known: {', '.join(known)}")
        return deviates

    @field_validator("url")
    @classmethod
    def _url_is_local(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
                raise ValueError("expected http://HOST:PORT or https://HOST:PORT")
        return url

    @property
    def folder(self) -> Path:
        """Relative paths in the command start here."""
        return self.file.parent

    @property
    def base(self) -> str:
        """Name without the variant."""
        return self.file.parent.name

    @property
    def tls(self) -> bool:
        return self.scheme == "https" if self.url is None else self.url.startswith("https:")

    @property
    def on_jvm(self) -> bool:
        return any("{java}" in word for word in self.command)

    def addresses(self) -> tuple[str, ...]:
        """Itself, each variant, and each combination of variants of different groups."""
        alone = [name for name, variant in self.variants.items() if variant.group is None]
        chosen = product(*(("", *names) for names in self.groups.values()))
        combined = sorted((tuple(filter(None, names)) for names in chosen), key=len)
        below = [*("+".join(names) for names in combined), *alone]
        return tuple(f"{self.base}:{names}" if names else self.base for names in below)

    @property
    def groups(self) -> dict[str, list[str]]:
        """Group -> its variants, in file order, without ungrouped ones."""
        by_group: dict[str, list[str]] = {}
        for name, variant in self.variants.items():
            if variant.group is not None:
                by_group.setdefault(variant.group, []).append(name)
        return by_group


def overlay(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """`above` over `below`: mappings key by key, everything else replaces."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = (
            overlay(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
        )
    return merged


SERVICES = "services"
"""Beside the servers."""


class ServiceReady(Record):
    """Sent bytes, and what the response must match."""

    send: str
    expect: str
    """Regular expression for the beginning of the response; its first group is the version."""

    @field_validator("expect")
    @classmethod
    def _is_regex(cls, expect: str) -> str:
        try:
            re.compile(expect)
        except re.error as fault:
            raise ValueError(f"expected a regular expression: {fault}") from fault
        return expect


class ServiceSpec(Record):
    name: str
    file: Path
    title: str = ""
    command: tuple[str, ...] = Field(min_length=1)
    """Placeholders {host}, {port}, {tmp} and {user} (who runs Prony)."""
    ready: ServiceReady
    package: str
    """Debian package of the program."""

    def find_program(self) -> str:
        """Path of its program. Raises EnvironmentFault with the line that installs it."""
        word = self.command[0]
        program = str(self.file.parent / word) if "/" in word else shutil.which(word)
        if program is None or not Path(program).is_file():
            raise EnvironmentFault(
                f"service {self.name} needs the program '{word}', which is not installed: run "
                f"`apt-get install {self.package}`, or use a variant of the server without this service"
            )
        return program


def find_services(names: Iterable[str], server: str, beside: Path) -> tuple[ServiceSpec, ...]:
    """A server's services in the catalogue folder `beside`. Raises UsageError for unknown or invalid ones."""
    files: dict[str, Path] = {}
    for place in (beside, *roots("servers")):
        for file in sorted((place / SERVICES).glob("*.yaml")):
            files.setdefault(file.stem, file)
    specs = []
    for name in names:
        if name not in files:
            raise UsageError(
                f"server '{server}': unknown service '{name}'{nearest(name, list(files))}; "
                f"known services: {', '.join(sorted(files)) or 'none'}"
            )
        data, lines = read_mapping(files[name])
        specs.append(validate(ServiceSpec, {**data, "name": name, "file": files[name]}, files[name], lines))
    return tuple(specs)
