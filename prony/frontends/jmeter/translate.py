"""A test plan into a load on a running server. Must not run it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from prony.frontends.base import Translated
from prony.frontends.jmeter import (
    data_files,
    groups,
    inert,
    jmx,
    last_sample,
    listeners,
    marks,
    modules,
    on_error,
    plug_ins,
)
from prony.frontends.jmeter.arguments import TOOL, JMeterArguments, Wishes
from prony.frontends.jmeter.connections import (
    TranslatedGroup,
    connections,
    longest,
    longest_to_connect,
    target,
)
from prony.frontends.jmeter.cookies import CookieRules, check_managers
from prony.frontends.jmeter.functions import KnownValues, Text
from prony.frontends.jmeter.groups import Group
from prony.frontends.jmeter.jmx import JmxNode
from prony.frontends.jmeter.listeners import RowsFile
from prony.frontends.jmeter.on_error import STOPS_ALL, OnError
from prony.frontends.jmeter.outline import Outline, outlines
from prony.frontends.jmeter.plain_scripts import AFTER
from prony.frontends.jmeter.scope import (
    Shared,
    TreeScope,
    at_iteration,
    counted,
    gather,
    inner,
    user_variables,
)
from prony.frontends.jmeter.shared_state import check_shared_state, goes_on
from prony.frontends.jmeter.thread_names import ThreadGroup
from prony.frontends.jmeter.tree import NOT_REQUESTS, LoopContext, TreeWalk, entries_of, sends, unsupported
from prony.frontends.jmeter.walked import workload
from prony.plan.load import ClosedLoad, WholeRun
from prony.plan.population import Population
from prony.plan.stage import Stage
from prony.plan.step import Block
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Workload


@dataclass(frozen=True, slots=True)
class Phase:
    """The setUp groups, the load, or the tearDown groups: what their rows in a log need."""

    thread_groups: tuple[ThreadGroup, ...]
    """In the order in which their users are numbered."""
    workload: Workload
    outlines: Mapping[str, Outline]
    """By scenario."""


@dataclass(frozen=True, slots=True)
class JMeterPlan:
    """A load, and what its lines of output need."""

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
        """Of the load; 0 in an open model."""
        return sum(thread_group.users or 0 for thread_group in self.thread_groups)


def plan(asked: JMeterArguments) -> JMeterPlan:
    """The test plan of this command line. Raises Refused and UsageError."""
    assert asked.plan is not None
    return of_tree(jmx.read(asked.plan), asked.plan, asked.properties, asked.wishes)


def of_tree(top: JmxNode, path: Path, properties: dict[str, str], wishes: Wishes | None = None) -> JMeterPlan:
    """The test plan whose top element this is."""
    wishes = wishes or Wishes()
    values = KnownValues(
        properties=dict(properties), draws=random.Random(), folder=path.parent,
        csv_dir=wishes.csv_dir, end_s=wishes.duration_s,
    )  # fmt: skip
    shared = Shared(path.parent, values.feeders)
    modules.expand(top, path.parent)
    plug_ins.become_own(top)
    marks.number(top)
    writing = listeners.writing(top)
    inert.remove(top, values, wishes.skip_unsupported)
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
    found = [
        groups.named([groups.group(node, values) for node in nodes]) for nodes in (setup, main, teardown)
    ]
    users = [one.users for one in found[1]]
    beside = counted(outside, values, None if None in users else sum(one or 0 for one in users))
    everybodys = CommonElements(scope, beside, tuple(shared.feeders), shared.cookies)
    parts = _parts(found, everybodys, values, shared)
    found = [tuple(part.group for part in phase) for phase in parts]
    requests = [one for phase in parts for part in phase for one in part.requests]
    before_load, of_load, after_load = parts
    alone = not (before_load or after_load) or main[0].tag != groups.CLOSED
    several = len(of_load) > 1 or bool(found[1][0].waves) or not alone
    _check_beginnings(parts)
    _note_end(found, top, values)
    load, measured = found[1][0].load, found[1][0].measured
    populations: tuple[Population, ...] = ()
    if several:
        load, measured = _crowd(of_load, one_after_the_other, values), WholeRun()
        populations = load.populations
    before, after = (
        _stage(f"{path.stem}-{name}", some, one_after_the_other, values, shared)
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
    delay_s = 0.0 if several else found[1][0].delay_s
    if delay_s:
        values.note(f"the start-up delay of {delay_s:g} s is waited before the load; the plan begins at once")
    _note_undefined(values)
    inert.note_foreign(top, values)
    return JMeterPlan(
        Translated(TOOL, target(requests, shared), trial, f"jmeter {path.name}", tuple(values.notes)),
        _phase(found[1], populations, walked, values, shared),
        None if before is None else _phase(found[0], before.populations, before.walked, values, shared),
        None if after is None else _phase(found[2], after.populations, after.walked, values, shared),
        delay_s,
        written,
    )


def _phase(
    found: Sequence[Group],
    populations: Sequence[Population],
    walked: Workload,
    values: KnownValues,
    shared: Shared,
) -> Phase:
    outlined = outlines(walked, shared.transactions, values.faults, values.held_within)
    return Phase(_thread_groups(found, populations), walked, outlined)


def _note_end(found: Sequence[Sequence[Group]], top: JmxNode, values: KnownValues) -> None:
    """What comes after a group that a failed request lets end the run."""
    before, main, after = found
    stops = [[one for one in phase if one.on_error in STOPS_ALL] for phase in (before, main)]
    if stops[0]:
        values.note(
            f"{stops[0][0].node.element}: after a request of it that fails nothing else is sent, as in JMeter"
        )
    if stops[1] and after and not top.flag("TestPlan.tearDown_on_shutdown"):
        values.note(
            "the tearDown groups run also where a failed request has ended the load; this plan says that "
            "JMeter does not"
        )


def _note_undefined(values: KnownValues) -> None:
    sent = {name: where for name, where in values.undefined.items() if where.number not in values.faults}
    if sent:
        names = ", ".join(f"${{{name}}} (line {where.line})" for name, where in sent.items())
        values.note(f"variables that have no value are sent as they are written, as JMeter does: {names}")


def _thread_groups(found: Sequence[Group], populations: Sequence[Population]) -> tuple[ThreadGroup, ...]:
    """One for each population, in their order; those of one group in waves have its number together."""
    if not populations:
        return tuple(
            ThreadGroup(
                one.thread_label,
                one.users,
                0.0,
                one.load.ramp_up_s if isinstance(one.load, ClosedLoad) else 0.0,
                number,
                element=one.node.number,
            )
            for number, one in enumerate(found, 1)
        )
    made: list[ThreadGroup] = []
    left = iter(populations)
    for number, one in enumerate(found, 1):
        before = 0
        for wave in islice(left, len(one.waves) or 1):
            made.append(
                ThreadGroup(
                    one.thread_label,
                    wave.users,
                    wave.start_s,
                    wave.ramp_up_s,
                    number,
                    before,
                    one.node.number,
                )
            )
            before += wave.users
    return tuple(made)


def _test_plan(top: JmxNode, values: KnownValues) -> bool:
    """Whether its groups run one after the other."""
    if top.flag("TestPlan.functional_mode"):
        values.note("the functional test mode keeps every response for JMeter's listeners; here none is kept")
    if top.value("TestPlan.user_define_classpath"):
        values.note("the plan's class path is not looked at: nothing here runs on Java")
    consecutive = top.flag("TestPlan.serialize_threadgroups")
    top.ignore("TestPlan.tearDown_on_shutdown")
    user_variables(top, "TestPlan.user_defined_variables", values)
    top.finish()
    return consecutive


def _groups(top: JmxNode, values: KnownValues) -> tuple[list[JmxNode], list[JmxNode], list[JmxNode]]:
    """Those before the load, those of it, and those after it; a group without threads does nothing."""
    found: list[JmxNode] = []
    for node in top.below:
        if not node.enabled:
            continue
        if node.tag in groups.KINDS:
            found.append(node)
        elif node.refusal is not None or (node.tag not in NOT_REQUESTS and node.tag != on_error.HANDLER):
            raise unsupported(node)
    idle = [node for node in found if groups.without_threads(node, values)]
    if idle and len(idle) < len(found):
        found = [node for node in found if not any(node is one for one in idle)]
        top.below = [node for node in top.below if not any(node is one for one in idle)]
        values.note(f"these groups have no threads: {', '.join(node.element for node in idle)}")
    around = (groups.SET_UP, groups.TEAR_DOWN)
    before, after = ([node for node in found if node.tag == tag] for tag in around)
    main = [node for node in found if node.tag not in around]
    if not main:
        raise top.wrong("a thread group that is enabled")
    for node in main:
        if node.tag in groups.OF_ARRIVALS and len(main) > 1:
            raise node.refused(
                "an open model beside other thread groups",
                "run it as a plan of its own, or make it a Thread Group",
            )
    return before, main, after


@dataclass(frozen=True, slots=True)
class CommonElements:
    """What stands above all groups."""

    scope: TreeScope
    counts: dict[str, str]
    """Set at the begin of every iteration."""
    feeders: tuple[str, ...]
    cookies: CookieRules | None


def _parts(
    found: Sequence[Sequence[Group]], above: CommonElements, values: KnownValues, shared: Shared
) -> list[tuple[TranslatedGroup, ...]]:
    """Of each phase, those whose users send something: of the load at least one."""
    parts: list[tuple[TranslatedGroup, ...]] = []
    silent: list[Group] = []
    for phase in found:
        made = [(one, _part(one, above, values, shared)) for one in phase]
        silent += [one for one, part in made if part is None]
        parts.append(tuple(part for _, part in made if part is not None))
    if not parts[1]:
        raise values.unsent or found[1][0].node.wrong(
            "at least one HTTP request that is enabled and that a user can come to"
        )
    if silent:
        values.note(
            f"these groups send no request and are left out: {', '.join(one.node.element for one in silent)}"
        )
    return parts


def _part(made: Group, above: CommonElements, values: KnownValues, shared: Shared) -> TranslatedGroup | None:
    """One group's way; None where no request is on it. What it gives names to is not known to the others."""
    names, used, files = dict(values.variables), set(values.used), set(shared.feeders)
    opened, referred = dict(values.opened), set(values.referred)
    above_rows = set(values.rows_here)
    shared.cookies, shared.given = above.cookies, {}
    values.users, values.group = made.users, made.label
    values.lasts_s, values.schedule = made.measured.duration_s, None
    walk = TreeWalk(values, shared, made.users, endless=made.measured.duration_s is not None)
    begins = at_iteration(values.above, values, shared, rows_at=True)
    entries = entries_of(made.node.below, above.scope, walk, LoopContext(), rows_at=True)
    acts = any(sends(entry) for entry in entries)
    check_managers([one.scope.cookies for one in walk.requests], values)
    after = [one for request in walk.requests for one in request.scope.processors if one.tag in AFTER]
    if after and made.on_error is not OnError.GO_ON:
        values.note(
            f"{after[0].element}: after a request that fails its script is left out; in JMeter it runs"
        )
    entries = walk.ways[0].iteration(last_sample.noted(entries, values))
    entries = [*begins, *on_error.guarded(entries, made.on_error, made.node, values)]
    if above.counts:
        entries.insert(0, Block(set=above.counts))
    part = TranslatedGroup(
        made,
        tuple(entries),
        tuple(walk.requests),
        {name: text for name, text in values.initial.items() if name in values.used},
        tuple(
            name
            for name, feeder in shared.feeders.items()
            if name in above.feeders or name not in files or feeder.on_use or name in values.rows_here
        ),
        shared.cookies,
    )
    changing = {variable: Text.placeholder(name) for variable, name in values.values.items()}
    values.variables, values.used, values.referred = names | changing, used, referred
    values.rows_here = above_rows
    alone = ("shareMode.group", "shareMode.thread")  # each group opens the file for itself
    values.opened = {
        key: feeder for key, feeder in values.opened.items() if key in opened or not key.endswith(alone)
    }
    return part if acts else None


