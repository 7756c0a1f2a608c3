"""Time parts: printed when they were asked for, and only where the samples suffice."""

from dataclasses import replace

from prony.report.export import load_json
from prony.report.html import render_html
from prony.report.model import TrialView
from prony.report.parts import part_lines

from . import factory
from .page import Page, rendered


def with_parts(trial: TrialView) -> TrialView:
    evidence = trial.record.evidence
    assert evidence.engine is not None
    assert evidence.engine.window is not None
    parts = {
        name: factory.histogram(mean_ns, count, 1, draws=count)
        for name, mean_ns, count in (
            ("connect_time", 5e4, 10),
            ("send_time", 1e4, 1000),
            ("wait_time", 2e6, 1000),
            ("receive_time", 3e5, 1000),
        )
    }
    window = evidence.engine.window.model_copy(update=parts)
    engine = evidence.engine.model_copy(update={"window": window})
    evidence = evidence.model_copy(update={"engine": engine})
    return replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))


def test_a_line_per_part_with_what_the_samples_support() -> None:
    head, connect, send, wait, receive = part_lines([with_parts(factory.experiment().trials[0])])
    assert head.split()[:2] == ["part", "samples"]
    assert connect.split()[:2] == ["connect", "10"]
    assert connect.split()[-1] == "–", "ten connections show no p99"
    assert [line.split()[0] for line in (send, wait, receive)] == ["send", "wait", "receive"]
    assert "–" not in wait


def test_without_parts_there_is_no_table() -> None:
    trial = factory.experiment().trials[0]
    assert part_lines([trial]) == []
    assert load_json(trial)["time_parts"] == []


def test_the_json_has_the_parts() -> None:
    parts = load_json(with_parts(factory.experiment().trials[0]))["time_parts"]
    assert [part["name"] for part in parts] == ["connect", "send", "wait", "receive"]
    assert parts[2]["p99_ms"] > parts[2]["p50_ms"] > 0
    assert parts[0]["p99_ms"] is None


def test_the_page_has_a_table_of_parts_for_a_single_trial() -> None:
    shown = factory.experiment(quick=False)
    first = with_parts(shown.trials[0])
    of_one = replace(shown, trials=(first,))
    page = render_html(of_one)
    assert 'id="parts"' in page
    assert Page(page).faults == []
    assert 'id="parts"' not in rendered(factory.experiment)
