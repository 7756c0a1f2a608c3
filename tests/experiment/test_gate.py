"""A gate as an experiment: when it ends, what its result says, how it is continued."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from prony.cli.showing import exit_code
from prony.compare.noninferiority import Change
from prony.errors import ExitCode
from prony.judge.finding import Bias
from prony.plan.cell import Cell
from prony.plan.part import GateTest, Part
from prony.plan.plan import MAIN, Plan
from prony.report.export import to_json
from prony.report.gate import against
from prony.report.gate_files import gate_of
from prony.report.html import render_html
from prony.report.reading import load_result
from prony.report.result import ResultView
from prony.report.terminal import render
from tests.experiment.conftest import Answer, Bench, cell, finding, plan

BASE, CANDIDATE = "base", "candidate"
FIGURES = ("requests_per_s", "p99_ms", "server_cpu_us_per_request")


def gate(first: int = 5, most: int = 12, budget_s: float | None = None, margin: float = 0.03) -> Plan:
    asked = GateTest(base=BASE, candidate=CANDIDATE, figures=FIGURES, margin=margin)
    part = Part(name=MAIN, title="a gate", shape="gate", gate=asked, until_clear=most, budget_s=budget_s)
    return plan(cell(BASE, first), cell(CANDIDATE, first), parts=(part,), command="gate")


def builds(slower: float = 0.0, spread: float = 0.001) -> Callable[[Cell, int], Answer]:
    def answer(of: Cell, number: int) -> Answer:
        source = random.Random(f"{of.server}{number}")
        cost = (1 + slower) if of.server == CANDIDATE else 1.0

        def noise() -> float:
            return math.exp(source.gauss(0, spread))

        figures = {
            "requests_per_s": 1000 / cost * noise(),
            "p99_ms": 5 * cost * noise(),
            "server_cpu_us_per_request": 400 * cost * noise(),
        }
        return figures, ()

    return answer


def ran(bench: Bench, asked: Plan) -> ResultView:
    return load_result(bench.store, bench.experiment(asked).run())


def shown(view: ResultView) -> str:
    stream = io.StringIO()
    render(view, Console(file=stream, width=1000), details=True)
    return " ".join(stream.getvalue().split())


def test_an_unchanged_build_is_no_worse_and_needs_no_more_blocks(bench: Bench) -> None:
    bench.answer = builds()
    view = ran(bench, gate())
    found = gate_of(view)
    assert found is not None
    assert (found.change, found.blocks, len(bench.ran)) == (Change.NO_WORSE, 5, 10)
    assert exit_code(view) is ExitCode.OK
    assert any("5 blocks" in said for said in bench.progress.said)
    assert shown(view).startswith(found.sentence)


def test_a_slower_build_is_worse_in_every_figure(bench: Bench) -> None:
    bench.answer = builds(slower=0.05)
    view = ran(bench, gate())
    found = gate_of(view)
    assert found is not None
    assert found.change is Change.WORSE
    assert {one.change for one in found.figures} == {Change.WORSE}
    assert exit_code(view) is ExitCode.WORSE
    (part,) = to_json(view).parts
    assert part.gate == found


def test_a_noisy_host_gets_advice(bench: Bench) -> None:
    bench.answer = builds(spread=0.06)
    view = ran(bench, gate(budget_s=1200.0))
    found = gate_of(view)
    assert found is not None
    assert (found.change, found.blocks, len(bench.ran)) == (Change.CANNOT_TELL, 12, 24)
    assert exit_code(view) is ExitCode.UNDECIDED
    assert "prony aa" in " ".join(found.advice)


def test_what_may_bend_a_candidate_further_than_the_margin_stands_against_it(bench: Bench) -> None:
    def answer(of: Cell, number: int) -> Answer:
        bent = {"requests_per_s": Bias(low=-0.05)} if of.server == CANDIDATE else {}
        return builds()(of, number)[0], (finding("network", conforms=True, bias=bent),)

    bench.answer = answer
    view = ran(bench, gate(first=5, most=6))
    found = gate_of(view)
    assert found is not None
    assert (found.change, found.blocks) == (Change.CANNOT_TELL, 6)
    rate = next(one for one in found.figures if one.figure == "requests_per_s")
    named = against(rate)
    assert named is not None
    assert named.name == "network"
    assert rate.low is not None
    assert rate.worst_low == pytest.approx(0.95 * rate.low)
    assert exit_code(view) is ExitCode.UNDECIDED


def test_a_build_of_which_nothing_counts_ends_it_early_with_the_finding(bench: Bench) -> None:
    def answer(of: Cell, number: int) -> Answer:
        figures, _ = builds()(of, number)
        return figures, ((finding("errors"),) if of.server == CANDIDATE else ())

    bench.answer = answer
    view = ran(bench, gate())
    found = gate_of(view)
    assert found is not None
    assert found.change is Change.NOT_MEASURABLE
    assert len(bench.ran) == 10
    assert exit_code(view) is ExitCode.NO_FIGURE
    assert "errors said so" in found.figures[0].why


def test_a_figure_that_no_trial_has_names_the_finding(bench: Bench) -> None:
    def answer(of: Cell, number: int) -> Answer:
        figures, _ = builds()(of, number)
        few = finding("samples", conforms=True, provided="the window was long enough")
        return {name: value for name, value in figures.items() if name != "p99_ms"}, (few,)

    bench.answer = answer
    view = ran(bench, gate())
    assert exit_code(view) is ExitCode.NO_FIGURE
    found = gate_of(view)
    assert found is not None
    whys = {one.figure: one.why for one in found.figures}
    assert "samples said so" in whys["p99_ms"]


def test_no_block_begins_that_would_end_after_the_budget(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 30))  # each look at the clock is 30 s later
    monkeypatch.setattr("prony.experiment.experiment.time.monotonic", lambda: float(next(clock)))
    bench.answer = builds(spread=0.06)
    view = ran(bench, gate(first=5, most=12, budget_s=200.0))
    found = gate_of(view)
    assert found is not None
    assert 1 <= len(bench.ran) // 2 < 5
    assert found.change is Change.CANNOT_TELL
    assert any("200 s" in said for said in bench.progress.said)


def test_a_gate_that_was_interrupted_goes_on_and_comes_to_the_same(bench: Bench) -> None:
    bench.answer = builds(slower=0.05)
    bench.interrupt_at = 3
    experiment = bench.experiment(gate(budget_s=1200.0))
    with pytest.raises(KeyboardInterrupt):
        experiment.run()
    view = load_result(bench.store, experiment.identifier)
    assert "prony gate --resume" in shown(view)
    bench.interrupt_at = None
    bench.experiment(gate(budget_s=1200.0)).resume(experiment.identifier)
    found = gate_of(load_result(bench.store, experiment.identifier))
    assert found is not None
    assert found.change is Change.WORSE


def test_the_page_shows_it(bench: Bench) -> None:
    bench.answer = builds(slower=0.05)
    view = ran(bench, gate())
    found = gate_of(view)
    assert found is not None
    page = render_html(view)
    assert found.sentence in page
    assert "candidate ÷ base" in page
    assert "at worst" in page


@pytest.mark.parametrize("more", [{"margin": 0.0}, {"margin": 1.0}, {"figures": ()}])
def test_a_gate_without_a_margin_or_a_figure_is_none(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"margin|figures"):
        GateTest.model_validate({"base": "a", "candidate": "b", "figures": FIGURES, "margin": 0.03, **more})
