"""Translates samplers and controllers into the steps and blocks of an iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from prony.plan.step import Block, Entry, Step
from prony.plan.workload import MOST_STEPS
from prony_frontends.jmeter import (
    calls,
    extractors,
    handlers,
    last_sample,
    meeting,
    on_error,
    parameters,
    plain_scripts,
    resources,
    responses,
    timers,
)
from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.leaving import LoopExit, leaves
from prony_frontends.jmeter.outline import BETWEEN, FAULT, LABEL, note
from prony_frontends.jmeter.places import NotSent
from prony_frontends.jmeter.requests import SAMPLERS, SamplerRequest, request
from prony_frontends.jmeter.row_servers import by_server
from prony_frontends.jmeter.scope import (
    CONFIGURATION,
    COUNTING,
    Shared,
    TreeScope,
    at_iteration,
    counted,
    inner,
)

DEEPEST = 30
"""Limit on nested blocks; the engine allows 32."""
NOT_REQUESTS = frozenset(
    {*CONFIGURATION, *COUNTING, *timers.KINDS, *timers.PACING, *responses.ASSERTIONS, *extractors.EXTRACTORS,
     *plain_scripts.BEFORE, *plain_scripts.AFTER, on_error.HANDLER}
)  # fmt: skip
INSTEAD = {
    "CriticalSectionController": "leave it out: Prony has no load in which users wait for each other",
    meeting.TIMER: meeting.INSTEAD,
    "MD5HexAssertion": "test the text or its size",
    "XMLAssertion": "test a text with a Response Assertion",
}


@dataclass(frozen=True, slots=True)
class LoopContext:
    """The loop around a node of the plan."""

    round: str | None = None
    """Directly in a Loop Controller: the name of its round number."""


@dataclass(slots=True)
class TreeWalk:
    """Data gathered during translation of an iteration."""

    values: KnownValues
    shared: Shared
    users: int | None
    """None for an open model."""
    endless: bool
    """Whether the run ends by time, so that a user may loop for ever."""
    requests: list[SamplerRequest] = field(default_factory=list)
    rounds: int = 0
    """Loops with a named round number."""
    loop_exits: list[LoopExit] = field(default_factory=lambda: [LoopExit()])
    """Loops being translated, the thread's own first."""

    @contextmanager
    def looping(self) -> Iterator[LoopExit]:
        """Scope of a loop's translation."""
        self.loop_exits.append(LoopExit())
        try:
            yield self.loop_exits[-1]
        finally:
            self.loop_exits.pop()

    def below(self, node: JmxNode, scope: TreeScope, loop: LoopContext) -> list[Entry]:
        """Entries below a controller."""
        return entries_of(node.below, scope, self, replace(loop, round=None))


Controller = Callable[[JmxNode, TreeScope, TreeWalk, LoopContext], list[Entry]]
CONTROLLERS: dict[str, Controller] = {}
"""Filled by `prony_frontends.jmeter.controllers`."""


def unsupported(node: JmxNode) -> Exception:
    """The error for an unsupported element."""
    if node.refusal is not None:
        return node.refused(*node.refusal)
    return node.refused("it has no equivalent here", INSTEAD.get(node.tag, "remove or disable it"))


def entries_of(
    nodes: Sequence[JmxNode], scope: TreeScope, walk: TreeWalk, loop: LoopContext, rows_at: bool = False
) -> list[Entry]:
    """Entries for one pass through these elements. Raises Refused and UsageError."""
    here = inner(scope, nodes, walk.values, walk.shared, rows_at)
    entries = at_iteration(nodes, walk.values, walk.shared, rows_at)
    names = counted(nodes, walk.values, walk.users)
    if names:
        entries.append(Block(set=names))
    for node in nodes:
        if node.enabled and node.refusal is not None:
            raise unsupported(node)
        if not node.enabled or node.tag in NOT_REQUESTS:
            continue
        if node.tag in SAMPLERS:
            entries += _sampler(node, here, walk)
        elif node.tag in CONTROLLERS:
            controller_entries = CONTROLLERS[node.tag](node, here, walk, loop)
            node.finish()
            if depth(controller_entries) > DEEPEST:
                raise node.refused(f"blocks nested deeper than {DEEPEST}", "make the plan flatter", "limit")
            entries += controller_entries
        else:
            raise unsupported(node)
    return entries if any(does(entry) for entry in entries) else []


