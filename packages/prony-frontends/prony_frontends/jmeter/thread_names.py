"""Names and counts of JMeter's threads: `<group> <group number>-<thread number>`, and numbers of active
threads of a group and in total at the end of a sample.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prony.plan.population import Population
from prony_frontends.request_log import LoggedRequest

STARTER = "-ThreadStarter"
"""Suffix in a Concurrency Thread Group."""


@dataclass(frozen=True, slots=True)
class ThreadGroup:
    """Threads of a group, or a wave of it."""

    label: str
    users: int | None
    """None for an open model, whose threads come and go."""
    start_s: float = 0.0
    ramp_up_s: float = 0.0
    number: int = 1
    """Number of the group, from 1."""
    before: int = 0
    """Threads of the same group before these."""
    element: int = 0
    """Number of its element in the plan (`prony_frontends.jmeter.marks`)."""

    @property
    def population(self) -> Population:
        """Population with the starts of the threads."""
        return Population(
            name=self.label or "group", users=self.users or 1, start_s=self.start_s, ramp_up_s=self.ramp_up_s
        )


class ThreadNames:
    """Active users. Users are numbered group by group, and active from their start to their last response."""

    def __init__(self, thread_groups: Sequence[ThreadGroup], rows: Iterable[LoggedRequest]) -> None:
        """`rows`: of the whole run; unused for an open model."""
        self._thread_groups = thread_groups
        self._open = any(thread_group.users is None for thread_group in thread_groups)
        self._firsts: list[int] = []
        first = 0
        for thread_group in thread_groups:
            self._firsts.append(first)
            first += thread_group.users or 0
        self._populations = [thread_group.population for thread_group in thread_groups]
        last_ns: dict[int, int] = {}
        for row in () if self._open else rows:
            last_ns[row.user] = max(last_ns.get(row.user, 0), _ended_ns(row))
        ends: list[list[int]] = [[] for _ in thread_groups]
        for user, end_ns in last_ns.items():
            ends[self._place(user)].append(end_ns)
        self._ends = [sorted(end_times) for end_times in ends]

    def name(self, row: LoggedRequest) -> str:
        """Name of the thread that sent this request."""
        place = self._place(row.user)
        of = self._thread_groups[place]
        return f"{of.label} {of.number}-{of.before + row.user - self._firsts[place] + 1}"

    def group(self, row: LoggedRequest) -> int:
        """Number of its thread group's element."""
        return self._thread_groups[self._place(row.user)].element

    def at_work(self, row: LoggedRequest) -> tuple[int, int]:
        """Active threads of its group, and of all groups, at its end."""
        if self._open:
            return row.users, row.users
        at_ns = _ended_ns(row)
        there = [
            max(0, group.started(at_ns / 1e9) - bisect_left(ends, at_ns))
            for group, ends in zip(self._populations, self._ends, strict=True)
        ]
        own = self._place(row.user)
        there[own] = max(1, there[own])
        number = self._thread_groups[own].number
        of_group = sum(
            count for of, count in zip(self._thread_groups, there, strict=True) if of.number == number
        )
        return of_group, sum(there)

    def _place(self, user: int) -> int:
        return 0 if self._open else bisect_right(self._firsts, user) - 1


def _ended_ns(row: LoggedRequest) -> int:
    return row.start_ns + row.service_ns
