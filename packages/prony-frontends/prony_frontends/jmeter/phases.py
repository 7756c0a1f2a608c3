"""Phases of a plan (setUp, load, tearDown groups): starts of users, data for rows of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from prony.plan.load import ClosedLoad
from prony.plan.population import Population
from prony.plan.stage import Stage
from prony.plan.workload import Workload
from prony_frontends.jmeter import groups, marks
from prony_frontends.jmeter.connections import TranslatedGroup
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.groups import Group
from prony_frontends.jmeter.outline import Outline, outlines
from prony_frontends.jmeter.scope import Shared
from prony_frontends.jmeter.shared_state import goes_on
from prony_frontends.jmeter.thread_names import ThreadGroup
from prony_frontends.jmeter.walked import workload


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase's data for its rows in a log."""

    thread_groups: tuple[ThreadGroup, ...]
    """In the order of user numbers."""
    workload: Workload
    outlines: Mapping[str, Outline]
    """By scenario."""


def phase_of(
    found: Sequence[Group],
    populations: Sequence[Population],
    walked: Workload,
    values: KnownValues,
    shared: Shared,
) -> Phase:
    """`walked`: with marks of elements."""
    outlined = outlines(walked, shared.transactions, values.asserted_within)
    return Phase(_thread_groups(found, populations), walked, outlined)


def _thread_groups(found: Sequence[Group], populations: Sequence[Population]) -> tuple[ThreadGroup, ...]:
    """A thread group per population, in order; waves of a group share its number."""
    if not populations:
        return tuple(
            ThreadGroup(
                group.thread_label,
                group.users,
                0.0,
                group.load.ramp_up_s if isinstance(group.load, ClosedLoad) else 0.0,
                number,
                element=group.node.number,
            )
            for number, group in enumerate(found, 1)
        )
    thread_groups: list[ThreadGroup] = []
    left = iter(populations)
    for number, group in enumerate(found, 1):
        before = 0
        for wave in islice(left, len(group.waves) or 1):
            thread_groups.append(
                ThreadGroup(
                    group.thread_label,
                    wave.users,
                    wave.start_s,
                    wave.ramp_up_s,
                    number,
                    before,
                    group.node.number,
                )
            )
            before += wave.users
    return tuple(thread_groups)


def crowd(parts: Sequence[TranslatedGroup], one_after_the_other: bool, values: KnownValues) -> ClosedLoad:
    """The load of these groups: a population each, or several for waves."""
    feeders = [part.feeders for part in parts]
    populations = groups.populations([part.group for part in parts], one_after_the_other, values, feeders)
    return ClosedLoad(users=sum(population.users for population in populations), populations=populations)


@dataclass(frozen=True, slots=True)
class TranslatedStage:
    """The stage before or after the load."""

    walked: Workload
    """With marks of elements."""
    loads: ClosedLoad
    gives: tuple[str, ...] = ()

    @property
    def stage(self) -> Stage:
        """For the plan."""
        return Stage(workload=marks.unmarked(self.walked), loads=self.loads, gives=self.gives)

    @property
    def populations(self) -> Sequence[Population]:
        """Its users."""
        return self.loads.populations


def stage_of(
    name: str,
    parts: Sequence[TranslatedGroup],
    one_after_the_other: bool,
    values: KnownValues,
    shared: Shared,
) -> TranslatedStage | None:
    """None without groups that send requests."""
    if not parts:
        return None
    loads = crowd(parts, one_after_the_other, values)
    gives = tuple(values.given.values()) if parts[0].group.node.tag == groups.SET_UP else ()
    if gives and len(parts) > 1:
        raise parts[1].group.node.refused(
            f"properties that several setUp groups set at the same time ({', '.join(values.given)})",
            "put their requests into one group",
            "varies",
        )
    return TranslatedStage(workload(name, parts, values, shared), loads, gives)


def check_beginnings(phases: Sequence[Sequence[TranslatedGroup]]) -> None:
    """Raises Refused where a counter or rows would continue across phases, as they restart here."""
    before, of_load, after = ([entry for part in phase for entry in part.entries] for phase in phases)
    for earlier, later, parts in (
        (before, of_load, phases[0]),
        (before, after, phases[0]),
        (of_load, after, phases[2]),
    ):
        if goes_on(earlier, later):
            raise parts[0].group.node.refused(
                "a counter or the rows of a file continue from setUp to the load and to tearDown",
                "use separate counters and files, or count for each user independently",
                "shared",
            )
