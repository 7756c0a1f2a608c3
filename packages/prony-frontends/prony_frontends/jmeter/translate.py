"""Translates a test plan into a load on a running server."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.plan.load import WholeRun
from prony.plan.population import Population
from prony.plan.step import requests as requests_of
from prony.plan.trial import TrialPlan, fixed
from prony_frontends.base import Translated
from prony_frontends.jmeter import data_files, groups, inert, jmx, listeners, marks, modules, plug_ins
from prony_frontends.jmeter.arguments import TOOL, JMeterArguments, OwnSettings
from prony_frontends.jmeter.connections import (
    TranslatedGroup,
    connections,
    longest,
    longest_to_connect,
    target,
)
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.iterations import CommonElements, translated_groups
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.listeners import RowsFile
from prony_frontends.jmeter.phases import Phase, check_beginnings, crowd, phase_of, stage_of
from prony_frontends.jmeter.scope import Shared, TreeScope, counted, gather, inner, user_variables
from prony_frontends.jmeter.shared_state import check_shared_state
from prony_frontends.jmeter.thread_names import ThreadGroup
from prony_frontends.jmeter.tree import NOT_REQUESTS, unsupported
from prony_frontends.jmeter.walked import workload


@dataclass(frozen=True, slots=True)
class JMeterPlan:
    """A load with the data for its output."""

    translated: Translated
    load: Phase
    before: Phase | None
    after: Phase | None
    delay_s: float
    files: tuple[RowsFile, ...] = ()
    """Of listeners."""

    @property
    def thread_groups(self) -> tuple[ThreadGroup, ...]:
        """Of the load."""
        return self.load.thread_groups

    @property
    def users(self) -> int:
        """Users of the load; 0 for an open model."""
        return sum(thread_group.users or 0 for thread_group in self.thread_groups)


def plan(args: JMeterArguments) -> JMeterPlan:
    """Translates the test plan of a command line. Raises Refused and UsageError."""
    assert args.plan is not None
    return of_tree(jmx.read(args.plan), args.plan, args.properties, args.own_settings)


def of_tree(
    top: JmxNode, path: Path, properties: dict[str, str], own_settings: OwnSettings | None = None
) -> JMeterPlan:
    """Translates the test plan with this root."""
    own_settings = own_settings or OwnSettings()
    values = KnownValues(
        properties=dict(properties), draws=random.Random(), folder=path.parent,
        csv_dir=own_settings.csv_dir, end_s=own_settings.duration_s,
    )  # fmt: skip
    shared = Shared(path.parent, values.feeders)
    modules.expand(top, path.parent)
    plug_ins.become_own(top)
    marks.number(top)
    writing = listeners.writing(top)
    inert.remove(top, values, own_settings.skip_unsupported)
    one_after_the_other = _test_plan(top, values)
    gather(top, values)
    written = listeners.files(writing, groups.KINDS, values)
    setup, main, teardown = _groups(top, values)
    data_files.check_files(top, values)
    everywhere = [*setup, *main, *teardown]
    outside = [node for node in top.below if not any(node is group for group in everywhere)]
    values.above = outside
    check_shared_state(outside, setup, main, teardown)
    scope = inner(TreeScope(), outside, values, shared, rows_at=True)
    phases = [
        groups.named([groups.group(node, values) for node in nodes]) for nodes in (setup, main, teardown)
    ]
    users = [group.users for group in phases[1]]
    beside = counted(outside, values, None if None in users else sum(count or 0 for count in users))
    everybodys = CommonElements(scope, beside, tuple(shared.feeders), shared.cookies)
    parts = translated_groups(phases, everybodys, values, shared)
    phases = [tuple(part.group for part in phase) for phase in parts]
    requests = [request for phase in parts for part in phase for request in part.requests]
    before_load, of_load, after_load = parts
    alone = not (before_load or after_load) or main[0].tag != groups.CLOSED
    several = len(of_load) > 1 or bool(phases[1][0].waves) or not alone
    check_beginnings(parts)
    _note_end(parts, top, values)
    load, measured = phases[1][0].load, phases[1][0].measured
    populations: tuple[Population, ...] = ()
    if several:
        load, measured = crowd(of_load, one_after_the_other, values), WholeRun()
        populations = load.populations
    before, after = (
        stage_of(f"{path.stem}-{name}", some, one_after_the_other, values, shared)
        for name, some in (("setup", before_load), ("teardown", after_load))
    )
    walked = workload(path.stem, of_load, values, shared, alone=not several)
    trial = TrialPlan(
        workload=marks.unmarked(walked),
        load=load,
        measured=measured,
        warm_up=fixed(0.0),
        connections=connections(parts),
        request_timeout_ms=longest(requests, values),
        connect_timeout_ms=longest_to_connect(requests, values),
        preflight=False,
        before=None if before is None else before.stage,
        after=None if after is None else after.stage,
    )
    delay_s = 0.0 if several else phases[1][0].delay_s
    if delay_s:
        values.note("start_delay", f"a start-up delay of {delay_s:g} s precedes the load, not in the plan")
    _note_undefined(values)
    inert.note_foreign(top, values)
    return JMeterPlan(
        Translated(TOOL, target(requests, shared), trial, f"jmeter {path.name}", tuple(values.notes)),
        phase_of(phases[1], populations, walked, values, shared),
        None if before is None else phase_of(phases[0], before.populations, before.walked, values, shared),
        None if after is None else phase_of(phases[2], after.populations, after.walked, values, shared),
        delay_s,
        written,
    )


def _note_end(parts: Sequence[Sequence[TranslatedGroup]], top: JmxNode, values: KnownValues) -> None:
    """Notes the difference for groups after a group whose failed request may end the run."""
    before, main, after = parts
    stops = [
        [part.group for part in phase if any(step.ends_run_on_error for step in requests_of(part.entries))]
        for phase in (before, main)
    ]
    if stops[0]:
        values.note("run_ends", "a failed request ends all sending, as in JMeter", stops[0][0].node)
    if stops[1] and after and not top.flag("TestPlan.tearDown_on_shutdown"):
        values.note("tear_down", "unlike in JMeter tearDown groups run after a failed request")


def _note_undefined(values: KnownValues) -> None:
    sent = {name: where for name, where in values.undefined.items() if where.number not in values.faults}
    if sent:
        names = ", ".join(f"${{{name}}} (line {where.line})" for name, where in sent.items())
        values.note("undefined", f"undefined variables are sent unresolved, as in JMeter: {names}")


def _test_plan(top: JmxNode, values: KnownValues) -> bool:
    """Whether its groups run consecutively."""
    if top.flag("TestPlan.functional_mode"):
        values.note("functional_mode", "functional test mode is ignored: responses are not kept")
    if top.value("TestPlan.user_define_classpath"):
        values.note("class_path", "the plan's class path is ignored: nothing runs on Java")
    consecutive = top.flag("TestPlan.serialize_threadgroups")
    top.ignore("TestPlan.tearDown_on_shutdown")
    user_variables(top, "TestPlan.user_defined_variables", values)
    top.finish()
    return consecutive


def _groups(top: JmxNode, values: KnownValues) -> tuple[list[JmxNode], list[JmxNode], list[JmxNode]]:
    """Groups before the load, of the load, and after it; groups without threads are left out."""
    enabled_groups: list[JmxNode] = []
    for node in top.below:
        if not node.enabled:
            continue
        if node.tag in groups.KINDS:
            enabled_groups.append(node)
        elif node.refusal is not None or node.tag not in NOT_REQUESTS:
            raise unsupported(node)
    idle = [node for node in enabled_groups if groups.without_threads(node, values)]
    if idle and len(idle) < len(enabled_groups):
        enabled_groups = [
            node for node in enabled_groups if not any(node is idle_group for idle_group in idle)
        ]
        top.below = [node for node in top.below if not any(node is idle_group for idle_group in idle)]
        values.note("no_threads", f"these groups have no threads: {', '.join(node.element for node in idle)}")
    around = (groups.SET_UP, groups.TEAR_DOWN)
    before, after = ([node for node in enabled_groups if node.tag == tag] for tag in around)
    main = [node for node in enabled_groups if node.tag not in around]
    if not main:
        raise top.wrong("a thread group that is enabled")
    for node in main:
        if node.tag in groups.OF_ARRIVALS and len(main) > 1:
            raise node.refused(
                "an open model and other thread groups", "make it a plan, or a Thread Group", "conflict"
            )
    return before, main, after
