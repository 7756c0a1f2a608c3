"""The JSON: keys of the contract, nothing where nothing may be said, and its own schema."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from prony.judge.finding import BUDGETED, CAPACITY, Plateau
from prony.report.cell_view import TrialView
from prony.report.delivery import as_plain
from prony.report.export import to_json
from prony.report.result import ResultView
from prony.report.schema import json_schema

from . import factory
from .trial_evidence import histogram

SPREAD = {"median", "low", "high", "n", "median_low", "median_high", "bound"}
FIGURE = {"value", "low", "high", "bias_low", "bias_high", "plateau_low", "plateau_high", "horizon_s"}
BUDGET = {"source", "code", "figure", "low", "high", "assumption", "advice"}
UNCERTAINTY = {"low", "high", "bias_low", "bias_high"}
PAIR = {
    "a",
    "b",
    "figure",
    "ratio",
    "low",
    "high",
    "worst_low",
    "worst_high",
    "later_low",
    "later_high",
    "horizon_s",
    "claim",
    "at_least",
    "within",
    "better",
    "settles",
    "sources",
    "provided",
    "sentence",
    "window_sentence",
    "basis",
    "where",
}
GONE = {"verdict", "rejected", "rejected_because", "drift"}
"""Keys of schema 2."""


def checked(view: ResultView) -> dict[str, Any]:
    """Strict JSON that its own schema accepts."""
    text = json.dumps(as_plain(to_json(view)), allow_nan=False)
    again: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator(json_schema()[again["kind"]]).validate(again)
    return again


def trial_of(view: ResultView) -> dict[str, Any]:
    """The only trial of a result."""
    (part,) = checked(view)["parts"]
    (cell,) = part["cells"]
    (trial,) = cell["trials"]
    return dict(trial)


def test_a_load_has_the_keys_of_the_contract() -> None:
    view = factory.foreign_load()
    made = checked(view)
    assert list(made)[:3] == ["schema", "kind", "id"]
    assert (made["schema"], made["kind"], made["command"]) == (3, "result", "load")
    trial = trial_of(view)
    engine = view.trials[0].record.evidence.engine
    assert engine is not None
    assert engine.window is not None
    counters = trial["counters"]
    assert counters["requests"] == engine.window.completed
    assert counters["status_codes"] == {"200": engine.window.completed}
    assert counters["errors"] == {}
    assert counters["connections_opened"] == 10
    assert all(set(figure) == FIGURE for figure in trial["figures"].values())
    rate = trial["figures"]["requests_per_s"]
    assert rate["value"] == pytest.approx(engine.window.completed / 10)
    assert rate["low"] < rate["value"] < rate["high"]
    assert trial["figures"]["client_cpu_share"]["value"] == pytest.approx(0.24)
    assert (trial["conforms"], trial["not_conforming"], trial["budget"]) == (True, [], [])
    assert (trial["driver"], trial["duration_s"]) == ("io_uring", 10.0)
    assert set(trial["findings"][0]) >= {
        "check",
        "code",
        "conforms",
        "bias",
        "plateau",
        "provided",
        "value",
        "limit",
        "reason",
        "advice",
    }


def test_a_comparison_names_its_figures_as_every_other_result_does() -> None:
    made = checked(factory.troubled())
    (part,) = made["parts"]
    assert (made["command"], part["shape"]) == ("compare", "comparison")
    assert [server["address"] for server in made["servers"]] == list(factory.SERVERS)
    assert made["servers"][0]["versions"] == {"spring-boot": "3.5.16"}
    cell = part["cells"][0]
    assert cell["trials"][0]["reported"]["jvm.classes.loaded"] == 9610
    assert set(cell["figures"]["requests_per_s"]) == SPREAD
    assert cell["figures"]["requests_per_s"]["n"] == 3
    assert cell["figures"]["jvm_memory_used_mb"]["low"] > 100
    assert all(set(pair) == PAIR for pair in part["pairs"])
    assert {pair["figure"] for pair in part["pairs"]} >= {"requests_per_s", "peak_rss_mib"}
    assert cell["published"][0]["figures"]["published_requests_per_s"] == 1542


def test_a_trial_that_does_not_conform_has_no_figures_and_says_why() -> None:
    made = checked(factory.hopeless())
    assert (made["conforms"], made["parts"][0]["conforms"]) == (False, False)
    assert factory.FAILING.reason in made["sentence"]
    for cell in made["parts"][0]["cells"]:
        assert (cell["figures"], cell["uncertainty"], cell["budget"], cell["conforms"]) == ({}, {}, [], False)
        assert len(cell["not_conforming"]) == 1
        for trial in cell["trials"]:
            assert (trial["figures"], trial["service_time"], trial["counts"]) == ({}, None, False)
            assert not trial["conforms"]
            assert trial["not_conforming"] == [{"code": "errors.found", "reason": factory.FAILING.reason}]
            assert trial["counters"]["requests"] > 0


def test_a_failed_trial_does_not_conform_whatever_its_checks_say() -> None:
    trial = trial_of(factory.without_engine())
    assert not trial["conforms"]
    (why,) = trial["not_conforming"]
    assert why["code"] == "identity.ended_early"
    assert trial["counters"]["requests"] is None
    assert trial["driver"] is None


@pytest.mark.parametrize("make", [factory.bare, factory.hostile, factory.experiment])
def test_every_view_becomes_strict_json(make: Any) -> None:
    checked(make())


def test_nan_and_infinity_are_left_out() -> None:
    def strange(made: TrialView) -> TrialView:
        found = factory.trial(
            made.record, factory.finding("stall", provided="nothing waited", value=math.nan)
        )
        return replace(found, figures={**found.figures, "p99_ms": math.inf})

    trial = trial_of(factory.changed(factory.foreign_load(), strange))
    assert "p99_ms" not in trial["figures"]
    assert next(f for f in trial["findings"] if f["check"] == "stall")["value"] is None


def test_a_percentile_that_the_samples_do_not_support_is_null() -> None:
    few = histogram(1_000_000, 1, seed=3, draws=15_000)
    trial = trial_of(measuring({"service_time": few, "completed": 15_000}))
    assert trial["service_time"]["p99_ms"] is not None
    assert trial["service_time"]["p999_ms"] is None
    assert "p999_ms" not in trial["figures"]


def measuring(window: dict[str, Any], load: dict[str, Any] | None = None, *troubles: Any) -> ResultView:
    """A load whose window counted something else."""

    def change(made: TrialView) -> TrialView:
        evidence = made.record.evidence
        assert evidence.engine is not None
        assert evidence.engine.window is not None
        engine = evidence.engine.model_copy(
            update={"window": evidence.engine.window.model_copy(update=window)}
        )
        offered = evidence.load.model_copy(update=load or {})
        evidence = evidence.model_copy(update={"engine": engine, "load": offered})
        return factory.trial(made.record.model_copy(update={"evidence": evidence}), *troubles)

    return factory.changed(factory.foreign_load(), change)


def test_an_open_loop_has_both_times() -> None:
    times = {"service_time": histogram(1e6, 50_000, 1), "latency": histogram(5e6, 50_000, 2)}
    trial = trial_of(measuring(times, {"model": "open", "offered_per_s": 5000.0}))
    assert trial["service_time"]["p50_ms"] == pytest.approx(1.0, rel=0.05)
    assert trial["latency"]["p50_ms"] == pytest.approx(5.0, rel=0.05)
    assert trial["figures"]["p50_ms"]["value"] == trial["latency"]["p50_ms"]
    refused = trial_of(measuring(times, {"model": "open"}, factory.FAILING))
    assert (refused["service_time"], refused["latency"]) == (None, None)


def test_a_closed_loop_has_no_latency_of_its_own() -> None:
    trial = trial_of(factory.foreign_load())
    assert trial["latency"] is None
    assert trial["service_time"]["p50_ms"] > 0


def test_every_schema_is_one() -> None:
    schema = json_schema()
    third = {"result", "results", "compare-results", "rejudge"}
    first = {"conformance", "dry-run", "doctor", "hosts-check", "prune", "servers", "trends"}
    version = dict.fromkeys(third, 3) | {"trend": 2} | dict.fromkeys(first, 1)
    assert set(schema) - {"explanation", "difference", "cross-check"} == set(version)
    for one in schema.values():
        jsonschema.Draft202012Validator.check_schema(one)
    for name in version:
        one = schema[name]
        assert one["properties"]["schema"]["const"] == version[name]
        assert one["properties"]["kind"]["const"] == name


def keys(made: object) -> set[str]:
    """All keys, however deep."""
    if isinstance(made, dict):
        return set(made).union(*map(keys, made.values()))
    return set[str]().union(*map(keys, made)) if isinstance(made, list) else set()


@pytest.mark.parametrize("make", [factory.troubled, factory.hopeless, factory.foreign_load])
def test_no_key_of_the_schema_before_is_left(make: Any) -> None:
    assert not keys(checked(make())) & GONE


def test_a_budget_line_says_what_bends_which_figure_by_how_much() -> None:
    noisy = factory.NOISY.model_copy(update={"assumption": "what was taken was lost"})
    view = factory.changed(factory.foreign_load(), lambda made: factory.trial(made.record, noisy))
    trial = trial_of(view)
    lines = {line["figure"]: line for line in trial["budget"]}
    assert all(set(line) == BUDGET for line in trial["budget"])
    assert set(lines) == {"requests_per_s", "p99_ms"} <= {*BUDGETED, *CAPACITY}
    rate = lines["requests_per_s"]
    assert (rate["source"], rate["code"], rate["low"]) == ("isolation", "found", 0.0)
    assert (rate["high"], rate["assumption"]) == (pytest.approx(0.071), "what was taken was lost")
    assert rate["advice"] == factory.NOISY.advice
    assert trial["figures"]["requests_per_s"]["bias_high"] == pytest.approx(0.071)
    assert trial["figures"]["p99_ms"]["bias_low"] == pytest.approx(-0.071)
    assert trial["figures"]["mean_ms"]["bias_low"] == 0.0


def test_a_side_that_nothing_bounds_is_null() -> None:
    view = factory.changed(factory.foreign_load(), lambda made: factory.trial(made.record, factory.SATURATED))
    trial = trial_of(view)
    (line,) = trial["budget"]
    assert (line["source"], line["low"], line["high"]) == ("client", 0.0, None)
    rate = trial["figures"]["requests_per_s"]
    assert (rate["bias_low"], rate["bias_high"]) == (0.0, None)
    cell = checked(view)["parts"][0]["cells"][0]
    assert cell["uncertainty"]["requests_per_s"]["bias_high"] is None


def test_what_is_still_to_come_of_a_figure_has_a_horizon() -> None:
    moves = Plateau(low=-0.02, high=0.05, horizon_s=60.0)
    steady = factory.finding("steady").model_copy(update={"plateau": {"requests_per_s": moves}})
    view = factory.changed(
        factory.foreign_load(), lambda made: factory.trial(made.record, steady, factory.NOISY)
    )
    rate = trial_of(view)["figures"]["requests_per_s"]
    assert rate["horizon_s"] == 60.0
    assert rate["plateau_low"] == pytest.approx(rate["low"] * 0.98)
    assert rate["plateau_high"] == pytest.approx(rate["high"] * 1.071 * 1.05)
    none = trial_of(factory.foreign_load())["figures"]["requests_per_s"]
    assert (none["plateau_low"], none["plateau_high"], none["horizon_s"]) == (None, None, None)


def test_a_cell_says_how_far_its_figures_may_be_off_and_what_they_rest_on() -> None:
    cell = checked(factory.troubled())["parts"][0]["cells"][0]
    assert (cell["conforms"], cell["not_conforming"]) == (True, [])
    assert (cell["planned_trials"], cell["ended_trials"], cell["counting_trials"]) == (3, 3, 3)
    assert set(cell["plateau"]) == {"low", "high", "horizon_s"}
    assert all(set(one) == UNCERTAINTY for one in cell["uncertainty"].values())
    assert set(cell["uncertainty"]) >= {"requests_per_s", "p99_ms"}
    (line,) = [one for one in cell["budget"] if one["figure"] == "requests_per_s"]
    assert line["high"] == pytest.approx(1.071 ** (1 / 3) - 1), "of one trial in three"
    assert cell["provided"] == [{"check": "warm", "code": "found", "text": factory.BLIND.provided}]


def test_a_pair_has_its_claim_its_budget_and_what_would_settle_it() -> None:
    (part,) = checked(factory.troubled())["parts"]
    pair = next(pair for pair in part["pairs"] if pair["figure"] == "requests_per_s")
    assert (pair["claim"], pair["at_least"], pair["within"], pair["better"]) == ("open", None, None, None)
    assert set(pair["settles"]) == {"what", "seconds", "blocks"}
    assert pair["settles"]["what"] == "missing"
    assert {"missing", "steady"} <= {source["source"] for source in pair["sources"]}
    assert all(set(source) == {"source", "low", "high", "cancelled"} for source in pair["sources"])
    assert [one["check"] for one in pair["provided"]] == ["warm"]
    assert pair["horizon_s"] == 60.0


def test_a_difference_that_is_shown_has_its_near_end() -> None:
    (part,) = checked(factory.full())["parts"]
    shown = [pair for pair in part["pairs"] if pair["claim"] in ("shown", "shown_for_window")]
    assert shown
    for pair in shown:
        ends = ("later_low", "later_high") if pair["claim"] == "shown" else ("worst_low", "worst_high")
        low, high = (pair[end] for end in ends)
        assert pair["at_least"] == pytest.approx(low if pair["ratio"] > 1 else 1 / high)
        assert pair["at_least"] > 1.01
