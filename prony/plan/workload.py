"""A workload: which requests, and what a right response looks like.

Must not know servers or how the load is offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from prony.errors import UsageError
from prony.evidence.base import Record
from prony.plan.blocks import ALONE, KINDS, BlockKeys
from prony.plan.catalogue_roots import yaml_files
from prony.plan.response import Boundary as Boundary
from prony.plan.response import Capture as Capture
from prony.plan.response import Expectation as Expectation
from prony.plan.response import at_pointer as at_pointer
from prony.plan.think import NO_THINK, Think
from prony.plan.yamlfile import nearest, read_mapping, validate

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
"""The methods that everybody knows."""


def _method(method: str) -> str:
    if method.upper() == "CONNECT":
        raise ValueError("CONNECT asks for a tunnel; expected another method")
    if method not in METHODS and method.upper() in METHODS:
        raise ValueError(f"methods are written in capitals; expected {method.upper()}")
    return method


Method = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"), AfterValidator(_method)]
"""Any word that HTTP allows, but CONNECT."""

SETTINGS = ("delay_ms",)
"""The keys of a workload that a plan may change; one that the file leaves out is no setting of it."""
PLACEHOLDER = re.compile(r"\$\{[^}]*\}")


class Basic(Record):
    """User and password of RFC 7617."""

    user: str
    password: str


class Auth(Record):
    """Written as the Authorization header: exactly one of basic and bearer."""

    basic: Basic | None = None
    bearer: str | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.basic is None) == (self.bearer is None):
            raise ValueError("expected exactly one of basic and bearer")
        return self


class Feeder(Record):
    """A CSV file whose first line names its columns, unless `columns` does; `${name.column}` is a value of
    the user's row.
    """

    file: str
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
        return self


class Cache(Record):
    """What each user remembers of responses to GET: it asks again only whether they have changed."""

    fresh: bool = False
    """While a response is fresh by its own words its request is passed over: nothing is sent or counted."""
    each_iteration: bool = False
    """It begins anew with each iteration."""
    most_urls: int = Field(default=5000, ge=1)
    """Of more the oldest is forgotten."""
    rules: Literal["rfc9111", "jmeter"] = "rfc9111"


class BodyPart(Record):
    """A piece of a body."""

    text: str | None = None
    """May hold placeholders."""
    file: str | None = None
    """Read before the load; a path beside the workload's file."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.text is None) == (self.file is None):
            raise ValueError("expected one of text and file in each of body_parts")
        return self


class Step(Record):
    """One request of the scenario. Path, header values, bearer token and body may hold `${…}` placeholders
    (docs/engine.md).
    """

    name: str = "request"
    method: Method = "GET"
    path: str
    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    body_file: str | None = None
    """Sent as it is; a path beside the workload's file."""
    body_parts: tuple[BodyPart, ...] = ()
    """Texts and files that are one body, one after the other."""
    chunked: bool = False
    expect_continue: bool = False
    """The body waits until the server asks for it (100 Continue)."""
    auth: Auth | None = None
    expect: Expectation | None = None
    capture: dict[str, Capture] = Field(default_factory=dict)
    think: Think | None = None
    """The pause after this step, in place of the load's."""
    think_before: Think | None = None
    """A pause before it besides."""
    repeat: int = Field(default=1, ge=1)
    follow_redirects: int = Field(default=0, ge=0, le=100)
    """So many redirects, one after the other, are followed on the same host; each is a request of its own."""
    end_on: tuple[Literal["unanswered", "capture", "redirect", "body"], ...] = ()
    """What ends the iteration after this step; without it a user goes on whatever came of it."""

    @field_validator("path")
    @classmethod
    def _path_is_absolute(cls, path: str) -> str:
        plain = PLACEHOLDER.sub("x", path)
        # The whole URL is what a proxy is asked for.
        if not plain.startswith(("/", "http://")) or re.search(r"[\s\x00-\x1f\x7f]", plain):
            raise ValueError("expected a path that starts with '/' and has no blanks (encode them as %20)")
        return path

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        if (self.body is not None) + (self.body_file is not None) + bool(self.body_parts) > 1:
            raise ValueError("expected at most one of body, body_file and body_parts")
        if self.follow_redirects and self.expect_continue:
            raise ValueError("expected at most one of follow_redirects and expect_continue")
        return self

    @property
    def used(self) -> str:
        """Everything in which placeholders may stand."""
        bearer = None if self.auth is None else self.auth.bearer
        return "\n".join((self.path, *self.headers.values(), self.body or "", bearer or ""))


def _kind(value: object) -> str:
    """Whether an entry of a list of steps is a request or a block."""
    if isinstance(value, dict):
        return "block" if any(kind in value for kind in (*KINDS, "condition")) else "request"
    return "block" if isinstance(value, BlockKeys) else "request"


class Block(BlockKeys):
    """Steps that are walked in a loop, on a condition, as a choice and so on; see docs/workloads.md."""

    steps: tuple[Entry, ...] = ()
    otherwise: tuple[Entry, ...] = Field(default=(), alias="else")
    """Of `if`: walked when the condition does not hold."""

    @model_validator(mode="after")
    def _steps_belong(self) -> Self:
        (kind,) = self.kinds
        if (kind in ALONE) != (not self.steps):
            expected = "no steps" if kind in ALONE else "at least one step"
            raise ValueError(f"the block '{kind}' expects {expected}")
        if self.otherwise and kind != "if":
            raise ValueError("'else' applies to 'if' only")
        if self.weights and (self.choice != "random" or len(self.weights) != len(self.steps)):
            raise ValueError("'weights' stand beside 'choice: random', one for each step")
        return self


