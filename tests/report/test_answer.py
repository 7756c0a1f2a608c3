"""What a result comes to: sentences, ranking, rows, bars, the largest uncertainty; and how long it is."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Literal

import pytest
from rich.cells import cell_len
from rich.console import Console

from prony.compare.claim import Claim, Settles
from prony.compare.sentence import percent_up
from prony.judge.finding import Bias, Finding
from prony.plan.part import GateTest
from prony.report.answer import (
    MOST_CONDITIONS,
    MOST_ROWS,
    Answer,
    AnswerPart,
    answer,
    provided,
)
from prony.report.cell_view import HEADLINE, TrialView
from prony.report.comparison import ranked
from prony.report.reading import build
from prony.report.result import PairView, PartView, ResultView
from prony.report.shape import MOST_SENTENCES
from prony.report.shapes import shape_of
from prony.report.terminal import render
from prony.report.wording import MOST_NAMED

from . import factory
from .factory import SERVERS

TOMCAT, JETTY, UNDERTOW = SERVERS
TAIL = "p99_ms"


def part_of(view: ResultView) -> PartView:
    (part,) = view.parts
    return part


def first(view: ResultView) -> AnswerPart:
    (part,) = answer(view).parts
    return part


def as_claimed(view: ResultView, claims: dict[frozenset[str], Claim]) -> PartView:
    """The same part, its pairs of the headline with these claims, and each with a sentence of its own."""

    def changed(pair: PairView) -> PairView:
        claim = claims.get(frozenset((pair.a, pair.b)), pair.claim) if pair.figure == HEADLINE else Claim.OPEN
        within = 0.0312 if claim is Claim.EQUIVALENT else None
        words = f"{pair.figure} {pair.a} {pair.b} {claim.value}"
        return replace(pair, claim=claim, within=within, settles=None, sentence=words, window_sentence=words)

    part = part_of(view)
    return replace(part, pairs=tuple(map(changed, part.pairs)))


def told(pair: tuple[str, str], claim: Claim, figure: str = HEADLINE) -> str:
    return f"{figure} {pair[0]} {pair[1]} {claim.value}"


def of(*servers: str) -> frozenset[str]:
    return frozenset(servers)


BESIDE = {
    of(UNDERTOW, JETTY): Claim.SHOWN,
    of(UNDERTOW, TOMCAT): Claim.SHOWN,
    of(JETTY, TOMCAT): Claim.OPEN,
}


def ranks(part: PartView) -> list[str]:
    """Without the sentence on p99, which is the last one."""
    *sentences, tail = ranked(part)
    assert "p99" in tail
    return sentences


def test_the_pairs_with_the_best_one_are_told_nearest_first() -> None:
    sentences = ranks(as_claimed(factory.full(), BESIDE))
    assert sentences == [told((JETTY, UNDERTOW), Claim.SHOWN), told((TOMCAT, UNDERTOW), Claim.SHOWN)]


def test_what_is_shown_comes_before_what_is_open() -> None:
    sentences = ranks(as_claimed(factory.full(), {**BESIDE, of(UNDERTOW, JETTY): Claim.OPEN}))
    assert sentences == [told((TOMCAT, UNDERTOW), Claim.SHOWN), told((JETTY, UNDERTOW), Claim.OPEN)]


def test_the_first_sentence_is_of_a_part_in_which_something_is_shown() -> None:
    nothing, something = (first(view) for view in (factory.hopeless(), factory.full()))
    assert (nothing.shows, something.shows) == (False, True)
    both = Answer((nothing, something), "", ())
    assert both.sentence == something.sentences[0]
    assert Answer((nothing,), "", ()).sentence == nothing.failure


def test_several_that_are_not_shown_to_differ_share_a_sentence() -> None:
    near = {of(UNDERTOW, JETTY): Claim.EQUIVALENT, of(UNDERTOW, TOMCAT): Claim.OPEN}
    (sentences,) = ranks(as_claimed(factory.full(), near))
    assert sentences.startswith(UNDERTOW)
    assert sentences.index(JETTY) < sentences.index("3.2 %") < sentences.index(TOMCAT)


def test_what_would_settle_one_of_them_soonest_is_reported() -> None:
    part = as_claimed(factory.full(), {of(UNDERTOW, JETTY): Claim.OPEN, of(UNDERTOW, TOMCAT): Claim.OPEN})
    takes = {JETTY: Settles("blocks", 600.0, 4), TOMCAT: Settles("blocks", 120.0, 2)}

    def settled(pair: PairView) -> PairView:
        other = pair.a if pair.b == UNDERTOW else pair.b
        return replace(pair, settles=takes.get(other) if UNDERTOW in (pair.a, pair.b) else None)

    (sentences,) = ranks(replace(part, pairs=tuple(map(settled, part.pairs))))
    assert ("2 more" in sentences, "4 more" in sentences) == (True, False)


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        (
            {(TOMCAT, JETTY): (Claim.SHOWN, 1.02), (TOMCAT, UNDERTOW): (Claim.SHOWN, 1.3)},
            f"p99 is worst at {TOMCAT}, {{ms}} ms, at least 1.02x {JETTY}'s at worst",
        ),
        (
            {(TOMCAT, UNDERTOW): (Claim.SHOWN_FOR_WINDOW, 1.3)},
            f"p99 is highest at {TOMCAT}, {{ms}} ms, at least 1.30x {UNDERTOW}'s for this "
            f"window; open against {JETTY}",
        ),
        (
            {(TOMCAT, JETTY): (Claim.EQUIVALENT, None)},
            f"p99 is highest at {TOMCAT}, {{ms}} ms; {JETTY} is equivalent within 3.2 %; "
            f"open against {UNDERTOW}",
        ),
    ],
    ids=["worst", "partly", "open"],
)
def test_whose_p99_is_worst_is_told_last(
    claims: dict[tuple[str, str], tuple[Claim, float | None]], said: str
) -> None:
    slow = {TOMCAT: 21.34, JETTY: 9.0, UNDERTOW: 5.0}
    view = factory.changed(
        factory.full(), lambda t: replace(t, figures={**t.figures, TAIL: slow[t.record.server]})
    )
    part = as_claimed(view, BESIDE)

    def in_the_tail(pair: PairView) -> PairView:
        claim, least = claims.get((pair.a, pair.b)) or claims.get((pair.b, pair.a)) or (Claim.OPEN, None)
        if pair.figure != TAIL:
            return pair
        return replace(pair, claim=claim, at_least=least, within=0.0312, settles=None)

    told_last = ranked(replace(part, pairs=tuple(map(in_the_tail, part.pairs))))[-1]
    assert told_last == said.format(ms="21.340")


def test_of_two_servers_the_pair_is_the_answer_and_of_one_its_figure() -> None:
    view = factory.experiment(
        [factory.trial(factory.record(s, b, p)) for b in range(5) for p, s in enumerate((TOMCAT, UNDERTOW))],
        (TOMCAT, UNDERTOW),
        published=False,
    )
    pair = next(pair for pair in part_of(view).pairs if pair.figure == HEADLINE)
    assert shape_of(part_of(view)).sentences(part_of(view))[0] == pair.sentence
    (alone,) = first(factory.foreign_load()).sentences
    assert alone.startswith("7,49")
    assert "the server's CPU" in alone


def test_a_figure_that_nothing_bounds_above_is_at_least_so_much() -> None:
    record = factory.foreign_load().trials[0].record
    view = factory.experiment(
        [factory.trial(record, factory.SATURATED)], [record.server], published=False, shape="single"
    )
    (sentences,) = first(view).sentences
    assert sentences.startswith("at least 7,41")


def test_an_interrupted_experiment_says_so_and_its_gate_is_not_decided() -> None:
    trials = [factory.trial(factory.record(s, b)) for b in range(2) for s in (TOMCAT, JETTY)]
    view = factory.experiment(trials, (TOMCAT, JETTY), blocks=5, published=False, shape="gate")
    gate = GateTest(base=TOMCAT, candidate=JETTY, figures=(HEADLINE,), margin=0.03)
    parts = tuple(
        part.model_copy(update={"gate": gate, "budget_s": 60.0, "until_clear": 5}) for part in view.plan.parts
    )
    plan = view.plan.model_copy(update={"parts": parts})

    def sentences(status: Literal["finished", "interrupted"]) -> tuple[str, str, str]:
        row = replace(factory.row(), status=status)
        again = build(row, plan, view.trials)
        out = io.StringIO()
        render(again, Console(file=out, width=120))
        return answer(again).sentence, answer(again).conforming, out.getvalue()

    (over, all_of, _), (cut, part_of_it, screen) = sentences("finished"), sentences("interrupted")
    assert "2 blocks" in cut
    assert "2 blocks" not in over
    assert (all_of, part_of_it) == (
        "4 of 4 trials of 10 planned conform",
        "interrupted: 4 of 4 trials of 10 planned conform",
    )
    assert "Interrupted: 4 of 4" in screen


def test_servers_that_send_different_responses_are_not_compared() -> None:
    differ = Finding(check="content", code="different", conforms=False, reason="96 bytes and 64 bytes")
    part = replace(part_of(factory.experiment()), findings=(differ,), pairs=())
    (sentences,) = shape_of(part).sentences(part)
    assert sentences.endswith(differ.reason)


def test_a_part_says_no_more_than_a_screen_holds() -> None:
    view = factory.twenty()
    part = first(view)
    assert 0 < len(part.sentences) <= MOST_SENTENCES
    for sentence in part.sentences:
        assert sum(name in sentence for name in factory.TWENTY) <= 1 + MOST_NAMED
    assert part.rows is None, f"more than {MOST_ROWS} cells"
    assert len(part.bars) == 20


def test_what_comes_later_is_reported_once() -> None:
    part = as_claimed(factory.full(), BESIDE)
    later = replace(part, pairs=tuple(replace(p, sentence=f"{p.sentence}, then open") for p in part.pairs))
    now = ranked(part)
    assert len(now) > 1
    assert ranked(later) == [f"{now[0]}, then open", *now[1:]]


def test_rows_are_a_server_each_best_first_with_how_far_it_may_be_off() -> None:
    table = first(factory.full()).rows
    assert table is not None
    (section,) = table.sections
    assert [row.server for row in section.rows] == [UNDERTOW, JETTY, TOMCAT]
    assert len(table.columns) == 4
    assert [row.cells[0].best for row in section.rows] == [True, False, False]
    assert all(row.cells[1].text for row in section.rows)


def test_a_server_without_a_figure_has_a_row_that_says_why_and_comes_last() -> None:
    trials = [
        factory.trial(factory.record(server, block, at), *([factory.FAILING] if server == UNDERTOW else []))
        for block in range(3)
        for at, server in enumerate(SERVERS)
    ]
    answers = first(factory.experiment(trials))
    assert answers.rows is not None
    last = answers.rows.sections[0].rows[-1]
    assert last.server == UNDERTOW
    assert factory.FAILING.reason in last.cells[1].text
    assert [bar.server for bar in answers.bars] == [JETTY, TOMCAT]
    assert answers.failure == ""


def test_where_nothing_conforms_the_reason_is_the_answer() -> None:
    answers = answer(factory.hopeless())
    (part,) = answers.parts
    assert (part.rows, part.bars, part.largest, part.sentences) == (None, (), "", ())
    assert factory.FAILING.reason in part.failure
    assert answers.sentence == part.failure
    assert answer(factory.experiment([], [TOMCAT])).sentence


def test_bars_hold_the_interval_within_what_everything_at_its_worst_allows() -> None:
    answers = first(factory.troubled())
    for bar in answers.bars:
        low, high = bar.off.worst
        assert low is not None
        assert high is not None
        assert low <= (bar.off.low or 0.0) <= 0.0 <= (bar.off.high or 0.0) <= high
        assert bar.budget[0].source == "isolation"
    unbounded = factory.experiment([factory.trial(factory.record(TOMCAT), factory.SATURATED)], [TOMCAT])
    (bar,) = first(unbounded).bars
    low, high = bar.off.worst
    assert high is None
    assert low is not None


def test_the_largest_uncertainty_is_named_with_what_to_do() -> None:
    trials = [factory.trial(factory.record(s, b), factory.NOISY) for b in range(3) for s in SERVERS]
    answers = first(factory.experiment(trials))
    assert factory.NOISY.advice in answers.largest
    assert "+7.1 %" in answers.largest
    assert "chance" not in answers.largest


def test_where_chance_is_the_largest_more_of_it_is_asked_for() -> None:
    small = factory.finding("isolation", bias={HEADLINE: Bias(high=0.001)}, advice="no")
    several = first(
        factory.experiment([factory.trial(factory.record(s, b), small) for b in range(3) for s in SERVERS])
    )
    assert "chance" in several.largest
    alone = first(factory.experiment([factory.trial(factory.record(TOMCAT), small)], [TOMCAT]))
    assert "no" not in alone.largest.split()
    assert alone.largest.partition("; ")[2] != several.largest.partition("; ")[2]


def test_what_it_rests_on_is_told_once_and_not_without_end() -> None:
    answers = answer(factory.troubled())
    assert [condition.check for condition in answers.provided] == ["warm"]
    (line,) = provided(answers)
    assert factory.BLIND.provided in line
    flags = [
        factory.finding(check, provided=f"{check} was right")
        for check in ("host", "stall", "spread", "memory")
    ]
    many = answer(factory.experiment([factory.trial(factory.record(TOMCAT), *flags)], [TOMCAT]))
    (line,) = provided(many)
    assert line.count("was right") == MOST_CONDITIONS
    assert "1 more" in line
    assert provided(answer(factory.full())) == ()


def test_what_differs_between_the_servers_beside_their_programs_is_one_condition() -> None:
    def over(server: str, version: str) -> TrialView:
        made = factory.record(server).evidence
        load = made.load.model_copy(update={"http_version": version})
        record = factory.record(server).model_copy(
            update={"evidence": made.model_copy(update={"load": load})}
        )
        return replace(factory.trial(record), record=record)

    def conditions(version: str) -> list[tuple[str, str]]:
        trials = [over(TOMCAT, "1.1"), over(JETTY, version)]
        answers = answer(factory.experiment(trials, (TOMCAT, JETTY))).provided
        return [(condition.check, condition.code) for condition in answers]

    assert conditions("2") == [("setup", "protocols")]
    assert conditions("1.1") == []


@pytest.mark.parametrize(
    ("share", "words"), [(0.0312, "3.2 %"), (0.03, "3 %"), (0.0001, "0.1 %"), (0.0, "0 %")]
)
def test_a_margin_is_rounded_up(share: float, words: str) -> None:
    assert percent_up(share) == words


def short_names(*, quick: bool, blocks: int) -> ResultView:
    """Three servers as the catalogue names them."""
    names = {"tomcat": 7250.0, "jetty": 7980.0, "undertow": 8240.0}
    trials = [
        factory.trial(factory.record(name, block, place, quick=quick, level=level))
        for block in range(blocks)
        for place, (name, level) in enumerate(names.items())
    ]
    return factory.experiment(trials, list(names), quick=quick, blocks=blocks, published=False)


@pytest.mark.parametrize(
    "view",
    [short_names(quick=False, blocks=5), short_names(quick=True, blocks=3), factory.troubled()],
    ids=["full", "quick", "troubled"],
)
def test_the_answer_of_three_servers_takes_ten_lines_of_a_hundred_columns(view: ResultView) -> None:
    stream = io.StringIO()
    render(replace(view, id="261127-aaxh"), Console(file=stream, width=100))
    lines = [line for line in stream.getvalue().splitlines() if line.strip()]
    assert len(lines) <= 10
    assert all(cell_len(line) <= 100 for line in lines)
    assert "--details" in " ".join(lines)


def test_the_answer_counts_the_trials_that_conform() -> None:
    assert answer(factory.full()).conforming.startswith("15 of 15")
    assert answer(factory.troubled()).conforming.startswith("7 of 9")
    assert "9 planned" in answer(factory.hopeless()).conforming
