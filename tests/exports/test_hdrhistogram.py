"""The percentile file and the interval log: HdrHistogram's own tools come to the same numbers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.judge.histogram import decode
from prony.report import exports
from tests.programs import program
from tests.report import factory

HGRM, HLOG = exports.named("hgrm"), exports.named("hlog")


def processed(log: str, folder: Path, *options: str) -> tuple[list[str], list[str]]:
    """The percentile lines and the interval lines that HistogramLogProcessor makes of a log."""
    file = folder / "trial.hlog"
    file.write_text(log, encoding="utf-8")
    command = [program("hdrhistogram"), "-i", str(file), "-o", str(folder / "out"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return lines((folder / "out.hgrm").read_text()), (folder / "out").read_text().splitlines()


def lines(text: str) -> list[str]:
    """Without comments on where it came from, and without the shape of the recorder."""
    left_out = ("#[Overall", "#[StartTime", "#[Buckets")
    return [line for line in text.splitlines() if not line.startswith(left_out)]


@pytest.mark.needs("hdrhistogram")
def test_the_percentile_file_is_what_hdrhistogram_writes_of_the_same_trial(tmp_path: Path) -> None:
    view = factory.foreign_load()
    made = HGRM.write(view).text
    percentiles, intervals = processed(HLOG.write(view).text, tmp_path)
    assert lines(made) == percentiles
    (trial,) = view.trials
    levels = [tuple(map(float, line.split()[:2])) for line in percentiles[2:] if not line.startswith("#")]
    below = max(value for value, level in levels if level <= 0.99)
    above = min(value for value, level in levels if level >= 0.99)
    assert below - 0.001 <= trial.figures["p99_ms"] <= above + 0.001
    assert len([line for line in intervals if " I:" in line]) == 1


@pytest.mark.needs("hdrhistogram")
def test_a_log_of_several_trials_is_read_by_the_tag_of_each(tmp_path: Path) -> None:
    view = factory.experiment(blocks=2)
    log = HLOG.write(view).text
    for trial in view.trials[:2]:
        chosen, _ = processed(log, tmp_path, "-tag", trial.record.id)
        alone = HGRM.write(factory.only(view, trial.record.id)).text
        assert lines(alone) == chosen


def test_the_log_keeps_every_sample_and_the_windows_stand_in_time() -> None:
    view = factory.experiment(blocks=2)
    rows = [line for line in HLOG.write(view).text.splitlines() if line.startswith("Tag=")]
    assert len(rows) == len(view.trials) == 6
    for row, trial in zip(rows, view.trials, strict=True):
        tag, start, length, longest, text = row.split(",")
        window = trial.record.evidence.engine.window if trial.record.evidence.engine else None
        assert window is not None
        assert window.service_time is not None
        assert tag == f"Tag={trial.record.id}"
        assert float(start) >= 0
        assert float(length) == pytest.approx(window.duration_s, abs=0.001)
        assert float(longest) == pytest.approx((window.service_time.max_ns or 0) / 1e6, abs=0.001)
        again = window.service_time.model_copy(update={"v2": text})
        assert decode(again).count == decode(window.service_time).count


@pytest.mark.parametrize("form", [HGRM, HLOG, exports.named("jtl")])
def test_a_result_without_a_trial_that_counts_has_no_distribution(form: exports.Format) -> None:
    with pytest.raises(UsageError):
        form.write(factory.hopeless())


def test_trials_that_do_not_count_and_requests_without_a_response_are_named() -> None:
    note = HLOG.write(factory.troubled()).note
    assert "left out: 2 trials" in note
