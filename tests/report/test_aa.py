"""A server against itself, and the line that a comparison prints of it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from rich.console import Console

from prony.compare.false_differences import FalseDifferences
from prony.plan.cell import cell_of
from prony.plan.part import AATest
from prony.plan.plan import one_part
from prony.plan.target import Launch
from prony.report.aa import fitting, record_words, words
from prony.report.export import to_json
from prony.report.html import render_html
from prony.report.reading import load_result
from prony.report.result import ResultView
from prony.report.terminal import render
from prony.store import ExperimentRow, Note, StoredJudgement, StoredTrial

from . import factory
from .trial_evidence import STARTED

TOMCAT, JETTY = "spring-tomcat", "spring-jetty"


class Catalogue:
    """A store with these experiments, newest last."""

    def __init__(self, *made: tuple[ExperimentRow, list[StoredTrial]]) -> None:
        self.made = made

    def experiment(self, which: str) -> ExperimentRow:
        return next(row for row, _ in self.made if row.id == which)

    def experiments(self, command: str, fingerprint_key: str) -> list[ExperimentRow]:
        return [
            row
            for row, _ in reversed(self.made)
            if row.spec["command"] == command and row.fingerprint.key == fingerprint_key
        ]

    def labels_of(self, which: str) -> tuple[tuple[str, ...], tuple[Note, ...]]:
        del which
        return (), ()

    def trials(self, which: str) -> list[StoredTrial]:
        return next(trials for row, trials in self.made if row.id == which)


def stored(
    identifier: str,
    servers: Sequence[str],
    trials: int,
    *,
    fingerprint: str = factory.FINGERPRINT.key,
    **part: Any,
) -> tuple[ExperimentRow, list[StoredTrial]]:
    cells = [
        cell_of("main", server, Launch(address=server), factory.trial_plan(), trials) for server in servers
    ]
    command = "aa" if "aa" in part else "compare"
    plan = one_part(command, "t", cells, seed=1, **part)
    made = []
    for scheduled in plan.order():
        cell = plan.cell(scheduled.cell)
        seen = factory.trial(factory.record(cell.server, scheduled.block, scheduled.position, quick=False))
        record = seen.record.model_copy(
            update={
                "cell": cell.id,
                "id": f"{identifier}-{scheduled.index}",
                "experiment_id": identifier,
                "workload": cell.trial.workload.name,
                "load_name": cell.trial.load_name,
            }
        )
        judged = StoredJudgement(seen.judgement, dict(seen.figures), STARTED, "0.1.0")
        made.append(StoredTrial(record, (judged,), "0.1.0"))
    row = replace(
        factory.row(),
        id=identifier,
        spec=plan.as_stored(),
        created=STARTED + timedelta(days=len(identifier)),
        fingerprint=factory.FINGERPRINT.model_copy(update={"key": fingerprint}),
    )
    return row, made


def itself(identifier: str, server: str = TOMCAT, trials: int = 12, **more: Any) -> tuple[Any, Any]:
    return stored(identifier, [server], trials, shape="aa", aa=AATest(experiments=100, each=5), **more)


def shown(view: ResultView) -> str:
    stream = io.StringIO()
    render(view, Console(file=stream, width=1000), details=True)
    return " ".join(stream.getvalue().split())


def view_of(which: str, *made: tuple[ExperimentRow, list[StoredTrial]]) -> ResultView:
    return load_result(Catalogue(*made), which)  # type: ignore[arg-type]


def test_the_rate_is_printed_with_its_interval_and_what_it_is_not() -> None:
    view = view_of("aa", itself("aa"))
    (part,) = view.parts
    assert part.aa is not None
    assert view.usable
    text = shown(view)
    assert (part.aa.experiments, part.aa.each, part.aa.trials, part.aa.independent) == (7, 5, 12, 1)
    assert all(sentence in text for sentence in words(part.aa))
    (out,) = to_json(view).parts
    assert out.aa == part.aa
    assert words(part.aa)[0] in render_html(view)


def test_a_high_rate_of_draws_that_share_trials_accuses_no_host() -> None:
    text = " ".join(words(FalseDifferences(1000, 120, 0.1, 0.14, 20, 5, 0.01)))
    assert "12.0 %" in text
    assert "this host" not in text
    assert "20 trials" in text


def test_too_few_trials_have_no_rate_and_no_usable_result() -> None:
    view = view_of("aa", itself("aa", trials=8))
    assert view.parts[0].aa is None
    assert not view.usable


def test_a_comparison_prints_the_last_one_that_fits() -> None:
    compared = stored("c", [TOMCAT, JETTY], 3, shape="comparison")
    assert to_json(view_of("c", compared)).parts[0].aa_on_record is None
    view = view_of("c", itself("first"), itself("second"), compared)
    (part,) = view.parts
    assert part.aa_on_record is not None
    assert (part.aa_on_record.id, part.aa_on_record.server) == ("second", "spring-tomcat")
    assert record_words(part.aa_on_record) in shown(view)


def test_another_machine_does_not_fit_and_the_same_server_fits_best() -> None:
    compared = stored("c", [TOMCAT, JETTY], 3, shape="comparison")
    (part,) = view_of("c", itself("far", fingerprint="other"), compared).parts
    assert part.aa_on_record is None
    rows = [row for row, _ in (itself("own"), itself("undertow", "spring-undertow"))]
    cells = view_of("c", compared).plan.cells
    fits = fitting(reversed(rows), factory.FINGERPRINT.key, cells)
    assert fits is not None
    assert fits.id == "own"
    unfinished = [replace(rows[0], status="interrupted"), rows[1]]
    fits = fitting(unfinished, factory.FINGERPRINT.key, cells)
    assert fits is not None
    assert fits.id == "undertow"
