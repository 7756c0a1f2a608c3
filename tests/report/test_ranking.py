"""Servers from the best to the worst: the order, what the pairs show of it, and what is said where they show
nothing.
"""

from __future__ import annotations

import pytest

from prony.judge.finding import Status
from prony.report.blocks import Lines, Table
from prony.report.findings import concerns, failures
from prony.report.ranking import MOST_DRAWN, Ranking, ranking, telling
from prony.report.result import PairView, ResultView
from prony.report.shapes import blocks, headlines

from . import factory
from .factory import SERVERS

TOMCAT, JETTY, UNDERTOW = SERVERS


def of(view: ResultView) -> Ranking:
    (part,) = view.parts
    found = ranking(part)
    assert found is not None
    return found


def pair(a: str, b: str, ratio: float, verdict: str, figure: str = "requests_per_s") -> PairView:
    return PairView(a, b, figure, ratio, ratio * 0.99, ratio * 1.01, verdict, f"{a} and {b}")


def test_the_best_median_comes_first_and_each_server_stands_beside_it() -> None:
    found = of(factory.full())
    assert [place.server for place in found.places] == [UNDERTOW, JETTY, TOMCAT]
    assert found.figure == "requests/s"
    assert [place.word for place in found.places] == ["", "slower", "slower"]
    assert [place.value.best for place in found.places] == [True, False, False]
    assert found.places[0].of_first == ""
    assert all(place.of_first.startswith("0.") and "[0." in place.of_first for place in found.places[1:])
    assert found.sentence.startswith(f"{UNDERTOW} has the highest requests/s: 1.0")
    assert found.sentence.endswith(f"that of the next, {JETTY}.")
    assert [place.verdict.text for place in found.places] == ["5 of 5 valid"] * 3


def test_its_numbers_are_those_of_the_pairs() -> None:
    view = factory.full()
    pairs = [
        pair(TOMCAT, UNDERTOW, 0.8, "slower"),
        pair(JETTY, UNDERTOW, 0.9, "slower"),
        pair(TOMCAT, JETTY, 0.9, "slower"),
    ]
    found = of(factory.with_pairs(view, pairs))
    assert [place.of_first for place in found.places] == ["", "0.90x [0.89, 0.91]", "0.80x [0.79, 0.81]"]
    turned = [pair(UNDERTOW, TOMCAT, 1.25, "faster"), *pairs[1:]]
    assert of(factory.with_pairs(view, turned)).places[2].of_first.startswith("0.80x [0.79, 0.81]")


def test_a_highest_median_is_no_winner_where_a_pair_does_not_show_it() -> None:
    view = factory.full()
    pairs = [
        pair(TOMCAT, UNDERTOW, 0.8, "slower"),
        pair(JETTY, UNDERTOW, 0.99, "inconclusive"),
        pair(TOMCAT, JETTY, 0.9, "slower"),
    ]
    found = of(factory.with_pairs(view, pairs))
    assert not any(place.value.best for place in found.places)
    assert [place.word for place in found.places] == ["", "inconclusive", "slower"]
    assert found.sentence == (
        f"Which server has the highest requests/s is not shown: {UNDERTOW} has the highest median, and "
        f"{JETTY} is not shown to differ from it."
    )
    without = of(factory.with_pairs(view, ()))
    assert [place.word for place in without.places] == ["", "no interval", "no interval"]
    assert "is not shown" in without.sentence


def test_a_server_without_a_figure_is_last_and_nothing_is_best_beside_it() -> None:
    trials = [
        factory.trial(
            factory.record(server, block, at), *([factory.STEP_FOUND] if server == UNDERTOW else [])
        )
        for block in range(3)
        for at, server in enumerate(SERVERS)
    ]
    found = of(factory.experiment(trials))
    assert [place.server for place in found.places] == [JETTY, TOMCAT, UNDERTOW]
    last = found.places[-1]
    assert (last.value.text, last.length, last.of_first, last.word) == ("no figure", 0.0, "", "")
    assert last.verdict.status is Status.INVALID
    assert found.sentence == f"{JETTY} has the highest median requests/s."


def test_where_nothing_counts_there_is_no_ranking_and_no_sentence_but_the_reasons() -> None:
    view = factory.hopeless()
    assert ranking(view.parts[0]) is None
    assert headlines(view) == ()
    assert [(group.check, group.where) for group in concerns(view)] == [("steady", "all 6 trials")]
    assert failures(view) == ()
    dead = factory.without_engine()
    assert failures(dead) == ("spring-tomcat did not get ready within 60 s",)


def test_what_is_only_unknown_is_a_concern_where_it_decides() -> None:
    view = factory.troubled()
    assert [(group.check, group.status) for group in concerns(view)][:2] == [
        ("steady", Status.INVALID),
        ("isolation", Status.SUSPECT),
    ]
    made = factory.trial(factory.record(TOMCAT), factory.BLIND.model_copy(update={"essential": False}))
    assert concerns(factory.experiment([made], [TOMCAT])) == ()
    made = factory.trial(factory.record(TOMCAT), factory.BLIND.model_copy(update={"essential": True}))
    assert [group.check for group in concerns(factory.experiment([made], [TOMCAT]))] == ["warm"]


def test_of_many_servers_the_pairs_with_the_first_and_the_next_are_drawn() -> None:
    (part,) = factory.twenty().parts
    asked = [one for one in part.pairs if one.figure == "requests_per_s"]
    assert len(asked) == 190
    drawn = [one for one in telling(part) if one.figure == "requests_per_s"]
    assert len(drawn) == 19 + 18
    (few,) = factory.experiment().parts
    assert len(few.servers) <= MOST_DRAWN
    assert telling(few) == few.pairs


@pytest.mark.parametrize("make", [factory.bare, factory.foreign_load])
def test_a_part_without_a_figure_to_rank_has_none(make: object) -> None:
    assert callable(make)
    view: ResultView = make()
    found = ranking(view.parts[0])
    assert found is None or all(place.word in ("", "no interval") for place in found.places)


def test_a_terminal_ranks_many_servers_and_says_fewer_pairs() -> None:
    (part,) = factory.twenty().parts
    first, *others = blocks(part)
    assert isinstance(first, Table)
    assert (first.title, first.note[:42]) == ("Ranking", "Which server has the highest requests/s is")
    assert [row.label for row in first.sections[0].rows] == factory.TWENTY
    (said,) = [block for block in others if block.title == "Pair by pair"]
    assert isinstance(said, Lines)
    assert len(said.lines) == 37
    assert said.note == (
        "37 of 190: beside the best median, and the next one down; intervals: 95 %, 3 trials each, quick: "
        "fewer than 5, Holm over 190 pairs"
    )
    assert not any("Holm" in line for line in said.lines), "said once"
    (few,) = factory.experiment().parts
    assert "Ranking" not in [block.title for block in blocks(few)]
