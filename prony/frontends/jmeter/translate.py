"""A test plan into a load on a running server. Must not run it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.experiment.running import RunningLoad, Target
from prony.frontends.base import Translated
from prony.frontends.jmeter import groups, jmx, timers
from prony.frontends.jmeter.arguments import TOOL, Arguments
from prony.frontends.jmeter.functions import Values
from prony.frontends.jmeter.groups import Group
from prony.frontends.jmeter.jmx import Node
from prony.frontends.jmeter.requests import Request
from prony.frontends.jmeter.scope import Scope, Shared, inner, user_variables
from prony.frontends.jmeter.tree import NOT_REQUESTS, Sent, requests_of, steps_of, unsupported
from prony.plan.load import ClosedLoad, Connections, Load, OpenLoad, WholeRun
from prony.plan.workload import Scenario, Workload

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


def plan(asked: Arguments) -> Plan:
    """The test plan of this command line. Raises Refused and UsageError."""
    assert asked.plan is not None
    return of_tree(jmx.read(asked.plan), asked.plan, asked.properties)


def of_tree(top: Node, path: Path, properties: dict[str, str]) -> Plan:
    """The test plan whose top element this is."""
    values = Values(properties=dict(properties), draws=random.Random())
    shared = Shared(path.parent)
    _test_plan(top, values)
    found = _only_group(top)
    outside = [node for node in top.below if node is not found]
    scope = inner(Scope(), outside, values, shared, rows_at=True)
    made = groups.group(found, values)
    values.users = made.users
    walks, sent = _walks(found, scope, values, shared)
    load, measured = _paced(made, sent, values, len(walks))
    requests = [one.request for one in sent]
    _held(requests)
    running = RunningLoad(
        target=Target.parse(_one_server(requests)),
        workload=_workload(path.stem, walks, shared),
        load=load,
        measured=measured,
        warm_up_s=0.0,
        driver="auto",
        seed=1,
        connections=_connections(made, requests, shared, len(walks)),
        request_timeout_ms=_longest(requests, values),
        connect_timeout_ms=max((r.connect_ms or CONNECT_MS for r in requests), default=CONNECT_MS),
        asks_first=False,
        title=f"jmeter {path.name}",
    )
    if any(one.before.kind != "none" for one in sent):
        values.note(
            "a timer's pause comes after the request before it, so that a user's first request "
            "is sent at once"
        )
    if made.delay_s:
        values.note(
            f"the start-up delay of {made.delay_s:g} s is waited before the load; the plan begins at once"
        )
    name = values.constant(found.label, found)
    return Plan(Translated(TOOL, running, tuple(values.notes)), name, made.users or 0, made.delay_s)


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


def _walks(
    found: Node, scope: Scope, values: Values, shared: Shared
) -> tuple[tuple[Scenario, ...], list[Sent]]:
    """What users walk: one way, or the branches of a random controller that is the group's only child."""
    name = values.constant(found.label, found)
    active = [node for node in found.below if node.enabled and node.tag not in NOT_REQUESTS]
    if len(active) == 1 and active[0].tag == "RandomController":
        here = inner(scope, found.below, values, shared, rows_at=True)
        return _branches(active[0], here, values, shared)
    sent = requests_of(found.below, scope, values, shared)
    if not sent:
        raise found.wrong("at least one HTTP request that is enabled")
    return (Scenario(name=name, steps=steps_of(sent)),), sent


def _branches(
    node: Node, scope: Scope, values: Values, shared: Shared
) -> tuple[tuple[Scenario, ...], list[Sent]]:
    node.ignore("InterleaveControl.style", "InterleaveControl.accrossThreads")
    node.finish()
    beside = [below for below in node.below if below.tag in NOT_REQUESTS]
    walks: list[Scenario] = []
    every: list[Sent] = []
    for branch in node.below:
        if not branch.enabled or branch.tag in NOT_REQUESTS:
            continue
        before = dict(values.variables)
        sent = requests_of([*beside, branch], scope, values, shared, rows_at=False)
        values.variables = before
        if not sent:
            raise branch.wrong("at least one request in each branch of a Random Controller")
        if branch.tag not in ("HTTPSamplerProxy", "HTTPSampler", "HTTPSampler2") and len(sent) > 1:
            raise branch.refused(
                "a branch of several requests (JMeter sends one, and the next one the time after)",
                "let each branch be one request",
            )
        walks.append(Scenario(name=f"{len(walks) + 1} {branch.label}", steps=steps_of(sent)))
        every += sent
    if not walks:
        raise node.wrong("at least one branch that is enabled")
    return tuple(walks), every


def _workload(name: str, walks: Sequence[Scenario], shared: Shared) -> Workload:
    if len(walks) == 1:
        return Workload(
            name=name, steps=walks[0].steps, feeders=shared.feeders, cookies=shared.cookies_anywhere
        )
    return Workload(
        name=name,
        scenarios=tuple(walks),
        scenario_choice="per_iteration",
        feeders=shared.feeders,
        cookies=shared.cookies_anywhere,
    )


def _paced(made: Group, sent: list[Sent], values: Values, ways: int) -> tuple[Load, WholeRun]:
    """With a throughput timer the requests of all threads follow a schedule."""
    timer = next((one.request.scope.paced for one in sent if one.request.scope.paced is not None), None)
    if timer is None:
        return made.load, made.measured
    if made.users is None:
        raise timer.refused("a throughput timer in an open model", "write the rate in the schedule")
    if len(sent) != 1 or ways != 1 or sent[0].before.kind != "none":
        raise timer.refused(
            "it paces more than one request, or one with another timer",
            "give the group one sampler, or use an Open Model Thread Group",
        )
    rate = timers.paced_per_s(timer, made.users, values)
    assert isinstance(made.load, ClosedLoad)
    total = None if made.loops < 1 else made.loops * made.users
    values.note(
        f"{timer.element}: requests are due every {1000 / rate:g} ms whatever the server does, "
        f"at most {made.users} at once; one that finds all threads busy is counted "
        "as blocked (JMeter would send it later)"
    )
    load = OpenLoad(
        rate_per_s=rate,
        ramp_up_s=made.load.ramp_up_s,
        session="request",
        max_users=made.users,
        connections=made.users,
    )
    return load, WholeRun(duration_s=made.measured.duration_s, total_requests=total)


def _held(requests: Sequence[Request]) -> None:
    """A cache that could spare a request is refused: every request is sent."""
    seen: set[tuple[str, str]] = set()
    for one in requests:
        if one.scope.cache is not None and (one.step.method, one.step.path) in seen:
            raise one.scope.cache.refused(
                f"a cache that could spare the second request of {one.step.path} in an iteration",
                "remove the cache manager: every request is sent",
            )
        seen.add((one.step.method, one.step.path))


def _one_server(requests: Sequence[Request]) -> str:
    first = requests[0]
    for one in requests:
        if one.base != first.base:
            raise one.node.refused(
                f"a second server ({one.base} beside {first.base})", "make a plan for each server"
            )
    return first.base


def _connections(made: Group, requests: Sequence[Request], shared: Shared, ways: int) -> Connections:
    keeping = {one.keep_alive for one in requests}
    if not made.new_users or keeping == {False}:
        return Connections(keep_alive=keeping != {False})
    if shared.cookies_anywhere or ways > 1:
        raise made.node.refused(
            "a new user for every iteration, with cookies or a random branch",
            "tick 'Same user on each iteration'",
        )
    return Connections(max_requests=len(requests))


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
