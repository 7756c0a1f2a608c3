"""JMeter's log of samples: as many as there were, with the times of the histogram; JMeter's own report
generator reads it and comes to the trial's figures.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.report import exports
from prony.report.cell_view import TrialView
from prony.report.exports.csv import line
from prony.report.result import ResultView
from tests.programs import program
from tests.report import factory

JTL = exports.named("jtl")


def rows(view: ResultView) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(JTL.write(view).text, newline="")))


def one(**window: object) -> ResultView:
    """A load on a running server, with another window."""

    def change(made: TrialView) -> TrialView:
        engine = made.record.evidence.engine
        assert engine is not None
        assert engine.window is not None
        changed = engine.model_copy(update={"window": engine.window.model_copy(update=window)})
        evidence = made.record.evidence.model_copy(update={"engine": changed})
        return factory.trial(made.record.model_copy(update={"evidence": evidence}))

    return factory.changed(factory.foreign_load(), change)


def test_there_is_a_sample_for_each_request_with_the_times_of_the_histogram() -> None:
    view = factory.foreign_load()
    (trial,) = view.trials
    made = rows(view)
    window = trial.record.evidence.engine.window if trial.record.evidence.engine else None
    assert window is not None
    assert window.service_time is not None
    assert len(made) == window.service_time.count
    elapsed = sorted(int(row["elapsed"]) for row in made)
    assert elapsed[int(len(elapsed) * 0.5)] == pytest.approx(trial.figures["p50_ms"], abs=1)
    assert elapsed[int(len(elapsed) * 0.99)] == pytest.approx(trial.figures["p99_ms"], abs=1)
    assert {row["responseCode"] for row in made} == {"200"}
    assert {row["success"] for row in made} == {"true"}


def test_a_name_with_any_line_end_is_one_field() -> None:
    """Python's own writer leaves a lone carriage return unquoted, and its reader then refuses the file."""
    name = 'a\rb\nc\r\nd,"e"'
    view = factory.changed(
        factory.foreign_load(),
        lambda trial: factory.trial(trial.record.model_copy(update={"workload": name})),
    )
    made = rows(view)
    assert {row["label"] for row in made} == {name}
    assert len(made) > 1
    assert list(csv.reader(io.StringIO(line(["x", name, 1.5, None]), newline=""))) == [["x", name, "1.5", ""]]
    assert line(["a\rb", "c"]) == '"a\rb",c\n'


def test_samples_end_in_the_window_and_in_the_seconds_of_its_rows() -> None:
    view = factory.foreign_load()
    (trial,) = view.trials
    engine = trial.record.evidence.engine
    assert engine is not None
    assert engine.window is not None
    opened = engine.ready.started_unix_ns / 1e6 + engine.window.opened_ms
    seconds = Counter(
        int((int(row["timeStamp"]) + int(row["elapsed"]) - opened) // 1000) for row in rows(view)
    )
    inside = [row.completed for row in engine.rows if row.in_window]
    total = sum(seconds.values())
    for second, completed in enumerate(inside):
        assert seconds[second] == pytest.approx(total * completed / sum(inside), rel=0.05)


def test_errors_are_counted_by_kind() -> None:
    view = one(
        failed=30, errors={"timeout": 0, "read": 20, "expect_status": 10}, status={"200": 70, "500": 10}
    )
    made = rows(view)
    wrong = Counter(row["failureMessage"] for row in made if row["success"] == "false")
    assert wrong == {"read": 20, "expect status": 10}
    assert {row["responseCode"] for row in made if row["failureMessage"] == "read"} == {
        "Non HTTP response code: read"
    }
    assert sum(row["responseCode"] == "500" for row in made) == 10


@pytest.mark.e2e
@pytest.mark.needs("jmeter")
def test_jmeters_report_generator_comes_to_the_figures_of_the_trial(tmp_path: Path) -> None:
    view = factory.foreign_load()
    (trial,) = view.trials
    log = tmp_path / "trial.jtl"
    log.write_text(JTL.write(view).text, encoding="utf-8")
    command = [program("jmeter"), "-g", str(log), "-o", str(tmp_path / "report"), "-j", str(tmp_path / "log")]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"JVM_ARGS": "-Xmx512m"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "report" / "statistics.json").read_text())
    total = found["Total"]
    assert total["sampleCount"] == len(rows(view))
    assert total["errorCount"] == 0
    assert total["medianResTime"] == pytest.approx(trial.figures["p50_ms"], abs=1)
    assert total["pct3ResTime"] == pytest.approx(trial.figures["p99_ms"], abs=1.5)
    assert total["throughput"] == pytest.approx(trial.figures["requests_per_s"], rel=0.05)


@pytest.mark.parametrize("counted", [{"completed": 2**63}, {"failed": 10**15}])
def test_counts_that_no_memory_holds_are_refused(counted: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="50,000,000"):
        list(JTL.write(one(**counted)).pieces())


@pytest.mark.parametrize(
    "counted", [{"status": {"200": 2**64, "404": 2**63}}, {"errors": {"expect_body": 2**63}}]
)
def test_counts_beyond_the_requests_end_with_them(counted: dict[str, dict[str, int]]) -> None:
    assert len(rows(one(**counted))) == len(rows(one()))
