"""Figures per step: printed when there is more than one step, and only where the samples suffice."""

from dataclasses import replace

from prony.evidence.engine import StepFigures
from prony.report.blocks import Table
from prony.report.cell_view import TrialView
from prony.report.export import to_json
from prony.report.html import render_html
from prony.report.trial_tables import step_blocks

from . import factory
from .page import Page, rendered
from .trial_evidence import histogram


def with_steps(trial: TrialView, *steps: StepFigures) -> TrialView:
    evidence = trial.record.evidence
    assert evidence.engine is not None
    assert evidence.engine.window is not None
    window = evidence.engine.window.model_copy(update={"steps": steps})
    engine = evidence.engine.model_copy(update={"window": window})
    evidence = evidence.model_copy(update={"engine": engine})
    return replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))


def step(name: str, count: int, failed: int = 0, scenario: str = "crud") -> StepFigures:
    times = histogram(2e6, count, 1, draws=count)
    return StepFigures(scenario=scenario, name=name, completed=count, failed=failed, service_time=times)


def rows(*trials: TrialView) -> list[list[str]]:
    """The table's rows as text, the label first."""
    (block,) = step_blocks(trials)
    assert isinstance(block, Table)
    return [[row.label, *(cell.text for cell in row.cells)] for row in block.sections[0].rows]


def test_a_line_per_step_with_what_the_samples_support() -> None:
    trial = with_steps(factory.experiment().trials[0], step("create", 2000), step("read", 100, failed=3))
    create, read = rows(trial)
    assert create[:3] == ["create", "200", "0"]
    assert "–" not in create
    assert read[:3] == ["read", "10", "3"]
    assert read[-1] == "–", "a hundred samples show no p99"


def test_several_trials_give_their_median_and_scenarios_are_named_when_there_are_two() -> None:
    trials = factory.experiment().trials[:3]
    steps = [step("a", n, failed=1, scenario=s) for n, s in ((1000, "x"), (3000, "x"), (2000, "x"))]
    made = [with_steps(t, s, step("a", 500, scenario="y")) for t, s in zip(trials, steps, strict=True)]
    first, second = rows(*made)
    assert first[:3] == ["x: a", "200", "3"]
    assert second[0] == "y: a"


def test_a_single_step_needs_no_table() -> None:
    assert step_blocks(factory.experiment().trials) == []


def test_the_json_has_the_steps_with_null_where_samples_are_missing() -> None:
    def stepped(trial: TrialView) -> TrialView:
        return with_steps(trial, step("create", 2000), step("read", 100, failed=3))

    (cell, *_) = to_json(factory.changed(factory.experiment(), stepped)).parts[0].cells
    create, read = cell.trials[0].steps
    assert (create.scenario, create.name, create.completed) == ("crud", "create", 2000)
    assert create.times.p99_ms is not None
    assert create.times.p50_ms is not None
    assert create.times.p99_ms > create.times.p50_ms > 0
    assert (read.failed, read.times.p99_ms) == (3, None)


def test_the_page_has_a_table_of_steps_for_each_server_that_has_them() -> None:
    shown = factory.experiment(quick=False)
    first = shown.servers[0].address

    def stepped(trial: TrialView) -> TrialView:
        if trial.record.server != first:
            return trial
        return with_steps(trial, step("create", 2000), step("<read>", 100, failed=3))

    page = Page(render_html(factory.changed(shown, stepped)))
    assert page.faults == []
    assert "steps" in page.ids()
    tables = [e for e in page.all("caption") if e.text.startswith("Steps")]
    assert [e.text for e in tables] == [f"Steps, {first}"]
    heads = [e.text for e in page.all("th") if e.attributes.get("scope") == "row"]
    assert {"create", "<read>"} <= set(heads)


def test_a_page_without_steps_has_no_such_section() -> None:
    page = Page(rendered(factory.experiment))
    assert "steps" not in [e.attributes.get("id") for e in page.all("section")]