Entry = Annotated[
    Annotated[Step, Tag("request")] | Annotated[Block, Tag("block")],
    Discriminator(_kind),
]
Block.model_rebuild()


def requests(entries: tuple[Entry, ...]) -> Iterator[Step]:
    """The requests of a list of steps, those in blocks too, in the order in which they are written down."""
    for entry in entries:
        if isinstance(entry, Step):
            yield entry
        else:
            yield from requests((*entry.steps, *entry.otherwise))


def pauses(entries: tuple[Entry, ...]) -> Iterator[Think]:
    """Every pause that stands in a list of steps."""
    for entry in entries:
        if isinstance(entry, Step):
            yield from (think for think in (entry.think_before, entry.think) if think is not None)
        else:
            yield from () if entry.pause is None else (entry.pause,)
            yield from pauses((*entry.steps, *entry.otherwise))


def _changed(entry: Entry, change: Callable[[Step], Step], pausing: bool) -> Entry:
    if isinstance(entry, Step):
        step = change(entry)
        return step if pausing else step.model_copy(update={"think": None, "think_before": None})
    update: dict[str, Any] = {
        "steps": tuple(_changed(inner, change, pausing) for inner in entry.steps),
        "otherwise": tuple(_changed(inner, change, pausing) for inner in entry.otherwise),
    }
    if not pausing and entry.pause is not None:
        update["pause"] = NO_THINK
    if not pausing and entry.pace is not None:
        update["pace"] = entry.pace.model_copy(update={"per_min": 6e7})
    return entry.model_copy(update=update)


class Scenario(Record):
    """Steps that a user walks, one of several ways to use the server."""

    name: str
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
        block; none when there are variables. They end before one that uses a value which only the engine
        finds.
        """
        found: list[Step] = []
        unknown: set[str] = set()
        for entry in () if self.variables else self.steps:
            if isinstance(entry, Block) or any(name in entry.used for name in unknown):
                break
            unknown |= {f"${{{name}" for name, capture in entry.capture.items() if not capture.in_preflight}
            found.append(entry)
        return tuple(found)

    @property
    def length(self) -> int:
        """Requests of one iteration; an estimate where blocks decide: every list once, as often as its loop
        says.
        """
        return self.loops * _length(self.steps)


def _length(entries: tuple[Entry, ...]) -> int:
    total = 0
    for entry in entries:
        if isinstance(entry, Step):
            total += entry.repeat
            continue
        rounds = 1
        if entry.loop is not None and entry.loop.count is not None:
            rounds = entry.loop.count
        elif entry.loop is not None and entry.loop.over is not None:
            rounds = len(entry.loop.over)
        lengths = [_length((inner,)) for inner in entry.steps]
        total += rounds * (max(lengths, default=0) if entry.choice is not None else sum(lengths))
    return total


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

    name: str
    title: str = ""
    steps: tuple[Entry, ...] = ()
    loops: int = Field(default=1, ge=1)
    """How often the steps are walked in one iteration."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Of the steps: set when a user starts and kept over its iterations."""
    scenarios: tuple[Scenario, ...] = ()
    """In place of steps: several, drawn by their weights."""
    scenario_choice: Literal["per_user", "per_iteration"] = "per_user"
    feeders: dict[str, Feeder] = Field(default_factory=dict)
    cookies: bool = False
    """Whether each user keeps its cookies and sends them back."""
    cache: Cache | None = None
    users: int = Field(default=10, ge=1)
    """Users when the command line names none."""
    delay_ms: float | None = Field(default=None, gt=0)
    """A setting: how long the server waits by design; with a limit on workers it makes a ceiling that is not
    CPU.
    """
    prepare: tuple[Step, ...] = ()
    """Walked once, by one user, before the load starts: what the steps need to find there."""
    cleanup: tuple[Step, ...] = ()
    """Walked once after the load has ended."""
    conformance: tuple[Step, ...] = ()
    """Further requests and their right responses, sent by the conformance suite and never by a load."""
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

        def all_changed(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
            return tuple(_changed(entry, change, pausing) for entry in entries)

        own = {
            name: all_changed(getattr(self, name)) for name in ("steps", "prepare", "cleanup", "conformance")
        }
        walks = tuple(walk.model_copy(update={"steps": all_changed(walk.steps)}) for walk in self.scenarios)
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
                        _changed(entry, lambda step: _settled(step, settings), True) for entry in walk.steps
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


def _settled(step: Step, settings: Mapping[str, str]) -> Step:
    """The step with the settings' placeholders replaced: the engine does not know them."""

    def text(value: str) -> str:
        for placeholder, setting in settings.items():
            value = value.replace(placeholder, setting)
        return value

    return step.model_copy(
        update={
            "path": text(step.path),
            "headers": {name: text(value) for name, value in step.headers.items()},
            "body": None if step.body is None else text(step.body),
        }
    )


def from_url(
    path: str,
    method: Method = "GET",
    headers: dict[str, str] | None = None,
    body: str | None = None,
    body_file: str | None = None,
) -> Workload:
    """The workload of `prony load URL`: one request, nothing declared about the response."""
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
        name: feeder.model_copy(update={"file": str((folder / feeder.file).resolve())})
        for name, feeder in workload.feeders.items()
    }
    return workload.with_steps(step).model_copy(update={"feeders": feeders})
