"""A result as a part of a text: what it shows, its figures beside the published ones, its pairs, and what may
bend a figure.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from prony.errors import UsageError
from prony.judge.finding import Kind
from prony.plan.cell import PublishedFigures
from prony.report.answer import answer
from prony.report.blocks import KIND_WORDS, Column, Lines, Row, Section, Table, TableCell
from prony.report.labels import rounded
from prony.report.result import ResultView
from prony_serve.publish.figures import BEGIN, END, drawn, paragraph, placed, text
from tests.report import factory


def rows(markdown: str) -> dict[str, list[str]]:
    """The rows of its tables by their labels."""
    found = {}
    for line in markdown.splitlines():
        if line.startswith("| "):
            label, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            found[label] = cells
    return found


def test_measured_stands_above_published_and_the_best_is_marked() -> None:
    view = factory.full()
    found = rows(text(view))
    (part,) = view.parts
    medians = [cell.figure("requests_per_s") for cell in part.cells]
    for cell, spread in zip(found["requests/s"], medians, strict=True):
        assert spread is not None
        assert cell.strip("*").startswith(rounded("requests_per_s", spread.median))
    assert found["trials that conform"] == ["5 of 5"] * 3
    assert [("%" in cell) for cell in found["good to"]] == [True] * 3
    assert any("published" in label for label in found), "what others printed stands beside it"
    assert "does not conform" not in text(view)


def test_what_is_shown_comes_first_and_is_said_once() -> None:
    view = factory.full()
    made = " ".join(text(view).split())
    claims = [one.rstrip(".") for one in answer(view).parts[0].sentences]
    assert claims
    assert made.startswith(f"- {claims[0]}.")
    assert [made.count(claim) for claim in claims] == [1] * len(claims)
    pairs = [pair.window_sentence for pair in view.parts[0].pairs if pair.figure == "requests_per_s"]
    assert all(sentence in made for sentence in pairs)
    assert "15 of 15 trials conform." in made


def test_what_does_not_conform_or_bends_a_figure_says_why_and_what_to_do() -> None:
    made = text(factory.troubled())
    (why,) = re.findall(r"\nWhat does not conform, .*?:\n\n(.*?)(?:\n\n|\Z)", made, re.DOTALL)
    said = " ".join(why.split())
    words = KIND_WORDS[Kind.NOT_CONFORMING]
    assert f"- {words}, spring-undertow: " in said
    assert f"- {words}, errors (spring-jetty 1 of 3 trials): " in said
    assert "→ Look at the server's log." in said
    assert f"- {KIND_WORDS[Kind.BUDGET]}, isolation" in said
    assert f"- {KIND_WORDS[Kind.PROVIDED]}" not in said
    whole = " ".join(made.split())
    assert "7 of 9 trials conform. Provided that no code was being compiled." in whole
    assert "Quick: 3 trials each." in made


def test_cells_are_rows_with_what_others_published() -> None:
    view = factory.full()
    (part,) = view.parts
    theirs = (PublishedFigures(label="then", source="s", figures={"requests_per_s": 1542}),)
    shown = [replace(one, cell=one.cell.model_copy(update={"published": theirs})) for one in part.cells]
    twice = [
        replace(
            one,
            cell=one.cell.model_copy(update={"trial": one.cell.trial.model_copy(update={"name": "again"})}),
        )
        for one in shown
    ]
    many = replace(part, part=part.part.model_copy(update={"shape": "matrix"}), cells=(*shown, *twice))
    made = text(replace(view, parts=(many,)))
    head = next(line for line in made.splitlines() if line.startswith("| load"))
    columns = [cell.strip() for cell in head.strip("|").split("|")]
    assert columns[:4] == ["load", "server", "requests/s", "good to"]
    assert columns[4] == "requests/s, published"
    assert columns[-1] == "trials"
    table = [line for line in made.splitlines() if line.startswith("| closed-10")]
    assert len(table) == 6
    assert all(len(line.strip("|").split("|")) == len(columns) and "| 1,542 |" in line for line in table)


def test_no_word_of_a_server_means_anything_in_a_text() -> None:
    made = text(factory.hostile())
    assert "<script>" not in made
    assert "](" not in made.replace("]\\(", "")
    assert all(line.count("|") == line.count("\\|") for line in made.splitlines() if not line.startswith("|"))


def test_lines_are_wrapped_and_none_begins_with_a_mark() -> None:
    long = "word " * 19 + "- 1. # > and * more " + "word " * 20
    lines = paragraph(long, "- ").splitlines()
    assert len(lines) > 2
    assert all(len(line) <= 101 for line in lines)
    assert [line[:2] for line in lines] == ["- "] + ["  "] * (len(lines) - 1)
    assert all(not re.match(r" +([-*+#>]|\d+\.) ", line) for line in lines[1:])
    assert paragraph("1. first") == "1\\. first"


def test_a_table_of_blocks_is_a_table() -> None:
    table = Table(
        (Column("a|b"), Column("word", number=False)),
        (Section((Row("rate", (TableCell("1,000", "990–1,010", best=True), TableCell("x")), unit="1/s"),)),),
        heading="what",
        title="All",
    )
    assert drawn([table, Lines("Said", ("one", "two"), note="of it")]) == (
        "All:\n\n| what | a\\|b | word |\n|---|--:|---|\n| rate, 1/s | **1,000** (990–1,010) | x |\n\n"
        "Said (of it):\n\n- one\n- two"
    )


def test_figures_take_the_place_of_earlier_ones() -> None:
    page = f"# Title\n\nwords\n\n{BEGIN}\nold\n{END}\n\nmore\n"
    assert placed(page, "new\n") == f"# Title\n\nwords\n\n{BEGIN}\nnew\n{END}\n\nmore\n"
    assert placed("# Title\n", "new") == f"# Title\n\n{BEGIN}\nnew\n{END}\n"
    assert placed(placed("", "a"), "b") == placed("", "b")
    with pytest.raises(UsageError, match="<!-- figures"):
        placed(f"# Title\n{BEGIN}\n", "new")


@pytest.mark.parametrize(
    "make", [factory.hopeless, factory.bare, factory.without_engine, factory.foreign_load]
)
def test_whatever_was_measured_has_a_text(make: object) -> None:
    assert callable(make)
    view: ResultView = make()
    made = text(view)
    assert answer(view).conforming in made.lower()
    assert view.id in made


def test_a_column_of_published_figures_is_of_one_source() -> None:
    view = factory.full()
    (part,) = view.parts
    sources = [[("first sweep", 1500.0), ("second sweep", 2500.0)], [("second sweep", 3500.0)], []]
    cells = tuple(
        replace(
            cell,
            cell=cell.cell.model_copy(
                update={
                    "published": tuple(
                        PublishedFigures(label=label, source="s", figures={"requests_per_s": value})
                        for label, value in of
                    )
                }
            ),
        )
        for cell, of in zip(part.cells, sources, strict=True)
    )
    found = rows(text(replace(view, parts=(replace(part, cells=cells),))))
    assert found["requests/s, published (first sweep)"] == ["1,500", "–", "–"]
    assert not any("second sweep" in label for label in found), "the page has all of them"
