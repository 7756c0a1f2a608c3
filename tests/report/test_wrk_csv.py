"""The CSV of experiment A: exactly its columns, and figures that agree with the evidence."""

from __future__ import annotations

import csv
import io

import pytest

from prony.evidence.trial import TrialRecord
from prony_frontends._exports.wrk import to_csv
from tests.judge import factory as judge_factory
from tests.report import factory

PUBLISHED = [
    "timeStamp",
    "duration_microseconds",
    "num_requests",
    "total_bytes",
    "connect_errors",
    "read_errors",
    "write_errors",
    "error_status_codes",
    "timeouts",
    "requests_per_sec",
    "bytes_per_sec",
    "lat_min_microseconds",
    "lat_max_microseconds",
    "lat_mean_microseconds",
    "lat_stdev_microseconds",
    "lat_percentile_90_microseconds",
    "lat_percentile_95_microseconds",
    "lat_percentile_99_microseconds",
]


def record(**window: object) -> TrialRecord:
    evidence = judge_factory.window(judge_factory.healthy(), **window)
    return factory.record("a").model_copy(update={"evidence": evidence})


def test_the_columns_are_those_of_the_published_script() -> None:
    assert to_csv([]).strip().split(",") == PUBLISHED


def test_a_line_says_what_the_engine_counted() -> None:
    made = record(
        errors={"connect_refused": 2, "read": 3, "premature_close": 1, "timeout": 5, "write": 4},
        status={"200": 79_000, "404": 6, "503": 1},
        bytes_received=1_000_000,
    )
    (line,) = csv.DictReader(io.StringIO(to_csv([made])))
    window = made.evidence.engine.window if made.evidence.engine else None
    assert window is not None
    assert int(line["num_requests"]) == window.completed
    assert int(line["duration_microseconds"]) == pytest.approx(window.duration_s * 1e6)
    assert float(line["requests_per_sec"]) == pytest.approx(window.completed / window.duration_s, abs=0.01)
    assert float(line["bytes_per_sec"]) == pytest.approx(1_000_000 / window.duration_s, abs=0.01)
    counted = {name: int(line[name]) for name in PUBLISHED[4:9]}
    assert counted == {
        "connect_errors": 2,
        "read_errors": 4,
        "write_errors": 4,
        "error_status_codes": 7,
        "timeouts": 5,
    }
    assert window.service_time is not None
    assert float(line["lat_mean_microseconds"]) == pytest.approx(judge_factory.MEAN_MS * 1000, rel=0.01)
    tails = [float(line[f"lat_percentile_{p}_microseconds"]) for p in (90, 95, 99)]
    assert float(line["lat_min_microseconds"]) < tails[0] < tails[1] < tails[2]
    assert tails[2] <= float(line["lat_max_microseconds"])
    assert float(line["lat_stdev_microseconds"]) == pytest.approx(
        float(line["lat_mean_microseconds"]) * 0.307, rel=0.05
    ), "of a lognormal with sigma 0.3"


def test_what_was_not_counted_is_left_empty_and_a_trial_without_a_window_out() -> None:
    (line,) = csv.DictReader(io.StringIO(to_csv([record(bytes_received=None, service_time=None)])))
    assert line["total_bytes"] == line["lat_mean_microseconds"] == ""
    bare = record()
    bare = bare.model_copy(update={"evidence": bare.evidence.model_copy(update={"engine": None})})
    assert to_csv([bare]).count("\n") == 1
