"""A gate for a build server: JUnit that parsers read, Markdown in which no server's word has a meaning, a
drawing.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from prony.compare.bias import Source
from prony.compare.noninferiority import Change, FigureChange
from prony.report.gate import against, change_numbers, undecided_because
from prony.report.gate_files import junit, junit_fault, markdown, markdown_fault, svg
from prony.report.result import GateView, ResultView
from tests.report import factory
from tests.wording import assert_as_written

RATE = FigureChange("requests_per_s", Change.NO_WORSE, 0.995, 0.985, 1.006, 0.975, 1 / 1.03, 7, 0.985, 1.006)
TAIL = FigureChange("p99_ms", Change.WORSE, 1.08, 1.05, 1.11, 0.98, 1.03, 7, 1.04, 1.12)
CPU = FigureChange(
    "server_cpu_us_per_request", Change.CANNOT_TELL, 1.02, 1.0, 1.04, 0.95, 1.03, 7, 1.0, 1.04, why="noisy"
)
OPEN = FigureChange(
    "p99_ms", Change.CANNOT_TELL, 1.0, 0.99, 1.01, 0.95, 1.03, 7, 0.99, 1.06,
    sources=(Source("isolation", 0.0, 0.045), Source("network", 0.0, 0.005)),
)  # fmt: skip
"""Decided by its trials alone, but not against what other processes took."""
GATE = GateView(
    change=Change.WORSE,
    sentence="candidate is worse than base by more than 3 %: p99 +8.0 %",
    base="base",
    candidate="candidate",
    margin=0.03,
    figures=(RATE, TAIL, CPU),
    notes=(),
    blocks=7,
    most_blocks=12,
    budget_s=1200.0,
    baseline=None,
    experiments=None,
    advice=(),
)


def view(gate: GateView = GATE) -> ResultView:
    """With a trial in which the server said something."""
    made = factory.experiment()
    trials = list(made.trials)
    at = next(n for n, t in enumerate(trials) if (t.record.server, t.record.block) == ("spring-jetty", 2))
    failed = trials[at].record.model_copy(update={"failure": "the server said <b>5 %</b> | no more"})
    trials[at] = replace(trials[at], record=failed)
    made = factory.experiment(trials)
    (part,) = made.parts
    return replace(made, parts=(replace(part, gate=gate),))


def test_junit_has_a_case_per_figure_and_counts_them() -> None:
    root = ElementTree.fromstring(junit(view()).encode())
    (suite,) = root.findall("testsuite")
    assert [case.get("name") for case in suite.findall("testcase")] == [
        "requests_per_s",
        "p99_ms",
        "server_cpu_us_per_request",
    ]
    counts = {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "1", "errors": "0", "skipped": "1"}
    (failure,) = suite.findall("testcase/failure")
    assert "+8.0 % [+5.0 %, +11.0 %], at worst [+4.0 %, +12.0 %]" in (failure.get("message") or "")
    assert GATE.sentence in (suite.findtext("system-out") or "")


@pytest.mark.parametrize("change", [Change.CANNOT_TELL, Change.NOT_MEASURABLE])
def test_what_is_not_known_is_an_error_and_no_failure(change: Change) -> None:
    gate = replace(GATE, change=change, figures=(RATE, replace(CPU, change=change)))
    root = ElementTree.fromstring(junit(view(gate)).encode())
    assert root.find("testsuite/testcase/failure") is None
    errors = root.findall("testsuite/testcase/error")
    assert [error.get("type") for error in errors] == [change.value.replace(" ", "-")]


def test_a_fault_is_an_error_in_both_files() -> None:
    root = ElementTree.fromstring(junit_fault("the build of x failed: \x1b[31mred\x00 & <b>").encode())
    (error,) = root.findall("testsuite/testcase/error")
    assert "& <b>" in (error.get("message") or "")
    assert "&lt;b&gt;" in markdown_fault("the build of x failed: <b>")


def test_the_summary_escapes_what_servers_say() -> None:
    text = markdown(view(), "gate.svg")
    assert_as_written("gate", text)
    assert "<b>" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1
    evil = replace(GATE, candidate="x", sentence="@everyone ![](http://x) [a](javascript:b)")
    assert "@everyone" not in markdown(view(evil), "g.svg").replace("\\@everyone", "")
    assert "](javascript" not in markdown(view(evil), "g.svg").replace("\\]", "")


def test_the_drawing_is_svg_with_a_row_per_figure_and_worse_to_the_right() -> None:
    root = ElementTree.fromstring(svg(GATE))
    space = "{http://www.w3.org/2000/svg}"
    at = [float(x) for x in re.findall(r'transform="translate\(([\d.]+) ', svg(GATE))]
    assert len(at) == 3
    lines = [one.get("points", "").split(",")[0] for one in root.findall(f"{space}polyline")[:2]]
    zero, margin = map(float, lines)
    assert zero < at[0] < margin < at[1]  # half a per cent fewer requests; 8 % more at p99
    assert root.findtext(f"{space}title") == GATE.sentence


def test_a_drawing_without_any_interval_is_still_one() -> None:
    none = replace(
        RATE, ratio=None, low=None, high=None, worst_low=None, worst_high=None, change=Change.NOT_MEASURABLE
    )
    ElementTree.fromstring(svg(replace(GATE, figures=(none,))))
    assert "![" not in markdown(view(replace(GATE, figures=(none,))), "gate.svg"), "it shows nothing"


def test_a_source_that_stands_against_a_decision_is_named() -> None:
    found = against(OPEN)
    assert found is not None
    assert found.name == "isolation"
    assert "+4.7 %" in undecided_because(OPEN)
    assert change_numbers(OPEN) == "+0.0 % [−1.0 %, +1.0 %], at worst [−1.0 %, +6.0 %]"
    assert undecided_because(OPEN) in markdown(view(replace(GATE, figures=(OPEN,))), "gate.svg").replace(
        "\\", ""
    )


def test_where_trials_alone_do_not_decide_no_source_is_to_blame() -> None:
    assert against(replace(OPEN, high=1.05)) is None
    assert against(replace(OPEN, change=Change.NO_WORSE)) is None
    assert undecided_because(CPU) == "noisy"


def test_a_bound_that_nothing_holds_is_drawn_to_the_edge_and_said() -> None:
    wide = replace(OPEN, worst_high=None, sources=(Source("client", 0.0, math.inf),))
    assert change_numbers(wide).startswith("+0.0 % [−1.0 %, +1.0 %], at worst [−1.0 %, ")
    assert "%" not in undecided_because(wide)
    root = ElementTree.fromstring(svg(replace(GATE, figures=(wide,))))
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")[2:]
    thin, thick = ([float(at.split(",")[0]) for at in line.get("points", "").split()] for line in lines)
    assert thin[0] == thick[0]
    assert thin[1] > thick[1]


def test_no_bound_is_rounded_across_the_margin() -> None:
    near = replace(TAIL, low=1.03004, high=1.06, ratio=1.045, worst_low=1.03004, worst_high=1.06)
    assert change_numbers(near) == "+4.500 % [+3.004 %, +6.000 %]"
    near = replace(near, low=1.035, worst_low=1.03004)
    assert change_numbers(near) == ("+4.500 % [+3.500 %, +6.000 %], at worst [+3.004 %, +6.000 %]")
    assert change_numbers(replace(near, low=None, high=None)) == "+4.5 % (no interval)"
    assert change_numbers(replace(near, ratio=None)) == "no figure"


def test_an_interrupted_gate_is_none_that_cannot_tell() -> None:
    open_gate = replace(GATE, change=Change.CANNOT_TELL)
    cut = replace(view(open_gate), state="interrupted")
    heads = [markdown(one, "x.svg").splitlines()[0].partition(": ")[2] for one in (view(open_gate), cut)]
    assert heads == [Change.CANNOT_TELL.value, "interrupted"]
