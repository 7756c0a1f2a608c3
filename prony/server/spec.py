"""What a `server.yaml` says, as values: layers of keys that inherit and vary.

A server's keys are those of its runtime's `defaults.yaml` (which may inherit another runtime's), overlaid
with its own and, for `name:variant+variant`, with those of its variants: mappings are merged key by key,
everything else replaces.
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
from prony.plan.catalogue_roots import roots
from prony.plan.target import CountKeys
from prony.plan.yamlfile import nearest, read_mapping, validate

NATIVE = "native"
"""The runtime of a server without one: its command is all there is."""


class BuildKeys(Record):
    """The build: `tool` runs with `args` in a copy of `dir`, and `artifact` is its result there."""

    tool: Literal["maven", "npm", "pip"]
    dir: str
    """In a file: relative to it, by default the server's directory. In a `ServerSpec`: absolute."""
    args: tuple[str, ...] = ()
    artifact: str = "."
    """A file or folder; `.` is the whole copy, sources included."""


class JdkRange(Record):
    """The JDK majors a server supports; `prefer` is taken when it is installed, else the newest
    LTS in range.
    """

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
        """Whether this JDK is supported."""
        return self.min <= major and (self.max is None or major <= self.max)

    def __str__(self) -> str:
        return f"{self.min} or newer" if self.max is None else f"{self.min} to {self.max}"


class ReadyKeys(Record):
    """The request that shows readiness when the workload gives none."""

    path: str = Field(default="/", pattern="^/")
    status: int = 200


class Ceilings(Record):
    """Declared limits that are not CPU, as the server has them by default or as its command sets them."""

    worker_threads: int | None = Field(default=None, ge=1)
    worker_threads_per_cpu: int | None = Field(default=None, ge=1)
    worker_threads_min: int | None = Field(default=None, ge=1)
    max_connections: int | None = Field(default=None, ge=1)
    closes_after: int | None = Field(default=None, ge=1)
    """The server closes a connection after this many requests although keep-alive was requested."""

    def workers(self, granted_cpus: int) -> int | None:
        """Worker threads on this many CPUs; None when unlimited."""
        if self.worker_threads is not None:
            return self.worker_threads
        if self.worker_threads_per_cpu is None:
            return None
        return max(self.worker_threads_per_cpu * granted_cpus, self.worker_threads_min or 1)


Scheme = Literal["http", "https"]
HttpVersion = Literal["1.1", "2"]
Heap = Annotated[str, Field(pattern=r"^[1-9]\d*[kmgKMG]$")]
"""As a JVM takes it: a number and k, m or g."""
Value = bool | int | float | str
"""What a setting or an option holds."""


class Layer(Record):
    """The keys of a `defaults.yaml`: the same ones as a server's, all of them optional."""

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
    """The keys of a variant, which override the server's."""

    group: str | None = None
    """Variants of different groups may be combined, those of one group exclude each other; without a group a
    variant stands alone.
    """


