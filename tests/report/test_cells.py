"""The page of a plan: ceilings, percentiles, sockets; and its JSON: as the published schema says."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from prony.compare.claim import Claim
from prony.compare.sentence import LATER
from prony.evidence.trial import Calibration, Ceiling
from prony.judge.finding import Bias
from prony.plan import workload
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad
from prony.plan.part import Part
from prony.plan.plan import Plan
from prony.plan.target import Launch
from prony.report.answer import answer
from prony.report.cell_view import TrialView
from prony.report.delivery import as_plain
from prony.report.export import to_json
from prony.report.html import render_html
from prony.report.reading import build, load_exported
from prony.report.result import ResultView
from prony.report.schema import json_schema
from prony.report.terminal import render

from . import factory
from .page import Page
from .test_sockets import sampled

ROOT = Path(__file__).resolve().parents[2]


def bounded(trial: TrialView, per_s: float) -> TrialView:
    """With ceilings that are known beforehand: one near, one far away."""
    ceilings = (
        Ceiling(name="worker threads", per_s=per_s, explanation="200 ÷ 150 ms"),
        Ceiling(name="connections", per_s=per_s * 1000, explanation="many"),
    )
    calibration = Calibration(ceiling_per_s=per_s * 2, body_bytes=12, duration_s=1.5)
    evidence = trial.record.evidence.model_copy(update={"ceilings": ceilings, "calibration": calibration})
    return replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))


def plan() -> Plan:
    """One part at one load, one that sweeps over users."""
    parts = (Part(name="one", title="At one load"), Part(name="sweep", title="Over users"))
    asked = workload.load("hello-delay")
    cells = [
        cell_of(
            part,
            server,
            Launch(address=server),
            factory.trial_plan(ClosedLoad(users=users)).model_copy(update={"workload": asked}),
            trials,
        )
        for part, many, trials in (("one", (10,), 3), ("sweep", (1, 10), 1))
        for users in many
        for server in ("spring-tomcat", "spring-jetty")
    ]
    return Plan(name="two", command="run", title="Two servers", parts=parts, cells=tuple(cells), seed=1)


@pytest.fixture(scope="module")
def view() -> ResultView:
    asked = plan()
    trials = []
    for number, scheduled in enumerate(asked.order()):
        cell = asked.cell(scheduled.cell)
        record = factory.record(cell.server, scheduled.block)
        placed = {"cell": cell.id, "id": f"t-{number}", "load_name": cell.trial.load_name}
        trials.append(bounded(sampled(factory.trial(record.model_copy(update=placed)), 12), 9000))
    return build(factory.row(asked.title), asked, trials)


def test_the_page_draws_ceilings_percentiles_and_sockets(view: ResultView) -> None:
    page = Page(render_html(view))
    assert page.faults == []
    titles = [one.text for one in page.all("title")]
    (ceilings,) = (text for text in titles if text.startswith("Throughput and its ceilings"))
    assert "worker threads 9,000/s" in ceilings
    assert "connections 9,000,000/s" in ceilings, "told in words, though too far away to be drawn"
    assert "client 18,000/s" in ceilings
    times = [text for text in titles if text.startswith("Service time by percentile")]
    assert len(times) == 2, "of the part at one load, wide and narrow"
    assert all("spring-jetty: p50" in text for text in times)
    sockets = [text for text in titles if "TCP sockets over" in text]
    assert len(sockets) == 4, "one for each server of each part"
    assert sockets[0].startswith("spring-tomcat: TCP sockets")
    assert sockets[2].startswith("spring-tomcat, hello-delay, closed-"), "of a sweep the cell with most"
    assert any(text.startswith("p99 over users") for text in titles)


def test_servers_of_a_plan_under_one_load_are_ranked_and_under_several_a_table(view: ResultView) -> None:
    one, sweep = view.parts
    assert (one.part.shape, one.layout) == ("matrix", "comparison")
    assert (sweep.part.shape, sweep.layout) == ("matrix", "matrix")
    first = answer(view).parts[0]
    assert first.rows is not None
    assert [row.server for row in first.rows.sections[0].rows] == ["spring-jetty", "spring-tomcat"], (
        "best first"
    )
    named = replace(
        one, part=one.part.model_copy(update={"comparisons": (("spring-tomcat", "spring-jetty"),)})
    )
    assert named.layout == "matrix", "a ranking would speak of pairs that nobody asked for"
    alone = replace(one, cells=one.cells[:1], servers=one.servers[:1])
    assert alone.layout == "matrix"


def tables(*names: str) -> ResultView:
    """The same comparison as a table, once for each name."""
    (part,) = factory.full().parts
    asked = tuple((pair.a, pair.b) for pair in part.pairs)
    parts = [
        replace(
            part,
            part=part.part.model_copy(
                update={"shape": "matrix", "name": name, "title": f"Part {name}", "comparisons": asked}
            ),
        )
        for name in names
    ]
    return replace(factory.full(), parts=tuple(parts))


def test_the_first_screen_of_several_tables_has_the_first_pairs_of_each() -> None:
    view = tables("one", "two")
    view = replace(view, parts=(replace(view.parts[0], pairs=()), view.parts[1]))
    page = Page(render_html(view))
    assert page.faults == []
    one, two = (e.text for e in page.all("section") if e.attributes.get("class") == "answered")
    without, shown = answer(view).parts
    assert len(shown.sentences) == 2
    claims = [half for sentence in shown.sentences for half in sentence.split(LATER)]
    assert all(claim.strip() in two for claim in claims)
    assert not any(claim.strip() in one for claim in claims)
    assert all(sentence in one for sentence in without.sentences)


def test_where_there_is_no_room_for_all_pairs_the_shown_ones_come_first() -> None:
    view = tables("one")
    (part,) = view.parts
    pair = next(pair for pair in part.pairs if pair.figure == "requests_per_s")
    claims = [Claim.OPEN] * 9 + [Claim.EQUIVALENT, Claim.OPEN, Claim.SHOWN_FOR_WINDOW, Claim.SHOWN]
    pairs = tuple(
        replace(pair, claim=claim, sentence=f"{at}", window_sentence=f"{at}")
        for at, claim in enumerate(claims)
    )
    (shown,) = answer(replace(view, parts=(replace(part, pairs=pairs),))).parts
    assert shown.sentences == ("12", "11", "9", "0")


def test_a_part_of_which_nothing_was_run_neither_conforms_nor_fails(view: ResultView) -> None:
    first, second = view.parts
    cells = tuple(replace(cell, trials=(), superseded=()) for cell in second.cells)
    cut = replace(view, state="interrupted", parts=(first, replace(second, cells=cells)))
    made = json.loads(json.dumps(as_plain(to_json(cut)), allow_nan=False))
    jsonschema.Draft202012Validator(json_schema()["result"]).validate(made)
    assert [part["conforms"] for part in made["parts"]] == [True, None]
    assert answer(cut).parts[1].failure == ""


def test_a_page_of_trials_that_do_not_conform_has_no_figures(view: ResultView) -> None:
    def died(trial: TrialView) -> TrialView:
        return replace(trial, record=trial.record.model_copy(update={"failure": "it died"}))

    page = Page(render_html(factory.changed(view, died)))
    assert page.faults == []
    titles = [one.text for one in page.all("title")]
    assert not any(text.startswith(("Throughput", "Service time")) for text in titles)
    assert any("TCP sockets over" in text for text in titles), "what the host did is still shown"


def test_what_a_check_found_is_told_for_each_cell_with_its_own_numbers(view: ResultView) -> None:
    def with_finding(trial: TrialView) -> TrialView:
        share = 11 if trial.record.server == "spring-tomcat" else 12
        bias = {"requests_per_s": Bias(high=share / 100)}
        why = f"a neighbour took {share} %"
        finding = factory.finding("isolation", bias=bias, reason=why, advice="end it")
        return replace(trial, judgement=trial.judgement.model_copy(update={"findings": (finding,)}))

    doubtful = factory.changed(view, with_finding)
    out = StringIO()
    render(doubtful, Console(file=out, width=60), details=True)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    head = lines.index("  isolation  budget  all 6 trials")
    assert lines[head + 1] == "    spring-tomcat: a neighbour took 11 %"
    assert lines[head + 2] == "    spring-jetty: a neighbour took 12 %", "each cell has its own numbers"
    assert all(len(line) <= 60 for line in lines)
    assert "a neighbour took 12 %" in render_html(doubtful)


def test_where_there_is_no_room_the_most_telling_columns_stay(view: ResultView) -> None:
    def shown(width: int) -> str:
        out = StringIO()
        render(replace(view, parts=view.parts[1:]), Console(file=out, width=width), details=True)
        text = out.getvalue()
        assert all(len(line) <= width for line in text.splitlines())
        return text

    wide, narrow = shown(160), shown(80)
    assert "p90, ms" in wide
    assert "p90, ms" not in narrow
    assert "requests/s" in narrow
    assert "bound by" in narrow


def test_the_json_is_what_the_published_schema_says(view: ResultView) -> None:
    made = json.loads(json.dumps(as_plain(to_json(view)), allow_nan=False))
    jsonschema.Draft202012Validator(json_schema()["result"]).validate(made)
    assert made["parts"][0]["cells"][0]["figures"]["requests_per_s"]["n"] == 3
    assert [part["name"] for part in made["parts"]] == ["one", "sweep"]


def test_one_server_under_several_loads_says_first_where_it_answers_most() -> None:
    view = load_exported(ROOT / "docs" / "results" / "jaxrs" / "results.prony")
    said = {part.title: part.sentences for part in answer(view).parts}
    verbs, sweep, *_ = (part for part in view.parts if part.layout == "matrix")
    (line,) = said[sweep.part.title]
    assert line.index("closed-64: 32,121") < line.index("closed-1: 14,609")
    (line,) = said[verbs.part.title]
    assert line.index("customer-get: 32,039") < line.index("customer-post: 23,806")
