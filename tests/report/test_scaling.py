"""A sweep and a capacity search, from their stored trials to the terminal, the JSON and the page."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from prony.compare.capacity import End
from prony.plan.cell import Cell, cell_of
from prony.plan.load import ClosedLoad, OpenLoad
from prony.plan.part import Part, Search
from prony.plan.plan import Plan
from prony.plan.target import Launch
from prony.report.answer import answer
from prony.report.cell_view import TrialView
from prony.report.export import to_json
from prony.report.html import render_html
from prony.report.reading import build
from prony.report.result import ResultView
from prony.report.scaling import capacity_words
from prony.report.terminal import render

from . import factory
from .page import Page

SERVER = "spring-tomcat"


def printed(view: ResultView, width: int = 120) -> str:
    stream = io.StringIO()
    render(view, Console(file=stream, width=width), details=True)
    assert all(len(line) <= width for line in stream.getvalue().splitlines())
    return stream.getvalue()


def made(cell: Cell, number: int, figures: dict[str, float], *, failing: bool = False) -> TrialView:
    changes = {"id": f"t-{number:02}", "cell": cell.id, "load_name": cell.trial.load_name}
    troubles = [factory.FAILING] if failing else []
    record = factory.record(SERVER, number).model_copy(update=changes)
    if "p99_ms" in figures:
        record = factory.constant(record, figures["p99_ms"])
    return replace(factory.trial(record, *troubles), figures=figures)


def sweep(users: tuple[int, ...], failing_at: int = 0) -> ResultView:
    """Of a server that follows the law with contention 0.2 and coherency 0.001."""
    cells = [
        cell_of("main", SERVER, Launch(address=SERVER), factory.trial_plan(ClosedLoad(users=n)))
        for n in users
    ]
    trials = []
    for number, (n, cell) in enumerate(zip(users, cells, strict=True)):
        per_s = 500 * n / (1 + 0.2 * (n - 1) + 0.001 * n * (n - 1))
        figures = {"requests_per_s": per_s, "p50_ms": n / per_s * 1000}
        trials.append(made(cell, number, figures, failing=n == failing_at))
    part = Part(name="main", title="sweep", shape="sweep")
    plan = Plan(name="sweep", command="sweep", title="sweep", parts=(part,), cells=tuple(cells))
    return build(factory.row("sweep of spring-tomcat"), plan, trials)


def capacity(limit_per_s: float = 2000.0) -> ResultView:
    """p99 reaches 50 ms at the limit; every rate that a search from 1000/s asks for was tried."""
    search = Search(objectives="p99<50ms", highest_per_s=1e6, resolution=0.3, most_trials=20)
    rates = (
        1000.0,
        2000.0,
        2000.0,
        1414.213562373095,
        1414.213562373095,
        1681.792830507429,
        1681.792830507429,
    )
    cells = {
        rate: cell_of("main", SERVER, Launch(address=SERVER), factory.trial_plan(OpenLoad(rate_per_s=rate)))
        for rate in rates
    }
    trials = []
    for number, rate in enumerate(rates):
        figures = {"requests_per_s": rate, "p99_ms": 50 * (rate / limit_per_s) ** 4}
        trials.append(made(cells[rate], number, figures))
    part = Part(name="main", title="capacity", shape="capacity", search=search)
    plan = Plan(
        name="capacity", command="capacity", title="capacity", parts=(part,), cells=tuple(cells.values())
    )
    return build(factory.row("capacity of spring-tomcat"), plan, trials)


def test_a_sweep_shows_the_law_without_the_trial_that_does_not_conform() -> None:
    view = sweep((1, 2, 4, 8, 16, 32, 64), failing_at=4)
    law = view.parts[0].laws[SERVER]
    assert law is not None
    assert abs(law.alpha.value - 0.2) < 0.01
    assert not view.conforms
    assert view.usable
    text = printed(view)
    (line,) = (line for line in text.splitlines() if line.startswith("4 "))
    assert "no figure" in line
    assert "0 of 1" in line
    (out,) = to_json(view).parts[0].laws
    assert out.peak_seen
    assert out.fitted_per_s["64"] > 0
    assert sum("no figure" in line for line in printed(view, 60).splitlines()) == 2, "the answer, the table"


def test_too_few_points_have_no_law_and_one_has_no_chart() -> None:
    assert sweep((1, 2, 4)).parts[0].laws == {SERVER: None}
    nothing = sweep((1,), failing_at=1)
    assert not nothing.conforms
    assert not nothing.usable
    page = Page(render_html(nothing))
    assert not [e for e in page.all("title") if e.text.startswith("requests/s over users")]


def test_the_page_of_a_sweep_draws_its_law() -> None:
    page = Page(render_html(sweep((1, 4, 16, 64, 256))))
    assert page.faults == []
    words, *_ = [e.text for e in page.all("title") if e.text.startswith("requests/s over users")]
    assert "4 users 1," in words


def test_a_search_is_concluded_again_from_its_trials() -> None:
    view = capacity()
    search = view.parts[0].search
    assert search is not None
    assert search.result.end is End.FOUND
    assert (search.result.held_per_s, search.result.failed_per_s) == (1681.792830507429, 2000.0)
    assert view.conforms
    cut = replace(search, result=replace(search.result, end=None))
    assert all(rate in capacity_words(cut) for rate in ("1,682", "2,000")), "also where it ended early"
    (answered,) = answer(view).parts
    assert answered.figure == "p99_ms", "of the rate that held"
    assert [bar.value for bar in answered.bars] == [pytest.approx(25.0, rel=0.01)]
    out = to_json(view).parts[0].search
    assert out is not None
    assert (out.end, len(out.tried)) == ("found", 7)
    assert [one.outcome for one in out.tried[:1]] == ["met"]
    page = Page(render_html(view))
    assert page.faults == []
    assert [e for e in page.all("title") if e.text.startswith("Measured ÷ allowed")]


def test_a_search_in_which_nothing_held_has_no_answer() -> None:
    view = capacity(limit_per_s=400.0)
    assert not view.usable
    assert view.conforms
