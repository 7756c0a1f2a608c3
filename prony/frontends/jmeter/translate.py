"""A test plan into a load on a running server. Must not run it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.experiment.running import RunningLoad, Target
from prony.frontends.base import Translated
from prony.frontends.jmeter import groups, jmx, modules
from prony.frontends.jmeter.arguments import TOOL, Arguments
from prony.frontends.jmeter.functions import Values
from prony.frontends.jmeter.groups import Group
from prony.frontends.jmeter.jmx import Node
from prony.frontends.jmeter.requests import Request
from prony.frontends.jmeter.scope import Scope, Shared, cache_of, counted, gather, inner, user_variables
from prony.frontends.jmeter.tree import NOT_REQUESTS, Place, Walk, entries_of, unsupported
from prony.plan.load import Connections
from prony.plan.workload import Block, Cache, Entry, Step, Workload

UNLIMITED_MS = 60_000
"""For an answer, where the plan names no time: JMeter would wait for ever."""
CONNECT_MS = 20_000


@dataclass(frozen=True, slots=True)
class Plan:
    """A load, and what its lines of output need."""

    translated: Translated
    group: str
    users: int
    delay_s: float
    transactions: bool
    """Whether there are any, which have no row of their own in the log."""


def plan(asked: Arguments) -> Plan:
    """The test plan of this command line. Raises Refused and UsageError."""
    assert asked.plan is not None
    return of_tree(jmx.read(asked.plan), asked.plan, asked.properties)


def of_tree(top: Node, path: Path, properties: dict[str, str]) -> Plan:
    """The test plan whose top element this is."""
    values = Values(properties=dict(properties), draws=random.Random(), folder=path.parent)
    shared = Shared(path.parent, values.feeders)
    modules.expand(top, path.parent)
    _test_plan(top, values)
    gather(top, values)
    found = _only_group(top)
    values.group = values.constant(found.label, found)
    outside = [node for node in top.below if node is not found]
    scope = inner(Scope(), outside, values, shared, rows_at=True)
    made = groups.group(found, values)
    values.users = made.users
    walk = Walk(values, shared, made.users, endless=made.measured.duration_s is not None)
    beside = counted(outside, values, made.users)
    entries = entries_of(found.below, scope, walk, Place(), rows_at=True)
    if not entries:
        raise found.wrong("at least one HTTP request that is enabled and that a user can come to")
    if beside:
        entries.insert(0, Block(set=beside))
    running = RunningLoad(
        target=Target.parse(_one_server(walk.requests)),
        workload=Workload(
            name=path.stem,
            steps=tuple(entries),
            variables={name: text for name, text in values.initial.items() if name in values.used},
            feeders=shared.feeders,
            cookies=shared.cookies_anywhere,
            cache=_cache(walk.requests, made.new_users, values),
        ),
        load=made.load,
        measured=made.measured,
        warm_up_s=0.0,
        driver="auto",
        seed=1,
        connections=_connections(made, entries, walk),
        request_timeout_ms=_longest(walk.requests, values),
        connect_timeout_ms=max(r.connect_ms or CONNECT_MS for r in walk.requests),
        asks_first=False,
        title=f"jmeter {path.name}",
    )
    if made.delay_s:
        values.note(
            f"the start-up delay of {made.delay_s:g} s is waited before the load; the plan begins at once"
        )
    name = values.constant(found.label, found)
    return Plan(
        Translated(TOOL, running, tuple(values.notes)),
        name,
        made.users or 0,
        made.delay_s,
        shared.transactions,
    )


def _test_plan(top: Node, values: Values) -> None:
    if top.flag("TestPlan.functional_mode"):
        raise top.refused("the functional test mode, which keeps every answer", "untick it")
    if top.value("TestPlan.user_define_classpath"):
        raise top.refused("a class path of its own", "Prony runs no Java; remove it")
    top.ignore("TestPlan.serialize_threadgroups", "TestPlan.tearDown_on_shutdown")
    user_variables(top, "TestPlan.user_defined_variables", values)
    top.finish()


def _only_group(top: Node) -> Node:
    found: list[Node] = []
    for node in top.below:
        if not node.enabled:
            continue
        if node.tag in groups.ELSEWHERE:
            raise node.refused("a group that comes before or after the load", groups.ELSEWHERE[node.tag])
        if node.tag in (groups.CLOSED, groups.OPEN):
            found.append(node)
        elif node.tag not in NOT_REQUESTS:
            raise unsupported(node)
    if not found:
        raise top.wrong("a thread group that is enabled")
    if len(found) > 1:
        raise found[1].refused(
            f"the second of {len(found)} thread groups",
            "disable all but one and run them one after the other, or join them by a Random Controller",
        )
    return found[0]


def _cache(requests: Sequence[Request], new_users: bool, values: Values) -> Cache | None:
    """One for all requests, or none."""
    first = requests[0].scope.cache
    for one in requests:
        if one.scope.cache is first:
            continue
        node = one.scope.cache or first
        assert node is not None
        raise node.refused(
            f"the request '{one.step.name}' has another cache than the first one, or none",
            "put one cache manager into the thread group or above it",
        )
    return None if first is None else cache_of(first, new_users, values)


def _one_server(requests: Sequence[Request]) -> str:
    first = requests[0]
    for one in requests:
        if one.base != first.base:
            raise one.node.refused(
                f"a second server ({one.base} beside {first.base})", "make a plan for each server"
            )
    return first.base


def _connections(made: Group, entries: Sequence[Entry], walk: Walk) -> Connections:
    keeping = {one.keep_alive for one in walk.requests}
    if not made.new_users or keeping == {False}:
        return Connections(keep_alive=keeping != {False})
    number = _always_sent(entries)
    spares = any(one.scope.cache is not None for one in walk.requests)
    if walk.shared.cookies_anywhere or spares or number is None:
        raise made.node.refused(
            "a new user for every iteration, with cookies, a cache or iterations of different lengths",
            "tick 'Same user on each iteration'",
        )
    return Connections(max_requests=number)


def _always_sent(entries: Sequence[Entry]) -> int | None:
    """Requests of an iteration; None where that differs."""
    total = 0
    for entry in entries:
        if isinstance(entry, Step):
            total += entry.repeat
            continue
        if entry.pause or entry.pace or entry.set:
            continue
        inside = _always_sent(entry.steps)
        if inside is None:
            return None
        if entry.loop is not None and entry.loop.count is not None:
            total += entry.loop.count * inside
        elif entry.group or entry.transaction:
            total += inside
        else:
            return None
    return total


def _longest(requests: Sequence[Request], values: Values) -> int:
    if any(one.response_ms is None for one in requests):
        values.note(
            f"where a sampler has no response timeout, an answer that takes longer than "
            f"{UNLIMITED_MS // 1000} s is an error (JMeter would wait for ever)"
        )
    known = {UNLIMITED_MS if one.response_ms is None else one.response_ms for one in requests}
    if len(known) > 1:
        values.note(f"the longest response timeout, {max(known)} ms, holds for all requests")
    return max(known)
