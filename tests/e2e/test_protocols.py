"""The two-pass protocol and trials added until it is clear, as a user runs them. Only counts are asserted: on
a busy machine trials may rightly be invalid.
"""

from __future__ import annotations

from tests.e2e.conftest import SHORTEST, Lab
from tests.verdicts import demanded_code


def test_two_passes_are_three_experiments_of_which_two_are_open(lab: Lab) -> None:
    lab.server("one", "--work", "50us")
    lab.server("two", "--work", "100us")
    done = lab.run("compare", "one", "two", *SHORTEST, "--trials", "1", "--two-pass")
    stored = lab.json("results", "list")["experiments"]
    assert done.returncode == demanded_code(lab.db, stored[-1]["id"]), done.stderr
    shown = [lab.cells("results", "show", row["id"]) for row in reversed(stored)]
    if not all(cell["counting_trials"] for cell in shown[0]):
        assert "the second pass needs the capacity of" in done.stderr
        assert len(stored) == 1
        return
    assert len(stored) == 3
    assert [row["trials"] for row in stored] == [2, 2, 2]
    assert ["70 %" in row["title"] for row in reversed(stored)] == [False, True, False]
    for cells in shown[1:]:
        for trial in (trial for cell in cells for trial in cell["trials"]):
            assert {f["check"] for f in trial["findings"]} >= {"schedule"}


def test_blocks_are_added_until_it_is_clear_and_no_longer(lab: Lab) -> None:
    lab.server("one", "--work", "40us")
    lab.server("two", "--work", "200us")
    words = ("--trials", "3", "--until-clear", "--max-trials", "4")
    shown = lab.json("compare", "one", "two", *SHORTEST, *words)
    (part,) = shown["parts"]
    numbers = {len(cell["trials"]) for cell in part["cells"]}
    assert numbers <= {3, 4}
    assert len(numbers) == 1, "a block was left unfinished"
    if numbers == {3}:
        assert part["pairs"][0]["verdict"] in ("faster", "slower", "equivalent")
