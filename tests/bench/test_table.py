"""How rows are shown."""

from __future__ import annotations

from bench.cases import CASES, EPOLL
from bench.summary import memory, rows
from bench.table import markdown, sheets
from tests.bench.samples import LOUD, run

CLOSED = next(case for case in CASES if case.name == "closed-64")


def test_a_line_says_everything_about_its_tool() -> None:
    runs = {
        ("closed-64", "wrk"): {at: run(8.0) for at in (1, 2, 3)},
        ("closed-64", EPOLL): {1: run(5.0), 2: run(6.0), 3: run(7.0, disturbance=LOUD)},
    }
    (sheet,) = sheets(
        rows([CLOSED], ["wrk", "h2load", EPOLL], runs, {("closed-64", "h2load"): "not here"}), []
    )
    wrk, h2load, own = (dict(zip(sheet.head, line, strict=True)) for line in sheet.lines)
    assert wrk["CPU per request, µs"] == "8.00 (8.00 to 8.00)"
    assert wrk["÷ wrk (95 % interval)"] == "1"
    assert wrk["claim - count"] == "-10"
    assert wrk["sent bytes per request"] == "41"
    assert (h2load["requests/s"], h2load["remarks"]) == ("-", "not here")
    assert own["CPU per request, µs"] == "6.00 (5.00 to 7.00)"
    assert own["remarks"] == (
        "no verdict: disturbed; disturbed in 1 of 3 rounds, "
        "others used 40 % of the client's CPU (most of all rustc)"
    )


def test_two_rounds_are_too_few_for_an_interval() -> None:
    runs = {("closed-64", tool): {1: run(8.0), 2: run(8.0)} for tool in ("wrk", EPOLL)}
    (sheet,) = sheets(rows([CLOSED], ["wrk", EPOLL], runs, {}), [])
    assert "1.00 (too few rounds)" in sheet.lines[1]
    assert "aim 0.80: not decided" in sheet.lines[1]


def test_markdown_has_one_table_per_sheet() -> None:
    large = next(case for case in CASES if case.name == "closed-1000")
    found = rows(
        [CLOSED, large], ["wrk"], {("closed-1000", "wrk"): {1: run()}}, {("closed-64", "wrk"): "a|b"}
    )
    text = markdown(sheets(found, memory(found)))
    assert text.count("\n| --- |") == 3
    assert "### Peak resident memory at 1,000 connections" in text
    assert "a\\|b" in text


def test_a_server_that_counts_nothing_is_said() -> None:
    case = next(found for found in CASES if found.name == "h2c-64x1-nghttpd")
    found = rows([case], ["h2load", EPOLL], {(case.name, EPOLL): {1: run(whole=None)}}, {})
    line = next(line for line in sheets(found, [])[0].lines if line[0] == EPOLL)
    assert "not counted" in line
    assert found[1].faults == ()
