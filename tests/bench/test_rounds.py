"""The order of the runs."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest

from bench.cases import CASES, chosen
from bench.rounds import turns
from bench.session import chosen_tools
from bench.tools import TOOLS
from prony.errors import UsageError


def test_every_pair_once_per_round_and_no_two_rounds_alike() -> None:
    found = list(turns(CASES, TOOLS, 5, seed=3))
    assert set(Counter((turn.round, turn.case.name, turn.tool.name) for turn in found).values()) == {1}
    taken = [case.takes(tool.name) for case in CASES for tool in TOOLS]
    assert len(found) == 5 * sum(taken)
    assert [turn.round for turn in found] == sorted(turn.round for turn in found)
    orders = {tuple((t.case.name, t.tool.name) for t in found if t.round == number) for number in range(1, 6)}
    assert len(orders) == 5


def test_extra_evidence_is_compared_with_the_same_driver_without_it_and_runs_nowhere_else() -> None:
    places = {case.name: [tool.name for tool in TOOLS if case.takes(tool.name)] for case in CASES}
    for driver in ("io_uring", "epoll"):
        plain = f"prony-{driver}"
        expected = [plain, f"{plain}+parts", f"{plain}+log", f"{plain}+parts+log"]
        assert places.pop(f"evidence-{driver}") == expected
        assert next(case for case in CASES if case.name == f"evidence-{driver}").baseline == plain
    assert not any("+" in name for names in places.values() for name in names)


def test_what_is_compared_runs_together() -> None:
    found = list(turns(CASES, TOOLS, 2, seed=3))
    spans = [key for key, _ in groupby((turn.round, turn.case.name) for turn in found)]
    assert len(spans) == len(set(spans))


def test_the_seed_is_the_order() -> None:
    def names(seed: int) -> list[str]:
        return [turn.tool.name for turn in turns(CASES, TOOLS, 3, seed)]

    assert names(1) == names(1)
    assert names(1) != names(2)


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match="closed-64"):
        chosen(["closed-65"], quick=False)
    with pytest.raises(UsageError, match="h2load"):
        chosen_tools(["hey"])


def test_a_quick_run_leaves_out_what_was_not_named() -> None:
    assert "closed-1" not in {case.name for case in chosen([], quick=True)}
    assert {case.name for case in chosen(["closed-1"], quick=True)} == {"closed-1"}
