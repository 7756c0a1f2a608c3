"""Plan files: what they expand to, in which order it runs, and what a mistake in one says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.judge.limits import CheckLimits
from prony.plan import planfile_quick, workload
from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow, WholeRun
from prony.plan.plan import Plan
from prony.plan.planfile import json_schema
from prony.plan.planfile_quick import QUICK_S, miniature, quicken, with_soak
from prony.plan.planfile_read import find, known, place_of, read
from prony.plan.target import Launch, Url
from prony.plan.trial import QUICK_WARM_UP, fixed

SWEEP = """
title: A sweep
servers: [alpha, beta]
workloads: hello
trials: 4
settings: {worker_threads: 20}
limits: {errors_share_max: 0.05}
per_server: {beta: {jdk: 21, heap: 2g}}
parts:
  - name: steady
    loads: {users: [1, 8, 16], think: [none, 500ms]}
    measured: {window_s: 20}
    published:
      - source: a paper
        label: theirs
        cells:
          - {server: alpha, users: 8, think_ms: 0, figures: {requests_per_s: 100}}
          - {users: 16, think_ms: 500, figures: {mean_ms: 3}}
  - name: sessions
    servers: beta
    trials: 2
    limits: {little_deviation: 0.1}
    band: 0.05
    loads: {phases: [{duration_s: 60, from_per_s: 100, to_per_s: 100}], session: user}
"""


def plan(tmp_path: Path, text: str, seed: int = 5) -> Plan:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return read(file, limits=CheckLimits, seed=seed)


def fault(tmp_path: Path, text: str) -> str:
    with pytest.raises(UsageError) as raised:
        plan(tmp_path, text)
    return str(raised.value)


def test_a_sweep_is_every_combination_on_every_server(tmp_path: Path) -> None:
    made = plan(tmp_path, SWEEP)
    steady = made.of("steady")
    assert len(steady) == 2 * 3 * 2
    assert {cell.users for cell in steady} == {1, 8, 16}
    assert {cell.trial.load.think.expected_ms for cell in steady} == {0, 500}
    assert all(cell.trial.measured == SteadyWindow(window_s=20) for cell in steady)
    assert len({cell.id for cell in made.cells}) == len(made.cells)


def test_a_part_inherits_and_replaces(tmp_path: Path) -> None:
    made = plan(tmp_path, SWEEP)
    (sessions,) = made.of("sessions")
    assert (sessions.server, sessions.trials) == ("beta", 2)
    assert isinstance(sessions.trial.load, OpenLoad)
    assert isinstance(sessions.trial.measured, WholeRun)
    assert sessions.limits == {"errors_share_max": 0.05, "little_deviation": 0.1}
    assert all(cell.trials == 4 for cell in made.of("steady"))
    assert [part.band for part in made.parts] == [0.02, 0.05]


def test_a_server_may_have_a_jdk_and_a_heap_of_its_own(tmp_path: Path) -> None:
    made = plan(tmp_path, SWEEP)
    targets = [cell.target for cell in made.of("steady")]
    by_server = {target.address: target for target in targets if isinstance(target, Launch)}
    assert (by_server["beta"].jdk, by_server["beta"].heap) == ("21", "2g")
    assert (by_server["alpha"].jdk, by_server["alpha"].heap) == (None, None)
    assert by_server["alpha"].settings == by_server["beta"].settings == {"worker_threads": 20}


def test_published_figures_find_their_cells(tmp_path: Path) -> None:
    made = plan(tmp_path, SWEEP)
    with_history = {cell.id: cell.published for cell in made.cells if cell.published}
    assert set(with_history) == {
        "steady/alpha/hello/closed-8",
        "steady/alpha/hello/closed-16-think-500ms",
        "steady/beta/hello/closed-16-think-500ms",
    }
    (history,) = with_history["steady/alpha/hello/closed-8"]
    assert (history.label, history.figures) == ("theirs", {"requests_per_s": 100})


def test_every_block_holds_each_cell_once_in_an_order_drawn_from_the_seed(tmp_path: Path) -> None:
    made = plan(tmp_path, SWEEP)
    order = made.order()
    assert [turn.index for turn in order] == list(range(1, len(order) + 1))
    assert order == plan(tmp_path, SWEEP).order()
    assert order != plan(tmp_path, SWEEP, seed=6).order()
    steady = {cell.id for cell in made.of("steady")}
    blocks = [[turn.cell for turn in order if turn.cell in steady and turn.block == n] for n in range(4)]
    assert all(set(block) == steady and len(block) == len(steady) for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1, "the blocks are not shuffled each for itself"
    assert {turn.cell for turn in order[-2:]} == {made.of("sessions")[0].id}, "parts run one after the other"


RUNNING = """
servers:
  - reference
  - {url: 'http://127.0.0.1:8080', addresses: ['127.0.0.1:3128'], source_addresses: [127.0.0.2]}
