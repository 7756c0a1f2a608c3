"""The setUp groups, the load and the tearDown groups of a plan: when their users begin, and what the rows of
each in a log need.
"""

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
    """The setUp groups, the load, or the tearDown groups: what their rows in a log need."""

    thread_groups: tuple[ThreadGroup, ...]
    """In the order in which their users are numbered."""
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
    """`walked`: with the marks of elements."""
    outlined = outlines(walked, shared.transactions, values.faults, values.held_within)
    return Phase(_thread_groups(found, populations), walked, outlined)


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


def crowd(parts: Sequence[TranslatedGroup], one_after_the_other: bool, values: KnownValues) -> ClosedLoad:
    """The load of these groups, each a population, or several where its threads begin in waves."""
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


def stage_of(
    name: str,
    parts: Sequence[TranslatedGroup],
    one_after_the_other: bool,
    values: KnownValues,
    shared: Shared,
) -> TranslatedStage | None:
    """None without groups that send something."""
    if not parts:
        return None
    loads = crowd(parts, one_after_the_other, values)
    return TranslatedStage(workload(name, parts, values, shared), loads)


def check_beginnings(phases: Sequence[Sequence[TranslatedGroup]]) -> None:
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
