"""The backing services of the catalogue, such as a database: finds their files and their programs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field, field_validator

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.base import Record
from prony.plan.catalogue_roots import roots
from prony.plan.yamlfile import nearest, read_mapping, validate

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


def find(names: Iterable[str], server: str, beside: Path) -> tuple[ServiceSpec, ...]:
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