workloads: [hello, {name: ours, steps: [{path: /x, body_file: body.txt, method: POST}]}]
loads: {users: [1, 8]}
warm_up: 4
script: {file: calls.lua}
"""


def test_a_running_server_is_a_server_like_any_other(tmp_path: Path) -> None:
    made = plan(tmp_path, RUNNING)
    assert made.title == "mine"
    assert len(made.cells) == 2 * 2 * 2
    url = Url(url="http://127.0.0.1:8080", addresses=("127.0.0.1:3128",))
    targets = {cell.server: cell.target for cell in made.cells}
    assert targets == {"reference": Launch(address="reference"), url.url: url}
    for cell in made.cells:
        assert cell.trials == (5 if cell.target.owned else 1)
        assert cell.trial.source_addresses == (() if cell.target.owned else ("127.0.0.2",))
        assert cell.trial.warm_up == fixed(4)
        assert cell.trial.script is not None
        assert cell.trial.script.file == str(tmp_path / "calls.lua")
    files = {step.body_file for cell in made.cells for step in cell.trial.workload.all_steps}
    assert files == {None, str(tmp_path / "body.txt")}
    assert made.parts[0].shape == "matrix"
    assert plan(tmp_path, "servers: {url: 'http://h'}\nworkloads: hello\n").parts[0].shape == "single"


def test_groups_that_end_by_themselves_need_no_measured_part(tmp_path: Path) -> None:
    groups = "[{name: a, users: 2, iterations_per_user: 3}, {name: b, users: 1, duration_s: 2}]"
    text = f"servers: {{url: 'http://h'}}\nworkloads: hello\nloads: {{populations: {groups}}}\n"
    (cell,) = plan(tmp_path, text).cells
    assert cell.trial.measured == WholeRun()
    assert cell.users == 3


def test_what_is_stored_is_what_was_planned(tmp_path: Path) -> None:
    made = plan(tmp_path, SWEEP)
    assert Plan.model_validate_json(made.model_dump_json()) == made


def test_only_keeps_a_part_or_what_matches(tmp_path: Path) -> None:
    made = plan(tmp_path, SWEEP)
    part = made.only("sessions")
    assert part is not None
    assert [cell.part for cell in part.cells] == ["sessions"]
    some = made.only("steady/alpha/*/closed-8*")
    assert some is not None
    assert [cell.users for cell in some.cells] == [8, 8]
    assert made.only("nothing") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title: x\nservres: [a]\nworkloads: hello\n", ":2: unknown key 'servres', did you mean 'servers'?"),
        ("title: x\nservers: a\nworkloads: helo\n", ":3: unknown workload 'helo', did you mean 'hello'?"),
        ("title: x\nservers: a\n", ":1: the key 'workloads' is missing"),
        (
            "title: x\nservers: a\nworkloads: hello\nloads:\n  - users: 3\n    arrivals: poisson\n",
            ":5: 'loads.0' is",
        ),
        ("title: x\nservers: a\nworkloads: hello\nloads:\n  think: 3\n", ":5: 'loads.think' is 3"),
        (
            "title: x\nservers: a\nworkloads: hello\nloads:\n  userz: 3\n",
            ":5: unknown key 'loads.userz', did you mean 'users'?",
        ),
        (
            "title: x\nservers: a\nworkloads: hello\nlimits:\n  litle_deviation: 0.1\n",
            "mean 'little_deviation'",
        ),
        (
            "title: x\nservers: a\nworkloads: hello\nlimits:\n  little_deviation: 7\n",
            ":5: 'little_deviation' is 7",
        ),
        (
            "title: x\nservers: alpha\nworkloads: hello\nper_server: {alhpa: {jdk: 21}}\n",
            ":4: no server 'alhpa' in the part 'main', did you mean 'alpha'?",
        ),
        (
            "title: x\nservers: a\nworkloads: hello\nworkload_settings: {delay_ms: 3}\n",
            ":3: workload 'hello' has no setting 'delay_ms'",
        ),
        (
            "title: x\nservers: a\nworkloads: hello\nmeasured: {window_s: 3, total_requests: 4}\n",
            ":4: 'measured' is",
        ),
        (
            "title: x\nservers: a\nworkloads: hello\nloads: {users: [8, 8]}\n",
            ":4: the part 'main' holds the same",
        ),
        ("title: x\nparts:\n  - {name: a}\n  - {name: a}\n", "two parts are named 'a'"),
        ("title: [\n", "this is not valid YAML"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_was_expected(
    tmp_path: Path, text: str, expected: str
) -> None:
    said = fault(tmp_path, text)
    assert expected in said
    assert "mine.yaml:" in said


def test_an_unknown_plan_is_answered_with_the_nearest_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "frobnicate.yaml").write_text("title: x\n")
    monkeypatch.setenv("PRONY_PLANS", str(tmp_path))
    with pytest.raises(UsageError, match=r"'frobnicat'.*'frobnicate'"):
        find("frobnicat")


@pytest.mark.parametrize("name", sorted(known()))
def test_every_ready_plan_reads_and_can_be_cut_to_minutes(name: str) -> None:
    made = with_soak(read(find(name), limits=CheckLimits, seed=1), None)
    assert made.title
    quick = quicken(made)
    assert quick.quick
    assert quick.estimate_s <= 1.5 * QUICK_S
    assert {cell.part for cell in quick.cells} == {cell.part for cell in made.cells}
    assert {cell.server for cell in quick.cells} == {cell.server for cell in made.cells}
    assert miniature(made).estimate_s < made.estimate_s


def test_quick_says_that_users_walk_less_often_and_leaves_them_three_walks() -> None:
    made = quicken(read(find("crud"), limits=CheckLimits, seed=1))
    (walks,) = {
        cell.trial.measured.iterations_per_user
        for cell in made.of("real-users")
        if isinstance(cell.trial.measured, WholeRun)
    }
    assert walks == 3
    assert "quick: 3 of 10 walks per user" in made.changes


def test_quick_waits_for_a_level_server_only_and_no_longer_than_the_plan(tmp_path: Path) -> None:
    text = "title: x\nservers: a\nworkloads: hello\nloads: {users: 3}\n"
    (shown,) = plan(tmp_path, text + "warm_up: {settle_cap_s: 9}\n").cells
    assert shown.trial.warm_up.settle_until == "shown"
    (quick,) = quicken(plan(tmp_path, text + "warm_up: {settle_cap_s: 9}\n")).cells
    assert (quick.trial.warm_up.settle_until, quick.trial.warm_up.settle_cap_s) == ("level", 9)
    (timed,) = quicken(plan(tmp_path, text + "warm_up: 4\n")).cells
    assert (timed.trial.warm_up.method, timed.trial.warm_up.cap_s) == ("fixed", 4)
    (long,) = quicken(plan(tmp_path, text + "warm_up: 90\n")).cells
    assert long.trial.warm_up.cap_s < QUICK_WARM_UP.cap_s
    (level,) = plan(tmp_path, text + "warm_up: {settle_until: level}\n").cells
    assert level.trial.warm_up.settle_until == "level"
    with pytest.raises(UsageError, match="settle_until"):
        plan(tmp_path, text + "warm_up: {settle_until: bored}\n")


def test_quick_takes_the_gentlest_cut_and_says_what_it_changed(tmp_path: Path) -> None:
    small = plan(tmp_path, "title: x\nservers: a\nworkloads: hello\nloads: {users: 3}\n")
    assert quicken(small).cells[0].trials == 3
    large = quicken(plan(tmp_path, SWEEP))
    assert large.estimate_s <= QUICK_S
    assert large.changes
    assert all("quick: " in change for change in large.changes)


def test_a_thinned_sweep_keeps_its_ends_and_names_what_it_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(planfile_quick, "QUICK_S", 600.0)
    text = (
        "title: x\nservers: [a, b, c, d]\nworkloads: [hello, json]\n"
        "loads: {users: [1, 2, 4, 8, 16, 32, 64, 128]}\n"
    )
    quick = quicken(plan(tmp_path, text))
    users = {cell.users for cell in quick.cells}
    assert {1, 128} <= users
    assert len(users) < 8
    assert any("left out of main" in change for change in quick.changes)


def test_a_miniature_has_few_users_and_short_windows(tmp_path: Path) -> None:
    made = miniature(plan(tmp_path, SWEEP))
    assert all(cell.users is None or cell.users <= 16 for cell in made.cells)
    assert all(cell.trial.measured_s <= 2 for cell in made.cells)
    assert all(cell.trials == 1 for cell in made.cells)


def test_a_soak_is_run_alone_and_only_when_its_length_is_said(tmp_path: Path) -> None:
    text = SWEEP + "  - {name: soak, soak: true, loads: {users: [16, 32]}, measured: {duration_s: 60}}\n"
    made = plan(tmp_path, text)
    ordinary = with_soak(made, None)
    assert {cell.part for cell in ordinary.cells} == {"steady", "sessions"}
    assert {one.part for one in ordinary.skipped} == {"soak"}
    long = with_soak(made, 8 * 3600.0)
    assert {cell.part for cell in long.cells} == {"soak"}
    assert all(cell.trial.measured == WholeRun(duration_s=28800) for cell in long.cells)
    assert all(isinstance(cell.trial.load, ClosedLoad) for cell in long.cells)
    with pytest.raises(UsageError, match="soak: true"):
        with_soak(plan(tmp_path, SWEEP), 60.0)


DRAINED = SWEEP + "    measured: {drain_s: 240}\n    optional: true\n"


def test_sessions_may_take_their_time_to_end_and_less_when_fewer_arrive(tmp_path: Path) -> None:
    made = plan(tmp_path, DRAINED)
    (cell,) = made.of("sessions")
    assert (cell.trial.deadline_s, cell.optional) == (300, True)
    assert not any(cell.optional for cell in made.of("steady"))
    (short,) = miniature(made).of("sessions")
    assert short.trial.deadline_s == 2 + 20
    said = fault(tmp_path, SWEEP + "    measured: {drain_s: 240, duration_s: 60}\n")
    assert "drain_s" in said


def test_the_published_schema_is_the_one_of_this_program() -> None:
    file = Path(__file__).parents[2] / "docs/schema/plan.json"
    assert json.loads(file.read_text()) == json_schema(), "make schema writes it anew"


def test_where_a_part_names_a_server(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "servers: [alpha,\n  beta]\nparts:\n  - name: one\n"
        "  - name: two\n    servers:\n      - gamma\n      - delta\n"
    )
    assert place_of(file, "one", "beta") == f"{file}:2"
    assert place_of(file, "two", "delta") == f"{file}:8"


def test_windows_follow_each_other_in_one_process(tmp_path: Path) -> None:
    text = "title: x\nservers: a\nworkloads: hello\nmeasured: {window_s: 20, windows: 3}\n"
    (cell,) = plan(tmp_path, text).cells
    assert cell.trial.measured == SteadyWindow(window_s=20, windows=3)
    assert cell.trial.measured_s == 60
    for both in ("window_s: 20, windows: 3, precision: 0.02", "duration_s: 9, windows: 2"):
        assert "windows" in fault(tmp_path, text.replace("window_s: 20, windows: 3", both))


def test_a_title_is_what_every_database_can_store(tmp_path: Path) -> None:
    steps = 'steps: [{name: "s\\0t", path: /}]\ntitle: "w\\0x"\n'
    (tmp_path / "mine.yaml").write_text(steps)
    assert workload.read(tmp_path / "mine.yaml").title == "w\ufffdx"
    file = tmp_path / "plan.yaml"
    file.write_text(
        'title: "a\\0b"\nservers: {url: "http://h:1"}\nworkloads: mine.yaml\nloads: {users: 1}\n'
        'parts: [{name: p, title: "c\\0d"}]\n'
    )
    plan = read(file, limits=CheckLimits, seed=1)
    assert (plan.title, plan.parts[0].title) == ("a\ufffdb", "c\ufffdd")
