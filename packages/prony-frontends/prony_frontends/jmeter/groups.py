"""Translates a thread group into a load: users, ramp, loops and schedule, or an open model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from prony.plan.load import ClosedLoad, Load, OpenLoad, RatePhase, WholeRun
from prony.plan.population import Population
from prony_frontends.jmeter import arrivals, meeting, on_error, plugin_groups, shaping, whiles
from prony_frontends.jmeter.controllers import loops
from prony_frontends.jmeter.functions import LONGEST_S, KnownValues
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.meeting import Batch
from prony_frontends.jmeter.on_error import OnError
from prony_frontends.jmeter.plugin_groups import Wave
from prony_frontends.jmeter.thread_names import STARTER

CLOSED, OPEN = "ThreadGroup", "OpenModelThreadGroup"
SET_UP, TEAR_DOWN = "SetupThreadGroup", "PostThreadGroup"
OF_ARRIVALS = frozenset({OPEN, *arrivals.KINDS})
KINDS = frozenset({CLOSED, SET_UP, TEAR_DOWN, *OF_ARRIVALS, *plugin_groups.KINDS})
MOST_USERS = 10_000_000
UNIT_S = {"ms": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "m": 60.0, "min": 60.0,
          "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hour": 3600.0, "hours": 3600.0, "d": 86400.0,
          "day": 86400.0, "days": 86400.0}  # fmt: skip
CALL = re.compile(r"\s*(?://[^\n]*\n|/\*.*?\*/|(\w+)\s*\(([^()]*)\))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Group:
    """Users, rates and duration of a group."""

    node: JmxNode
    load: Load
    measured: WholeRun
    users: int | None
    """None for an open model."""
    loops: int
    """-1: until the duration is over."""
    delay_s: float = 0.0
    """Delay before the first user, in s."""
    new_users: bool = False
    """Each iteration is a new user: a new connection, and no cookies."""
    label: str = ""
    """Name in the plan."""
    name: str = ""
    """Unique name."""
    on_error: OnError = OnError.GO_ON
    waves: tuple[Wave, ...] = ()
    """Plug-in's groups: start and end of the threads."""

    @property
    def thread_label(self) -> str:
        """Prefix of its threads' names."""
        started = self.node.tag == plugin_groups.CONCURRENCY or self.node.tag in arrivals.KINDS
        return f"{self.label}{STARTER}" if started else self.label


def group(node: JmxNode, values: KnownValues) -> Group:
    """Translates a group. Raises Refused and UsageError."""
    if node.tag in plugin_groups.KINDS:
        translated = _in_waves(node, values)
    else:
        translated = _open(node, values) if node.tag in OF_ARRIVALS else _closed(node, values)
    node.finish()
    return translated


def without_threads(node: JmxNode, values: KnownValues) -> bool:
    """Whether the group is set to no threads."""
    if node.tag not in (CLOSED, SET_UP, TEAR_DOWN):
        return False
    text = values.text(node.value("ThreadGroup.num_threads", "1"), node).constant
    return text is not None and text.strip() == "0"


def populations(
    groups: Sequence[Group], one_after_the_other: bool, values: KnownValues, feeders: Sequence[Sequence[str]]
) -> tuple[Population, ...]:
    """The closed groups of a run, each with the scenario of its name. `feeders`: by group, the feeders of its
    users. Raises Refused where groups run consecutively and the end of one is unknown.
    """
    populations: list[Population] = []
    begins_s = 0.0
    for place, (group, names) in enumerate(zip(groups, feeders, strict=True)):
        assert isinstance(group.load, ClosedLoad)
        if group.waves:
            populations += _of_waves(group, begins_s, names)
            end_s = begins_s + max(wave.end_s for wave in group.waves)
            if one_after_the_other and place + 1 < len(groups):
                begins_s = _known(end_s, group)
            continue
        populations.append(
            Population(
                name=group.name,
                users=group.load.users,
                start_s=begins_s + group.delay_s,
                ramp_up_s=group.load.ramp_up_s,
                duration_s=group.measured.duration_s,
                iterations_per_user=group.measured.iterations_per_user,
                scenarios=(group.name,),
                feeders=tuple(names),
            )
        )
        if one_after_the_other and place + 1 < len(groups):
            ends_by_loops = group.measured.iterations_per_user is not None
            begins_s = _known(math.inf if ends_by_loops else populations[-1].end_s, group)
    if begins_s:
        values.note(
            "consecutive_groups",
            "groups run consecutively: each begins after the duration of the previous group "
            "(JMeter also waits for its last responses)",
        )
    return tuple(populations)


