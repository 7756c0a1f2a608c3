"""Blocks of a list of steps: loops, conditions, choices, pauses, variables, calls into a script."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from prony.evidence.base import Record
from prony.plan.think import Think
from prony.redaction import Name

Op = Literal["==", "!=", "<", "<=", ">", ">=", "contains", "matches"]
KINDS = (
    "loop", "parallel", "if", "once", "choice", "share",
    "transaction", "group", "pause", "pace", "set", "call", "note",
)  # fmt: skip
"""Keys of blocks; each block has exactly one."""
MOST_AT_ONCE = 256
"""Most parallel branches of a user, each with a connection."""
ALONE = ("pause", "pace", "set", "call", "note")
"""Blocks without steps."""


class Condition(Record):
    """A comparison (left, op, right), exists, not, all or any; or true or false in place of a nested one.
    Texts may hold placeholders; two numeric texts are compared as numbers.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    left: str | None = None
    op: Op | None = None
    right: str | None = None
    """With `matches`, a regex without placeholders."""
    exists: str | None = None
    """Name of a value."""
    negated: Condition | bool | None = Field(default=None, alias="not")
    all: tuple[Condition | bool, ...] | None = None
    any: tuple[Condition | bool, ...] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        compares = (self.left is not None, self.op is not None, self.right is not None)
        others = (self.exists, self.negated, self.all, self.any)
        kinds = any(compares) + sum(other is not None for other in others)
        if kinds != 1 or any(compares) != all(compares):
            raise ValueError("expected left, op and right, or one of exists, not, all and any")
        return self


class Loop(Record):
    """Bound of a loop: at most one of count, while, over and each; endless without."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    count: int | None = Field(default=None, ge=0)
    condition: Condition | bool | None = Field(default=None, alias="while")
    over: tuple[str, ...] | None = None
    each: str | None = None
    """Name of a JSON list at the loop's start, with a round per element."""
    element: str | None = Field(default=None, alias="as")
    """Name of the round's text or element; with `over` and `each`."""
    as_json: Literal[True] | None = None
    """With `each`: elements are values as JSON, a text with its quotes."""
    index: str | None = None
    """Name of the round's number, from 0."""

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if sum(end is not None for end in (self.count, self.condition, self.over, self.each)) > 1:
            raise ValueError("expected at most one of count, while, over and each")
        if self.element is not None and self.over is None and self.each is None:
            raise ValueError("'as' names the elements of 'over' or 'each', which is missing")
        if self.as_json and self.each is None:
            raise ValueError("'as_json' applies to 'each' only")
        return self


class Parallel(Record):
    """Parallel branches of a user, each on its own connection: each step is a branch, or with `each` all
    steps once per element. The user continues when all have ended.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    at_once: int = Field(ge=1, le=MOST_AT_ONCE)
    """Most branches at a time."""
    each: str | None = None
    """Name of a JSON list, with a branch per element."""
    element: str | None = Field(default=None, alias="as")
    """Name of the branch's element; with `each`."""
    as_json: Literal[True] | None = None
    """With `each`: elements are values as JSON, a text with its quotes."""

    @model_validator(mode="after")
    def _elements_belong(self) -> Self:
        if self.each is None and (self.element is not None or self.as_json):
            raise ValueError("'as' and 'as_json' apply to 'each' only")
        return self


class Share(Record):
    """A percentage of the visits, per user or over all users."""

    percent: float = Field(ge=0, le=100)
    per: Literal["user", "run"] = "user"
    rounding: Literal["down", "nearest"] = "down"
    """Rounding of n * percent / 100 visits: down, or to the nearest (a half down)."""


class PacePhase(Record):
    """A phase with a linearly changing rate."""

    duration_s: float = Field(gt=0, le=1e7)
    from_per_s: float = Field(ge=0, le=1e6)
    to_per_s: float = Field(ge=0, le=1e6)


class Pace(Record):
    """A limit on passages, per user or over all users: exactly one of per_min and phases."""

    per_min: float | None = Field(default=None, ge=0.001, le=6e7)
    phases: tuple[PacePhase, ...] = ()
    """A changing rate from the first passage on; no passages after its end."""
    per: Literal["user", "run"] = "user"
    name: str | None = None
    """Paces of one name share a count; without a name each counts its own."""

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        if (self.per_min is None) == (not self.phases):
            raise ValueError("expected exactly one of per_min and phases")
        return self

    @property
    def end_s(self) -> float | None:
        return sum(phase.duration_s for phase in self.phases) if self.phases else None

    def engine_keys(self) -> dict[str, Any]:
        plan: dict[str, Any] = self.model_dump(exclude_none=True, exclude={"phases"})
        if self.phases:
            plan["phases"] = [
                {"duration_ms": phase.duration_s * 1000, **phase.model_dump(exclude={"duration_s"})}
                for phase in self.phases
            ]
        return plan


class Call(Record):
    """A call into the trial's script for a user; on failure the user's iteration ends."""

    task: dict[str, Any]
    """As the script's interface defines it."""
    give: dict[str, str] = Field(default_factory=dict)
    """Name in the script -> text with placeholders."""
    take: dict[str, str] = Field(default_factory=dict)
    """Name in the script -> name for `${name}` afterwards."""


class BlockKeys(Record):
    """The keys of a block, without its steps; exactly one of KINDS is given."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    loop: Loop | None = None
    parallel: Parallel | None = None
    condition: Condition | bool | None = Field(default=None, alias="if")
    once: Literal[True] | None = None
    """Only on a user's first visit."""
    choice: Literal["random", "interleave"] | None = None
    weights: tuple[float, ...] = ()
    """Random choice: the weight of each step."""
    share: Share | None = None
    transaction: Name | None = None
    """Name of a figure: the sum of service times of the requests in the steps."""
    group: Literal[True] | None = None
    """Several steps as one, for a choice."""
    pause: Think | None = None
    pace: Pace | None = None
    set: dict[str, str] | None = None
    """Name -> value of `${name}` from here on."""
    call: Call | None = None
    note: str | None = None
    """A text with placeholders: a row of the request log."""

    @model_validator(mode="after")
    def _one_of_the_kinds(self) -> Self:
        if len(self.kinds) != 1:
            given = " and ".join(self.kinds)
            raise ValueError(f"a block has exactly one of the keys {', '.join(KINDS)}; given {given}")
        return self

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(
            kind for kind in KINDS if getattr(self, "condition" if kind == "if" else kind) is not None
        )

    @property
    def each(self) -> str | None:
        """Name of the list that its steps iterate over."""
        own = (self.loop, self.parallel)
        return next((block.each for block in own if block is not None and block.each is not None), None)

    def engine_keys(self) -> dict[str, Any]:
        plan: dict[str, Any] = self.model_dump(
            mode="json",
            by_alias=True,
            exclude_none=True,
            exclude={"steps", "otherwise", "weights", "set", "call"},
        )
        if self.pace is not None:
            plan["pace"] = self.pace.engine_keys()
        if self.weights:
            plan["weights"] = list(self.weights)
        if self.set is not None:
            plan["set"] = [[name, value] for name, value in self.set.items()]
        if self.call is not None:
            plan["call"] = {
                "task": self.call.task,
                "give": [[name, text] for name, text in self.call.give.items()],
                "take": [[name, ours] for name, ours in self.call.take.items()],
            }
        return plan
