"""The page of a plan: ceilings, percentiles, sockets; and its JSON: as the published schema says."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from prony.evidence.trial import Calibration, Ceiling
from prony.judge.finding import Finding, Status
from prony.judge.limits import CheckLimits
from prony.plan.planfile_read import read
from prony.report.html.plan_page import render_plan_html
from prony.report.model import TrialView
from prony.report.plan_json import plan_json
from prony.report.plan_terminal import render_plan
from prony.report.plan_view import CellView, PartView, PlanView, with_cell_figures
from prony.report.schema import json_schema

from . import factory
from .page import Page
from .test_sockets import sampled

PLAN = """
title: Two servers
servers: [spring-tomcat, spring-jetty]
workloads: hello-delay
parts:
  - name: one
    title: At one load
    trials: 3
    loads: {users: 10}
  - name: sweep
    title: Over users
    trials: 1
    loads: {users: [1, 10]}
    measured: {duration_s: 5}
"""


def bounded(trial: TrialView, per_s: float) -> TrialView:
    """With ceilings that are known beforehand: one near, one far away."""
    ceilings = (
        Ceiling(name="worker threads", per_s=per_s, explanation="200 ÷ 150 ms"),
        Ceiling(name="connections", per_s=per_s * 1000, explanation="many"),
    )
    calibration = Calibration(ceiling_per_s=per_s * 2, body_bytes=12, duration_s=1.5)
    evidence = trial.record.evidence.model_copy(update={"ceilings": ceilings, "calibration": calibration})
    return replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))


@pytest.fixture
def view(tmp_path: Path) -> PlanView:
    (tmp_path / "two.yaml").write_text(PLAN)
    plan = read(tmp_path / "two.yaml", limits=CheckLimits, seed=1)
    parts: list[PartView] = []
    for part in plan.parts:
        cells: list[CellView] = []
        for cell in plan.of(part.name):
            trials = tuple(
                bounded(
                    sampled(with_cell_figures(factory.trial(factory.record(cell.server, block))), 12), 9000
                )
                for block in range(cell.trials)
            )
            cells.append(CellView(cell, trials))
        parts.append(PartView(part, tuple(cells)))
    return PlanView(
        id="20261121-a",
        title=plan.title,
        note="",
        created=factory.STARTED,
        quick=False,
        status_word="finished",
        plan=plan,
        plan_text="title: Two servers",
        parts=tuple(parts),
        planned=10,
        ended=10,
    )


def test_the_page_draws_ceilings_percentiles_and_sockets(view: PlanView) -> None:
    page = Page(render_plan_html(view))
    assert page.faults == []
    titles = [one.text for one in page.all("title")]
    (ceilings,) = (text for text in titles if text.startswith("Throughput and its ceilings"))
    assert "worker threads 9,000/s" in ceilings
    assert "connections 9,000,000/s" in ceilings, "told in words, though too far away to be drawn"
    assert "client 18,000/s" in ceilings
    (times,) = (text for text in titles if text.startswith("Service time by percentile"))
    assert "spring-jetty: p50" in times
    sockets = [text for text in titles if "TCP sockets over" in text]
    assert len(sockets) == 4, "one for each server of each part"
    assert sockets[0].startswith("spring-tomcat, hello-delay, closed-10: TCP sockets")
    assert any(text.startswith("p99 over users") for text in titles)


def test_a_page_of_trials_that_may_not_be_printed_has_no_figures(view: PlanView) -> None:
    def rejected(cell: CellView) -> CellView:
        broken = [replace(t, record=t.record.model_copy(update={"failure": "it died"})) for t in cell.trials]
        return CellView(cell.cell, tuple(broken))

    parts = tuple(replace(part, cells=tuple(map(rejected, part.cells))) for part in view.parts)
    page = Page(render_plan_html(replace(view, parts=parts)))
    assert page.faults == []
    titles = [one.text for one in page.all("title")]
    assert not any(text.startswith(("Throughput", "Service time")) for text in titles)
    assert any("TCP sockets over" in text for text in titles), "what the machine did is still shown"


def test_what_a_check_found_is_told_for_each_cell_with_its_own_numbers(view: PlanView) -> None:
    def doubted(cell: CellView, n: int) -> CellView:
        def with_finding(trial: TrialView) -> TrialView:
            found = Finding(
                check="isolation", status=Status.SUSPECT, reason=f"a neighbour took {n} %", advice="end it"
            )
            judged = trial.judgement.model_copy(update={"findings": (found,)})
            return replace(trial, judgement=judged)

        return CellView(cell.cell, tuple(map(with_finding, cell.trials)))

    first, *others = view.parts
    cells = tuple(doubted(cell, n) for n, cell in enumerate(first.cells, start=11))
    doubtful = replace(view, parts=(replace(first, cells=cells), *others))
    out = StringIO()
    render_plan(doubtful, Console(file=out, width=60))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    head = lines.index(f"  suspect isolation  in {len(cells)} cells")
    assert lines[head + 1].startswith("    spring-tomcat, ")
    text = " ".join(line.strip() for line in lines[head:])
    assert "a neighbour took 11 %" in text
    assert "a neighbour took 12 %" in text, "each cell has its own numbers"
    assert all(len(line) <= 60 for line in lines)
    assert "a neighbour took 12 %" in render_plan_html(doubtful)


def test_the_json_is_what_the_published_schema_says(view: PlanView) -> None:
    made = json.loads(json.dumps(plan_json(view), allow_nan=False))
    jsonschema.Draft202012Validator(json_schema()["plan"]).validate(made)
    assert made["parts"][0]["cells"][0]["figures"]["requests_per_s"]["n"] == 3
