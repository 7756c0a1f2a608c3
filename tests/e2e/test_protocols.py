"""The two-pass protocol and trials added until it is clear, as a user runs them."""

from __future__ import annotations

from contextlib import closing

import pytest

from prony.experiment.blocks import watches
from prony.experiment.stored import plan_of
from prony.store import Store
from tests.e2e.conftest import PROMPT, SHORTEST, SLUGGISH, Lab


@pytest.mark.rarely
def test_two_passes_are_one_experiment_of_which_two_parts_are_open(lab: Lab) -> None:
    lab.server("one", *PROMPT)
    lab.server("two", *SLUGGISH)
    shown = lab.json("compare", "one", "two", *SHORTEST, "--trials", "1", "--two-pass", *lab.lenient)
    assert len(lab.json("results", "list")["experiments"]) == 1
    assert [len(part["cells"]) for part in shown["parts"]] == [2, 2, 2]
    capacity, *passes = shown["parts"]
    first = {
        cell["server"]: cell["trials"][0]["figures"]["requests_per_s"]["value"] for cell in capacity["cells"]
    }
    own, common = ({cell["server"]: cell["offered_per_s"] for cell in part["cells"]} for part in passes)
    assert own == {server: pytest.approx(0.7 * first[server], rel=0.01) for server in first}
    assert common == dict.fromkeys(first, pytest.approx(0.7 * min(first.values()), rel=0.01))
    for part in passes:
        for trial in (trial for cell in part["cells"] for trial in cell["trials"]):
            assert {finding["check"] for finding in trial["findings"]} >= {"schedule"}
    assert lab.json("results", "show", "latest") == shown


@pytest.mark.rarely
def test_a_second_pass_without_a_capacity_is_said_and_ends_with_the_code_for_no_figure(lab: Lab) -> None:
    lab.server("one", "--work", "50us")
    lab.server("broken", "--work", "50us", "--errors", "share=0.5,fast=yes")
    done = lab.run("compare", "one", "broken", *SHORTEST, "--trials", "1", "--two-pass", *lab.lenient)
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stdout.split())
    assert "no trial of broken counts" in said
    assert " ".join(lab.run("results", "show", "latest").stdout.split()) == said


PAIR = """
title: One server and another
servers: [one, {other}]
workloads: hello
trials: 3
loads: {{users: 8}}
measured: {{duration_s: 1}}
"""


@pytest.mark.rarely
def test_blocks_are_added_until_it_is_clear_and_no_longer(lab: Lab) -> None:
    """A difference of 25 times is usually clear at the first look; of a server and itself, runs of a second
    show nothing. However the host spreads their rates: another block runs where the rule asks for one.
    """
    lab.server("one", *PROMPT)
    lab.server("same", *PROMPT)
    lab.server("slow", *SLUGGISH)
    words = ("--until-clear", "--max-trials", "4", "--seed", "1", *lab.lenient)
    for other in ("slow", "same"):
        (lab.folder / f"{other}.yaml").write_text(PAIR.format(other=other))
        (part,) = lab.json("run", f"{other}.yaml", *words)["parts"]
        (blocks,) = {len(cell["trials"]) for cell in part["cells"]}  # no block is left unfinished
        assert blocks == (3 if clear_after(lab, 3) else 4), part["pairs"]


def clear_after(lab: Lab, blocks: int) -> bool:
    """Whether every pair of the last experiment was clear by the stored trials of so many blocks."""
    with closing(Store.open(lab.db)) as store:
        row = store.experiment("latest")
        trials = store.trials(row.id)
    plan = plan_of(row)
    (part,) = plan.parts
    watched = watches(part, plan.cells)
    for trial in trials:
        if trial.record.block < blocks:
            watched[trial.record.cell].add(trial.record, trial.judgement, trial.figures)
    return all(watch.need() == 0 for watch in watched.values())
