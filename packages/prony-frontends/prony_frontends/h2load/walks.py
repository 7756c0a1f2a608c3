"""The requests of each client's streams, as groups of users.

A client goes through the URIs in order, with its streams taking turns. The first users are the first streams
of all clients, the next users their second streams: user u belongs to client u modulo the number of clients,
as in the engine's assignment of users to connections.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prony.plan.load import ClosedLoad
from prony.plan.population import Population
from prony.plan.step import Block, Entry, Step
from prony.plan.think import Think
from prony.plan.workload import Scenario

MOST_STEPS = 20_000
"""Limit on requests written out for streams with different start URIs."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """Groups of clients that start together, a group per period."""

    clients: int
    period_s: float


@dataclass(frozen=True, slots=True)
class Walk:
    """The requests of a group of users."""

    users: int
    first_client: int
    uris: tuple[int, ...]
    """One round, as numbers of URIs."""
    requests: int | None
    """Requests in all; None: until the load ends."""

    @property
    def rounds(self) -> int | None:
        """Iterations of `entries`."""
        if self.requests is None:
            return None
        return 1 if self.requests % len(self.uris) else self.requests // len(self.uris)

    def entries(self, steps: Sequence[Step]) -> tuple[Entry, ...]:
        """Steps of one iteration."""
        around = tuple(steps[uri] for uri in self.uris)
        whole, rest = divmod(self.requests or 0, len(around))
        if not rest:
            return around
        repeated = (Block.model_validate({"loop": {"count": whole}, "steps": around}),) if whole else ()
        return (*repeated, *around[:rest])


def walks(clients: int, streams: int, uris: int, total: int | None) -> list[Walk]:
    """Walks of all streams; the first clients get the remainder of `total` requests."""
    fewest, more = (None, 0) if total is None else divmod(total, clients)
    length = uris // math.gcd(streams, uris)
    all_walks: list[Walk] = []
    for stream in range(streams):
        around = tuple((stream + turn * streams) % uris for turn in range(length))
        for first, users, extra in ((0, more, 1), (more, clients - more, 0)):
            requests = None if fewest is None else max(0, -(-(fewest + extra - stream) // streams))
            if users and requests != 0:
                all_walks.append(Walk(users, first, around, requests))
    return all_walks


def merged(found: Sequence[Walk]) -> list[Walk]:
    """The walks with equal neighbours merged."""
    merged: list[Walk] = []
    for walk in found:
        last = merged[-1] if merged else None
        if last is not None and (last.uris, last.requests) == (walk.uris, walk.requests):
            merged[-1] = Walk(last.users + walk.users, last.first_client, walk.uris, walk.requests)
        else:
            merged.append(walk)
    return merged


def length(found: Sequence[Walk]) -> int:
    """Number of requests to write out."""
    return sum(len(walk.uris) for walk in found)


def groups(
    found: Sequence[Walk], steps: Sequence[Step], ramp: Ramp | None
) -> tuple[ClosedLoad, tuple[Scenario, ...]]:
    """A group of users and a scenario for each walk."""
    scenarios: dict[tuple[tuple[int, ...], int], Scenario] = {}
    populations = []
    for number, walk in enumerate(found, 1):
        key = (walk.uris, walk.requests or 0 if (walk.requests or 0) % len(walk.uris) else 0)
        if key not in scenarios:
            scenarios[key] = Scenario(name=f"walk-{len(scenarios) + 1}", steps=walk.entries(steps))
        populations.append(
            Population(
                name=f"streams-{number}",
                users=walk.users,
                iterations_per_user=walk.rounds,
                scenarios=(scenarios[key].name,),
                **({} if ramp is None else ramped(ramp, walk.users, walk.first_client)),
            )
        )
    return together(populations), tuple(scenarios.values())


def together(populations: Sequence[Population]) -> ClosedLoad:
    """All groups as one load."""
    return ClosedLoad(users=sum(group.users for group in populations), populations=tuple(populations))


def ramped(ramp: Ramp, users: int, first: int = 0) -> dict[str, Any]:
    """Start times for this many users from client `first` on."""
    periods = -(-users // ramp.clients)
    start_s = first // ramp.clients * ramp.period_s
    begins = {"start_s": start_s} if start_s else {}
    return begins | {"ramp_up_s": periods * ramp.period_s, "ramp_up_steps": periods}


def timed(
    clients: int, steps: Sequence[Step], at_ms: Sequence[float]
) -> tuple[ClosedLoad, tuple[Scenario, ...]]:
    """A group of users for each line of a timing script: every client sends each request when due, whatever
    happened before. The first line's group also sends the last request, which keeps the connection in use.
    """
    scenarios, populations = [], []
    lines = list(enumerate(zip(steps, at_ms, strict=True), 1))
    for number, (step, due_ms) in lines[:-1] or lines:
        walked: tuple[Entry, ...] = (step,)
        if number == 1 and len(lines) > 1:
            walked = (step, Block(pause=Think(kind="constant", ms=at_ms[-1] - due_ms)), steps[-1])
        scenarios.append(Scenario(name=f"line-{number}", steps=walked))
        populations.append(
            Population(
                name=f"line-{number}",
                users=clients,
                start_s=due_ms / 1000,
                iterations_per_user=1,
                scenarios=(f"line-{number}",),
            )
        )
    return together(populations), tuple(scenarios)
