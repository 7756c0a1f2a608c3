"""Servers that send different responses: no ratio, and the exit code of a result without an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from prony.cli.common import Common
from prony.cli.showing import show
from prony.errors import ExitCode
from prony.evidence.server import Probe
from prony.report import reading
from prony.report.cell_view import TrialView
from prony.report.result import ResultView
from prony.store import Store

from . import factory

SERVERS = ("spring-tomcat", "spring-jetty")


def result(**sizes: int) -> ResultView:
    def answering(server: str, block: int, place: int) -> TrialView:
        trial = factory.trial(factory.record(server, block, place))
        probe = Probe(
            step="hello",
            status=200,
            body_bytes=sizes[server.partition("-")[2]],
            content_type="text/plain",
            meets_expectation=True,
            body_digest="a",
        )
        evidence = trial.record.evidence.model_copy(update={"probes": (probe,)})
        return replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))

    trials = [answering(server, b, place) for b in range(6) for place, server in enumerate(SERVERS)]
    return factory.experiment(trials, SERVERS, quick=False, blocks=6, published=False)


@pytest.mark.parametrize(("jetty", "code"), [(96, ExitCode.NO_FIGURE), (64, ExitCode.OK)])
def test_the_exit_code_says_whether_there_is_an_answer(
    jetty: int, code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = result(tomcat=64, jetty=jetty)
    assert view.conforms
    assert view.usable == (code is ExitCode.OK)
    assert bool(view.parts[0].pairs) == (code is ExitCode.OK)
    monkeypatch.setattr(reading, "load_result", lambda *_: view)
    monkeypatch.setattr(reading, "remember_answer", lambda *_: None)
    assert show(cast("Store", None), view.id, Common(json=True)) == code


def test_a_part_of_which_nothing_was_to_be_run_takes_no_answer_away() -> None:
    view = result(tomcat=64, jetty=64)
    (part,) = view.parts
    refused = replace(part, cells=())
    assert view.usable
    assert replace(view, parts=(part, refused)).usable
    assert not replace(view, parts=(refused,)).usable, "nothing was measured"
