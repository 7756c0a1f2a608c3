"""Samplers and controllers into the steps and blocks of one iteration."""

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
from prony_frontends.jmeter.leaving import Way, leaves
from prony_frontends.jmeter.marks import marked
from prony_frontends.jmeter.outline import silent
from prony_frontends.jmeter.places import NotSent
from prony_frontends.jmeter.requests import SAMPLERS, SamplerRequest, request
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
"""Blocks within blocks; the engine takes 32."""
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
    """The loop that a node of the plan is in."""

    round: str | None = None
    """Directly in a loop controller: the name of its round's number."""


@dataclass(slots=True)
class TreeWalk:
    """What is gathered while the users' way is translated."""

    values: KnownValues
    shared: Shared
    users: int | None
    """None in an open model."""
    endless: bool
    """A user may walk for ever: the run ends by the clock."""
    requests: list[SamplerRequest] = field(default_factory=list)
    rounds: int = 0
    """Loops whose number of the round has a name."""
    ways: list[Way] = field(default_factory=lambda: [Way()])
    """Loops that are being read, the thread's own first."""

    @contextmanager
    def looping(self) -> Iterator[Way]:
        """While what stands in a loop is read."""
        self.ways.append(Way())
        try:
            yield self.ways[-1]
        finally:
            self.ways.pop()

    def below(self, node: JmxNode, scope: TreeScope, loop: LoopContext) -> list[Entry]:
        """What stands below a controller."""
        return entries_of(node.below, scope, self, replace(loop, round=None))


Controller = Callable[[JmxNode, TreeScope, TreeWalk, LoopContext], list[Entry]]
CONTROLLERS: dict[str, Controller] = {}
"""Filled by `prony_frontends.jmeter.controllers`."""


def unsupported(node: JmxNode) -> Exception:
    """The refusal of an element that has no translation."""
    if node.refusal is not None:
        return node.refused(*node.refusal)
    return node.refused("it has no equivalent here", INSTEAD.get(node.tag, "remove or disable it"))


def entries_of(
    nodes: Sequence[JmxNode], scope: TreeScope, walk: TreeWalk, loop: LoopContext, rows_at: bool = False
) -> list[Entry]:
    """What a user does when these elements are walked once. Raises Refused and UsageError."""
    here = inner(scope, nodes, walk.values, walk.shared, rows_at)
    found = at_iteration(nodes, walk.values, walk.shared, rows_at)
    names = counted(nodes, walk.values, walk.users)
    if names:
        found.append(Block(set=names))
    for node in nodes:
        if node.enabled and node.refusal is not None:
            raise unsupported(node)
        if not node.enabled or node.tag in NOT_REQUESTS:
            continue
        if node.tag in SAMPLERS:
            found += _sampler(node, here, walk)
        elif node.tag in CONTROLLERS:
            made = CONTROLLERS[node.tag](node, here, walk, loop)
            node.finish()
            if depth(made) > DEEPEST:
                raise node.refused(f"blocks nested deeper than {DEEPEST}", "make the plan flatter")
            found += made
        else:
            raise unsupported(node)
    return found if any(does(entry) for entry in found) else []


def does(entry: Entry) -> bool:
    """Whether it sends, waits, has a row or goes on elsewhere."""
    if isinstance(entry, Step) or entry.pause is not None or entry.pace is not None or leaves(entry):
        return True
    return any(map(does, (*entry.steps, *entry.otherwise)))


def sends(entry: Entry) -> bool:
    """Whether a request stands there."""
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
        if below.tag not in NOT_REQUESTS or below.tag in COUNTING or below.refusal is not None:
            raise unsupported(below)
    here = inner(scope, own, walk.values, walk.shared, rows_at=False)
    entries = _asked(node, here, walk)
    if here.handler is None or handlers.is_of_group(here.handler, walk.values):
        return entries
    return handlers.handled(entries, here.handler, node, walk.ways, walk.values)


def _asked(node: JmxNode, here: TreeScope, walk: TreeWalk) -> list[Entry]:
    """The request with what comes before it and after it."""
    values = walk.values
    if node.property("HTTPSampler.header_manager") is not None:
        values.note(f"{node.element}: headers that it holds itself are not sent, as in JMeter")
    first = parameters.given(here.parameters, values, walk.shared.given)
    first += plain_scripts.done(here.scripts, values)
    waits = timers.waits(here.timers, values)
    with calls.within(values.label(node), values) as stores:
        try:
            asked = request(node, here, values, walk.shared)
        except NotSent as why:
            return [*first, *(Block(pause=think) for think in waits), *_not_sent(node, why, values)]
    walk.requests.append(asked)
    if len(walk.requests) > MOST_STEPS:
        raise node.refused(f"a group of more than {MOST_STEPS} requests", "use loops in place of copies")
    before = [*first]
    if here.paced is not None:
        before.append(Block(pace=timers.pace(here.paced, walk.users, values, walk.shared.paces)))
    before += [Block(pause=think) for think in waits[:-1]]
    before += [Block(set={name: text}) for name, text in stores]
    step = asked.step.model_copy(update={"think_before": waits[-1]}) if waits else asked.step
    after = plain_scripts.done_after(here.processors, values)
    if after.captures:
        step = step.model_copy(update={"capture": {**step.capture, **after.captures}})
    if asked.embedded is not None and asked.resource is not None:
        return [*before, *resources.fetched(step, asked.resource, asked.embedded), *after.entries]
    return [*before, step, *after.entries]


def _not_sent(node: JmxNode, why: NotSent, values: KnownValues) -> list[Entry]:
    """A sampler of which JMeter makes an error and no request."""
    values.faults[node.number] = str(why)
    values.unsent = values.unsent or why.refusal
    values.note(f"{node.element}: as in JMeter it sends nothing, and its row in the log is an error: {why}")
    return [
        silent(marked(values.label(node), node)),
        Block(set={values.values[last_sample.VARIABLE]: "false"}),
    ]


def named_round(node: JmxNode, walk: TreeWalk) -> str:
    """The name of a loop's round, which `${__jm__NAME__idx}` of the plan then stands for."""
    walk.rounds += 1
    name = f"round{walk.rounds}"
    walk.values.variables[f"__jm__{node.label}__idx"] = Text.placeholder(name)
    return name
