"""JSON, Parquet, OpenMetrics and the documents of a search engine: what stands in them is what the result
says.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from prony.judge.finding import Bias, Kind
from prony.report import exports
from prony.report.delivery import as_plain
from prony.report.export import to_json
from prony_serve.documents import EXPERIMENTS, INTERVALS, LONGEST, TRIALS, documents
from prony_serve.metrics.figures import in_base_units
from tests.programs import program
from tests.report import factory

PAGE = Path(__file__).resolve().parents[2] / "docs" / "exports.md"


def test_every_format_has_a_name_a_suffix_and_words() -> None:
    rows = re.findall(
        r"^\| `(\w+)` ", PAGE.read_text(encoding="utf-8").partition("\n## `--metrics")[0], re.MULTILINE
    )
    assert sorted(rows) == sorted([*exports.names(), "prony"]), "the table of docs/exports.md"
    for name in exports.names():
        form = exports.named(name)
        assert form.what
        assert form.suffix.startswith(".")


def test_a_name_that_a_spreadsheet_would_calculate_is_text() -> None:
    names = ("=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\tx", "plain=1")
    trials = [factory.trial(factory.record(name)) for name in names]
    view = factory.experiment(trials, names, blocks=1, published=False)
    text = exports.named("csv").write(view).text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["server"] for row in rows} == {*(f"'{name}" for name in names[:-1]), names[-1]}
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "@", "\t"))]


def test_json_is_what_the_commands_print() -> None:
    view = factory.troubled()
    assert json.loads(exports.named("json").write(view).text) == as_plain(to_json(view))


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="no pyarrow: make setup")
def test_parquet_holds_the_rows_of_the_csv_with_types(tmp_path: Path) -> None:
    from pyarrow import parquet

    view = factory.troubled()
    file = tmp_path / "result.parquet"
    file.write_bytes(b"".join(exports.named("parquet").write(view).pieces()))
    table = parquet.read_table(file)
    assert str(table.schema.field("value").type) == "double"
    assert str(table.schema.field("started").type) == "timestamp[us, tz=UTC]"
    assert table.schema.metadata[b"prony.experiment"] == view.id.encode()
    found = table.to_pylist()
    text = exports.named("csv").write(view).text
    assert len(found) == text.count("\n") - 1
    for trial in view.trials:
        mine = {row["figure"]: row["value"] for row in found if row["trial"] == trial.record.id}
        if not trial.conforms:
            assert mine == {"": None}
        else:
            assert {name: mine[name] for name in trial.figures} == dict(trial.figures)


def test_without_pyarrow_parquet_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(Exception, match=re.escape("pip install 'prony[parquet]'")):
        exports.named("parquet").write(factory.experiment(blocks=1))


def test_figures_are_in_base_units() -> None:
    assert in_base_units("p99_ms") == ("p99_seconds", 1e-3)
    assert in_base_units("requests_per_s") == ("requests_per_second", 1.0)
    assert in_base_units("peak_rss_mib") == ("peak_rss_bytes", 2**20)
    assert in_base_units("server_cpu_us_per_request") == ("server_cpu_per_request_seconds", 1e-6)
    assert in_base_units("time_to_ready_s") == ("time_to_ready_seconds", 1.0)
    assert in_base_units("gc_share") == ("gc_ratio", 1.0)


def test_openmetrics_has_the_figures_at_the_ends_of_trials_and_the_seconds_of_runs() -> None:
    view = factory.experiment(blocks=2)
    text = exports.named("openmetrics").write(view).text
    assert text.endswith("# EOF\n")
    trial = view.trials[0]
    (line,) = [
        line
        for line in text.splitlines()
        if line.startswith("prony_trial_p99_seconds{") and f'trial="{trial.record.id}"' in line
    ]
    value, at = line.rsplit("} ", 1)[1].split()
    assert float(value) == pytest.approx(trial.figures["p99_ms"] / 1000)
    assert float(at) == pytest.approx(trial.record.ended_at.timestamp(), abs=0.001)
    seconds = [line for line in text.splitlines() if line.startswith("prony_row_completed_per_second{")]
    engines = [one.record.evidence.engine for one in view.trials]
    assert len(seconds) == sum(len(engine.rows) for engine in engines if engine is not None)
    assert not any(name in text for name in ("_ms ", "_ms{"))


@pytest.mark.e2e
@pytest.mark.needs("prometheus")
def test_prometheus_takes_the_file_in(tmp_path: Path) -> None:
    view = factory.experiment(blocks=2)
    file = tmp_path / "result.om"
    file.write_text(exports.named("openmetrics").write(view).text, encoding="utf-8")
    promtool = Path(program("prometheus")).with_name("promtool")
    made = subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", file, tmp_path / "data"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    (tmp_path / "data" / "wal").mkdir()  # without it there is nothing that could be opened
    dumped = subprocess.run(
        [promtool, "tsdb", "dump", tmp_path / "data"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert dumped.returncode == 0, dumped.stderr
    trials = [line for line in dumped.stdout.splitlines() if '"prony_trial_requests_per_second"' in line]
    assert len(trials) == len(view.trials)
    for trial in view.trials:
        (line,) = [one for one in trials if f'"{trial.record.id}"' in one]
        assert float(line.split("} ")[1].split()[0]) == pytest.approx(trial.figures["requests_per_s"])


def test_documents_are_the_same_whenever_they_are_made_and_every_id_is_there_once() -> None:
    view = factory.troubled()
    made, again = list(documents(view)), list(documents(view))
    assert made == again
    assert max(Counter(one.id for one in made).values()) == 1
    by_stream = Counter(one.stream for one in made)
    assert by_stream[EXPERIMENTS] == 1
    assert by_stream[TRIALS] == len(view.trials)
    rows = [len(t.record.evidence.engine.rows) for t in view.trials if t.record.evidence.engine]
    assert by_stream[INTERVALS] == sum(rows)
    assert all("@timestamp" in one.body for one in made)


def test_a_trial_document_holds_figures_only_where_they_may_be_printed() -> None:
    view = factory.troubled()
    found = {one.body["trial"]["id"]: one.body for one in documents(view) if one.stream == TRIALS}
    for trial in view.trials:
        body = found[trial.record.id]
        assert (body["conforms"], bool(body["figures"])) == (trial.conforms, trial.conforms)
        assert bool(body["not_conforming"]) == (not trial.conforms)
        if trial.conforms:
            assert body["figures"]["requests_per_s"] == trial.figures["requests_per_s"]
            known = trial.estimates["requests_per_s"]
            said = body["uncertainty"]["requests_per_s"]
            assert (said["low"], said["high"]) == (known.low, known.high)
            assert (said["bias_low"], said["bias_high"]) == (known.bias_low, known.bias_high)
        assert {one["check"] for one in body["findings"]} == {
            one.check for one in trial.judgement.findings if one.kind is not Kind.FINE
        }


def test_ten_megabytes_of_a_finding_become_a_document_that_is_taken() -> None:
    long = "x" * 10_000_000
    huge = factory.finding("content", bias={"requests_per_s": Bias(low=-0.1)}, reason=long, advice=long)
    view = factory.experiment([factory.trial(factory.record("spring-tomcat"), huge)], ["spring-tomcat"])
    (body,) = [one.body for one in documents(view) if one.stream == TRIALS]
    (finding,) = [one for one in body["findings"] if one["check"] == "content"]
    assert len(finding["reason"]) < LONGEST + 100
    assert finding["reason"].endswith(f"({10_000_000 - LONGEST} more characters)")
    assert len(json.dumps(body)) < 100_000


def test_a_bulk_body_is_an_action_and_a_document_in_turn() -> None:
    view = factory.hostile()
    text = exports.named("elasticsearch").write(view).text
    lines = [json.loads(line) for line in text.splitlines()]
    assert [set(line) for line in lines[::2]] == [{"create"}] * (len(lines) // 2)
    expected = [(one.stream, one.id) for one in documents(view)]
    assert [(line["create"]["_index"], line["create"]["_id"]) for line in lines[::2]] == expected
