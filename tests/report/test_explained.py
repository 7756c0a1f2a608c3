"""Explained trials in reports: in no figure, and told on the terminal, the page and in JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest
from rich.console import Console

from prony.evidence.counts import Gap
from prony.evidence.profile import LockWait, LockWaits, Stack, TimelineEvent
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad
from prony.plan.part import Part
from prony.plan.plan import Plan
from prony.plan.target import Launch
from prony.report.delivery import as_plain
from prony.report.export import to_json
from prony.report.html.page import render_html, source_of
from prony.report.reading import build
from prony.report.result import ResultView
from prony.report.schema import json_schema
from prony.report.terminal import render
from prony_explain.flame import SCRIPT
from prony_explain.report.chapter import silences, undrawn
from prony_explain.report.tables import blocks, explanations
from prony_explain.report.view import explained
from prony_explain.sampling import sampling
from tests.explain.profiles import profile, recorded
from tests.wording import assert_as_written

from . import factory

NAMES = ("spring-tomcat", "spring-undertow")


def result(*, explained: bool = True, failure: str | None = None, blocks: int = 5) -> ResultView:
    """A comparison of two servers, each with an explained trial after it or without."""
    trials = [
        factory.trial(factory.record(name, block, at, quick=False))
        for block in range(blocks)
        for at, name in enumerate(NAMES)
    ]
    for at, name in enumerate(NAMES if explained else ()):
        record = factory.record(name, blocks, at, quick=False, kind="explained", failure=failure)
        made = None if failure else profile(recorded(seed=at), missing=("page faults: not readable here",))
        evidence = record.evidence.model_copy(update={"profile": made})
        trials.append(factory.trial(record.model_copy(update={"evidence": evidence})))
    return factory.experiment(trials, NAMES, quick=False, blocks=blocks, published=False)


def under_two_loads() -> ResultView:
    """The same two servers under two loads. What they call has the load's name, and the second one calls
    something of its own.
    """
    cells = [
        cell_of("main", name, Launch(address=name), factory.trial_plan(ClosedLoad(users=users)), 3)
        for users in (10, 100)
        for name in NAMES
    ]
    plan = Plan(
        name="two",
        command="run",
        title="Two loads",
        parts=(Part(name="main", title="Two loads"),),
        cells=tuple(cells),
        seed=1,
    )
    trials = []
    for number, cell in enumerate(cells):
        for block in range(4):
            kind = "explained" if block == 3 else "trial"
            record = factory.record(cell.server, block, number, quick=False, kind=kind)
            placed = {"cell": cell.id, "load_name": cell.trial.load_name}
            if kind == "explained":
                called = f"shop/{cell.trial.load_name.title().replace('-', '')}.run_[j]"
                stacks: dict[Stack, int] = {(f"[{cell.server}-1 tid=7]", called): 60}
                stacks |= {("[other tid=8]", "shop/Own.run_[j]"): 40} if cell.server == NAMES[1] else {}
                cpu = sampling("samples", [(at, at + 1.0, stacks) for at in range(8)])
                evidence = record.evidence.model_copy(update={"profile": profile(cpu)})
                record = record.model_copy(update={"evidence": evidence})
            trials.append(factory.trial(record.model_copy(update=placed)))
    return build(factory.row(plan.title), plan, trials)


def terminal(view: ResultView) -> str:
    console = Console(width=130, force_terminal=False)
    with console.capture() as shown:
        render(view, console, details=True)
    return shown.get()


def test_an_explained_trial_is_in_no_figure() -> None:
    """Tables, ratios, verdicts and counts are the same with and without."""
    plain, other = (json.loads(json.dumps(as_plain(to_json(result(explained=on))))) for on in (False, True))
    for view in (plain, other):
        for part in view["parts"]:
            part.pop("explanations")
            part.pop("differences")
    assert plain == other


def test_the_terminal_tells_cost_budget_differences_and_what_is_missing() -> None:
    text = terminal(result())
    order = [
        "with the profiler: throughput",
        "CPU time per request by part",
        "· Spring MVC",
        "Differences in CPU time per request",
        "more CPU time per request than",
        "voluntary context switches",
        "spring-tomcat, spring-undertow: page faults: not readable here",
    ]
    places = [text.index(one) for one in order]
    assert places == sorted(places)
    for row in ("µs waiting for a CPU", "collections per 1,000 requests", "µs of pauses for collections"):
        assert row in text
    assert "Explanation" not in terminal(result(explained=False))


def test_a_costly_profiler_is_named_where_its_parts_and_differences_stand() -> None:
    view = explanations(result().parts[0].cells)
    assert view is not None
    first, second = view.servers
    changed = replace(view, servers=(replace(first, cost=replace(first.cost, costly=True)), second))
    plain = [block.note for block in blocks(view)]
    notes = [block.note for block in blocks(changed)]
    assert [note.endswith(": spring-tomcat") for note in notes].count(True) == 2
    assert not any(note.endswith(": spring-tomcat") for note in plain)


def test_a_page_says_which_flame_graphs_it_has_no_room_for() -> None:
    view = explanations(result().parts[0].cells)
    assert view is not None
    assert undrawn(view) == ()
    (said,) = undrawn(replace(view, differences=view.differences * 7))
    assert "6 of 7" in said


def test_the_page_has_flame_graphs_and_only_their_script_may_run() -> None:
    page = render_html(result())
    assert page.count('class="flame"') == 3  # one each, and their difference
    assert page.count("<script>") == 1
    assert f"script-src &#39;{source_of(SCRIPT)}&#39;" in page
    plain = render_html(result(explained=False))
    assert "<script" not in plain
    assert "script-src" not in plain


def test_the_json_holds_the_budget_and_fits_its_schema() -> None:
    made = json.loads(json.dumps(as_plain(to_json(result())), allow_nan=False))
    jsonschema.Draft202012Validator(json_schema()["result"]).validate(made)
    (part,) = made["parts"]
    first, _ = part["explanations"]
    assert sum(one["us"] for one in first["budget"]["parts"]) == pytest.approx(first["budget"]["cpu_us"])
    assert {"cpu_waits_us", "collections_per_1000", "collection_pauses_us"} <= set(first["per_request"])
    (apart,) = part["differences"]
    assert sum(one["us"] for one in apart["parts"]) == pytest.approx(apart["us"])
    assert apart["sentence"]


def test_of_several_loads_each_difference_names_its_own_and_is_drawn_from_its_profiles() -> None:
    view = under_two_loads()
    loads = ("hello, closed-10", "hello, closed-100")
    made = json.loads(json.dumps(as_plain(to_json(view)), allow_nan=False))
    jsonschema.Draft202012Validator(json_schema()["result"]).validate(made)
    apart = made["parts"][0]["differences"]
    assert [one["where"] for one in apart] == list(loads)
    text, page = " ".join(terminal(view).split()), render_html(view)
    for one in apart:
        assert f"{one['where']}: {one['sentence']}" in text
        heading = f"Difference: {one['more']} against {one['less']}, {one['where']}</summary>"
        graph = page.partition(heading)[2].partition("</details>")[0]
        called = f"shop.{one['where'].partition(', ')[2].title().replace('-', '')}.run"
        assert f"<title>{called}: " in graph
        assert graph.count("<title>shop.") == 1, "nothing of the other load, nothing of the other server"
    assert page.count("Flame graph: spring-tomcat, hello, closed-") == 2
    assert page.count('aria-label="spring-tomcat, hello, closed-100: collections') == 1


def test_what_only_the_cheaper_server_calls_is_named_below_the_graph_of_a_pair() -> None:
    page = render_html(under_two_loads())
    assert page.count(" in shop.Own.run.</p>") == 2


def test_a_server_that_died_under_the_profiler_leaves_its_figures() -> None:
    view = result(failure="the server exited with code 134 under load")
    text = terminal(view)
    assert "spring-tomcat, spring-undertow: the server exited with code 134 under load" in text
    assert "CPU time per request by part" not in text
    assert "vs spring-undertow" in text or "spring-undertow" in text
    assert 'class="flame"' not in render_html(view)


def test_one_trial_each_has_a_budget_without_intervals_and_no_difference() -> None:
    view = result(blocks=1)
    made = explanations(view.parts[0].cells)
    assert made is not None
    for server in made.servers:
        assert server.budget is not None
        assert server.budget.low_us is None


def test_the_time_line_counts_silences_from_the_window_s_start() -> None:
    view = result()
    assert view.parts[0].explanation is not None
    trial = view.parts[0].cells[0].explained[0]
    engine = trial.record.evidence.engine
    assert engine is not None
    assert engine.window is not None
    gap = Gap(start_ms=engine.window.opened_ms + 1500, duration_ms=40, in_flight=3)
    window = engine.window.model_copy(update={"gaps": (gap,)})
    evidence = trial.record.evidence.model_copy(
        update={"engine": engine.model_copy(update={"window": window})}
    )
    with_waits = replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))
    assert silences(with_waits) == [pytest.approx((1.5, 0.04))]


def with_slow_requests(view: ResultView) -> ResultView:
    """The slowest per cent of each explained trial: bursts of 20 that begin with each of 40 collections."""
    (part,) = view.parts
    cells = []
    for cell in part.cells:
        (trial,) = cell.explained
        evidence = trial.record.evidence
        assert evidence.engine is not None
        assert evidence.engine.window is not None
        assert evidence.profile is not None
        opened_ns = round(evidence.engine.window.opened_ms * 1e6)
        starts_s = [0.1 + 0.2 * at for at in range(40)]
        slowest = tuple(
            (opened_ns + round(at * 1e9) + 1000 * one, 9_000_000 - 1000 * one)
            for one in range(20)
            for at in starts_s
        )
        timeline = tuple(TimelineEvent(kind="collection", start_s=at, duration_s=0.008) for at in starts_s)
        begun_s = (evidence.engine.ready.started_monotonic_ns + opened_ns) / 1e9
        changes = {"timeline": timeline, "timeline_from_s": 0.0, "begun_monotonic_s": begun_s}
        window = evidence.engine.window.model_copy(update={"slowest": slowest})
        evidence = evidence.model_copy(
            update={
                "engine": evidence.engine.model_copy(update={"window": window}),
                "profile": evidence.profile.model_copy(update=changes),
            }
        )
        record = trial.record.model_copy(update={"evidence": evidence})
        cells.append(replace(cell, explained=(replace(trial, record=record),)))
    return replace(view, parts=(replace(part, cells=tuple(cells), explanation=explained(cells)),))


def with_lock_waits(view: ResultView) -> ResultView:
    """As `with_slow_requests`; a thread of the first server waited for a lock in each of the last bursts."""
    (part,) = with_slow_requests(view).parts
    (first, *others) = part.cells
    (trial,) = first.explained
    evidence = trial.record.evidence
    assert evidence.profile is not None
    waits = tuple(
        LockWait(start_s=at, duration_s=0.0085, lock="shop.Cart", where="shop.Till.pay", thread="t")
        for at in (0.1 + 0.2 * burst for burst in range(29, 39))
    )
    with_waits = LockWaits(from_s=5.8, to_s=7.85, count=10, longest=waits)
    profile = evidence.profile.model_copy(update={"lock_waits": with_waits})
    record = trial.record.model_copy(update={"evidence": evidence.model_copy(update={"profile": profile})})
    cells = [replace(first, explained=(replace(trial, record=record),)), *others]
    return replace(view, parts=(replace(part, cells=tuple(cells), explanation=explained(cells)),))


def test_waits_for_a_lock_beside_slow_requests_are_told_with_the_lock_and_drawn() -> None:
    view = with_lock_waits(result())
    assert_as_written("explained", terminal(view))
    assert render_html(view).count(">waits for a lock 10<") == 1
    made = json.loads(json.dumps(as_plain(to_json(view)), allow_nan=False))
    jsonschema.Draft202012Validator(json_schema()["result"]).validate(made)
    (lock,) = (one for one in made["parts"][0]["explanations"][0]["slow"]["beside"] if one["kind"] == "lock")
    assert lock["locks"] == [
        {"name": "shop.Cart in shop.Till.pay", "share": 1.0, "waits": 10, "longest_ms": pytest.approx(8.5)}
    ]
    assert "shop.Cart" not in terminal(with_slow_requests(result()))


def test_slow_requests_are_told_beside_what_the_server_did_and_marked_in_its_time_line() -> None:
    view = with_slow_requests(result())
    assert render_html(view).count(">slowest 1 % ") == 2
    made = json.loads(json.dumps(as_plain(to_json(view)), allow_nan=False))
    jsonschema.Draft202012Validator(json_schema()["result"]).validate(made)
    slow = made["parts"][0]["explanations"][0]["slow"]
    assert slow["beside"][0]["kind"] == "collection"
    assert slow["beside"][0]["share"] == 1.0
    assert slow["episodes"] == 40
    assert to_json(result()).parts[0].explanations[0]["slow"] is None
