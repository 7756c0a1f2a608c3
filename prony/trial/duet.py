"""A duet: running servers that take turns under load (docs/method.md#duet). Each trial of a block warms its
server up and rests while the next does the same; the last trial drives all turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from prony.errors import EnvironmentFault
from prony.evidence.server import ServerWindow
from prony.evidence.trial import Turns
from prony.host.sampler import HostSampler
from prony.load.engine import EngineRun
from prony.plan.turns import LEFT_OUT_S, TURN_S, Turn, turns
from prony.trial import load_run
from prony.trial.load_run import LoadRun, ServerDied, ServerEdge, WindowEdges, over_window
from prony.trial.load_time import LoadTime

NOTICE_S = 0.5
"""Notice to the engines before the first turn, so that all threads meet it."""
EARLY_S = 0.1
"""Lead of the readings at the end of a turn, taken while its server is under load."""
SUMMED, WRITTEN = ("wall_s", "cpu_user_s", "cpu_system_s"), ("written_bytes", "disk_bytes")
JVM_WORK = (
    "t_monotonic_s", "gc_time_s", "jit_time_s", "compilers_cpu_s", "process_cpu_s", "classes_loaded_total",
)  # fmt: skip
"""Of rests it is CPU time at rest, which the check `turns` bounds."""


@dataclass(slots=True)
class Member:
    """A server of the duet."""

    name: str
    run: LoadRun
    sampler: HostSampler
    rested_ms: float = 0.0
    """Engine time, as `spans`."""
    spans: list[tuple[float, float]] = field(default_factory=list)
    """Measured parts."""
    edges: list[tuple[ServerEdge, ServerEdge]] = field(default_factory=list)
    """Of each measured part ..."""
    read: list[WindowEdges] = field(default_factory=list)
    """... and of those read in time."""
    host: list[tuple[float, float]] = field(default_factory=list)
    """Of those, on the sampler's clock, s."""
    others_cpu_s: list[float | None] = field(default_factory=list)
    resting_cpu_s: list[float | None] = field(default_factory=list)
    closed: bool = False
    """Its window has closed."""
    complete: bool = False
    """All windows have."""

    @property
    def engine(self) -> EngineRun:
        assert isinstance(self.run.engine, EngineRun), "a duet has its engines on this host"
        return self.run.engine

    @property
    def load_time(self) -> LoadTime:
        return LoadTime(self.rested_ms, tuple(self.spans))

    @property
    def whole(self) -> WindowEdges:
        """From the first measured part to the last, rests included."""
        return WindowEdges(self.edges[0][0], self.edges[-1][1], self.run.connections)

    def server_window(self) -> ServerWindow | None:
        """CPU time, wall time and the JVM's work of the turns; throttling and memory include the rests."""
        every = [over_window(edges, self.run.server, placed=True) for edges in (self.whole, *self.read)]
        known = [window for window in every if window is not None]
        if len(known) < len(every) or not self.read:
            return None
        whole, *turned = known
        sums = {name: sum(getattr(part, name) or 0.0 for part in turned) for name in SUMMED}
        written = {name: _sum([getattr(part, name) for part in turned]) for name in WRITTEN}
        thread, share = whole.busiest_thread, 1.0
        if thread is not None:  # scaled by the server's CPU time in turns
            share = (sums["cpu_user_s"] + sums["cpu_system_s"]) / whole.cpu_s if whole.cpu_s else 1.0
            thread = thread.model_copy(update={"cpu_s": thread.cpu_s * share, "wall_s": sums["wall_s"]})
        jvm = whole.jvm_close and whole.jvm_close.model_copy(update=_jvm_work(whole, turned))
        return whole.model_copy(update={**sums, **written, "busiest_thread": thread, "jvm_close": jvm})


