"""The JSON: keys of the contract, null where nothing may be said, and its own schema."""

from __future__ import annotations

import json
import math
from typing import Any

import jsonschema
import pytest

from prony.judge.finding import Status
from prony.report.export import compare_json, load_json, to_json
from prony.report.model import ExperimentView, TrialView
from prony.report.schema import json_schema

from . import factory

LOAD_KEYS = {
    "verdict",
    "findings",
    "requests",
    "errors",
    "status_codes",
    "throughput_per_s",
    "service_time_ms",
    "latency_ms",
    "client",
    "connections_opened",
    "duration_s",
}
TIMES = ["min", "mean", "p50", "p90", "p95", "p99", "p999", "max"]


def checked(made: dict[str, Any]) -> dict[str, Any]:
    """Strict JSON that its own schema accepts."""
    text = json.dumps(made, allow_nan=False)
    again: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator(json_schema()[made["kind"]]).validate(again)
    return again


def test_load_has_the_keys_of_the_contract() -> None:
    view = factory.foreign_load()
    made = checked(to_json(view))
    assert list(made)[:3] == ["schema", "kind", "id"]
    assert made["schema"] == 1
    assert made["kind"] == "load"
    assert set(made) >= LOAD_KEYS
    assert list(made["service_time_ms"]) == TIMES
    assert set(made["client"]) == {"driver", "cpu_us_per_request", "cpu_busy"}
    assert set(made["findings"][0]) == {"check", "status", "value", "limit", "reason", "advice"}
    engine = view.trials[0].record.evidence.engine
    assert engine is not None
    assert engine.window is not None
    assert made["requests"] == engine.window.completed
    assert made["status_codes"] == {"200": engine.window.completed}
    assert made["errors"] == {}
    assert made["throughput_per_s"] == pytest.approx(engine.window.completed / 10)
    assert made["client"]["driver"] == "io_uring"
    assert made["client"]["cpu_busy"] == pytest.approx(0.24)
    assert made["connections_opened"] == 10
    assert made["duration_s"] == 10.0


def test_compare_has_the_keys_of_the_contract() -> None:
    made = checked(to_json(factory.troubled()))
    assert made["kind"] == "compare"
    assert [s["name"] for s in made["servers"]] == list(factory.SERVERS)
    server = made["servers"][0]
    assert server["version"] == "spring-boot 3.5.16"
    assert set(server["trials"][0]) >= LOAD_KEYS | {"startup", "server"}
    assert server["trials"][0]["startup"]["reported"]["jvm.classes.loaded"] == 9610
    assert server["summary"]["requests_per_s"]["n"] == 3
    assert server["summary"]["jvm_memory_used_mb"]["min"] > 100
    assert set(made["pairs"][0]) >= {"a", "b", "metric", "ratio", "ci_low", "ci_high", "verdict"}
    assert {p["metric"] for p in made["pairs"]} >= {"requests_per_s", "mean_ms"}
    assert made["published"]["figures"]["published_requests_per_s"]["spring-tomcat"] == 1542


def test_an_invalid_trial_has_no_figures_and_says_why() -> None:
    made = checked(to_json(factory.hopeless()))
    assert made["verdict"] == "invalid"
    for server in made["servers"]:
        assert server["summary"] == {}
        for trial in server["trials"]:
            assert trial["throughput_per_s"] is None
            assert set(trial["service_time_ms"].values()) == {None}
            assert trial["counts"] is False
            assert trial["rejected_because"].startswith("steady: throughput stepped")
            assert trial["requests"] > 0


def test_a_failed_trial_is_invalid_whatever_its_checks_say() -> None:
    made = checked(compare_json(factory.without_engine()))
    (trial,) = made["servers"][0]["trials"]
    assert trial["verdict"] == "invalid"
    assert trial["requests"] is None
    assert trial["client"]["driver"] is None


@pytest.mark.parametrize("make", [factory.bare, factory.hostile, factory.experiment])
def test_every_view_becomes_strict_json(make: Any) -> None:
    checked(to_json(make()))


def test_nan_and_infinity_are_null() -> None:
    made = factory.foreign_load().trials[0]
    strange = factory.finding("stall", Status.SUSPECT, value=math.nan)
    trial = factory.trial(made.record, strange)
    trial = TrialView(trial.record, trial.judgement, {**trial.figures, "p99_ms": math.inf})
    out = checked(load_json(trial))
    assert out["service_time_ms"]["p99"] is None
    assert next(f for f in out["findings"] if f["check"] == "stall")["value"] is None


def test_a_percentile_that_the_samples_do_not_support_is_null() -> None:
    base = factory.record("spring-tomcat")
    engine = base.evidence.engine
    assert engine is not None
    assert engine.window is not None
    few = factory.histogram(1_000_000, 1, seed=3, draws=500)
    window = engine.window.model_copy(update={"service_time": few, "completed": 500})
    evidence = base.evidence.model_copy(update={"engine": engine.model_copy(update={"window": window})})
    out = checked(load_json(factory.trial(base.model_copy(update={"evidence": evidence}))))
    assert out["service_time_ms"]["p99"] is not None
    assert out["service_time_ms"]["p999"] is None


def test_one_server_of_our_own_is_still_a_comparison() -> None:
    view: ExperimentView = factory.experiment(
        [factory.trial(factory.record("spring-tomcat"))], ["spring-tomcat"]
    )
    assert to_json(view)["kind"] == "compare"


def test_every_key_of_the_schema_that_needs_words_has_them() -> None:
    schema = json_schema()
    versions = {name: one["properties"]["schema"]["const"] for name, one in schema.items()}
    assert versions == {"load": 1, "compare": 1, "plan": 1, "rejudge": 2}
    for one in schema.values():
        jsonschema.Draft202012Validator.check_schema(one)


def test_an_open_loop_has_both_times() -> None:
    base = factory.record("http://127.0.0.1:8080")
    engine = base.evidence.engine
    assert engine is not None
    assert engine.window is not None
    window = engine.window.model_copy(
        update={
            "service_time": factory.histogram(1e6, 50_000, 1),
            "latency": factory.histogram(5e6, 50_000, 2),
        }
    )
    evidence = base.evidence.model_copy(
        update={
            "engine": engine.model_copy(update={"window": window}),
            "load": base.evidence.load.model_copy(update={"model": "open", "offered_per_s": 5000.0}),
        }
    )
    out = checked(load_json(factory.trial(base.model_copy(update={"evidence": evidence}))))
    assert out["service_time_ms"]["p50"] == pytest.approx(1.0, rel=0.05)
    assert out["latency_ms"]["p50"] == pytest.approx(5.0, rel=0.05)
    refused = factory.trial(base.model_copy(update={"evidence": evidence}), factory.STEP_FOUND)
    assert set(load_json(refused)["service_time_ms"].values()) == {None}


def test_a_closed_loop_has_no_latency_of_its_own() -> None:
    made = load_json(factory.foreign_load().trials[0])
    assert made["latency_ms"] is None
    assert made["service_time_ms"]["p50"] > 0
