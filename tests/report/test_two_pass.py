"""Two passes: capacity, then latency at a share of it; the tables of the second pass, and one that failed."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from prony.plan.cell import Cell, cell_of
from prony.plan.load import OpenLoad
from prony.plan.part import Follow, Part
from prony.plan.plan import Plan, Skipped
from prony.plan.target import Launch
from prony.report.answer import answer
from prony.report.cell_view import TrialView
from prony.report.export import to_json
from prony.report.html import render_html
from prony.report.reading import build
from prony.report.result import ResultView
from prony.report.terminal import render

from . import factory
from .page import Page

SERVERS = ("spring-tomcat", "spring-jetty")
RATES = {"spring-tomcat": 5000.0, "spring-jetty": 5600.0}
PARTS = (
    Part(name="capacity", title="Capacity", shape="comparison"),
    Part(
        name="own",
        title="Latency at 70 % of each server's own capacity",
        shape="comparison",
        follows=Follow(part="capacity", share=0.7, rate="own"),
    ),
    Part(
        name="common",
        title="Latency at a rate that all can carry",
        shape="comparison",
        follows=Follow(part="capacity", share=0.7, rate="common"),
    ),
)
WHY = "the second pass needs the capacity of spring-jetty, of which no trial counts"


def cells(part: str, rates: dict[str, float] | None) -> list[Cell]:
    return [
        cell_of(
            part,
            server,
            Launch(address=server),
            factory.trial_plan(None if rates is None else OpenLoad(rate_per_s=rates[server])),
            3,
        )
        for server in SERVERS
    ]


def trials(of: list[Cell], first: int) -> list[TrialView]:
    made = []
    for number, (cell, block) in enumerate([(cell, block) for block in range(3) for cell in of]):
        changes = {"id": f"t-{first + number:03}", "cell": cell.id, "load_name": cell.trial.load_name}
        shown = factory.trial(factory.record(cell.server, block).model_copy(update=changes))
        rate = shown.figures["requests_per_s"]
        made.append(
            replace(shown, figures={**shown.figures, "p99_ms": 20_000 / rate, "p50_ms": 9_000 / rate})
        )
    return made


def two_pass(*, failed: bool = False) -> ResultView:
    own, common = cells("own", RATES), cells("common", dict.fromkeys(SERVERS, 5000.0))
    first = cells("capacity", None)
    every = first if failed else [*first, *own, *common]
    skipped = [
        Skipped(cell=f"{part}/{server}", part=part, server=server, why=WHY)
        for part in ("own", "common")
        for server in SERVERS
        if failed
    ]
    plan = Plan(
        name="compare",
        command="compare",
        title="a vs b",
        parts=PARTS,
        cells=tuple(every),
        skipped=tuple(skipped),
    )
    ran = trials(first, 0)
    if failed:
        ran = [
            replace(t, record=t.record.model_copy(update={"failure": "it died"}))
            if t.record.server == "spring-jetty"
            else t
            for t in ran
        ]
    else:
        ran += [*trials(own, 100), *trials(common, 200)]
    return build(factory.row("a vs b"), plan, ran)


def printed(view: ResultView) -> str:
    stream = io.StringIO()
    render(view, Console(file=stream, width=140), details=True)
    return stream.getvalue()


def test_the_tables_of_the_second_pass_stand_on_the_terminal_on_the_page_and_in_the_json() -> None:
    view = two_pass()
    assert view.usable
    text = printed(view)
    after = text[text.rindex("Latency at 70 %") :]
    (row,) = (line for line in after.splitlines() if line.startswith("open-5600"))
    assert "spring-jetty" in row
    assert "p99, ms" in after
    assert "spring-jetty" in after[after.index("Pair by pair") :]
    page = Page(render_html(view))
    assert page.faults == []
    assert len(page.ids()) == len(set(page.ids()))
    assert [e.attributes["id"] for e in page.all("section") if e.attributes.get("class") == "part"] == [
        "capacity",
        "own",
        "common",
    ]
    parts = to_json(view).parts
    assert [cell.offered_per_s for cell in parts[1].cells] == [5000.0, 5600.0]
    assert {pair.figure for pair in parts[1].pairs} == {"p50_ms", "p99_ms"}


def test_a_second_pass_that_failed_has_no_answer_and_says_why() -> None:
    view = two_pass(failed=True)
    assert not view.usable, "which is exit code 3"
    assert [WHY in part.failure for part in answer(view).parts] == [False, True, True]
    assert WHY in printed(view)
    assert WHY in render_html(view)
    out = to_json(view)
    assert [part.conforms for part in out.parts] == [False, False, False]
    assert [WHY in part.failure for part in out.parts] == [False, True, True]
