"""The two-pass protocol and trials added until it is clear, as a user runs them."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import SHORTEST, Lab


def test_two_passes_are_one_experiment_of_which_two_parts_are_open(lab: Lab) -> None:
    lab.server("one", "--work", "50us")
    lab.server("two", "--work", "1ms")
    shown = lab.json("compare", "one", "two", *SHORTEST, "--trials", "1", "--two-pass", *lab.lenient)
    assert len(lab.json("results", "list")["experiments"]) == 1
    assert [len(part["cells"]) for part in shown["parts"]] == [2, 2, 2]
    capacity, *passes = shown["parts"]
    first = {cell["server"]: cell["trials"][0]["figures"]["requests_per_s"] for cell in capacity["cells"]}
    own, common = ({cell["server"]: cell["offered_per_s"] for cell in part["cells"]} for part in passes)
    assert own == {server: pytest.approx(0.7 * first[server], rel=0.01) for server in first}
    assert common == dict.fromkeys(first, pytest.approx(0.7 * min(first.values()), rel=0.01))
    for part in passes:
        for trial in (trial for cell in part["cells"] for trial in cell["trials"]):
            assert {finding["check"] for finding in trial["findings"]} >= {"schedule"}
    assert lab.json("results", "show", "latest") == shown


def test_a_second_pass_without_a_capacity_is_said_and_ends_with_the_code_for_invalid(lab: Lab) -> None:
    lab.server("one", "--work", "50us")
    lab.server("broken", "--work", "50us", "--errors", "share=0.5,fast=yes")
    done = lab.run("compare", "one", "broken", *SHORTEST, "--trials", "1", "--two-pass", *lab.lenient)
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stdout.split())
    assert "needs the capacity of broken, of which no trial counts" in said
    assert " ".join(lab.run("results", "show", "latest").stdout.split()) == said


def test_blocks_are_added_until_it_is_clear_and_no_longer(lab: Lab) -> None:
    """A difference of 20 times is clear at the first look; a server and itself are not after four blocks."""
    lab.server("one", "--work", "50us")
    lab.server("same", "--work", "50us")
    lab.server("slow", "--work", "1ms")
    words = (*SHORTEST, "--trials", "3", "--until-clear", "--max-trials", "4", *lab.lenient)
    clear = lab.cells("compare", "one", "slow", *words)
    assert [len(cell["trials"]) for cell in clear] == [3, 3]
    unclear = lab.json("compare", "one", "same", *words)["parts"][0]
    looked = {len(cell["trials"]) for cell in unclear["cells"]}
    assert len(looked) == 1, "a block was left unfinished"
    settled = unclear["pairs"][0]["verdict"] in ("faster", "slower", "equivalent")
    assert settled or looked == {4}, "it stopped before it was clear"
