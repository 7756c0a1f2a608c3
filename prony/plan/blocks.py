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
    "transaction", "group", "pause", "pace", "set", "call",
)  # fmt: skip
"""The keys that make an entry of a list of steps a block; each block has exactly one of them."""
MOST_AT_ONCE = 256
"""Branches of a user at the most, each of which needs a connection."""
ALONE = ("pause", "pace", "set", "call")
"""Blocks without steps."""


class Condition(Record):
    """What decides: a comparison (left, op, right), exists, not, all or any. Texts may hold placeholders; two
    texts that are numbers are compared as numbers. In place of one of these true or false may stand.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    left: str | None = None
    op: Op | None = None
    right: str | None = None
    """With `matches` a regex, without placeholders."""
    exists: str | None = None
    """The name of a value."""
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
    """How often: at most one of count, while, over and each; without one, for ever."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    count: int | None = Field(default=None, ge=0)
    condition: Condition | bool | None = Field(default=None, alias="while")
    over: tuple[str, ...] | None = None
    each: str | None = None
    """One round for each element of the JSON list that the value of this name holds when the loop begins."""
    element: str | None = Field(default=None, alias="as")
    """The name of the round's text or element; with `over` and `each`."""
    as_json: Literal[True] | None = None
    """With `each`: elements are values as JSON, a text with its quotes."""
    index: str | None = None
    """The name of the round's number, from 0."""

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
    """Branches that a user walks in parallel, each on a connection that no other has meanwhile: each step of
    the block is one, or with `each` all of them are, once for each element. The user goes on when all have
    ended.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    at_once: int = Field(ge=1, le=MOST_AT_ONCE)
    """So many branches at a time at the most."""
    each: str | None = None
    """A branch for each element of the JSON list that the value of this name holds."""
    element: str | None = Field(default=None, alias="as")
    """The name of the branch's element; with `each`."""
    as_json: Literal[True] | None = None
    """With `each`: elements are values as JSON, a text with its quotes."""

    @model_validator(mode="after")
    def _elements_belong(self) -> Self:
        if self.each is None and (self.element is not None or self.as_json):
            raise ValueError("'as' and 'as_json' apply to 'each' only")
        return self


class Share(Record):
    """A part of the visits, those of each user or of all together."""

    percent: float = Field(ge=0, le=100)
    per: Literal["user", "run"] = "user"
    rounding: Literal["down", "nearest"] = "down"
    """Of n visits n * percent / 100 are walked, rounded down, or to the nearest (a half down)."""


class PacePhase(Record):
    """A time over which a rate changes linearly."""

    duration_s: float = Field(gt=0, le=1e7)
    from_per_s: float = Field(ge=0, le=1e6)
    to_per_s: float = Field(ge=0, le=1e6)


class Pace(Record):
    """At most this many passages, of each user or of all together: exactly one of per_min and phases."""

    per_min: float | None = Field(default=None, ge=0.001, le=6e7)
    phases: tuple[PacePhase, ...] = ()
    """A rate that changes, from the first passage on; when they are over nobody passes any more."""
    per: Literal["user", "run"] = "user"
    name: str | None = None
    """Paces of one name count each other's passages; without one each place counts its own."""

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        if (self.per_min is None) == (not self.phases):
            raise ValueError("expected exactly one of per_min and phases")
        return self

    @property
    def end_s(self) -> float | None:
        """So long after the first passage nobody passes any more."""
        return sum(phase.duration_s for phase in self.phases) if self.phases else None

    def engine_keys(self) -> dict[str, Any]:
        """In the engine's words."""
        plan: dict[str, Any] = self.model_dump(exclude_none=True, exclude={"phases"})
        if self.phases:
            plan["phases"] = [
                {
                    "duration_ms": phase.duration_s * 1000,
                    "from_per_s": phase.from_per_s,
                    "to_per_s": phase.to_per_s,
                }
                for phase in self.phases
            ]
        return plan


class Call(Record):
    """What the trial's script is asked to do for a user; it may fail the user, whose iteration then ends."""

    task: dict[str, Any]
    """In the words of the script's interface."""
    give: dict[str, str] = Field(default_factory=dict)
    """Name in the script -> text with placeholders."""
    take: dict[str, str] = Field(default_factory=dict)
    """Name in the script -> what `${name}` stands for it afterwards."""


class BlockKeys(Record):
    """What a block does; exactly one of KINDS is given. Which steps it has is not said here."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    loop: Loop | None = None
    parallel: Parallel | None = None
    condition: Condition | bool | None = Field(default=None, alias="if")
    once: Literal[True] | None = None
    """The first time only that a user comes by."""
    choice: Literal["random", "interleave"] | None = None
    weights: tuple[float, ...] = ()
    """Of a random choice: the share of each step."""
    share: Share | None = None
    transaction: Name | None = None
    """The name of a figure of its own: the sum of the service times of the requests in the steps."""
    group: Literal[True] | None = None
    """Several steps as one, for a choice."""
    pause: Think | None = None
    pace: Pace | None = None
    set: dict[str, str] | None = None
    """What `${name}` stands for from here on."""
    call: Call | None = None

    @model_validator(mode="after")
    def _one_of_the_kinds(self) -> Self:
        if len(self.kinds) != 1:
            found = " and ".join(self.kinds)
            raise ValueError(f"a block has exactly one of the keys {', '.join(KINDS)}; found {found}")
        return self

    @property
    def kinds(self) -> tuple[str, ...]:
        """The keys of KINDS that are given."""
        return tuple(
            kind for kind in KINDS if getattr(self, "condition" if kind == "if" else kind) is not None
        )

    @property
    def each(self) -> str | None:
        """The name of the list for each of whose elements its steps are walked."""
        own = (self.loop, self.parallel)
        return next((one.each for one in own if one is not None and one.each is not None), None)

    def engine_keys(self) -> dict[str, Any]:
        """This block in the engine's words, without its steps."""
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
