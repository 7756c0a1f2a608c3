"""A workload: which requests, and what a right answer looks like.

Must not know servers or how the load is offered.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from prony.errors import UsageError
from prony.evidence.base import Record
from prony.plan.catalogue_roots import roots
from prony.plan.yamlfile import nearest, read_mapping, validate

Method = Literal["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]


class Expectation(Record):
    """What a right answer looks like. Everything given must hold."""

    status: tuple[int, ...] = (200,)
    headers: dict[str, str] = Field(default_factory=dict)
    """Header name -> text that the value must contain (names are not case-sensitive)."""
    body_equals: str | None = None
    body_contains: tuple[str, ...] = ()
    body_bytes: int | None = None

    def why_not(self, status: int, headers: dict[str, str], body: bytes) -> str | None:
        """None when the answer is right, else one sentence. `headers` has lower-case names."""
        if status not in self.status:
            return f"status {status}, expected {' or '.join(map(str, self.status))}"
        for name, part in self.headers.items():
            value = headers.get(name.lower())
            if value is None or part.lower() not in value.lower():
                return f"header {name} is {value!r}, expected it to contain {part!r}"
        if self.body_equals is not None and body != self.body_equals.encode():
            return f"the body ({len(body)} bytes) differs from the declared one"
        if self.body_bytes is not None and len(body) != self.body_bytes:
            return f"the body has {len(body)} bytes, expected {self.body_bytes}"
        for part in self.body_contains:
            if part.encode() not in body:
                return f"the body does not contain {part!r}"
        return None


class Step(Record):
    """One request of the scenario."""

    name: str = "request"
    method: Method = "GET"
    path: str
    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    expect: Expectation | None = None

    @field_validator("path")
    @classmethod
    def _path_is_absolute(cls, path: str) -> str:
        if not path.startswith("/") or re.search(r"[\s\x00-\x1f\x7f]", path):
            raise ValueError("expected a path that starts with '/' and has no blanks (encode them as %20)")
        return path


class Published(Record):
    """Figures that somebody printed for this workload on other hardware: history, for shape and order,
    never a target.
    """

    source: str
    note: str = "other hardware, other versions: for shape and order, not a target"
    figures: dict[str, dict[str, float]]
    """Figure (its name in the table of figures) -> server -> value."""


class Workload(Record):
    """A scenario of one or more steps; every user walks it again and again."""

    name: str
    title: str = ""
    steps: tuple[Step, ...] = Field(min_length=1)
    users: int = Field(default=10, ge=1)
    """Users when the command line names none."""
    delay_ms: float | None = Field(default=None, gt=0)
    """How long the server waits by design; with a limit on workers it makes a ceiling that is not CPU."""
    published: Published | None = None

    @property
    def content_declared(self) -> bool:
        """Whether every step says what a right answer looks like."""
        return all(step.expect is not None for step in self.steps)


def from_url(path: str) -> Workload:
    """The workload of `prony load URL`: one GET, nothing declared about the answer."""
    return Workload(name="url", title=f"GET {path}", steps=(Step(path=path),))


def known() -> dict[str, Path]:
    """Every workload in the catalogue: name -> file."""
    found: dict[str, Path] = {}
    for root in roots("workloads"):
        for file in sorted(root.glob("*.yaml")):
            found.setdefault(file.stem, file)
    return found


def load(name: str) -> Workload:
    """The workload of this name, or of this file when `name` ends in .yaml. Raises UsageError."""
    if name.endswith((".yaml", ".yml")):
        return read(Path(name))
    files = known()
    if name not in files:
        names = ", ".join(sorted(files)) or "none"
        raise UsageError(f"unknown workload '{name}'{nearest(name, list(files))}; known workloads: {names}")
    return read(files[name])


def read(path: Path) -> Workload:
    """One workload file. The name is the file's name unless the file says otherwise."""
    data, lines = read_mapping(path)
    data.setdefault("name", path.stem)
    return validate(Workload, data, path, lines)
