"""A workload: which requests, and what a right response looks like."""

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
"""Requests that the engine takes, of all scenarios together, as often as each is written down."""
SETTINGS = ("delay_ms",)
"""The keys of a workload that a plan may change; one that the file leaves out is no setting of it."""


class Feeder(Record):
    """A CSV file whose first line names its columns, unless `columns` does, or rows that are written out;
    `${name.column}` is a value of the user's row.
    """

    file: str | None = None
    rows: tuple[tuple[str, ...], ...] = ()
    """In place of a file, with `columns`: as many texts in each."""
    order: Literal["sequence", "random", "unique_per_user"]
    at_end: Literal["recycle", "stop", "eof"] | None = None
    """When the rows are used up: begin again, the user ends, or every value is `<EOF>`. Not with random,
    which has no end.
    """

    columns: tuple[str, ...] = ()
    """Their names, for a file whose first line is a row as the others."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    """What stands between two values."""
    quotes: bool = True
    """Whether a value may stand in quotes."""
    per: Literal["run", "user"] = "run"
    """Of a sequence: `user` for rows of its own for each user."""
    on_use: bool = False
    """A user takes a row when it wants a value and holds none; `${next NAME}` lets it go."""

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
    """A cookie that each user has before any server sets it."""

    name: str = Field(min_length=1)
    value: str
    path: str = Field(default="/", pattern="^/")
    """It is sent to this path and to those below it."""
    server: str | None = None
    """Of a step, whose host it is for; None: the load's own server."""


class Cookies(Record):
    """How each user keeps cookies."""

    each_iteration: bool = False
    """They are forgotten at the begin of each iteration, but for those that are given."""
    given: tuple[GivenCookie, ...] = ()


class Cache(Record):
    """What each user remembers of responses to GET: it asks again only whether they have changed."""

    fresh: bool = False
    """While a response is fresh by its own words its request is passed over: nothing is sent or counted."""
    each_iteration: bool = False
    """It begins anew with each iteration."""
    most_urls: int = Field(default=5000, ge=1)
    """Of more the oldest is forgotten."""
    rules: Literal["rfc9111", "jmeter"] = "rfc9111"


