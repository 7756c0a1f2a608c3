"""What ends the load before the window, on made-up seconds: no server, no engine, no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from prony.evidence.engine import IntervalRow
from prony.evidence.host import CpuPartition, Limits
from prony.evidence.server import JvmSnapshot
from prony.evidence.trial import Phase, WarmUp
from prony.plan import workload
from prony.plan.trial import QUICK_WARM_UP, WarmUpPlan, pinned, quick_trial
from prony.trial.load_run import LoadRun
from prony.trial.surroundings import Surroundings
from prony.trial.warming import Phases, Place, Warming
from tests.judge import factory as f

LEVEL = f.noisy(8000, 200, 0.02, seed=3)


@dataclass
class Seconds:
    """Takes the place of a load run: each second has a row, and a reading of the JVM's compilers.
    Until `compiling_until_s` they use a fifth of a CPU; until `starved_until_s` they wait for one.
    """

    rates: list[float]
    compiling_until_s: int = 0
    starved_until_s: int = 0
    server: Any = field(
        default_factory=lambda: SimpleNamespace(
            set_affinity=lambda _cpus: True, set_compiler_affinity=lambda _cpus: False
        )
    )
    passed_s: int = 0

    def now_ms(self) -> float:
        return self.passed_s * 1000.0

    def watch(self, over: Callable[[IntervalRow, JvmSnapshot | None], bool]) -> None:
        for row in self._rows():
            self.passed_s += 1
            compiled_s = 0.2 * min(self.passed_s, self.compiling_until_s)
            elapsed_s = 5.0 + min(self.passed_s, self.starved_until_s)
            jvm = f.snapshot(self.passed_s, elapsed_s).model_copy(update={"compilers_cpu_s": compiled_s})
            if over(row, jvm):
                return
        raise AssertionError("a watch ends at its cap")

    def _rows(self) -> Iterator[IntervalRow]:
        yield from f.rows(self.rates[self.passed_s :], first_s=self.passed_s)


def warmed(
    plan: WarmUpPlan, seconds: Seconds, *, found: bool = False, new: bool = False
) -> tuple[WarmUp, dict[str, float]]:
    """How it went, and how long each phase took; `found`: in a warm process, `new` to the workload."""
    went, took_s, _ = run_through(plan, seconds, found=found, new=new)
    return went, took_s


def run_through(
    plan: WarmUpPlan, seconds: Seconds, *, found: bool = False, new: bool = False
) -> tuple[WarmUp, dict[str, float], list[Phase]]:
    trial = quick_trial(workload.load("hello"), 10, None).model_copy(update={"warm_up": plan})
    surroundings = Surroundings(CpuPartition(server=(0,), client=(1,)), Limits())
    listener = SimpleNamespace(phase=lambda *_: None, row=lambda _: None, note=lambda _: None)
    phases = Phases((0,))
    warming = Warming(trial, surroundings, True, listener, phases, already_running=found, new_workload=new)
    went = warming.warm(cast(LoadRun, seconds))
    assert went is not None
    return went, {one.name: (one.end_ms - one.start_ms) / 1000 for one in phases.ended}, phases.ended


def test_a_level_server_is_enough_where_the_plan_says_so() -> None:
    found, took_s = warmed(QUICK_WARM_UP, Seconds(LEVEL))
    assert found.steady
    assert found.still_to_come is None
    assert took_s["settle"] < QUICK_WARM_UP.settle_cap_s / 2


def test_else_what_is_still_to_come_must_be_shown_of_the_window() -> None:
    """2 % noise from second to second: a window of ten seconds shows nothing."""
    plan = QUICK_WARM_UP.model_copy(update={"settle_until": "shown"})
    found, took_s = warmed(plan, Seconds(LEVEL))
    assert found.still_to_come is not None
    assert took_s["settle"] == plan.settle_cap_s


@pytest.mark.parametrize(("compiling_s", "settles_s"), [(20, 5.0), (70, 10.0), (500, 30.0)])
def test_the_window_waits_for_a_compiler_that_is_at_work(compiling_s: int, settles_s: float) -> None:
    """Which the JVM itself does not tell while a compilation is under way."""
    found, took_s = warmed(QUICK_WARM_UP, Seconds(LEVEL, compiling_s))
    assert took_s["settle"] >= settles_s
    assert found.steady is (took_s["settle"] < QUICK_WARM_UP.settle_cap_s)
    assert ("JIT compilation" in found.reason) is not found.steady


@pytest.mark.parametrize(("starved_s", "settles_s"), [(0, 5.0), (500, 30.0)])
def test_the_window_waits_for_a_compiler_that_gets_no_cpu(starved_s: int, settles_s: float) -> None:
    """It took none of the server's CPU, and what waits to be compiled is still slow."""
    found, took_s = warmed(QUICK_WARM_UP, Seconds(LEVEL, starved_until_s=starved_s))
    assert took_s["settle"] >= settles_s
    assert found.steady is (starved_s == 0)
    assert ("wait for a CPU 100 % of the time" in found.reason) is (starved_s > 0)