def does(entry: Entry) -> bool:
    """Whether it sends, waits, has a row or jumps."""
    if isinstance(entry, Step) or leaves(entry):
        return True
    if any(kind is not None for kind in (entry.pause, entry.pace, entry.note)):
        return True
    return any(map(does, (*entry.steps, *entry.otherwise)))


def sends(entry: Entry) -> bool:
    """Whether it contains a request."""
    return isinstance(entry, Step) or any(map(sends, (*entry.steps, *entry.otherwise)))


def depth(entries: Sequence[Entry]) -> int:
    """Blocks within blocks."""
    return max(
        (1 + depth((*entry.steps, *entry.otherwise)) for entry in entries if isinstance(entry, Block)),
        default=0,
    )


def together(entries: Sequence[Entry]) -> Entry:
    """As one entry."""
    return entries[0] if len(entries) == 1 else Block(group=True, steps=tuple(entries))


def _sampler(node: JmxNode, scope: TreeScope, walk: TreeWalk) -> list[Entry]:
    own = [below for below in node.below if below.enabled]
    for below in own:
        if below.tag not in NOT_REQUESTS or below.refusal is not None:
            raise unsupported(below)
    here = inner(scope, own, walk.values, walk.shared, rows_at=False)
    entries = by_server(node, here, walk.values, lambda: _asked(node, here, walk))
    if here.handler is None or handlers.is_of_group(here.handler, walk.values):
        return entries
    return handlers.handled(entries, here.handler, node, walk.loop_exits, walk.values)


def _asked(node: JmxNode, here: TreeScope, walk: TreeWalk) -> list[Entry]:
    """The request with the entries before and after it."""
    values = walk.values
    if node.property("HTTPSampler.header_manager") is not None:
        values.note("headers_not_sent", "its own headers are not sent, as in JMeter", node)
    first = parameters.given(here.parameters, values, walk.shared.given)
    first += plain_scripts.done(here.scripts, values)
    waits = timers.waits(here.timers, values)
    label = values.label_text(node)
    with calls.within(values.label(node), values) as stores:
        try:
            sampler = request(node, here, values, walk.shared)
        except NotSent as why:
            return [*first, *(Block(pause=think) for think in waits), *_not_sent(node, label, why, values)]
    walk.requests.append(sampler)
    if len(walk.requests) > MOST_STEPS:
        raise node.refused(
            f"a group of more than {MOST_STEPS} requests", "use loops in place of copies", "limit"
        )
    before = [*first]
    if here.paced is not None:
        before.append(Block(pace=timers.pace(here.paced, walk.users, values, walk.shared.paces)))
    before += [Block(pause=think) for think in waits[:-1]]
    before += [*stores, *(entry for *_, sets in here.headers.entries for entry in sets)]
    if label.constant is None:
        before.append(note(LABEL, label.engine, node))
    step = sampler.step.model_copy(update={"think_before": waits[-1]}) if waits else sampler.step
    if sampler.faulty is not None:
        fault = f"{FAULT}{label.engine}{BETWEEN}{sampler.faulty.url}"
        step = step.model_copy(update={"skip_if": sampler.faulty.where, "skip_note": fault})
    after = plain_scripts.done_after(here.processors, values)
    if after.captures:
        step = step.model_copy(update={"capture": {**step.capture, **after.captures}})
    follows = [*sampler.after, *after.entries]
    if sampler.embedded is not None and sampler.resource is not None:
        return [*before, *resources.fetched(step, sampler.resource, sampler.embedded), *follows]
    return [*before, step, *follows]


def _not_sent(node: JmxNode, label: Text, why: NotSent, values: KnownValues) -> list[Entry]:
    """A sampler that fails in JMeter without a request."""
    values.faults[node.number] = str(why)
    values.unsent = values.unsent or why.refusal
    values.note("no_request", f"it sends nothing and fails, as in JMeter: {why}", node)
    return [
        note(FAULT, f"{label.engine}{BETWEEN}{why.url.engine}{BETWEEN}{why.parameters.engine}", node),
        last_sample.failed(values),
    ]


def round_index(node: JmxNode, walk: TreeWalk) -> str:
    """The name of a loop's round number, for `${__jm__NAME__idx}`."""
    walk.rounds += 1
    name = f"round{walk.rounds}"
    walk.values.variables[f"__jm__{node.label}__idx"] = Text.placeholder(name)
    return name