class Scenario(Record):
    """Steps that a user walks, one of several ways to use the server."""

    name: Name
    weight: float = Field(default=1.0, gt=0)
    loops: int = Field(default=1, ge=1)
    variables: dict[str, str] = Field(default_factory=dict)
    """Set when a user starts and kept over its iterations: what `${name}` stands for."""
    steps: tuple[Entry, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sends_something(self) -> Self:
        if not self.requests:
            raise ValueError("the steps send no request; expected at least one")
        return self

    @model_validator(mode="after")
    def _branches_are_flat(self) -> Self:
        requests_at_once(self.steps)
        return self

    @property
    def requests(self) -> tuple[Step, ...]:
        """Its requests, those in blocks too."""
        return tuple(requests(self.steps))

    @property
    def has_blocks(self) -> bool:
        """Whether which requests are sent, and with what, depends on blocks and variables."""
        return bool(self.variables) or any(isinstance(entry, Block) for entry in self.steps)

    @property
    def leading(self) -> tuple[Step, ...]:
        """The requests that are sent in any case, one after the other: all of them, or those before the first
        block; none when there are variables.
        """
        found: list[Step] = []
        for entry in () if self.variables else self.steps:
            if isinstance(entry, Block):
                break
            found.append(entry)
        return tuple(found)

    @property
    def length(self) -> int:
        """Requests of one iteration; an estimate where blocks decide: every list once, as often as its loop
        says.
        """
        return self.loops * length(self.steps)


class Published(Record):
    """Figures that somebody printed for this workload on other hardware: history, for shape and order, never
    a target.
    """

    source: str
    note: str = "other hardware, other versions: for shape and order, not a target"
    figures: dict[str, dict[str, float]]
    """Figure (its name in the table of figures) -> server -> value."""


class Workload(Record):
    """A scenario of one or more steps, or several scenarios; every user walks one again and again."""

    name: Name = "url"
    """Of its file; one that a plan writes out needs none."""
    title: Title = ""
    steps: tuple[Entry, ...] = ()
    loops: int = Field(default=1, ge=1)
    """How often the steps are walked in one iteration."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Of the steps: set when a user starts and kept over its iterations."""
    scenarios: tuple[Scenario, ...] = ()
    """In place of steps: several, drawn by their weights."""
    scenario_choice: Literal["per_user", "per_iteration"] = "per_user"
    feeders: dict[str, Feeder] = Field(default_factory=dict)
    server_addresses: dict[str, str] = Field(default_factory=dict)
    """Servers that steps name -> HOST:PORT where connections go in place of the URL's host."""
    cookies: bool | Cookies = False
    """Whether each user keeps its cookies and sends them back."""
    cache: Cache | None = None
    users: int = Field(default=10, ge=1)
    """Users when the command line names none."""
    delay_ms: float | None = Field(default=None, gt=0)
    """A setting: how long the server waits by design; with a limit on workers it makes a ceiling that is not
    CPU.
    """
    prepare: tuple[Entry, ...] = ()
    """Walked once, by one user, before the load starts: what the steps need to find there. What it captures
    or sets the scenarios know.
    """
    cleanup: tuple[Entry, ...] = ()
    """Walked once after the load has ended."""
    conformance: tuple[Step, ...] = ()
    """Further requests and their right responses, sent by the conformance suite and never by a load."""
    responses_differ: str = ""
    """Why the right responses to it differ from server to server, where the question itself makes them."""
    published: Published | None = None

    @model_validator(mode="after")
    def _steps_or_scenarios(self) -> Self:
        if not self.steps and not self.scenarios:
            raise ValueError("the key 'steps' is missing (or 'scenarios', each with steps of its own)")
        if self.steps and self.scenarios:
            raise ValueError("expected steps or scenarios, not both")
        if self.scenarios and (self.loops != 1 or self.variables):
            raise ValueError("loops and variables stand with steps; with scenarios each has its own")
        if self.steps and not any(requests(self.steps)):
            raise ValueError("the steps send no request; expected at least one")
        return self

    @model_validator(mode="after")
    def _branches_are_flat(self) -> Self:
        requests_at_once(self.steps)
        return self

    @model_validator(mode="after")
    def _conformance_expects(self) -> Self:
        for step in self.conformance:
            if step.expect is None:
                raise ValueError(
                    f"the conformance step '{step.name}' has no expect; say what a right response looks like"
                )
        return self

    @property
    def settings(self) -> dict[str, float]:
        """What a plan may change; `${name}` in a step stands for the value."""
        values = {name: getattr(self, name) for name in SETTINGS}
        return {name: value for name, value in values.items() if value is not None}

    def with_settings(self, given: Mapping[str, float]) -> Workload:
        """This workload with these settings in place of its own. Raises UsageError for one that it has not or
        a value that it cannot have.
        """
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
        """This workload with every request changed: of scenarios, blocks, preparation, clean-up and
        conformance too. Without `pausing` nothing that stands in the steps makes a user wait.
        """

        def allchanged(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
            return tuple(changed(entry, change, pausing) for entry in entries)

        own = {
            name: allchanged(getattr(self, name)) for name in ("steps", "prepare", "cleanup", "conformance")
        }
        walks = tuple(walk.model_copy(update={"steps": allchanged(walk.steps)}) for walk in self.scenarios)
        return self.model_copy(update={**own, "scenarios": walks})

    @property
    def walks(self) -> tuple[Scenario, ...]:
        """The scenarios, also when there is but one; `${delay_ms}` and the like are settled."""
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
        """All of each scenario as text, in which names and placeholders can be looked for."""
        return {walk.name: walk.model_dump_json() for walk in self.walks}

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps of all scenarios."""
        return tuple(step for scenario in self.walks for step in scenario.requests)

    @property
    def requests_at_once(self) -> int:
        """Requests of a user that may be under way at once."""
        return max(requests_at_once(walk.steps) for walk in self.walks)

    @property
    def other_servers(self) -> tuple[str, ...]:
        """The servers beside the load's own that its steps name, in their order."""
        named = (step.server for step in self.all_steps)
        return tuple(dict.fromkeys(server for server in named if server is not None))

    @property
    def has_blocks(self) -> bool:
        """Whether a scenario of it has."""
        return any(scenario.has_blocks for scenario in self.walks)

    @property
    def content_declared(self) -> bool:
        """Whether every step says what a right response looks like."""
        return all(step.expect is not None for step in self.all_steps)

    @property
    def length_from_preflight(self) -> bool:
        """Whether every step declares a status and no body, and sends the same request every time: then a
        response of another length than the preflight's is another response.
        """
        return all(
            step.expect is not None
            and len(step.expect.status) == 1
            and not step.expect.declares_body
            and PLACEHOLDER.search(step.used) is None
            for step in self.all_steps
        )


def from_url(
    path: str,
    method: Method = "GET",
    headers: dict[str, str] | None = None,
    body: str | None = None,
    body_file: str | None = None,
) -> Workload:
    """The workload of `prony load URL`: one request, nothing declared about the response."""
    # What a person writes in an address bar; the engine sends a step's path as it is.
    path = quote(path, safe=string.punctuation)
    step = Step(path=path, method=method, headers=headers or {}, body=body, body_file=body_file)
    return Workload(name="url", title=f"{method} {path}", steps=(step,))


def known() -> dict[str, Path]:
    """Every workload in the catalogue: name -> file."""
    return yaml_files("workloads")


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
    return beside(validate(Workload, data, path, lines), path.parent)


def beside(workload: Workload, folder: Path) -> Workload:
    """The workload with the files that it names looked for beside its own."""

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