@pytest.mark.parametrize(
    ("compiling_s", "new", "settles_s", "at_work"),
    [
        (0, True, (5, 20), False),
        (12, True, (12, 29), False),
        (60, False, (30, 30), True),
        (60, True, (60, 75), False),
        (500, True, (90, 90), True),
    ],
    ids=["compiled", "new code", "a known workload at its cap", "past the cap", "as long as a fresh process"],
)
def test_a_later_workload_waits_for_the_compiler_as_long_as_a_fresh_process_may(
    compiling_s: int, new: bool, settles_s: tuple[int, int], at_work: bool
) -> None:
    found, took_s = warmed(QUICK_WARM_UP, Seconds(LEVEL, compiling_s), found=True, new=new)
    assert list(took_s) == ["settle"]
    assert settles_s[0] <= took_s["settle"] <= settles_s[1]
    assert (found.method, "JIT compilation" in found.reason) == ("settled", at_work)
    assert found.cap_s == max(QUICK_WARM_UP.settle_cap_s, took_s["settle"])


def test_past_its_cap_a_later_workload_waits_for_the_compiler_alone() -> None:
    """That the window shows residual drift is waited for no longer than under any load."""
    plan = QUICK_WARM_UP.model_copy(update={"settle_until": "shown"})
    _, took_s = warmed(plan, Seconds(LEVEL), found=True, new=True)
    assert took_s["settle"] == plan.settle_cap_s


def moves(
    plan: WarmUpPlan, *, jvm: bool, partition: CpuPartition | None = None
) -> tuple[list[tuple[str, tuple[int, ...]]], Place]:
    """Which threads were moved where, and what is recorded."""
    made: list[tuple[str, tuple[int, ...]]] = []

    def all_threads(cpus: tuple[int, ...]) -> bool:
        made.append(("all", cpus))
        return True

    def compilers(cpus: tuple[int, ...]) -> bool:
        if jvm:
            made.append(("compilers", cpus))
        return jvm

    server = cast(Any, SimpleNamespace(set_affinity=all_threads, set_compiler_affinity=compilers))
    sides = partition or CpuPartition(server=(0, 1), client=(3,))
    return made, Place.take(server, plan, Surroundings(sides, Limits()))


def test_of_a_jvm_the_compilers_alone_get_the_clients_cpus() -> None:
    every = (0, 1, 3)
    assert moves(QUICK_WARM_UP, jvm=True) == (
        [("compilers", every)], Place("compilers", (0, 1), every)
    )  # fmt: skip
    assert moves(QUICK_WARM_UP, jvm=False) == ([("all", every)], Place("all-cpus", every))


@pytest.mark.parametrize(
    ("plan", "partition", "method"),
    [
        (pinned(QUICK_WARM_UP), CpuPartition(server=(0,), client=(1,)), "pinned"),
        (QUICK_WARM_UP, CpuPartition(server=(0,), client=(1,), shared=True), "pinned"),
        (QUICK_WARM_UP, CpuPartition(server=(0,), client=(1,), apart=True), "all-cpus"),
    ],
    ids=["as planned", "threads of a core", "on another host"],
)
def test_no_thread_leaves_the_servers_cpus(plan: WarmUpPlan, partition: CpuPartition, method: str) -> None:
    assert moves(plan, jvm=True, partition=partition) == ([("all", (0,))], Place(method, (0,)))  # type: ignore[arg-type]


def test_the_compilers_are_back_before_the_server_settles() -> None:
    """The evidence has where they were, and until when."""
    seconds, made = Seconds(LEVEL), list[tuple[str, tuple[int, ...], int]]()

    def note(what: str, cpus: tuple[int, ...]) -> bool:
        made.append((what, cpus, seconds.passed_s))
        return True

    seconds.server = SimpleNamespace(
        set_affinity=partial(note, "all"), set_compiler_affinity=partial(note, "compilers")
    )
    found, _, phases = run_through(QUICK_WARM_UP, seconds)
    first, last = phases
    assert (found.method, found.steady) == ("compilers", True)
    assert (first.name, first.server_cpus, first.compiler_cpus) == ("warm-up", (0,), (0, 1))
    assert (last.name, last.server_cpus, last.compiler_cpus) == ("settle", (0,), ())
    back_s = round(last.start_ms / 1000)
    assert made == [("compilers", (0, 1), 0), ("all", (0,), back_s)]
    assert first.end_ms == last.start_ms
    assert last.end_ms - last.start_ms >= QUICK_WARM_UP.settle_min_s * 1000
