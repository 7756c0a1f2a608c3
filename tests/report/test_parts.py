"""Time parts: printed when they were asked for, and only where the samples suffice."""

from dataclasses import replace

from prony.report.blocks import Table
from prony.report.cell_view import TrialView
from prony.report.export import to_json
from prony.report.html import render_html
from prony.report.trial_tables import time_part_blocks

from . import factory
from .page import Page, rendered
from .trial_evidence import histogram


def with_parts(trial: TrialView) -> TrialView:
    evidence = trial.record.evidence
    assert evidence.engine is not None
    assert evidence.engine.window is not None
    parts = {
        name: histogram(mean_ns, count, 1, draws=count)
        for name, mean_ns, count in (
            ("connect_time", 5e4, 10),
            ("send_time", 1e4, 2000),
            ("wait_time", 2e6, 2000),
            ("receive_time", 3e5, 2000),
        )
    }
    window = evidence.engine.window.model_copy(update=parts)
    engine = evidence.engine.model_copy(update={"window": window})
    evidence = evidence.model_copy(update={"engine": engine})
    return replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))


def test_a_line_per_part_with_what_the_samples_support() -> None:
    (block,) = time_part_blocks([with_parts(factory.experiment().trials[0])])
    assert isinstance(block, Table)
    connect, *others = block.sections[0].rows
    assert (connect.label, connect.cells[0].text) == ("connect", "10")
    assert connect.cells[-1].text == "–", "ten connections show no p99"
    assert [row.label for row in others] == ["send", "wait", "receive"]
    assert all(cell.text != "–" for cell in others[1].cells)


def test_without_parts_there_is_no_table() -> None:
    view = factory.foreign_load()
    assert time_part_blocks(view.trials) == []
    assert to_json(view).parts[0].cells[0].trials[0].time_parts == []


def test_the_json_has_the_parts() -> None:
    view = factory.changed(factory.foreign_load(), with_parts)
    parts = to_json(view).parts[0].cells[0].trials[0].time_parts
    assert [part.name for part in parts] == ["connect", "send", "wait", "receive"]
    assert parts[2].times.p99_ms is not None
    assert parts[2].times.p50_ms is not None
    assert parts[2].times.p99_ms > parts[2].times.p50_ms > 0
    assert parts[0].times.p99_ms is None


def test_the_page_has_a_table_of_parts_for_a_single_trial() -> None:
    page = render_html(factory.changed(factory.foreign_load(), with_parts))
    assert 'id="parts"' in page
    assert Page(page).faults == []
    assert 'id="parts"' not in rendered(factory.experiment)
