"""What a comparison may say, from stored trials to the terminal: exclusions, suspects, position."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from prony.judge.finding import Finding, Status
from prony.report.export import to_json
from prony.report.html import render_html
from prony.report.result import ResultView
from prony.report.terminal import render

from . import factory

SERVERS = ("spring-tomcat", "spring-jetty")
NEIGHBOUR = factory.finding("isolation", Status.INVALID, reason="other processes took 48.9 % of the CPUs")
Made = tuple[float, tuple[Finding, ...]]


def shown(view: ResultView) -> str:
    stream = io.StringIO()
    render(view, Console(file=stream, width=1000))
    return " ".join(stream.getvalue().split())


def result(
    made: Callable[[str, int], Made], blocks: int = 10, position: Callable[[str, int], int] | None = None
) -> ResultView:
    """`made`: factor on the server's level and findings of one trial; by default positions alternate."""
    trials = []
    for block in range(blocks):
        for number, server in enumerate(SERVERS):
            factor, troubles = made(server, block)
            place = position(server, block) if position else (number + block) % 2
            level = 8000.0 * factor
            trials.append(factory.trial(factory.record(server, block, place, level=level), *troubles))
    return factory.experiment(trials, SERVERS, quick=False, blocks=blocks, published=False)


def invalid_in_tomcat(trouble: Finding, count: int) -> Callable[[str, int], Made]:
    """Tomcat is 30 % faster and `count` of its trials are rejected."""

    def made(server: str, block: int) -> Made:
        tomcat = server == "spring-tomcat"
        return 1.3 if tomcat else 1.0, (trouble,) if tomcat and block < count else ()

    return made


def test_without_exclusions_the_faster_server_is_named() -> None:
    assert "spring-tomcat is faster than spring-jetty" in shown(
        result(lambda s, _: (1.3 if "tom" in s else 1, ()))
    )


def test_too_many_rejected_trials_of_one_server_leave_the_pair_undecided() -> None:
    view = result(invalid_in_tomcat(factory.STEP_FOUND, 3))
    text = shown(view)
    assert "is faster than" not in text
    assert "3 of 10 trials of spring-tomcat and 0 of 10 trials of spring-jetty were excluded" in text
    assert {pair.verdict for pair in to_json(view).parts[0].pairs if pair.figure == "requests_per_s"} == {
        "inconclusive"
    }


def test_rejected_for_another_process_is_no_selection() -> None:
    text = shown(result(invalid_in_tomcat(NEIGHBOUR, 3)))
    assert "spring-tomcat is faster than spring-jetty" in text


def test_a_small_difference_that_one_rejected_trial_could_undo() -> None:
    """As measured, the rejected trial is 30 % slow: counted, there is no difference."""

    def made(server: str, block: int) -> Made:
        slow = server == "spring-tomcat" and block == 0
        return (0.7 if slow else 1.03 if "tom" in server else 1.0), (factory.STEP_FOUND,) if slow else ()

    text = shown(result(made))
    assert "is faster than" not in text
    assert "1 of 10 trials of spring-tomcat" in text


@pytest.mark.parametrize(("factor", "differs"), [(1.3, True), (1.0, False)])
def test_the_ratio_without_suspect_trials_where_it_differs(factor: float, differs: bool) -> None:
    def made(server: str, block: int) -> Made:
        suspect = server == "spring-tomcat" and block < 3
        return (factor if suspect else 1.0), (factory.NOISY,) if suspect else ()

    text = shown(result(made))
    assert ("; without suspect trials 1.0" in text) is differs


def slower_second(server: str, block: int) -> Made:
    """The second trial of a block is 5 % slower, in the order `tomcat_first` gives."""
    return (1.0 if (server == "spring-tomcat") == tomcat_first(block) else 0.95), ()


def tomcat_first(block: int) -> bool:
    return block % 2 == 0


def place(server: str, block: int) -> int:
    return int((server == "spring-tomcat") != tomcat_first(block))


def test_an_effect_of_position_in_balanced_order_is_said_to_cancel() -> None:
    view = result(slower_second, position=place)
    text = shown(view)
    assert "Position in the block changes requests/s by -" in text
    assert "an effect. The order was balanced" in text
    assert "suspect" not in text
    (found,) = to_json(view).parts[0].positions
    assert found.found
    assert found.ratio_per_place == pytest.approx(0.95, abs=0.015)
    assert found.sentence in render_html(view)


def test_an_effect_of_position_in_unbalanced_order_makes_the_ratio_suspect() -> None:
    """Tomcat goes first in nine blocks of ten."""

    def first(block: int) -> bool:
        return block != 5

    def made(server: str, block: int) -> Made:
        return (1.0 if (server == "spring-tomcat") == first(block) else 0.95), ()

    text = shown(result(made, position=lambda s, b: int((s == "spring-tomcat") != first(b))))
    assert "The order was not balanced, so it moves spring-tomcat ÷ spring-jetty by +" in text
    assert "suspect: the effect of position moves it by" in text
    assert "is faster than" not in text


def test_without_an_effect_the_line_gives_the_bound() -> None:
    text = shown(result(lambda _s, _b: (1.0, ())))
    assert "per place [" in text
    assert ": no effect found." in text


def test_what_the_intervals_cover_is_said() -> None:
    text = shown(result(lambda _s, _b: (1.0, ())))
    assert "What the intervals cover" in text
    assert "Fresh processes of one build of each server, on one boot of this host" in text


def test_variance_by_level_is_printed_with_the_cheapest_mix() -> None:
    view = result(lambda _s, _b: (1.0, ()))
    found = view.parts[0].levels
    assert found is not None
    assert found.processes == 20
    text = shown(view)
    assert "Variance by level: " in text
    assert "between thirds of a process's window" in text
    assert "per process is the cheapest" in text
    assert to_json(view).parts[0].levels == found
