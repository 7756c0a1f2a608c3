"""What a server did in its turns, from readings at their edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from prony.evidence.server import JvmSnapshot, ProcessSample
from prony.server.threads import ThreadTime
from prony.trial.duet import Member
from prony.trial.load_run import ServerEdge, WindowEdges, over_window
from tests.judge import factory as f


class Server:
    def cpus(self) -> tuple[int, ...]:
        return (0,)

    def quota_cpus(self) -> None:
        return None


class Run:
    server = Server()
    connections = (8,)


def edge(at_s: float, worked_s: float, *, jvm: bool = True) -> ServerEdge:
    """The JIT compiler works for a tenth of what the server does, the collector for a fifth."""
    work = {"jit_time_s": worked_s / 10, "gc_time_s": worked_s / 5, "gc_count": round(worked_s)}
    snapshot = f.snapshot(at_s, 0.0).model_copy(update={"compilers_cpu_s": None} | work)
    return ServerEdge(
        t_ms=at_s * 1000,
        process=ProcessSample(
            t_monotonic_s=at_s, cpu_user_s=worked_s, cpu_system_s=0.0, rss_bytes=1, threads=1
        ),
        jvm=snapshot if jvm else None,
        throttle=(),
        threads={},
    )


def member(**more: Any) -> Member:
    """Two turns of a second each with 0.9 s of work; between them 4 s of rest with 0.4 s."""
    turns = [(edge(10, 5.0, **more), edge(11, 5.9, **more)), (edge(15, 6.3, **more), edge(16, 7.2, **more))]
    read = [WindowEdges(opened, closed) for opened, closed in turns]
    return Member("a", cast(Any, Run()), cast(Any, None), edges=turns, read=read)


def test_cpu_compiler_and_collector_are_those_of_the_turns() -> None:
    window = member().server_window()
    assert window is not None
    assert (window.wall_s, window.cpu_s) == pytest.approx((2.0, 1.8))
    opened, closed = window.jvm_open, window.jvm_close
    assert isinstance(opened, JvmSnapshot)
    assert isinstance(closed, JvmSnapshot)
    assert closed.t_monotonic_s - opened.t_monotonic_s == pytest.approx(2.0)
    assert (closed.jit_time_s or 0) - (opened.jit_time_s or 0) == pytest.approx(0.18)
    assert closed.gc_time_s - opened.gc_time_s == pytest.approx(0.36)
    assert closed.compilers_cpu_s is None
    assert closed.gc_count == 7  # at their worst: with those at rest


@pytest.mark.parametrize(("edge_at", "allowed", "outside"), [(0, {0}, ()), (0, {0, 1}, (1,)), (1, {1}, (1,))])
def test_an_idle_compiler_that_was_not_moved_back_is_outside(
    edge_at: int, allowed: set[int], outside: tuple[int, ...]
) -> None:
    """Whether it has ended by the close, or begun since the opening; other idle threads do not matter."""
    compiler = ThreadTime("C2 CompilerThre", 4.0, frozenset(allowed), 0.0)
    idle = {(1, 3, 0): ThreadTime("idle", 4.0, frozenset({2}), 0.0)}
    edges = [
        replace(
            edge(at_s, at_s), threads=idle | {(1, 1, 0): ThreadTime("worker", at_s, frozenset({0}), at_s)}
        )
        for at_s in (10.0, 20.0)
    ]
    edges[edge_at] = replace(edges[edge_at], threads={**(edges[edge_at].threads or {}), (1, 2, 0): compiler})
    window = over_window(WindowEdges(edges[0], edges[1]), cast(Any, Server()), placed=True)
    assert window is not None
    assert window.outside_cpus == outside


def test_without_a_jvm_there_is_none() -> None:
    window = member(jvm=False).server_window()
    assert window is not None
    assert (window.jvm_open, window.jvm_close) == (None, None)
