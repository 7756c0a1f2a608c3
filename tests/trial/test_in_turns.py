"""What a server did in its turns, from readings at their edges."""

from __future__ import annotations

from typing import Any, cast

import pytest

from prony.evidence.server import JvmSnapshot, ProcessSample
from prony.trial.duet import Member
from prony.trial.load_run import ServerEdge, WindowEdges
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


def test_without_a_jvm_there_is_none() -> None:
    window = member(jvm=False).server_window()
    assert window is not None
    assert (window.jvm_open, window.jvm_close) == (None, None)