def _known(end_s: float | None, group: Group) -> float:
    if end_s is None or math.isinf(end_s):
        raise group.node.refused(
            "groups that run one after the other, where this one ends with its loops",
            "give it a scheduler's duration and an infinite loop count, or untick "
            "'Run Thread Groups consecutively'",
        )
    return end_s


def _of_waves(group: Group, begins_s: float, feeders: Sequence[str]) -> Iterator[Population]:
    before = 0
    for number, wave in enumerate(group.waves, 1):
        yield Population(
            name=group.name if number == 1 else f"{group.name} #{number}",
            users=wave.threads,
            users_before=before,
            start_s=begins_s + wave.start_s,
            duration_s=None if math.isinf(wave.end_s) else wave.end_s - wave.start_s,
            iterations_per_user=group.measured.iterations_per_user,
            scenarios=(group.name,),
            feeders=tuple(feeders),
        )
        before += wave.threads


def named(groups: Sequence[Group]) -> tuple[Group, ...]:
    """The groups with unique names."""
    renamed: list[Group] = []
    for group in groups:
        name, number = group.label or "group", 1
        while name in {other.name for other in renamed}:
            number += 1
            name = f"{group.label or 'group'} ({number})"
        renamed.append(replace(group, name=name))
    return tuple(renamed)


def _closed(node: JmxNode, values: KnownValues) -> Group:
    after_error = on_error.of_group(node, values)
    users = values.whole(node.value("ThreadGroup.num_threads", "1"), node, "ThreadGroup.num_threads", 1)
    ramp_s = values.number(node.value("ThreadGroup.ramp_time"), node, "ThreadGroup.ramp_time", 0.0)
    if not 1 <= users <= MOST_USERS or ramp_s < 0:
        raise node.wrong(f"1 to {MOST_USERS} threads and a ramp-up from 0 s, found {users} and {ramp_s:g}")
    main = node.property("ThreadGroup.main_controller")
    number = 1 if main is None else loops(main, values)
    if main is None:
        values.note("no_loop_count", "no loop count: it gets 1, where JMeter 5.6.3 fails", node)
    if main is not None and main.flag("LoopController.continue_forever", True):
        number = -1  # even with a loop count, as in JMeter
    duration_s, delay_s = None, 0.0
    if node.flag("ThreadGroup.scheduler"):
        duration_s = (
            values.number(node.value("ThreadGroup.duration"), node, "ThreadGroup.duration", 0.0) or None
        )
        delay_s = values.number(node.value("ThreadGroup.delay"), node, "ThreadGroup.delay", 0.0)
    if number == 0 and duration_s is None:
        raise node.refused("no loops", "give it loops, or a scheduler with a duration")
    shaped_s = shaping.end_s([*values.above, node], values)
    if shaped_s is not None:
        duration_s = shaped_s if duration_s is None else min(duration_s, shaped_s)
    if duration_s is None and (number < 0 or _goes_on_inside(node)):
        duration_s = _end_s(node, values)
    if delay_s < 0 or (duration_s is not None and duration_s < 0):
        raise node.wrong("a duration and a delay of at least 0")
    node.ignore("ThreadGroup.start_time", "ThreadGroup.end_time", "ThreadGroup.duration", "ThreadGroup.delay",
                "ThreadGroup.delayedStart")  # fmt: skip
    new_users = not node.flag("ThreadGroup.same_user_on_next_iteration", True) and number != 1
    iterations = None if number < 1 else number
    closed = Group(
        node,
        ClosedLoad(users=users, ramp_up_s=ramp_s),
        WholeRun(duration_s=duration_s, iterations_per_user=iterations),
        users,
        max(number, -1),
        delay_s,
        new_users,
        values.constant(node.label, node),
        on_error=after_error,
    )
    met = meeting.batches(node, users, ramp_s, number, values)
    return closed if met is None else _met(closed, met, values)


