"""The tidy table: a row per trial and figure, and every format found by its name."""

from __future__ import annotations

import csv
import io

from prony.report import exports
from tests.report import factory


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_each_figure_of_each_trial_has_a_row_that_names_everything() -> None:
    view = factory.experiment(blocks=2)
    made = rows(exports.named("csv").write(view).text)
    figures = {(row["trial"], row["figure"]): float(row["value"]) for row in made}
    for trial in view.trials:
        for name, value in trial.figures.items():
            assert figures[trial.record.id, name] == value
    assert len(made) == sum(len(trial.figures) for trial in view.trials)
    first = made[0]
    assert first["cell"] == "main/spring-tomcat/hello/closed-10"
    assert (first["experiment"], first["part"], first["server"]) == (factory.ID, "main", "spring-tomcat")
    assert (first["block"], first["kind"], first["verdict"]) == ("1", "trial", "valid")
    assert {row["unit"] for row in made if row["figure"] == "p99_ms"} == {"ms"}


def test_a_rejected_trial_has_one_row_and_no_number() -> None:
    made = rows(exports.named("csv").write(factory.hopeless()).text)
    assert len(made) == 6
    assert {(row["verdict"], row["figure"], row["value"]) for row in made} == {("invalid", "", "")}


def test_formats_are_found_by_their_module() -> None:
    assert {"csv", "wrk"} <= set(exports.names())
    for name in exports.names():
        assert exports.named(name).what


def test_the_layout_of_wrk_says_what_it_left_out() -> None:
    made = exports.named("wrk").write(factory.hopeless())
    assert made.text.count("\n") == 1
    assert made.note == "left out: 6 trials, rejected or a control"
