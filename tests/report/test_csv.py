"""The tidy table: a row per trial and figure, and every format found by its name."""

from __future__ import annotations

import csv
import io

from prony.judge.finding import Bias
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
    assert (first["block"], first["kind"], first["conforms"]) == ("1", "trial", "true")
    assert {row["unit"] for row in made if row["figure"] == "p99_ms"} == {"ms"}


def test_a_row_says_how_well_its_figure_is_known() -> None:
    saturated = factory.finding("client", bias={"requests_per_s": Bias(low=-0.01, high=None)})
    view = factory.experiment([factory.trial(factory.record("spring-tomcat"), saturated)], ["spring-tomcat"])
    made = {row["figure"]: row for row in rows(exports.named("csv").write(view).text)}
    estimate = view.trials[0].estimates["requests_per_s"]
    rate = made["requests_per_s"]
    assert (float(rate["low"]), float(rate["high"])) == (estimate.low, estimate.high)
    assert (float(rate["bias_low"]), rate["bias_high"]) == (-0.01, ""), "not bounded is empty"
    assert (float(made["p99_ms"]["bias_low"]), float(made["p99_ms"]["bias_high"])) == (0.0, 0.0)


def test_a_trial_that_does_not_conform_has_one_row_and_no_number() -> None:
    made = rows(exports.named("csv").write(factory.hopeless()).text)
    assert len(made) == 6
    assert {(row["conforms"], row["figure"], row["value"]) for row in made} == {("false", "", "")}


def test_formats_are_found_by_their_module() -> None:
    assert {"csv", "wrk"} <= set(exports.names())
    for name in exports.names():
        assert exports.named(name).what


def test_the_layout_of_wrk_says_what_it_left_out() -> None:
    made = exports.named("wrk").write(factory.hopeless())
    assert made.text.count("\n") == 1
    assert "6 trials" in made.note
