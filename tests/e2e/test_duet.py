"""Two servers alive together, in turns: `prony compare` and `prony gate` as a user runs them."""

from __future__ import annotations

import json

import pytest

from prony.errors import ExitCode
from prony.experiment.stored import plan_of
from prony.plan.turns import LEFT_OUT_S, TURN_S
from prony.store import Store
from tests.e2e.conftest import PROMPT, SHORT, SLUGGISH, Lab


def test_a_pair_takes_turns_and_each_keeps_its_connections(lab: Lab) -> None:
    lab.server("prompt", *PROMPT)
    lab.server("sluggish", *SLUGGISH)
    done = lab.run("compare", "prompt", "sluggish", *SHORT, "--trials", "1", "--duet", *lab.lenient, "--json")
    assert done.returncode == 0, done.stderr
    (part,) = json.loads(done.stdout)["parts"]
    assert {cell["server"] for cell in part["cells"]} == {"prompt", "sluggish"}
    store = Store.open(str(lab.db))
    trials = store.trials(store.experiments()[0].id)
    assert len(trials) == 2
    for trial in trials:
        evidence = trial.record.evidence
        engine, turns = evidence.engine, evidence.turns
        assert engine is not None
        assert engine.window is not None
        assert turns is not None
        assert (turns.turns, turns.turn_s, turns.left_out_s) == (2, TURN_S, LEFT_OUT_S)
        assert set(turns.others) == {"prompt", "sluggish"} - {trial.record.server}
        assert engine.window.complete
        assert abs(engine.window.duration_s - 2 * TURN_S) < 0.05
        assert engine.window.connections_opened == 0
        assert engine.totals.connections_opened == 8
        # The window is one stretch behind the warm-up, whatever lay between its turns.
        inside = [row for row in engine.rows if row.in_window]
        assert sum(row.completed for row in inside) == engine.window.completed
        assert abs(inside[-1].t_ms - engine.window.opened_ms - 2000) < 50
    rates = {one.record.server: one.figures["requests_per_s"] for one in trials}
    assert rates["prompt"] > 5 * rates["sluggish"]


def test_a_gate_in_turns_stops_a_slower_build(lab: Lab) -> None:
    """By default: two servers without a JVM. Three complete pairs, the last of which decides."""
    lab.server("base", "--work", "50us")
    lab.server("candidate", "--work", "1ms")
    done = lab.run(
        "gate", "./servers/base", "./servers/candidate", "--window", "1s", "--warm-up-cap", "1s",
        *("--users", "8", "--seed", "1", "--trials", "3", "--max-trials", "6", "--budget", "10m"),
        *("--margin", "50%", "--figures", "requests_per_s,cpu_us_per_request", *lab.lenient),
    )  # fmt: skip
    assert done.returncode == ExitCode.WORSE, done.stdout + done.stderr
    assert "candidate is worse than base by more than 50 %" in " ".join(done.stdout.split())
    store = Store.open(str(lab.db))
    row = store.experiments()[0]
    assert plan_of(row).parts[0].duet
    trials = store.trials(row.id)
    assert len(trials) >= 6
    assert len(trials) % 2 == 0
    assert all(one.record.evidence.turns is not None for one in trials)


@pytest.mark.rarely
def test_a_gate_in_turns_passes_the_same_build(lab: Lab) -> None:
    """By CPU time per request, which other load does not change by nine tenths."""
    lab.server("same", "--work", "200us")
    done = lab.run(
        "gate", "./servers/same", "./servers/same", "--window", "1s", "--warm-up-cap", "1s", "--duet",
        *("--users", "8", "--seed", "1", "--trials", "3", "--max-trials", "20", "--budget", "10m"),
        *("--margin", "90%", "--figures", "cpu_us_per_request", *lab.lenient),
    )  # fmt: skip
    assert done.returncode == ExitCode.OK, done.stdout + done.stderr


def test_what_cannot_take_turns_is_refused_in_a_sentence(lab: Lab) -> None:
    lab.server("prompt", *PROMPT)
    lab.server("sluggish", *SLUGGISH)
    for words in (
        ("compare", "prompt", "sluggish", "--duet", "--two-pass"),
        ("compare", "prompt", "sluggish", "--duet", "--repeat-disturbed", "1"),
        ("gate", "./servers/prompt", "./servers/sluggish", "--duet", "--protocol", "1s,2s"),
    ):
        done = lab.run(*words)
        assert done.returncode == 2, done.stderr
        assert "a duet does not apply" in " ".join(done.stderr.split())
