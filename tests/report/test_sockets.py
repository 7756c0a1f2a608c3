"""Sockets by state over time on the page, and only where they were counted."""

from __future__ import annotations

from dataclasses import replace

from prony.evidence.host import HostRow
from prony.report.cell_view import TrialView
from prony.report.html import render_html
from prony.report.html.drawings import STATES, socket_states
from prony.report.result import ResultView

from . import factory
from .page import Page, rendered


def sampled(trial: TrialView, seconds: int) -> TrialView:
    rows = tuple(
        HostRow(
            t_ms=at * 1000.0,
            duration_ms=1000.0,
            sockets=40 + at,
            established=20,
            closed=3,
            orphaned=0,
            time_wait=17 + at,
        )
        for at in range(1, seconds + 1)
    )
    evidence = trial.record.evidence.model_copy(update={"host_rows": rows})
    return replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))


def view(seconds: int) -> ResultView:
    return factory.changed(factory.experiment(), lambda trial: sampled(trial, seconds))


def test_a_chart_for_each_server_with_words_for_who_cannot_see() -> None:
    page = Page(render_html(view(40)))
    assert page.faults == []
    assert "sockets" in [e.attributes.get("id") for e in page.all("section")]
    titles = [e.text for e in page.all("title") if "TCP sockets over" in e.text]
    assert len(titles) == len(factory.SERVERS)
    assert [text.partition(":")[0] for text in titles] == list(factory.SERVERS)
    assert "timewait 18 to 57" in titles[0]
    assert "orphaned 0 to 0" in titles[0]
    assert [name for name, _ in socket_states()] == [name for _, name in STATES]


def test_without_counts_there_is_no_such_section() -> None:
    page = Page(rendered(factory.experiment))
    assert "sockets" not in [e.attributes.get("id") for e in page.all("section")]
