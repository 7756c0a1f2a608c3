"""The figure of a cell appears after its last trial, and not before."""

from __future__ import annotations

from collections import Counter

import pytest

from prony.judge.finding import Bias
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad, OpenLoad
from prony.plan.part import Part
from prony_explain.explaining import Explaining
from tests.experiment.conftest import Answer, Bench, cell, finding, plan


def rates(of: Cell, number: int) -> Answer:
    bends = finding("host", conforms=True, bias={"requests_per_s": Bias(high=0.02)})
    troubles = (bends,) if of.server == "b" and number == 1 else ()
    return {"requests_per_s": 19_000.4 + 500 * number, "p99_ms": 0.5 + number}, troubles


def lines(bench: Bench) -> list[str]:
    """Without the note on the design."""
    return sorted(line for line in bench.progress.said if "one server at a time" not in line)


def test_each_server_has_a_line_when_its_last_trial_has_ended(bench: Bench) -> None:
    bench.answer = rates
    bench.experiment(plan(cell("a", 3), cell("b", 3))).run()
    assert lines(bench) == [
        "a: 19,500 requests/s (19,000–20,000) over 3 trials",
        "b: 19,500 requests/s (19,000–20,000) over 3 trials",
    ]


def test_controls_and_explained_trials_do_not_tell_it_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Explaining, "prepare", lambda _self, _targets, _on_line: None)
    bench.answer = rates
    ended: list[int] = []
    told = bench.progress.note

    def note(text: str) -> None:
        ended.append(len(bench.ran))
        told(text)

    monkeypatch.setattr(bench.progress, "note", note)
    asked = (cell(server, 3, controls=2, explain=True) for server in ("a", "b"))
    _, found = bench.run(plan(*asked))
    assert Counter(one.record.kind for one in found) == {"trial": 6, "control": 4, "explained": 2}
    assert [line.partition(":")[0] for line in lines(bench)] == ["a", "b"]
    assert max(ended) <= 6, "before the controls"


def test_at_a_given_rate_it_is_the_latency_and_the_load_is_named(bench: Bench) -> None:
    bench.answer = rates
    parts = (Part(name="warm", title="Warm"),)
    loads = (ClosedLoad(users=8), OpenLoad(rate_per_s=100))
    bench.experiment(plan(*(cell("a", 2, load, "warm") for load in loads), parts=parts, command="run")).run()
    assert any(said.startswith("a/hello/closed-8: 19,250 requests/s (") for said in bench.progress.said)
    assert any(": p99 1.5 (0.5–1.5) ms over 2 trials" in said for said in bench.progress.said)


def test_trials_that_do_not_conform_are_in_no_figure(bench: Bench) -> None:
    def failing(of: Cell, number: int) -> Answer:
        bad = of.server == "b" or number == 0
        return {"requests_per_s": 1000.0 + number}, (finding("errors"),) if bad else ()

    bench.answer = failing
    bench.experiment(plan(cell("a", 3), cell("b", 2))).run()
    assert "a: 1,002 requests/s (1,001–1,002) over 2 of 3 trials" in bench.progress.said
    assert "b: no figure: none of its 2 trials conforms" in bench.progress.said


def test_the_answer_is_told_after_each_block_but_the_last(bench: Bench) -> None:
    bench.answer = rates
    told: list[str] = []

    def so_far(identifier: str) -> str:
        told.append(identifier)
        return f"{len(bench.ran)} trials"

    identifier = bench.experiment(plan(cell("a", 3), cell("b", 3)), so_far=so_far).run()
    said = [line for line in bench.progress.said if "blocks: " in line]
    assert said == ["after 1 of 3 blocks: 2 trials", "after 2 of 3 blocks: 4 trials"]
    assert told == [identifier, identifier]


@pytest.mark.parametrize("servers", ["a", "ab"])
def test_no_answer_so_far_of_one_server_and_a_defect_of_it_ends_nothing(bench: Bench, servers: str) -> None:
    def so_far(identifier: str) -> str:
        raise ArithmeticError(f"a defect in {identifier}")

    _, found = bench.run(plan(*(cell(server, 2) for server in servers)), so_far=so_far)
    assert len(found) == 2 * len(servers)
    said = [line for line in bench.progress.said if "blocks: " in line]
    assert ["a defect in" in line for line in said] == [True] * (len(servers) - 1)


def test_a_single_trial_is_told_by_its_own_line(bench: Bench) -> None:
    bench.experiment(plan(cell("a"), cell("b"))).run()
    assert lines(bench) == []