def _met(made: Group, batches: Sequence[Batch], values: KnownValues) -> Group:
    """The group with threads starting in these batches: a single batch starts later, several become waves."""
    meeting.note_batches(batches, made.node, values)
    lasts_s = made.measured.duration_s
    if lasts_s is not None and batches[-1].at_s >= lasts_s:
        raise made.node.wrong(f"a duration above {batches[-1].at_s:g} s, when the last threads begin")
    if len(batches) == 1:
        (only,) = batches
        ends_s = None if lasts_s is None else lasts_s - only.at_s
        return replace(
            made,
            load=ClosedLoad(users=only.threads),
            measured=made.measured.model_copy(update={"duration_s": ends_s}),
            delay_s=made.delay_s + only.at_s,
        )
    ends_s = math.inf if lasts_s is None else made.delay_s + lasts_s
    waves = tuple(Wave(batch.threads, made.delay_s + batch.at_s, ends_s) for batch in batches)
    return replace(made, load=ClosedLoad(users=sum(batch.threads for batch in batches)), waves=waves)


def _in_waves(node: JmxNode, values: KnownValues) -> Group:
    """A group of jmeter-plugins."""
    own_waves = _until(shaping.end_s([*values.above, node], values), plugin_groups.waves(node, values))
    after_error = on_error.of_group(node, values)
    node.ignore("ThreadGroup.scheduler", "ThreadGroup.num_threads", "ThreadGroup.ramp_time",
                "ThreadGroup.duration", "ThreadGroup.delay", "ThreadGroup.start_time", "ThreadGroup.end_time",
                "ThreadGroup.same_user_on_next_iteration")  # fmt: skip
    main = node.property("ThreadGroup.main_controller")
    number = -1
    if node.tag == plugin_groups.CONCURRENCY:
        number = values.whole(node.value("Iterations"), node, "Iterations", -1) or -1
        if number > 0:
            raise node.refused("an iterations limit with replacement of the thread", "leave it empty")
    elif main is not None and not main.flag("LoopController.continue_forever"):
        number = loops(main, values)
    users = sum(wave.threads for wave in own_waves)
    return Group(
        node, ClosedLoad(users=users), WholeRun(
            duration_s=max(wave.end_s for wave in own_waves),
            iterations_per_user=number if number > 0 else None,
        ),
        users, max(number, -1), label=values.constant(node.label, node), on_error=after_error,
        waves=own_waves,
    )  # fmt: skip


def _until(end_s: float | None, waves: tuple[Wave, ...]) -> tuple[Wave, ...]:
    """The waves, ended by a throughput shaping timer's schedule."""
    if end_s is None:
        return waves
    cut = tuple(replace(wave, end_s=min(wave.end_s, end_s)) for wave in waves if wave.start_s < end_s)
    return cut or waves


def _goes_on_inside(node: JmxNode) -> bool:
    """Whether it contains an endless loop."""
    for inner in node.everything():
        if inner.tag == "LoopController" and inner.value("LoopController.loops").strip() == "-1":
            return True
        if inner.tag == "WhileController" and whiles.goes_on(inner):
            return True
    return False