@dataclass(slots=True)
class Duet:
    """The servers of a block. `coming`: further trials, each run within the preceding one."""

    seed: str
    size: int
    window_s: float
    coming: list[Callable[[], object]] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)

    @property
    def plan(self) -> list[Turn]:
        return turns(self.seed, self.size, self.window_s)

    def pids(self) -> set[int]:
        """Live processes of the servers and engines so far."""
        return {pid for member in self.members for pid in (*member.run.server.pids(), *member.engine.pids)}

    def lost(self) -> str | None:
        """The first dead server, in a sentence."""
        for member in self.members:
            if (end := member.run.server.exit_description()) is not None:
                return f"{member.name} ended between its turns: {end}"
        return None

    def turns_of(self, member: Member) -> Turns:
        between = [(before.jvm, after.jvm) for (_, before), (after, _) in pairwise(member.edges)]
        collected = [b.gc_count - a.gc_count for a, b in between if a is not None and b is not None]
        return Turns(
            others=tuple(other.name for other in self.members if other is not member),
            turns=len(member.spans),
            turn_s=TURN_S,
            left_out_s=LEFT_OUT_S,
            left_out_per_s=member.load_time.left_out_per_s(member.engine.rows),
            others_cpu_s=_sum(member.others_cpu_s),
            resting_cpu_s=_sum(member.resting_cpu_s),
            collections_outside=sum(collected) if len(collected) == len(between) else None,
        )

    def take_part(self, member: Member) -> None:
        """Rest until all are warm, then take turns. Raises ServerDied for any server, EnvironmentFault."""
        member.run.count_connections()
        member.rested_ms = member.run.now_ms()
        member.engine.send({"command": "rest"})
        self.members.append(member)
        if not self.coming:
            self._take_turns()
            return
        self.coming.pop(0)()
        if not member.complete:
            member.run.still_alive()
            raise ServerDied("not measured: another server of the duet failed")

    def _take_turns(self) -> None:
        for member in self.members:
            member.sampler.mark()
        start_ns = time.monotonic_ns() + round(NOTICE_S * 1e9)
        for at, member in enumerate(self.members):
            mine = [turn for turn in self.plan if turn.server == at]
            of_ms = [[round(at_s * 1000, 3) for at_s in turn[1:]] for turn in mine]
            member.engine.send({"command": "turns", "at_monotonic_ns": start_ns, "turns": of_ms})
            assert member.engine.ready is not None, "it has warmed up"
            from_ms = (start_ns - member.engine.ready.started_monotonic_ns) / 1e6
            measured = (turn for turn in mine if turn.measured)
            member.spans = [(from_ms + turn.opens_s * 1e3, from_ms + turn.ends_s * 1e3) for turn in measured]
        for turn in self.plan:
            if turn.measured:
                self._turn(turn, start_ns / 1e9)
        deadline_s = time.monotonic() + load_run.WINDOW_GRACE_S
        while not all(member.closed for member in self.members):
            if time.monotonic() > deadline_s:
                raise EnvironmentFault(f"the turns did not end within {load_run.WINDOW_GRACE_S:.0f} s")
            self._catch_up(wait_s=load_run.LOOK_EVERY_S)
        for member in self.members:
            member.sampler.mark()
            member.complete = True

    def _turn(self, turn: Turn, start_s: float) -> None:
        mine = self.members[turn.server]
        others = [member for member in self.members if member is not mine]
        full = (
            not mine.edges,
            turn.ends_s >= max(later.ends_s for later in self.plan if later.server == turn.server),
        )
        readings = []
        for at_s, whole in zip((turn.opens_s, turn.ends_s - EARLY_S), full, strict=True):
            time.sleep(max(0.0, start_s + at_s - time.monotonic()))
            edge = mine.run.edge(mine.run.now_ms(), full=whole)
            readings.append((edge, [other.run.server.sample() for other in others], mine.sampler.edge()))
        (opened, before, from_s), (closed, after, to_s) = readings
        mine.edges.append((opened, closed))
        if time.monotonic() <= start_s + turn.ends_s:  # else, on a starved host, they cover the next turn
            mine.read.append(WindowEdges(opened, closed))
            mine.host.append((from_s, to_s))
            for other, first, last in zip(others, before, after, strict=True):
                used_s = None if first is None or last is None else last.cpu_s - first.cpu_s
                mine.others_cpu_s.append(used_s)
                other.resting_cpu_s.append(used_s)
        self._catch_up(mine)

    def _catch_up(self, shown: Member | None = None, wait_s: float = 0.0) -> None:
        """Read the engines' reports, and check that all servers live."""
        for member in self.members:
            closed = member.run.catch_up(shown=member is shown, wait_s=0.0 if member.closed else wait_s)
            member.closed = member.closed or closed


def _jvm_work(whole: ServerWindow, turned: Sequence[ServerWindow]) -> dict[str, float]:
    """The JVM's counters as if it had begun where the window did and worked in its turns only."""
    ends = {}
    for name in JVM_WORK:
        begin = getattr(whole.jvm_open, name, None)
        edges = [(getattr(one.jvm_open, name, None), getattr(one.jvm_close, name, None)) for one in turned]
        done = _sum([None if a is None or b is None else b - a for a, b in edges])
        if begin is not None and done is not None:
            ends[name] = begin + done
    return ends


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
