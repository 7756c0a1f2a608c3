"""Sessions and handshakes: from the counters to the terminal, the JSON and the page."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from prony.judge.figures import figures
from prony.report.cell_view import TrialView
from prony.report.export import to_json
from prony.report.html import render_html
from prony.report.result import ResultView
from prony.report.terminal import render

from . import factory
from .page import Page
from .trial_evidence import histogram


def walked(made: TrialView) -> TrialView:
    """The same trial as an open load of sessions over TLS."""
    evidence = made.record.evidence
    engine = evidence.engine
    assert engine is not None
    assert engine.window is not None
    window = engine.window.model_copy(
        update={
            "latency": engine.window.service_time,
            "sessions_begun": 1000,
            "sessions_completed": 990,
            "blocked": 0,
            "session_time": histogram(8e9, 990, 3, draws=990),
        }
    )
    totals = engine.totals.model_copy(update={"sent": 50_000, "tls_handshakes": 1000, "tls_resumptions": 250})
    evidence = evidence.model_copy(
        update={
            "engine": engine.model_copy(update={"window": window, "totals": totals}),
            "load": evidence.load.model_copy(update={"model": "open", "tls": True, "sessions_per_s": 100.0}),
        }
    )
    return TrialView(
        made.record.model_copy(update={"evidence": evidence}), made.judgement, figures(evidence).numbers()
    )


def view() -> ResultView:
    return factory.changed(factory.experiment(), walked)


def printed(shown: ResultView) -> str:
    console = Console(width=120, record=True, file=io.StringIO())
    render(shown, console, details=True)
    return console.export_text()


def test_the_json_has_sessions_and_handshakes() -> None:
    (cell,) = to_json(factory.changed(factory.foreign_load(), walked)).parts[0].cells
    counters, figures = cell.trials[0].counters, cell.trials[0].figures
    assert (counters.sessions_begun, counters.sessions_completed, counters.blocked) == (1000, 990, 0)
    assert figures["session_p50_ms"].value == pytest.approx(8000, rel=0.1)
    assert "session_p999_ms" not in figures
    assert (counters.tls_handshakes, counters.tls_resumptions) == (1000, 250)
    assert figures["handshakes_per_request"].value == 0.02
    plain = to_json(factory.foreign_load()).parts[0].cells[0].trials[0].counters
    assert (plain.sessions_begun, plain.tls_handshakes, plain.blocked) == (None, None, None)


def test_the_terminal_says_how_long_sessions_took() -> None:
    one = printed(factory.changed(factory.foreign_load(), walked))
    assert re.search(r"handshakes per request +0\.02", one)
    table = printed(view())
    assert "session p95" in table
    assert "25.0" in table


def test_the_page_has_a_row_for_each() -> None:
    page = Page(render_html(view()))
    heads = [e.text for e in page.all("th")]
    assert any("sessions" in text for text in heads)
    assert any("handshakes" in text for text in heads)
    assert page.faults == []