def _end_s(node: JmxNode, values: KnownValues) -> float:
    if values.end_s is not None:
        values.note("limited", f"it has no end; it is limited to {values.end_s:g} s", node)
        return values.end_s
    values.note("no_end", "it has no end and runs until Ctrl-C; set --duration SECONDS", node)
    return LONGEST_S


def _open(node: JmxNode, values: KnownValues) -> Group:
    node.ignore("OpenModelThreadGroup.random_seed", "ThreadGroup.main_controller", "ThreadGroup.num_threads")
    after_error = on_error.of_group(node, values)
    if after_error in (OnError.NEXT_LOOP, OnError.STOP_THREAD):  # an arrival has one iteration
        after_error = OnError.NEXT_LOOP
    if node.tag in arrivals.KINDS:
        rates = arrivals.load(node, values)
        return Group(
            node, rates, WholeRun(), None, 1, label=values.constant(node.label, node), on_error=after_error
        )
    schedule = values.constant(node.value("OpenModelThreadGroup.schedule"), node)
    phases, random = _phases(schedule, node)
    load = OpenLoad(
        phases=tuple(phases), arrivals="poisson" if random else "constant", session="user", max_users=10_000
    )
    values.note("blocked_arrivals", "arrivals with 10000 active users are blocked, not sent")
    return Group(
        node, load, WholeRun(), None, 1, label=values.constant(node.label, node), on_error=after_error
    )


def _phases(schedule: str, node: JmxNode) -> tuple[list[RatePhase], bool]:
    """`rate(10/s) random_arrivals(1 min) rate(20/s) even_arrivals(30 s) pause(2 s)`."""
    phases: list[RatePhase] = []
    kinds: set[str] = set()
    rate: float | None = None
    waiting: tuple[float, float] | None = None
    at = 0
    text = schedule.strip()

    def settle(last: float) -> None:
        nonlocal waiting
        if waiting is not None:
            duration_s, first = waiting
            phases.append(RatePhase(duration_s=duration_s, from_per_s=first, to_per_s=last))
            waiting = None

    while at < len(text):
        match = CALL.match(text, at)
        if match is None:
            raise node.wrong(f"rate(…), (random|even)_arrivals(…) or pause(…), found '{text[at : at + 20]}'")
        at = match.end()
        name, argument = match.group(1), match.group(2)
        match name:
            case None:
                continue
            case "rate":
                rate = _rate(argument, node)
                settle(rate)
            case "random_arrivals" | "even_arrivals":
                kinds.add(name)
                settle(rate or 0.0)
                if rate is None:
                    raise node.wrong(f"a rate(…) before {name}({argument})")
                waiting = (_seconds(argument, node), rate)
            case "pause":
                settle(rate or 0.0)
                phases.append(RatePhase(duration_s=_seconds(argument, node), from_per_s=0, to_per_s=0))
            case _:
                raise node.refused(f"{name}({argument})", "use rate, random_arrivals, even_arrivals, pause")
    settle(rate or 0.0)
    if len(kinds) > 1:
        raise node.refused("random and even arrivals in one schedule", "use one of them", "conflict")
    if not any(phase.from_per_s or phase.to_per_s for phase in phases):
        raise node.wrong("a schedule with a rate above 0")
    return phases, "random_arrivals" in kinds


def _rate(text: str, node: JmxNode) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:/|per)\s*(\w+)\s*|\s*(0)\s*", text)
    if match is None or (match.group(2) and match.group(2) not in UNIT_S):
        raise node.wrong(f"a rate such as rate(10/s), found rate({text})")
    return 0.0 if match.group(3) else float(match.group(1)) / UNIT_S[match.group(2)]


def _seconds(text: str, node: JmxNode) -> float:
    pieces = re.findall(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)", text)
    total = sum(float(number) * UNIT_S.get(unit, -1e9) for number, unit in pieces)
    if not pieces or re.sub(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)|\s", "", text) or not 0 < total < 1e9:
        raise node.wrong(f"a time such as 30 s or 1 min, found '{text}'")
    return total
