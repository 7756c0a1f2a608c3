"""Workloads: requests and expected responses."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote

from pydantic import Field, model_validator

from prony.errors import UsageError
from prony.evidence.base import Record
from prony.plan.catalogue_roots import yaml_files
from prony.plan.step import (
    PLACEHOLDER,
    Auth,
    Block,
    BodyPart,
    Entry,
    Method,
    Step,
    changed,
    length,
    requests,
    requests_at_once,
    settled,
)
from prony.plan.yamlfile import nearest, read_mapping, validate
from prony.redaction import Name, Title

MOST_STEPS = 1_000
"""Most requests over all scenarios, as written."""
SETTINGS = ("delay_ms",)


class Feeder(Record):
    """A CSV file (columns named in its first line or `columns`), or inline rows; value: `${name.column}`."""

    file: str | None = None
    rows: tuple[tuple[str, ...], ...] = ()
    """Inline rows with a text per column, in place of a file."""
    order: Literal["sequence", "random", "unique_per_user"]
    at_end: Literal["recycle", "stop", "eof"] | None = None
    """After the last row: start over, end the user, or give `<EOF>` for every value. Not with random."""

    columns: tuple[str, ...] = ()
    """Column names, for a file without a header line."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    """Separator of values."""
    quotes: bool = True
    """Whether values may be quoted."""
    per: Literal["run", "user"] = "run"
    """With sequence: `user` gives each user its own rows."""
    on_use: bool = False
    """Whether a user takes a row on first use; `${next NAME}` releases it."""

    @model_validator(mode="after")
    def _end_is_declared(self) -> Self:
        if (self.order == "random") != (self.at_end is None):
            raise ValueError("at_end is expected with sequence and unique_per_user, and not with random")
        if (self.file is None) == (not self.rows):
            raise ValueError("expected exactly one of file and rows")
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("each of rows is expected to have as many values as columns has names")
        return self


class GivenCookie(Record):
    """A cookie that each user has from the start."""

    name: str = Field(min_length=1)
    value: str
    path: str = Field(default="/", pattern="^/")
    """Path prefix it is sent to."""
    server: str | None = None
    """Server of a step whose host it is for; None: the load's own server."""


class Cookies(Record):
    """Cookie handling of users."""

    each_iteration: bool = False
    """Whether each iteration starts with the given cookies only."""
    given: tuple[GivenCookie, ...] = ()


class Cache(Record):
    """A user's cache of GET responses, revalidated on reuse."""

    fresh: bool = False
    """Whether requests for fresh responses are skipped: neither sent nor counted."""
    each_iteration: bool = False
    """Whether it is cleared at each iteration."""
    most_urls: int = Field(default=5000, ge=1)
    """Capacity; the oldest entry is evicted."""
    rules: Literal["rfc9111", "jmeter"] = "rfc9111"


