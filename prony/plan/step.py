"""The steps of a scenario: requests and blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from prony.evidence.base import Record
from prony.plan.blocks import ALONE, KINDS, BlockKeys, Call, Condition
from prony.plan.response import Capture, Expectation, Resources
from prony.plan.think import NO_THINK, Think
from prony.redaction import Name

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
"""Common methods, expected in capitals."""


def _method(method: str) -> str:
    if method.upper() == "CONNECT":
        raise ValueError("CONNECT opens a tunnel; expected another method")
    if method not in METHODS and method.upper() in METHODS:
        raise ValueError(f"methods are written in capitals; expected {method.upper()}")
    return method


Method = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"), AfterValidator(_method)]
"""Any HTTP token except CONNECT."""

PLACEHOLDER = re.compile(r"\$\{[^}]*\}")


class Basic(Record):
    """User and password (RFC 7617)."""

    user: str
    password: str


class Auth(Record):
    """The Authorization header: exactly one of basic and bearer."""

    basic: Basic | None = None
    bearer: str | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.basic is None) == (self.bearer is None):
            raise ValueError("expected exactly one of basic and bearer")
        return self


class BodyPart(Record):
    """A piece of a body."""

    text: str | None = None
    """May hold placeholders."""
    file: str | None = None
    """Read before the load; relative to the workload's file."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.text is None) == (self.file is None):
            raise ValueError("expected one of text and file in each of body_parts")
        return self


class Step(Record):
    """A request. Path, header values, bearer token and body may hold `${…}` placeholders (docs/engine.md)."""

    name: Name = "request"
    method: Method = "GET"
    server: str | None = Field(default=None, pattern=r"^https?://[^\s/?#@]+$")
    """Scheme, host and port of a further server; each user keeps a connection to each."""
    path: str
    path_as: Literal["plain", "verbatim", "url"] = "plain"
    """Verbatim: blanks stay. Url: normalized as by browsers (WHATWG URL)."""
    headers: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """Several values: a line for each."""
    node_headers: bool = False
    """Whether header values are sent as by Node: ISO-8859-1, UTF-8 before a text; no other characters."""
    added_headers_at: int | None = Field(default=None, ge=0)
    """Index of the header before which the engine adds its own: validators, Cookie, Expect,
    Transfer-Encoding, Content-Length. Default: last, as Authorization always is.
    """
    header_lines: str | None = None
    """Raw lines, with line ends, as a script writes them."""
    header_lines_at: int | None = Field(default=None, ge=0)
    """Index of the header before which they stand. Default: after all."""
    set_cookies: str | None = None
    """Lines as in Set-Cookie, put into the user's jar before the request."""
    body: str | None = None
    body_file: str | None = None
    """Sent unchanged; relative to the workload's file."""
    body_parts: tuple[BodyPart, ...] = ()
    """Texts and files, concatenated into a body."""
    chunked: bool = False
    expect_continue: bool = False
    """Whether the body waits for 100 Continue."""
    auth: Auth | None = None
    expect: Expectation | None = None
    capture: dict[str, Capture] = Field(default_factory=dict)
    resources: Resources | None = None
    """Embedded resources of a page, for a loop over them."""
    think: Think | None = None
    """Pause after this step, in place of the load's."""
    think_before: Think | None = None
    """Additional pause before this step."""
    repeat: int = Field(default=1, ge=1)
    follow_redirects: int = Field(default=0, ge=0, le=100)
    """Most redirects followed on the same host; each is a request."""
    redirects_keep_method: bool = False
    """Whether a POST stays one after 301 and 302."""
    end_on: tuple[Literal["unanswered", "capture", "redirect", "body"], ...] = ()
    """Failures that end the iteration after this step. Default: none."""
    ends_run_on_error: bool = False
    """Whether a failed request ends the whole run."""
    skip_if: Condition | None = None
    """Where it holds, the request is not sent: `skip_note` is written, captures take their default."""
    skip_note: str = ""

    @field_validator("path")
    @classmethod
    def _path_is_absolute(cls, path: str) -> str:
        plain = PLACEHOLDER.sub("x", path)
        # A proxy gets the whole URL.
        if not plain.startswith(("/", "http://")) or re.search(r"[^\S \t]|[\x00-\x08\x0e-\x1f\x7f]", plain):
            raise ValueError("expected a path that starts with '/' and has no blanks (encode them as %20)")
        return path

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        if self.path_as != "verbatim" and re.search(r"[ \t]", PLACEHOLDER.sub("x", self.path)):
            raise ValueError("expected a path without blanks (encode them as %20)")
        if (self.body is not None) + (self.body_file is not None) + bool(self.body_parts) > 1:
            raise ValueError("expected at most one of body, body_file and body_parts")
        lines = len(self.header_pairs)
        if self.added_headers_at is not None and self.added_headers_at > lines:
            raise ValueError(f"expected added_headers_at of at most {lines}, the number of headers")
        if self.follow_redirects and self.expect_continue:
            raise ValueError("expected at most one of follow_redirects and expect_continue")
        return self

    @property
    def header_pairs(self) -> list[tuple[str, str]]:
        """Name and value of each line."""
        return [
            (name, value)
            for name, values in self.headers.items()
            for value in ((values,) if isinstance(values, str) else values)
        ]

    def with_header_values(self, change: Callable[[str], str]) -> dict[str, str | tuple[str, ...]]:
        return {
            name: change(values) if isinstance(values, str) else tuple(map(change, values))
            for name, values in self.headers.items()
        }

    @property
    def used(self) -> str:
        bearer = None if self.auth is None else self.auth.bearer
        values = (value for _, value in self.header_pairs)
        more = (self.header_lines or "", self.set_cookies or "", self.body or "", bearer or "")
        return "\n".join((self.path, *values, *more))


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return "block" if any(kind in value for kind in (*KINDS, "condition")) else "request"
    return "block" if isinstance(value, BlockKeys) else "request"


