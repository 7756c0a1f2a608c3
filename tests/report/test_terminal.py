"""The result on a terminal: the answer, the details in their order, widths, colour, and that what does not
conform prints no figure.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from prony.compare.claim import Claim
from prony.evidence.engine import ScriptReport
from prony.report.cell_view import TrialView
from prony.report.result import ResultView
from prony.report.terminal import render

from . import factory


def shown(view: ResultView, width: int = 140, *, details: bool = True, **console: Any) -> str:
    stream = io.StringIO()
    render(view, Console(file=stream, width=width, **console), details=details)
    return stream.getvalue()


def lines_with(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip().startswith(start)]


def test_without_details_the_answer_is_all_there_is() -> None:
    text = shown(factory.troubled(), details=False)
    assert "Start-up" not in text
    assert "Checks" not in text
    assert text.strip() in shown(factory.troubled()).replace(
        f"· {factory.ID}\n", f"· all of it: prony results show {factory.ID} --details\n"
    ), "the same answer stands above the details"


def test_every_line_of_a_quick_run_says_so() -> None:
    text = shown(factory.experiment())
    table = text[text.index("Start-up") : text.index("Pair by pair")]
    figures = [line for line in table.splitlines() if re.search(r"\d|server-cpu", line)]
    figures = [line for line in figures if not line.startswith(("Start-up", "As the published"))]
    assert len(figures) > 15
    assert all(line.endswith("quick") for line in figures)
    sentences = text[text.index("Pair by pair") : text.index("Published, as")]
    assert sentences.count("[quick]") >= 9
    assert "quick" not in shown(factory.experiment(quick=False, blocks=5))


def test_published_lines_are_not_marked_as_ours() -> None:
    text = shown(factory.experiment())
    assert all(not line.endswith("quick") for line in lines_with(text, "jvm.memory.used, published"))
    assert all(line.endswith("quick") for line in lines_with(text, "jvm.memory.used, measured"))


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
@pytest.mark.parametrize("make", [factory.experiment, factory.troubled, factory.bare, factory.hostile])
def test_no_line_is_wider_than_the_terminal(make: object, width: int) -> None:
    assert callable(make)
    for line in shown(make(), width).splitlines():
        assert cell_len(line) <= width, line
        assert line == line.rstrip()


def test_narrow_terminals_put_the_range_below_the_median() -> None:
    text = shown(factory.experiment(), 80).partition("Steady load")[2]
    at = next(n for n, line in enumerate(text.splitlines()) if line.strip().startswith("requests/s"))
    median, below = text.splitlines()[at : at + 2]
    assert "–" not in median
    assert len(re.findall(r"\([\d,]+–[\d,]+\)", below)) == 3


def test_many_servers_are_split_into_tables_that_fit() -> None:
    names = [f"server-{n}" for n in range(7)]
    trials = [factory.trial(factory.record(n, b, p)) for b in range(2) for p, n in enumerate(names)]
    text = shown(factory.experiment(trials, names, published=False), 80)
    assert text.count("Start-up ") >= 2, "the answer's own table is above them"
    assert all(name in text for name in names)


def test_no_colour_when_not_a_terminal_and_none_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in shown(factory.troubled())
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    colours = re.compile(r"\x1b\[[0-9;]*(3[0-7]|38;)")
    assert colours.search(shown(factory.troubled(), force_terminal=True))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours.search(shown(factory.troubled(), force_terminal=True))


def test_where_nothing_conforms_no_figure_is_printed() -> None:
    text = shown(factory.hopeless())
    assert factory.FAILING.reason in text.lstrip().splitlines()[0]
    table = text[text.index("median") : text.index("Pair by pair")]
    assert "no figure" in table
    assert not re.search(r"\d,\d{3}", table)
    assert text.count(factory.FAILING.reason) >= 6
    assert factory.FAILING.advice in text


def test_a_source_that_bends_one_side_says_nothing_of_the_other() -> None:
    (row,) = lines_with(shown(factory.troubled()).partition("Evidence")[2], "other work on")
    assert re.search(r" \+2\.4 % ", row)
    assert "−" not in row


def test_markup_in_names_and_texts_is_printed_as_it_is() -> None:
    text = shown(factory.hostile(), 200)
    assert factory.HOSTILE in text
    assert "[bold]jetty[/bold]" in text


def test_absent_and_infinite_figures_are_dashes_or_left_out() -> None:
    text = shown(factory.bare())
    assert "nan" not in text.lower()
    assert "inf " not in text
    assert "p50" not in text[: text.index("Evidence")]


def test_one_server_has_no_pairs() -> None:
    trials = [factory.trial(factory.record("spring-tomcat", b)) for b in range(3)]
    view = factory.experiment(trials, ["spring-tomcat"])
    assert view.conforms
    assert not view.parts[0].pairs
    assert shown(view)
    assert "Traceback" not in shown(factory.without_engine())


def test_the_best_is_marked_only_on_a_terminal_that_can_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    view = factory.experiment()
    sure = [
        replace(p, claim=Claim.SHOWN, better="spring-undertow")
        for p in view.parts[0].pairs
        if "spring-undertow" in (p.a, p.b)
    ]
    text = shown(factory.with_pairs(view, sure), force_terminal=True)
    rows = [line for line in text.splitlines() if "spring-undertow" in line or "requests/s" in line]
    assert any(re.search(r"\x1b\[1;4m8,\d{3}\x1b\[0m", row) for row in rows)
    unsure = [replace(pair, claim=Claim.OPEN, better=None) for pair in sure]
    assert not re.search(r"\x1b\[1;4m8", shown(factory.with_pairs(view, unsure), force_terminal=True))


def test_a_load_fits_a_narrow_terminal() -> None:
    assert all(cell_len(line) <= 60 for line in shown(factory.foreign_load(), 60).splitlines())


def only_trial(change: Callable[[TrialView], TrialView]) -> str:
    """What is printed of a load whose trial was changed."""
    return shown(factory.changed(factory.foreign_load(), change), 100)


def test_a_load_that_does_not_conform_prints_no_figure() -> None:
    text = only_trial(lambda made: factory.trial(made.record, factory.FAILING))
    assert factory.FAILING.reason in text.lstrip().splitlines()[0]
    assert "mean time" not in text
    assert not lines_with(text, "requests/s")


def test_what_a_script_printed_stands_in_the_order_of_its_functions() -> None:
    script_report = ScriptReport(
        printed_setup="thread 1\n", printed_run="token\n", printed_done="a,b\n" * 300, error="x.lua:3: no"
    )

    def scripted(made: TrialView) -> TrialView:
        engine = made.record.evidence.engine
        assert engine is not None
        evidence = made.record.evidence.model_copy(
            update={"engine": engine.model_copy(update={"script": script_report})}
        )
        return replace(made, record=made.record.model_copy(update={"evidence": evidence}))

    text = only_trial(scripted)
    assert re.search(r"Script output.*\n\s+thread 1\n\s+token\n\s+a,b\n", text)
    assert " 102 " in text
    assert "x.lua:3: no" in text
