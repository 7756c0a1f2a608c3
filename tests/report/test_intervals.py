"""Percentiles with their intervals, failed requests among them, from a stored trial to every output."""

from __future__ import annotations

import csv
import io

import pytest
from rich.console import Console

from prony.report.cell_view import TrialView, spread
from prony.report.export import to_json
from prony.report.exports import csv as table
from prony.report.intervals import between, failed_lines, heading, over_trials, times_lines, trial_cell
from prony.report.result import ResultView
from prony.report.terminal import render

from . import factory


def failing(count: int) -> ResultView:
    """A load of 20,000 responses of 2 ms each, and so many requests without one."""

    def change(made: TrialView) -> TrialView:
        return factory.trial(factory.constant(made.record, 2.0, failed=count))

    return factory.changed(factory.foreign_load(), change)


def printed(view: ResultView) -> str:
    stream = io.StringIO()
    render(view, Console(file=stream, width=120), details=True)
    return stream.getvalue()


def test_a_trial_prints_each_percentile_with_its_interval() -> None:
    (trial,) = factory.foreign_load().trials
    percentile, cell = trial.percentiles["p99_ms"], trial_cell("p99_ms", trial)
    assert percentile.low_ms < percentile.value_ms < percentile.high_ms
    assert cell.text == f"{percentile.value_ms:.3f}"
    assert cell.spread == f"[{percentile.low_ms:.3f}, {percentile.high_ms:.3f}]"
    assert f"{cell.text} {cell.spread}" in printed(factory.foreign_load())
    assert trial_cell("requests_per_s", trial).spread == ""


def in_two_halves(made: TrialView) -> TrialView:
    """Seconds of which every other one is three times as slow, so that p99 is bounded by nothing."""
    engine = made.record.evidence.engine
    assert engine is not None
    rows = tuple(
        row.model_copy(update={"p50_ns": ms * 10**6, "p90_ns": 2 * ms * 10**6, "max_ns": 3 * ms * 10**6})
        for at, row in enumerate(engine.rows)
        for ms in [15 if at % 2 else 1]
    )
    engine = engine.model_copy(update={"rows": rows})
    evidence = made.record.evidence.model_copy(update={"engine": engine})
    return factory.trial(made.record.model_copy(update={"evidence": evidence}))


def test_an_upper_end_that_nothing_bounds_is_open_everywhere() -> None:
    view = factory.changed(factory.foreign_load(), in_two_halves)
    (trial,) = view.trials
    percentile, cell = trial.percentiles["p99_ms"], trial_cell("p99_ms", trial)
    assert percentile.open
    assert cell.text == f"{percentile.value_ms:.3f}"
    assert cell.spread == f"[{percentile.low_ms:.3f}, open)"
    assert f"{cell.text} {cell.spread}" in printed(view)
    assert to_json(view).parts[0].cells[0].trials[0].percentiles["p99_ms"].high_ms is None
    rows = {row["figure"]: row for row in csv.DictReader(io.StringIO(table.write(view).text))}
    assert float(rows["p99_ms"]["low"]) <= float(rows["p99_ms"]["value"])
    assert rows["p99_ms"]["high"] == ""


def test_a_percentile_among_failed_requests_is_a_lower_bound_everywhere() -> None:
    view = failing(100)  # 0.5 %: p99.9 falls among them, p99 does not
    (trial,) = view.trials
    assert trial.figure("p999_ms") is None
    assert trial_cell("p999_ms", trial).text == "> 2.000"
    text = printed(view)
    assert "> 2.000" in text
    assert "100 requests without a response (0.498 %)" in text
    out = to_json(view).parts[0].cells[0]
    p999 = out.trials[0].percentiles["p999_ms"]
    assert (p999.value_ms, p999.high_ms) == (None, None)
    assert p999.above_ms == pytest.approx(2.0)
    assert p999.responses_ms == pytest.approx(2.0, rel=1e-3)
    assert out.trials[0].percentiles["p99_ms"].value_ms == pytest.approx(2.0, rel=1e-3)
    assert out.figures["p999_ms"].bound == pytest.approx(2.0)
    rows = {row["figure"]: row for row in csv.DictReader(io.StringIO(table.write(view).text))}
    assert rows["p999_ms"]["value"].startswith("> 2.0")
    assert float(rows["p99_ms"]["low"]) <= float(rows["p99_ms"]["value"])
    rate = rows["requests_per_s"]
    assert float(rate["low"]) < float(rate["value"]) < float(rate["high"])
    assert rows["server_cpu_us_per_request"]["low"] == ""


def test_where_nothing_failed_nothing_is_reported_of_it() -> None:
    view = failing(0)
    assert times_lines(view.trials[0]) == ()
    assert failed_lines(view.cells) == []
    (lines,) = failed_lines(failing(100).cells)
    assert "p50 2 ms, p99 2 ms" in str(lines)
    assert str(lines) not in printed(view)


def test_the_median_over_trials_has_an_interval_from_six_on_and_a_range_below() -> None:
    few, many = spread([1.0, 2.0, 3.0]), spread([float(n) for n in range(1, 10)])
    assert few is not None
    assert many is not None
    assert between("p99_ms", few) == "1.000–3.000"
    assert between("p99_ms", many) == "[2.000, 8.000]"
    assert ("(min–max)" in heading([few]), "[95 % " in heading([many, None])) == (True, True)


def test_trials_whose_percentile_is_beyond_are_the_longest() -> None:
    some = spread([1.0, 2.0, 3.0], [0.5])
    assert some is not None
    assert (some.n, some.high, some.bound) == (4, 3.0, 3.0)
    assert between("p99_ms", some) == "1.000–> 3.000"
    assert over_trials("p99_ms", some, some.median) == "2.500"
    most = spread([1.0], [30.0, 40.0])
    assert most is not None
    assert over_trials("p99_ms", most, most.median) == "> 30.000"
    half = spread([1.0, 2.0], [30.0, 40.0])
    assert half is not None
    assert over_trials("p99_ms", half, half.median) == "> 30.000", "between a value and no value is none"


def test_response_times_stand_above_service_times_wherever_connections_were_opened() -> None:
    def connecting(made: TrialView) -> TrialView:
        record = factory.constant(made.record, 2.0)
        engine = record.evidence.engine
        assert engine is not None
        assert engine.window is not None
        times = factory.constant(made.record, 7.0).evidence.engine
        assert times is not None
        assert times.window is not None
        window = engine.window.model_copy(update={"response_time": times.window.service_time})
        report = engine.model_copy(update={"window": window})
        evidence = record.evidence.model_copy(update={"engine": report})
        return factory.trial(record.model_copy(update={"evidence": evidence}))

    view = factory.changed(factory.foreign_load(), connecting)
    (lines,) = times_lines(view.trials[0])
    assert lines.endswith("service time p50 2 ms, p99 2 ms")
    trial = to_json(view).parts[0].cells[0].trials[0]
    assert trial.response_time is not None
    assert trial.service_time is not None
    assert trial.response_time.p99_ms == trial.figures["p99_ms"].value == pytest.approx(7.0, rel=1e-3)
    service = trial.figures["service_time_p99_ms"].value
    assert trial.service_time.p99_ms == service == pytest.approx(2.0, rel=1e-3)
    figures = {row["figure"] for row in csv.DictReader(io.StringIO(table.write(view).text))}
    assert "service_time_p99_ms" in figures
