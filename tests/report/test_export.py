"""The JSON: keys of the contract, nothing where nothing may be said, and its own schema."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from prony.judge.finding import Status
from prony.report.delivery import as_plain
from prony.report.export import to_json
from prony.report.result import ResultView, TrialView
from prony.report.schema import json_schema

from . import factory

SPREAD = {"median", "low", "high", "n", "median_low", "median_high", "bound"}


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
    assert (made["schema"], made["kind"], made["command"]) == (2, "result", "load")
    trial = trial_of(view)
    engine = view.trials[0].record.evidence.engine
    assert engine is not None
    assert engine.window is not None
    counters = trial["counters"]
    assert counters["requests"] == engine.window.completed
    assert counters["status_codes"] == {"200": engine.window.completed}
    assert counters["errors"] == {}
    assert counters["connections_opened"] == 10
    assert trial["figures"]["requests_per_s"] == pytest.approx(engine.window.completed / 10)
    assert trial["figures"]["client_cpu_share"] == pytest.approx(0.24)
    assert (trial["driver"], trial["duration_s"]) == ("io_uring", 10.0)
    assert set(trial["findings"][0]) >= {"check", "status", "value", "limit", "reason", "advice"}


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
    assert {"a", "b", "figure", "ratio", "low", "high", "verdict"} <= set(part["pairs"][0])
    assert {pair["figure"] for pair in part["pairs"]} >= {"requests_per_s", "peak_rss_mib"}
    assert cell["published"][0]["figures"]["published_requests_per_s"] == 1542


def test_an_invalid_trial_has_no_figures_and_says_why() -> None:
    made = checked(factory.hopeless())
    assert made["verdict"] == "invalid"
    for cell in made["parts"][0]["cells"]:
        assert cell["figures"] == {}
        for trial in cell["trials"]:
            assert (trial["figures"], trial["service_time"], trial["counts"]) == ({}, None, False)
            assert trial["rejected_because"].startswith("steady: throughput stepped")
            assert trial["counters"]["requests"] > 0


def test_a_failed_trial_is_invalid_whatever_its_checks_say() -> None:
    trial = trial_of(factory.without_engine())
    assert trial["verdict"] == "invalid"
    assert trial["counters"]["requests"] is None
    assert trial["driver"] is None


@pytest.mark.parametrize("make", [factory.bare, factory.hostile, factory.experiment])
def test_every_view_becomes_strict_json(make: Any) -> None:
    checked(make())


def test_nan_and_infinity_are_left_out() -> None:
    def strange(made: TrialView) -> TrialView:
        found = factory.trial(made.record, factory.finding("stall", Status.SUSPECT, value=math.nan))
        return replace(found, figures={**found.figures, "p99_ms": math.inf})

    trial = trial_of(factory.changed(factory.foreign_load(), strange))
    assert "p99_ms" not in trial["figures"]
    assert next(f for f in trial["findings"] if f["check"] == "stall")["value"] is None


def test_a_percentile_that_the_samples_do_not_support_is_null() -> None:
    few = factory.histogram(1_000_000, 1, seed=3, draws=15_000)
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
        asked = evidence.load.model_copy(update=load or {})
        evidence = evidence.model_copy(update={"engine": engine, "load": asked})
        return factory.trial(made.record.model_copy(update={"evidence": evidence}), *troubles)

    return factory.changed(factory.foreign_load(), change)


def test_an_open_loop_has_both_times() -> None:
    times = {"service_time": factory.histogram(1e6, 50_000, 1), "latency": factory.histogram(5e6, 50_000, 2)}
    trial = trial_of(measuring(times, {"model": "open", "offered_per_s": 5000.0}))
    assert trial["service_time"]["p50_ms"] == pytest.approx(1.0, rel=0.05)
    assert trial["latency"]["p50_ms"] == pytest.approx(5.0, rel=0.05)
    assert trial["figures"]["p50_ms"] == trial["latency"]["p50_ms"]
    refused = trial_of(measuring(times, {"model": "open"}, factory.STEP_FOUND))
    assert (refused["service_time"], refused["latency"]) == (None, None)


def test_a_closed_loop_has_no_latency_of_its_own() -> None:
    trial = trial_of(factory.foreign_load())
    assert trial["latency"] is None
    assert trial["service_time"]["p50_ms"] > 0


def test_every_schema_is_one() -> None:
    schema = json_schema()
    second = {"result", "results", "compare-results", "rejudge"}
    first = {"conformance", "dry-run", "doctor", "hosts-check", "prune", "servers", "trend", "trends"}
    assert set(schema) == second | first
    for name, one in schema.items():
        jsonschema.Draft202012Validator.check_schema(one)
        assert one["properties"]["schema"]["const"] == (2 if name in second else 1)
        assert one["properties"]["kind"]["const"] == name
