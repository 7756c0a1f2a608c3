"""`prony run` as a user meets it: a small plan on real servers, killed half-way, resumed, shown."""

from __future__ import annotations

import csv
import json
import os
import signal
import sqlite3
import time
from contextlib import closing

import pytest

from tests.e2e.conftest import PATIENCE_S, Lab, ended
from tests.exit_codes import demanded_code

PLAN = """
title: Small
servers: [one, two]
workloads: hello
trials: 2
seed: 7
parts:
  - name: fixed
    title: A fixed number of requests
    loads: {users: [1, 4]}
    measured: {duration_s: 1}
    published:
      - source: somebody, on other hardware
        cells: [{server: one, users: 4, figures: {requests_per_s: 123}}]
  - name: open
    servers: one
    trials: 1
    loads: {phases: [{duration_s: 1, from_per_s: 50, to_per_s: 50}]}
"""
TRIALS = 2 * 2 * 2 + 1


@pytest.fixture
def small(lab: Lab) -> Lab:
    lab.server("one")
    lab.server("two")
    (lab.folder / "small.yaml").write_text(PLAN)
    return lab


def stored(lab: Lab) -> list[tuple[str, str]]:
    """(id, start) of every stored trial, in the order of their ids."""
    if not lab.db.exists():
        return []
    with closing(sqlite3.connect(lab.db)) as database:
        try:
            return [tuple(row) for row in database.execute("select id, started from trials order by id")]
        except sqlite3.OperationalError:  # no tables yet
            return []


def await_trials(lab: Lab, count: int, within_s: float = PATIENCE_S) -> None:
    deadline_s = time.monotonic() + within_s
    while len(stored(lab)) < count:
        assert time.monotonic() < deadline_s, f"only {len(stored(lab))} trials were stored"
        time.sleep(0.05)


def test_a_dry_run_says_the_order_and_runs_nothing(small: Lab) -> None:
    shown = small.json("run", "small.yaml", "--dry-run")
    assert len(shown["trials"]) == TRIALS
    assert [trial["index"] for trial in shown["trials"]] == list(range(1, TRIALS + 1))
    trials_s = sum(trial["estimate_s"] for trial in shown["trials"])
    assert shown["estimate_s"] == pytest.approx(trials_s, abs=1)
    assert stored(small) == []
    assert small.json("run", "small.yaml", "--dry-run") == shown, "the seed is the plan's"


def test_a_run_killed_half_way_goes_on_without_losing_or_repeating_a_trial(small: Lab) -> None:
    order = [trial["cell"] for trial in small.json("run", "small.yaml", "--dry-run")["trials"]]
    process = small.start("run", "small.yaml")
    await_trials(small, 3)
    os.kill(process.pid, signal.SIGKILL)
    ended(process)
    before = stored(small)
    assert 3 <= len(before) < TRIALS

    interrupted = small.json("results", "show", "latest")
    assert interrupted["status"] == "interrupted"
    assert any("--resume" in warning for warning in interrupted["warnings"])
    left = small.json("run", "--resume", "latest", "--dry-run")
    assert [trial["cell"] for trial in left["trials"]] == order[len(before) :]

    (small.folder / "small.yaml").write_text(PLAN.replace("trials: 2", "trials: 9"))
    shown = small.json("run", "--resume", "latest")
    after = stored(small)
    assert after[: len(before)] == before, "a trial that had ended was run again"
    assert [identifier[-3:] for identifier, _ in after] == [f"{n:03d}" for n in range(1, TRIALS + 1)]
    assert shown["status"] == "finished"
    assert shown["ended_trials"] == shown["planned_trials"] == TRIALS
    assert {cell["id"] for part in shown["parts"] for cell in part["cells"]} == set(order)
    assert small.json("run", "--resume", "latest") == shown, "nothing is left to run"
    deadline_s = time.monotonic() + PATIENCE_S
    while small.leftovers() and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert small.leftovers() == []


@pytest.mark.rarely
def test_a_report_shows_cells_published_figures_and_what_was_left_out(small: Lab) -> None:
    (small.folder / "small.yaml").write_text(
        PLAN + "  - {name: huge, servers: one, trials: 1, loads: {users: 900000}, needs: {cpus: 100000}}\n"
    )
    refused = small.run("run", "small.yaml")
    assert refused.returncode == 4
    assert "the plan needs 100000 CPUs" in refused.stderr
    assert "--skip-unmeetable" in refused.stderr
    assert stored(small) == []

    page = small.folder / "report.html"
    done = small.run("run", "small.yaml", "--miniature", "--skip-unmeetable", "--json", "--report", str(page))
    assert done.returncode == demanded_code(small.db), done.stderr
    shown = json.loads(done.stdout)
    assert shown["quick"] is True
    parts = {part["name"]: part for part in shown["parts"]}
    assert set(parts) == {"fixed", "open", "huge"}
    assert "100000 CPUs" in parts["huge"]["skipped"][0]["why"]
    cells = {cell["id"]: cell for cell in parts["fixed"]["cells"]}
    assert cells["fixed/one/hello/closed-4"]["published"][0]["figures"] == {"requests_per_s": 123}
    for cell in cells.values():
        assert cell["ended_trials"] == 1
        assert bool(cell["figures"]) == (cell["counting_trials"] > 0)
    text = page.read_text()
    assert "somebody, on other hardware" in text
    assert "100000 CPUs" in text
    assert "quick" in text


