"""Loads that shared processes, as the report shows them: from load to load, and their order."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from io import StringIO

import jsonschema
import pytest
from rich.console import Console

from prony.evidence.trial import ProcessFacts
from prony.plan import workload
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad
from prony.plan.part import Part, Sharing
from prony.plan.plan import MAIN, Plan, ScheduledTrial
from prony.plan.processes import name_within
from prony.plan.target import Launch
from prony.report.cell_view import TrialView
from prony.report.delivery import as_plain
from prony.report.export import to_json
from prony.report.html import render_html
from prony.report.reading import build
from prony.report.result import ResultView
from prony.report.schema import json_schema
from prony.report.terminal import render

from . import factory

USERS = (1, 8, 64, 512)
VERBS = ("hello", "ping", "json")
SERVERS = ("spring-tomcat", "spring-jetty")


def plan(share: Sharing | None = "loads", users: Sequence[int] = USERS) -> Plan:
    part = Part.model_validate({"name": MAIN, "title": "Loads", "share_process": share})
    usual = factory.trial_plan(ClosedLoad(users=1))
    workloads = [workload.load(name) for name in VERBS] if share == "workloads" else [usual.workload]
    cells = [
        cell_of(
            MAIN,
            server,
            Launch(address=server),
            usual.model_copy(update={"workload": workload, "load": ClosedLoad(users=number)}),
            8,
        )
        for workload in workloads
        for number in users
        for server in SERVERS
    ]
    return Plan(name="p", command="run", title="Shared", parts=(part,), cells=tuple(cells), seed=1)


def result(
    carried: Mapping[str, float] | None = None,
    share: Sharing | None = "loads",
    users: Sequence[int] = USERS,
    carriers: Sequence[str] = SERVERS,
) -> ResultView:
    """Each load has 30 % more than the one before it; `carried`: what one of a carrier leaves to the next."""
    source = random.Random(2)
    sharing_plan = plan(share, users)
    names = list(dict.fromkeys(name_within(cell, share or "loads") for cell in sharing_plan.cells))
    trials: list[TrialView] = []
    before: ScheduledTrial | None = None
    ids: list[str] = []
    loads: list[str] = []
    process = 0.0
    for number, one in enumerate(sharing_plan.order()):
        cell = sharing_plan.cell(one.cell)
        load, identifier = name_within(cell, share or "loads"), f"t-{number:03d}"
        if not one.follows_in_process(before):
            ids, loads, process = [], [], source.gauss(0, 0.03)
        ids.append(identifier)
        facts = ProcessFacts(id=ids[0], place=len(loads), after=loads[-1] if loads else "")
        left = (carried or {}).get(facts.after, 0.0) if cell.server in carriers else 0.0
        log = process + left + 0.3 * names.index(load)
        record = factory.record(cell.server, one.block, one.position, with_histogram=False)
        update = {"cell": cell.id, "id": identifier, "load_name": cell.trial.load_name}
        update["workload"] = cell.trial.workload.name
        made = record.model_copy(update=update | {"process": facts if share else None})
        rate = 5000 * math.exp(log + source.gauss(0, 0.004))
        trials.append(TrialView(made, factory.judgement(), {"requests_per_s": rate}))
        loads.append(load)
        before = one
    return build(factory.row(sharing_plan.title), sharing_plan, trials)


def shown(view: ResultView) -> str:
    out = StringIO()
    render(view, Console(file=out, width=400), details=True)
    return " ".join(out.getvalue().split())


def test_loads_are_compared_within_their_processes() -> None:
    view = result()
    (shared,) = to_json(view).parts[0].shared
    assert (shared.workload, shared.figure, shared.processes, shared.trials) == (
        view.plan.cells[0].trial.workload.name,
        "requests_per_s",
        16,
        64,
    )
    assert len(shared.ratios) == 2 * 3
    for ratio in shared.ratios:
        assert ratio.ratio == pytest.approx(math.exp(0.3), rel=0.02)
        assert ratio.low is not None
        assert ratio.high is not None
        assert ratio.high / ratio.low < 1.04, "the 3 % between processes are not in it"
    text = shown(view)
    assert "spring-tomcat, requests/s, closed-8 ÷ closed-1: 1.3" in text
    assert "(8 processes)" in text
    assert not shared.found


def test_a_load_that_leaves_something_behind_is_named() -> None:
    view = result({"closed-512": math.log(0.9)})
    (shared,) = to_json(view).parts[0].shared
    assert shared.found
    assert shared.carry_over is not None
    assert shared.carry_over.after == "closed-512"
    text = shown(view)
    assert "after closed-512 -" in text
    assert "after closed-512 -" in render_html(view)


@pytest.mark.parametrize("carriers", [SERVERS, SERVERS[:1]])
def test_what_a_load_of_one_server_leaves_behind_is_in_the_budget_of_the_ratio(
    carriers: Sequence[str],
) -> None:
    """Two of eight trials come after the largest load: the ratio moves by a quarter of the effect."""
    view = result({"closed-512": math.log(0.8)}, carriers=carriers)
    pairs = [pair for pair in to_json(view).parts[0].pairs if pair.figure == "requests_per_s"]
    smaller = [pair for pair in pairs if "closed-512" not in pair.where]
    assert len(smaller) == 3
    for pair in smaller:
        orders = [source for source in pair.sources if source.source == "order"]
        if len(carriers) == 2:
            assert orders == []
            continue
        (order,) = orders
        assert (order.low or 0, order.high) == pytest.approx((0, 0.8**-0.25 - 1), abs=0.02)
        assert pair.worst_high is not None
        assert pair.worst_high > 1, "the servers are equal"


def test_workloads_that_shared_are_compared_within_each_and_ordered_over_all() -> None:
    view = result(share="workloads", users=(1, 8))
    (shared,) = to_json(view).parts[0].shared
    assert (shared.workload, shared.processes, shared.trials) == ("", 16, 96)
    compared = {(ratio.load, ratio.other) for ratio in shared.ratios}
    assert compared == {(f"{name}/closed-8", f"{name}/closed-1") for name in VERBS}
    for ratio in shared.ratios:
        assert ratio.ratio == pytest.approx(math.exp(0.3), rel=0.02)
    assert not shared.found
    jsonschema.Draft202012Validator(json_schema()["result"]).validate(as_plain(to_json(view)))


def test_a_workload_that_leaves_something_behind_is_named_with_its_load() -> None:
    view = result({"json/closed-8": math.log(0.9)}, "workloads", (8,))
    (shared,) = to_json(view).parts[0].shared
    assert shared.ratios == ()
    assert shared.carry_over is not None
    assert (shared.found, shared.carry_over.after) == (True, "json/closed-8")
    text = shown(view)
    assert "after json/closed-8 -" in text
    assert "From load to load" not in text, "a verb is not compared with another one"


def test_nothing_is_reported_where_no_process_was_shared() -> None:
    view = result(share=None)
    assert to_json(view).parts[0].shared == []
    assert "From load to load" not in shown(view)


def test_the_json_is_as_the_schema_says_and_each_trial_names_its_process() -> None:
    out = to_json(result())
    jsonschema.Draft202012Validator(json_schema()["result"]).validate(as_plain(out))
    trials = [trial for cell in out.parts[0].cells for trial in cell.trials]
    assert len({trial.process.id for trial in trials if trial.process is not None}) == 16
    assert sorted({trial.process.place for trial in trials if trial.process is not None}) == [0, 1, 2, 3]
