"""Duets in an experiment: which trials take turns, what is run again, and what cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prony.errors import EnvironmentFault, UsageError
from prony.experiment import duets as duets_of_plan
from prony.experiment.duets import design, duets, refuse_duets, why_sequential
from prony.experiment.experiment import remaining
from prony.experiment.testbed import Targets
from prony.load.engine import engine_takes
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow, WholeRun
from prony.plan.part import Follow, Part
from prony.plan.plan import MAIN, Plan
from prony.plan.target import Launch, Url
from prony.plan.think import Think
from tests.experiment.conftest import Bench, cell, plan


def pair(trials: int = 2, servers: str = "ab", **more: Any) -> Plan:
    part = Part(name=MAIN, title="made up", shape="comparison", duet=True)
    return plan(*(cell(server, trials) for server in servers), parts=(part,), **more)


def test_the_trials_of_a_block_are_one_duet_with_an_order_of_its_own(bench: Bench) -> None:
    _, found = bench.run(pair(trials=3))
    assert len(found) == 6
    seeds = [seed for seed, _ in bench.duets]
    assert len(set(seeds)) == 3
    assert all({s for seed, s in bench.duets if seed == one} == {"a", "b"} for one in seeds)
    # The first trial of a pair ends after the one that it holds.
    assert [one.server for one in bench.ran] == [
        server for at in (1, 3, 5) for server in (bench.duets[at][1], bench.duets[at - 1][1])
    ]


def test_more_servers_are_nested_and_each_load_is_a_duet(bench: Bench) -> None:
    part = Part(name=MAIN, title="made up", duet=True)
    cells = [cell(server, 1, ClosedLoad(users=users)) for users in (1, 8) for server in "abc"]
    made = plan(*cells, parts=(part,))
    assert sorted(len(some) for some in duets(made, made.order())) == [3, 3]
    _, found = bench.run(made)
    assert len(found) == 6
    assert len({seed for seed, _ in bench.duets}) == 2


def test_without_duet_and_for_controls_nothing_takes_turns(bench: Bench) -> None:
    made = plan(cell("a", 1, controls=1), cell("b", 1, controls=1))
    bench.run(made)
    assert bench.duets == []
    part = Part(name=MAIN, title="made up", duet=True)
    bench.run(made.model_copy(update={"parts": (part,)}))
    assert len(bench.duets) == 2


def test_half_a_pair_is_run_again_whole(bench: Bench) -> None:
    bench.interrupt_at = 3
    with pytest.raises(KeyboardInterrupt):
        bench.run(pair(trials=2))
    (row,) = bench.store.experiments()
    stored, found = bench.stored(row.id)
    # The trial within the second pair was kept; the one around it never ended.
    assert len(found) == 3
    assert [one.block for one in remaining(stored, found)] == [1, 1]
    bench.interrupt_at = None
    bench.experiment(stored).resume(row.id)
    assert remaining(stored, bench.stored(row.id)[1]) == ()


def target(**spec: Any) -> Launch:
    return Launch(address=spec.pop("address", "reference"), **spec)


def of(*, load: Any = None, measured: Any = None, targets: tuple[Any, ...] = (), **more: Any) -> Plan:
    made = pair(1, **more)
    targets = targets or (target(known_as="a"), target(known_as="b"))
    trial = {"load": load, "measured": measured}
    update = {key: value for key, value in trial.items() if value is not None}
    cells = [
        one.model_copy(update={"target": at, "trial": one.trial.model_copy(update=update)})
        for one, at in zip(made.cells, targets, strict=True)
    ]
    return made.model_copy(update={"cells": tuple(cells)})


def two_passes() -> Plan:
    made = of()
    follows = Follow(part=MAIN, share=0.7, rate="own")
    return made.model_copy(
        update={
            "parts": (*made.parts, made.parts[0].model_copy(update={"name": "later", "follows": follows}))
        }
    )


REFUSED: dict[str, Plan] = {
    "running": of(targets=(target(known_as="a"), Url(url="http://127.0.0.1:1"))),
    "images": of(
        targets=(target(address="image:a:1", known_as="a"), target(address="image:b:1", known_as="b"))
    ),
    "open": of(load=OpenLoad(rate_per_s=100)),
    "think": of(load=ClosedLoad(users=8, think=Think(kind="constant", ms=100))),
    "ramp": of(load=ClosedLoad(users=8, ramp_down_s=1)),
    "whole": of(measured=WholeRun(duration_s=5)),
    "precision": of(measured=SteadyWindow(window_s=10, precision=0.02)),
    "repeated": of(repeat_disturbed=1),
    "alone": of(targets=(target(known_as="a"),), servers="a"),
    "second pass": two_passes(),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_take_turns_is_refused_before_anything_starts(why: str) -> None:
    with pytest.raises(UsageError, match="--duet"):
        refuse_duets(REFUSED[why], Targets())


def test_what_can_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    made = of()
    refuse_duets(made, Targets())
    refuse_duets(REFUSED["open"].model_copy(update={"parts": (Part(name=MAIN, title="x"),)}), Targets())

    def heap(one: Cell) -> Cell:
        jvm = Launch(address="spring-tomcat", heap="1g", known_as=one.server)
        return one.model_copy(update={"target": jvm})

    heavy = made.model_copy(update={"cells": tuple(map(heap, made.cells))})
    monkeypatch.setattr(duets_of_plan, "memory", lambda: {"MemAvailable": 3 * 2**30})
    refuse_duets(heavy, Targets())
    monkeypatch.setattr(duets_of_plan, "memory", lambda: {"MemAvailable": 2**30})
    with pytest.raises(EnvironmentFault):
        refuse_duets(heavy, Targets())


def test_servers_take_turns_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what a duet refuses, a JVM, little memory, an older engine."""
    monkeypatch.setattr(duets_of_plan, "memory", lambda: {"MemAvailable": 4 * 2**30})
    assert why_sequential(of(), Targets()) is None
    for refused in REFUSED.values():
        assert why_sequential(refused, Targets()) is not None
    jvm = (target(known_as="a"), target(address="spring-tomcat", known_as="b"))
    assert "JVM" in str(why_sequential(of(targets=jvm), Targets()))
    line = (
        target(known_as="a"),
        target(address="/usr/bin/java -jar b.jar {port}", folder="/tmp", known_as="b"),
    )
    assert "JVM" in str(why_sequential(of(targets=line), Targets()))
    three = tuple(target(known_as=name) for name in "abc")
    assert why_sequential(of(servers="abc", targets=three), Targets()) is None
    monkeypatch.setattr(duets_of_plan, "memory", lambda: {"MemAvailable": 2 * 2**30})
    assert why_sequential(of(), Targets()) is None
    assert "GiB" in str(why_sequential(of(servers="abc", targets=three), Targets()))
    monkeypatch.setattr(duets_of_plan, "memory", dict)
    monkeypatch.setattr("prony.host.cgroup.memory_left", lambda: 2**30)
    assert "GiB" in str(why_sequential(of(), Targets()))
    monkeypatch.setattr("prony.host.cgroup.memory_left", lambda: None)
    monkeypatch.setattr(duets_of_plan, "engine_takes", lambda _command: False)
    assert "prony-engine" in str(why_sequential(of(), Targets()))


def test_an_older_engine_is_named_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert engine_takes("turns")
    assert not engine_takes("dance")
    older = tmp_path / "prony-engine"
    older.write_text("#!/bin/sh\n[ $1 = --version ] && echo prony-engine 0.0.9 || exit 2\n")
    older.chmod(0o755)
    monkeypatch.setenv("PRONY_ENGINE", str(older))
    with pytest.raises(EnvironmentFault, match=r"prony-engine \(version 0\.0\.9\)"):
        refuse_duets(of(), Targets())


def test_the_design_of_a_comparison_is_reported_with_its_reason() -> None:
    duet = of(command="compare")
    assert [one.split(":")[0] for one in design(duet, Targets())] == ["in turns"]
    plain = duet.model_copy(update={"parts": (duet.parts[0].model_copy(update={"duet": False}),)})
    assert design(plain, Targets()) == ["one server at a time: --no-duet"]
    assert design(of(command="run"), Targets()) == []