class ServerSpec(Record):
    """One server, or one variant of it, with everything inherited."""

    name: str
    """As it is addressed: `tomcat` or `tomcat:async`."""
    file: Path
    title: str = ""
    runtime: str = NATIVE
    versions: dict[str, str] = Field(default_factory=dict)
    workloads: tuple[str, ...] = ()
    """Empty: the server claims none, any workload may be tried."""
    build: BuildKeys | None = None
    jdk: JdkRange = JdkRange()
    command: tuple[str, ...] = Field(min_length=1)
    """A template: see `prony.server.command`."""
    options: dict[str, Value | None] = Field(default_factory=dict)
    """Options `--name=value` for the placeholder `{options}`; True: the name alone, None: omitted."""
    settings: dict[str, Value] = Field(default_factory=dict)
    """Settings that a plan or an address may set (`name:workers=4`): name -> value, a placeholder of the same
    name.
    """
    env: dict[str, str] = Field(default_factory=dict)
    scheme: Scheme = "http"
    http_version: HttpVersion = "1.1"
    """The version of HTTP that its load is offered in, and its conformance asked; with 2 it also answers over
    1.1, in which it is asked whether it is ready.
    """
    jvm_flags: tuple[str, ...] = ()
    """In addition to those that Prony adds."""
    heap: Heap | None = None
    """Initial and maximum heap size of a JVM; None: the JVM's own choice."""
    jdk_asked: str | None = None
    """The requested JDK (a major version or a path); None: chosen by `jdk`."""
    ready: ReadyKeys = ReadyKeys()
    ceilings: Ceilings = Ceilings()
    services: tuple[str, ...] = ()
    """Its backing services: names of files in `services/` beside the servers; started before it."""
    reports: str | None = None
    """The first word of the line on which the application prints its own figures (a JSON object) once it is
    ready.
    """
    counts: CountKeys | None = None
    """Where the server reports its request counter, which is compared with the client's."""
    forwards: bool = False
    """It is a proxy, and meant to be: a header Via in its responses is its own."""
    url: str | None = None
    """The server's fixed address; None: the laboratory chooses the port."""
    deviates: dict[str, str] = Field(default_factory=dict)
    """Check of the conformance suite, or WORKLOAD/CHECK -> why this server may fail it."""
    variants: dict[str, Variant] = Field(default_factory=dict)

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
        """The directory of the server.yaml; relative paths in the command start here."""
        return self.file.parent

    @property
    def base(self) -> str:
        """The name without the variant, and without what tells it from another folder of that name."""
        return self.file.parent.name

    @property
    def tls(self) -> bool:
        """Whether it speaks HTTPS."""
        return self.scheme == "https" if self.url is None else self.url.startswith("https:")

    @property
    def on_jvm(self) -> bool:
        """Whether the command needs a JDK."""
        return any("{java}" in word for word in self.command)

    def addresses(self) -> tuple[str, ...]:
        """Every way to address it: itself, each variant, and each combination of variants of different
        groups.
        """
        alone = [name for name, variant in self.variants.items() if variant.group is None]
        chosen = product(*(("", *names) for names in self.groups.values()))
        combined = sorted((tuple(filter(None, names)) for names in chosen), key=len)
        below = [*("+".join(names) for names in combined), *alone]
        return tuple(f"{self.base}:{names}" if names else self.base for names in below)

    @property
    def groups(self) -> dict[str, list[str]]:
        """Group -> its variants, in the order of the file; those that stand alone are left out."""
        found: dict[str, list[str]] = {}
        for name, variant in self.variants.items():
            if variant.group is not None:
                found.setdefault(variant.group, []).append(name)
        return found


def overlay(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """`above` merged over `below`: mappings key by key, everything else replaces."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = (
            overlay(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
        )
    return merged


SERVICES = "services"
"""The directory of services beside the servers."""


class ServiceReady(Record):
    """Readiness of a service: what is sent to it, and what its response must match."""

    send: str
    expect: str
    """A regular expression for the beginning of the response; its first group, if any, is the version."""

    @field_validator("expect")
    @classmethod
    def _is_regex(cls, expect: str) -> str:
        try:
            re.compile(expect)
        except re.error as fault:
            raise ValueError(f"expected a regular expression: {fault}") from fault
        return expect


class ServiceSpec(Record):
    """The contents of one file."""

    name: str
    file: Path
    title: str = ""
    command: tuple[str, ...] = Field(min_length=1)
    """With the placeholders {host}, {port}, {tmp} (a folder of its own) and {user} (who runs Prony)."""
    ready: ServiceReady
    package: str
    """The Debian package."""

    def find_program(self) -> str:
        """The program's path. Raises EnvironmentFault that says how to install it."""
        word = self.command[0]
        found = str(self.file.parent / word) if "/" in word else shutil.which(word)
        if found is None or not Path(found).is_file():
            raise EnvironmentFault(
                f"service {self.name} needs the program '{word}', which was not found: install it, "
                f"e.g. `apt-get install {self.package}`, or use a variant of the server without this service"
            )
        return found


def find_services(names: Iterable[str], server: str, beside: Path) -> tuple[ServiceSpec, ...]:
    """The services of these names, for `server`, whose catalogue is the folder `beside`. Raises UsageError
    for an unknown one or a file that is wrong.
    """
    files: dict[str, Path] = {}
    for place in (beside, *roots("servers")):
        for file in sorted((place / SERVICES).glob("*.yaml")):
            files.setdefault(file.stem, file)
    found = []
    for name in names:
        if name not in files:
            raise UsageError(
                f"server '{server}': unknown service '{name}'{nearest(name, list(files))}; "
                f"known services: {', '.join(sorted(files)) or 'none'}"
            )
        data, lines = read_mapping(files[name])
        found.append(validate(ServiceSpec, {**data, "name": name, "file": files[name]}, files[name], lines))
    return tuple(found)