class Scenario(Record):
    """Steps that a user walks."""

    name: Name
    weight: float = Field(default=1.0, gt=0)
    loops: int = Field(default=1, ge=1)
    variables: dict[str, str] = Field(default_factory=dict)
    """Values of `${name}`, set when a user starts and kept over its iterations."""
    steps: tuple[Entry, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sends_something(self) -> Self:
        if not self.requests:
            raise ValueError("the steps send no request; expected at least one")
        requests_at_once(self.steps)  # raises for nested parallel blocks
        return self

    @property
    def requests(self) -> tuple[Step, ...]:
        return tuple(requests(self.steps))

    @property
    def has_blocks(self) -> bool:
        return bool(self.variables) or any(isinstance(entry, Block) for entry in self.steps)

    @property
    def leading(self) -> tuple[Step, ...]:
        """The leading requests that are always sent, up to the first block; none with variables."""
        steps: list[Step] = []
        for entry in () if self.variables else self.steps:
            if isinstance(entry, Block):
                break
            steps.append(entry)
        return tuple(steps)

    @property
    def length(self) -> int:
        return self.loops * length(self.steps)


class Published(Record):
    """Published figures of this workload on other hardware: for shape and order, not as a target."""

    source: str
    note: str = "other hardware, other versions: for shape and order, not a target"
    figures: dict[str, dict[str, float]]


class Workload(Record):
    """Steps, or several scenarios, that every user walks repeatedly."""

    name: Name = "url"
    """Name of its file; optional in a plan."""
    title: Title = ""
    steps: tuple[Entry, ...] = ()
    loops: int = Field(default=1, ge=1)
    """Walks through the steps per iteration."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Variables of the steps, set when a user starts and kept over its iterations."""
    scenarios: tuple[Scenario, ...] = ()
    """Scenarios in place of steps, drawn by weight."""
    scenario_choice: Literal["per_user", "per_iteration"] = "per_user"
    feeders: dict[str, Feeder] = Field(default_factory=dict)
    server_addresses: dict[str, str] = Field(default_factory=dict)
    """Server of a step -> HOST:PORT to connect to."""
    cookies: bool | Cookies = False
    """Whether users keep and send cookies."""
    cache: Cache | None = None
    users: int = Field(default=10, ge=1)
    """Default number of users."""
    delay_ms: float | None = Field(default=None, gt=0)
    """A setting: the server's delay by design; with a limit on workers it makes a ceiling other than CPU."""
    prepare: tuple[Entry, ...] = ()
    """Walked once by a single user before the load, to create what the steps need; its captured and set
    values are variables of the scenarios.
    """
    cleanup: tuple[Entry, ...] = ()
    """Walked once after the load."""
    conformance: tuple[Step, ...] = ()
    """Further requests with expected responses, for the conformance suite only."""
    responses_differ: str = ""
    """Reason why correct responses differ between servers, if they do."""
    published: Published | None = None

    @model_validator(mode="after")
    def _steps_or_scenarios(self) -> Self:
        if not self.steps and not self.scenarios:
            raise ValueError("the key 'steps' is missing (or 'scenarios', each with steps of its own)")
        if self.steps and self.scenarios:
            raise ValueError("expected steps or scenarios, not both")
        if self.scenarios and (self.loops != 1 or self.variables):
            raise ValueError("loops and variables apply to steps; give each scenario its own")
        if self.steps and not any(requests(self.steps)):
            raise ValueError("the steps send no request; expected at least one")
        requests_at_once(self.steps)
        for step in self.conformance:
            if step.expect is None:
                raise ValueError(
                    f"the conformance step '{step.name}' has no expect; declare the correct response"
                )
        return self

    @property
    def settings(self) -> dict[str, float]:
        """Settings that a plan may change; `${name}` in a step is the value."""
        values = {name: getattr(self, name) for name in SETTINGS}
        return {name: value for name, value in values.items() if value is not None}

    def with_settings(self, given: Mapping[str, float]) -> Workload:
        """The workload with these settings. Raises UsageError for an unknown setting or an invalid value."""
        own = self.settings
        for name in given:
            if name not in own:
                has = f"its settings: {', '.join(own)}" if own else "it has none"
                raise UsageError(
                    f"workload '{self.name}' has no setting '{name}'{nearest(name, list(own))}; {has}"
                )
        for name, value in given.items():
            if not 0 < value < float("inf"):
                raise UsageError(f"the setting {name} is {value:g}; expected a number above 0")
        return self.model_copy(update=dict(given))

    def with_steps(self, change: Callable[[Step], Step], *, pausing: bool = True) -> Workload:
        """The workload with every request changed. Without `pausing` also without pauses and paces."""

        def allchanged(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
            return tuple(changed(entry, change, pausing) for entry in entries)

        own = {
            name: allchanged(getattr(self, name)) for name in ("steps", "prepare", "cleanup", "conformance")
        }
        walks = tuple(walk.model_copy(update={"steps": allchanged(walk.steps)}) for walk in self.scenarios)
        return self.model_copy(update={**own, "scenarios": walks})

    def with_auth(self, auth: Auth | None) -> Workload:
        """The workload with the credentials of a URL, for requests to it without others."""

        def step(step: Step) -> Step:
            own = step.server is not None or any(name.lower() == "authorization" for name in step.headers)
            return step if own or step.auth is not None else step.model_copy(update={"auth": auth})

        return self if auth is None else self.with_steps(step)

    @property
    def walks(self) -> tuple[Scenario, ...]:
        """The scenarios, or the steps as one, with placeholders of settings replaced."""
        walks = self.scenarios or (
            Scenario(name=self.name, loops=self.loops, variables=self.variables, steps=self.steps),
        )
        settings = {f"${{{name}}}": f"{value:g}" for name, value in self.settings.items()}
        if not settings:
            return walks
        return tuple(
            walk.model_copy(
                update={
                    "steps": tuple(
                        changed(entry, lambda step: settled(step, settings), True) for entry in walk.steps
                    )
                }
            )
            for walk in walks
        )

    @property
    def scenario_texts(self) -> dict[str, str]:
        """Scenario name -> its JSON text, to search for names and placeholders."""
        return {walk.name: walk.model_dump_json() for walk in self.walks}

    @property
    def all_steps(self) -> tuple[Step, ...]:
        return tuple(step for scenario in self.walks for step in scenario.requests)

    @property
    def requests_at_once(self) -> int:
        return max(requests_at_once(walk.steps) for walk in self.walks)

    @property
    def other_servers(self) -> tuple[str, ...]:
        named = (step.server for step in self.all_steps)
        return tuple(dict.fromkeys(server for server in named if server is not None))

    @property
    def has_blocks(self) -> bool:
        return any(scenario.has_blocks for scenario in self.walks)

    @property
    def content_declared(self) -> bool:
        return all(step.expect is not None for step in self.all_steps)

    @property
    def length_from_preflight(self) -> bool:
        """Whether every step declares only a status and sends a constant request: a response of another
        length than the preflight's is then a different one.
        """
        return self.constant and all(
            step.expect is not None and len(step.expect.status) == 1 and not step.expect.declares_body
            for step in self.all_steps
        )

    @property
    def constant(self) -> bool:
        """Whether every request is always the same."""
        return all(PLACEHOLDER.search(step.used) is None for step in self.all_steps)


def from_url(
    path: str,
    method: Method = "GET",
    headers: Mapping[str, str | tuple[str, ...]] | None = None,
    body: str | None = None,
    body_file: str | None = None,
) -> Workload:
    """The workload of `prony load URL`: a request without a declared response."""
    # What a person writes in an address bar; the engine sends a step's path as it is.
    path = quote(path, safe=string.punctuation, errors="surrogateescape")
    step = Step(path=path, method=method, headers=dict(headers or {}), body=body, body_file=body_file)
    return Workload(name="url", title=f"{method} {path}", steps=(step,))


def known() -> dict[str, Path]:
    return yaml_files("workloads")


def load(name: str) -> Workload:
    """A workload by name, its file (.yaml or .yml), or the path of one GET (/hello). Raises UsageError."""
    if name.endswith((".yaml", ".yml")):
        return read(Path(name))
    if name.startswith("/"):
        return from_url(name)
    files = known()
    if name not in files:
        names = ", ".join(sorted(files)) or "none"
        raise UsageError(f"unknown workload '{name}'{nearest(name, list(files))}; known workloads: {names}")
    return read(files[name])


def read(path: Path) -> Workload:
    """A workload file; its name defaults to the file's."""
    data, lines = read_mapping(path)
    data.setdefault("name", path.stem)
    return beside(validate(Workload, data, path, lines), path.parent)


def beside(workload: Workload, folder: Path) -> Workload:
    def step(step: Step) -> Step:
        file = step.body_file
        parts = tuple(
            part if part.file is None else BodyPart(file=str((folder / part.file).resolve()))
            for part in step.body_parts
        )
        step = step if not parts else step.model_copy(update={"body_parts": parts})
        return step if file is None else step.model_copy(update={"body_file": str((folder / file).resolve())})

    feeders = {
        name: feeder
        if feeder.file is None
        else feeder.model_copy(update={"file": str((folder / feeder.file).resolve())})
        for name, feeder in workload.feeders.items()
    }
    return workload.with_steps(step).model_copy(update={"feeders": feeders})