def test_the_forecast_refuses_a_connection_per_request_at_the_published_rate(lab: Lab) -> None:
    shown = lab.json("run", "jaxrs", "--dry-run", "--only", "connection-per-request*")
    assert [trial["cell"].partition("/")[0] for trial in shown["trials"]] == ["connection-per-request"]
    published = "connection-per-request-as-published"
    (why,) = (one["why"] for one in shown["skipped"] if one["cell"].startswith(f"{published}/"))
    assert "ports needed (60,000 new connections/s" in why
    assert "3. use at least" in why, "the remedies are named"
    alone = lab.run("run", "jaxrs", "--only", published)
    assert alone.returncode == 4
    assert stored(lab) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run",), 2, "name a plan or a plan file"),
        (("run", "nothing"), 2, "unknown plan 'nothing'"),
        (("run", "missing.yaml"), 2, "cannot be read"),
        (("run", "small.yaml", "--only", "fixt"), 2, "its parts: fixed, open"),
        (("run", "small.yaml", "--duration", "8h"), 2, "no soak part"),
        (("run", "--resume", "latest", "--quick"), 2, "--quick"),
        (("run", "--resume", "latest"), 2, "No results"),
    ],
)
def test_bad_input_gets_one_sentence(small: Lab, words: tuple[str, ...], code: int, said: str) -> None:
    done = small.run(*words)
    assert done.returncode == code
    assert said in done.stderr
    assert stored(small) == []


def test_a_plan_with_an_unknown_server_names_the_nearest(small: Lab) -> None:
    (small.folder / "small.yaml").write_text("title: x\nservers: referense\nworkloads: hello\n")
    done = small.run("run", "small.yaml")
    assert done.returncode == 2
    assert "did you mean 'reference'" in done.stderr


@pytest.mark.rarely
def test_a_comparison_is_continued_like_a_plan(small: Lab) -> None:
    short = ("--quick", "--window", "1s", "--warm-up-cap", "1s", "--trials", "2")
    process = small.start("compare", "one", "two", *short)
    await_trials(small, 1)
    os.kill(process.pid, signal.SIGINT)
    _, said = ended(process)
    assert process.returncode == 130, said
    assert "prony compare --resume" in said
    before = stored(small)
    assert 1 <= len(before) < 4
    done = small.run("compare", "--resume", "latest")
    assert done.returncode == demanded_code(small.db), done.stderr
    after = stored(small)
    assert len(after) == 4
    assert set(before) <= set(after)


def test_results_go_to_another_machine_and_are_put_beside_each_other(small: Lab) -> None:
    (small.folder / "small.yaml").write_text(PLAN.replace("trials: 2", "trials: 1").replace("[1, 4]", "[4]"))
    first = small.json("run", "small.yaml", *small.lenient)
    second = small.json("run", "small.yaml", "--seed", "8", *small.lenient)
    file = small.folder / "first.prony"
    done = small.run("results", "export", first["id"], "-o", str(file))
    assert done.returncode == 0, done.stderr
    elsewhere = ("--db", str(small.folder / "elsewhere.db"))
    assert "3 new trials" in small.run("results", "import", str(file), *elsewhere).stdout
    assert "nothing new" in small.run("results", "import", str(file), *elsewhere).stdout
    shown = small.json("results", "show", first["id"], *elsewhere)
    assert shown["parts"] == first["parts"]
    lines = small.run("results", "csv", first["id"], "--format", "wrk").stdout.splitlines()
    cells = [cell for part in first["parts"] for cell in part["cells"]]
    assert len(lines) == 1 + sum(cell["counting_trials"] for cell in cells) == 4
    rows = list(csv.DictReader(small.run("results", "csv", first["id"]).stdout.splitlines()))
    assert {row["cell"] for row in rows} == {cell["id"] for cell in cells}
    beside = small.run("compare-results", first["id"], second["id"])
    assert beside.returncode == 0, beside.stderr
    same = small.run("compare-results", first["id"], first["id"])
    assert same.returncode == 2
    assert "are the same result" in same.stderr
    broken = small.run("results", "import", str(small.folder / "small.yaml"))
    assert broken.returncode == 2
    assert "is not an export" in broken.stderr
