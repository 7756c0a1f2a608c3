"""The base of a gate from the store: which experiments stand in for it, and what is refused."""

from __future__ import annotations

import pytest

from prony.compare.noninferiority import Change
from prony.errors import UsageError
from prony.evidence.host import Fingerprint
from prony.experiment.stored import stored_base
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad
from prony.plan.part import Baseline, GateTest, Part
from prony.plan.plan import MAIN, Plan
from prony.report.gate_files import gate_of
from prony.report.reading import load_result
from tests.experiment.conftest import Answer, Bench, cell, finding, plan
from tests.experiment.test_gate import BASE, CANDIDATE, FIGURES, builds, gate
from tests.store.store_samples import FINGERPRINT

TAG = "main"


def tagged(bench: Bench, count: int, asked: Plan | None = None) -> list[str]:
    """So many stored experiments with the tag."""
    found = []
    for _ in range(count):
        found.append(bench.experiment(asked or plan(cell("mine", 5))).run())
        bench.store.tag(found[-1], TAG)
    return found


def base_of(bench: Bench, wanted: Cell, here: Fingerprint = FINGERPRINT) -> tuple[str, Baseline]:
    return stored_base(bench.store, TAG, here, wanted, FIGURES)


def gated_by(bench: Bench, stored: Baseline, server: str = CANDIDATE) -> Plan:
    del bench
    asked = GateTest(base=BASE, candidate=server, figures=FIGURES, margin=0.03, baseline=stored)
    part = Part(name=MAIN, title="a gate", shape="gate", gate=asked, budget_s=600.0)
    return plan(cell(server, 5), parts=(part,), command="gate")


def test_the_newest_results_of_the_same_cell_are_the_base(bench: Bench) -> None:
    bench.answer = builds()
    names = tagged(bench, 3)
    server, stored = base_of(bench, cell("mine"))
    assert server == "mine"
    assert [one.experiment for one in stored.experiments] == names[::-1]
    assert {len(one.values["p99_ms"]) for one in stored.experiments} == {5}


def test_rejected_trials_and_missing_figures_are_left_out(bench: Bench) -> None:
    def answer(of: Cell, number: int) -> Answer:
        figures, _ = builds()(of, number)
        if number == 1:
            figures.pop("p99_ms")
        return figures, ((finding("errors"),) if number == 0 else ())

    bench.answer = answer
    tagged(bench, 1)
    _, stored = base_of(bench, cell("mine"))
    (one,) = stored.experiments
    assert (len(one.values["requests_per_s"]), len(one.values["p99_ms"])) == (4, 3)


def test_of_a_stored_gate_the_candidate_is_what_was_accepted(bench: Bench) -> None:
    bench.answer = builds(slower=-0.5)
    tagged(bench, 1, gate())
    server, stored = base_of(bench, cell("any"))
    assert server == CANDIDATE
    (one,) = stored.experiments
    assert min(one.values["requests_per_s"]) > 1500


def test_a_candidate_is_compared_with_the_spread_of_earlier_experiments(bench: Bench) -> None:
    bench.answer = builds()
    tagged(bench, 4)
    _, stored = base_of(bench, cell("mine"))
    bench.answer = builds(slower=0.3)
    view = load_result(bench.store, bench.experiment(gated_by(bench, stored)).run())
    found = gate_of(view)
    assert found is not None
    assert (found.change, found.experiments, found.baseline) == (Change.WORSE, 4, TAG)
    assert TAG in found.advice[0]


def test_two_experiments_give_no_interval_but_advice(bench: Bench) -> None:
    bench.answer = builds()
    tagged(bench, 2)
    _, stored = base_of(bench, cell("mine"))
    view = load_result(bench.store, bench.experiment(gated_by(bench, stored)).run())
    found = gate_of(view)
    assert found is not None
    assert found.change is Change.CANNOT_TELL
    assert "prony results tag latest main" in " ".join(found.advice)


def test_what_is_no_base_is_refused_in_one_sentence(bench: Bench) -> None:
    bench.answer = builds()
    with pytest.raises(UsageError, match=r"'main' \(known tags: none\)"):
        base_of(bench, cell("mine"))
    tagged(bench, 1)
    elsewhere = FINGERPRINT.model_copy(update={"key": "another"})
    with pytest.raises(UsageError, match=r"\(another\)"):
        base_of(bench, cell("mine"), elsewhere)
    with pytest.raises(UsageError, match="hello under closed-64"):
        base_of(bench, cell("mine", load=ClosedLoad(users=64)))


def test_several_servers_need_one_of_the_candidates_name(bench: Bench) -> None:
    bench.answer = builds()
    tagged(bench, 1, plan(cell("one", 3), cell("two", 3)))
    assert base_of(bench, cell("two"))[0] == "two"
    with pytest.raises(UsageError, match=r"\(one, two\).* three"):
        base_of(bench, cell("three"))