class Block(BlockKeys):
    """Steps in a loop, on a condition, as a choice and so on (docs/workloads.md)."""

    steps: tuple[Entry, ...] = ()
    otherwise: tuple[Entry, ...] = Field(default=(), alias="else")
    """With `if`: walked when the condition is false."""

    @model_validator(mode="after")
    def _steps_belong(self) -> Self:
        (kind,) = self.kinds
        if (kind in ALONE) != (not self.steps):
            expected = "no steps" if kind in ALONE else "at least one step"
            raise ValueError(f"the block '{kind}' expects {expected}")
        if self.otherwise and kind != "if":
            raise ValueError("'else' applies to 'if' only")
        if self.weights and (self.choice != "random" or len(self.weights) != len(self.steps)):
            raise ValueError("'weights' apply to 'choice: random', one for each step")
        return self


Entry = Annotated[Annotated[Step, Tag("request")] | Annotated[Block, Tag("block")], Discriminator(_kind)]
Block.model_rebuild()


def flattened(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Every entry in written order, a block before the entries in it."""
    for entry in entries:
        yield entry
        if isinstance(entry, Block):
            yield from flattened((*entry.steps, *entry.otherwise))


def requests(entries: tuple[Entry, ...]) -> Iterator[Step]:
    return (entry for entry in flattened(entries) if isinstance(entry, Step))


def requests_at_once(entries: tuple[Entry, ...]) -> int:
    """Most concurrent requests of a user. Raises ValueError for nested parallel blocks."""
    most = 1
    for entry in entries:
        if not isinstance(entry, Block):
            continue
        inside = (*entry.steps, *entry.otherwise)
        most = max(most, requests_at_once(inside))
        if entry.parallel is not None:
            if any(isinstance(block, Block) and block.parallel is not None for block in flattened(inside)):
                raise ValueError("parallel blocks cannot be nested")
            at_once = entry.parallel.at_once
            most = max(most, at_once if entry.parallel.each else min(at_once, len(entry.steps)))
    return most


def pauses(entries: tuple[Entry, ...]) -> Iterator[Think]:
    for entry in flattened(entries):
        both = (entry.think_before, entry.think) if isinstance(entry, Step) else (entry.pause,)
        yield from (think for think in both if think is not None)


def calls(entries: tuple[Entry, ...]) -> Iterator[Call]:
    for entry in flattened(entries):
        if isinstance(entry, Block) and entry.call is not None:
            yield entry.call


def changed(entry: Entry, change: Callable[[Step], Step], pausing: bool) -> Entry:
    """The entry with every request changed; without `pausing` also without pauses and paces."""
    if isinstance(entry, Step):
        step = change(entry)
        return step if pausing else step.model_copy(update={"think": None, "think_before": None})
    update: dict[str, Any] = {
        "steps": tuple(changed(inner, change, pausing) for inner in entry.steps),
        "otherwise": tuple(changed(inner, change, pausing) for inner in entry.otherwise),
    }
    if not pausing and entry.pause is not None:
        update["pause"] = NO_THINK
    if not pausing and entry.pace is not None:
        update["pace"] = entry.pace.model_copy(update={"per_min": 6e7, "phases": ()})
    return entry.model_copy(update=update)


def uncalled(entry: Entry, value: str) -> Entry:
    """The entry with every call into a script replaced by this value for its results."""
    if isinstance(entry, Step):
        return entry
    if entry.call is not None:
        return Block(set=dict.fromkeys(entry.call.take.values(), value))
    return entry.model_copy(
        update={
            "steps": tuple(uncalled(inner, value) for inner in entry.steps),
            "otherwise": tuple(uncalled(inner, value) for inner in entry.otherwise),
        }
    )


def length(entries: tuple[Entry, ...]) -> int:
    """Requests of a walk through a list of steps; an estimate with blocks."""
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
        lengths = [length((inner,)) for inner in entry.steps]
        total += rounds * (max(lengths, default=0) if entry.choice is not None else sum(lengths))
    return total


def settled(step: Step, settings: Mapping[str, str]) -> Step:
    """The step with placeholders of settings replaced, which the engine does not know."""

    def text(value: str) -> str:
        for placeholder, setting in settings.items():
            value = value.replace(placeholder, setting)
        return value

    return step.model_copy(
        update={
            "path": text(step.path),
            "headers": step.with_header_values(text),
            "body": None if step.body is None else text(step.body),
        }
    )