def _crowd(parts: Sequence[TranslatedGroup], one_after_the_other: bool, values: KnownValues) -> ClosedLoad:
    feeders = [part.feeders for part in parts]
    populations = groups.populations([part.group for part in parts], one_after_the_other, values, feeders)
    return ClosedLoad(users=sum(one.users for one in populations), populations=populations)


@dataclass(frozen=True, slots=True)
class TranslatedStage:
    """What comes before the load, or after it."""

    walked: Workload
    """With the marks of elements."""
    loads: ClosedLoad

    @property
    def stage(self) -> Stage:
        """For the plan."""
        return Stage(workload=marks.unmarked(self.walked), loads=self.loads)

    @property
    def populations(self) -> Sequence[Population]:
        """Its users."""
        return self.loads.populations


def _stage(
    name: str,
    parts: Sequence[TranslatedGroup],
    one_after_the_other: bool,
    values: KnownValues,
    shared: Shared,
) -> TranslatedStage | None:
    """None without groups that send something."""
    if not parts:
        return None
    loads = _crowd(parts, one_after_the_other, values)
    return TranslatedStage(workload(name, parts, values, shared), loads)


def _check_beginnings(phases: Sequence[Sequence[TranslatedGroup]]) -> None:
    """What goes on from a setUp group to the load would begin again."""
    before, of_load, after = ([entry for part in phase for entry in part.entries] for phase in phases)
    for one, other, parts in (
        (before, of_load, phases[0]),
        (before, after, phases[0]),
        (of_load, after, phases[2]),
    ):
        if goes_on(one, other):
            raise parts[0].group.node.refused(
                "a counter or the rows of a file go on from setUp to the load and to tearDown",
                "use a counter and a file of its own in each of them, or count for each user independently",
            )
