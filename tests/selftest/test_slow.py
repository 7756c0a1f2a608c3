"""The self-test of slow requests: its rows, from made-up findings and without a server."""

from __future__ import annotations

import pytest

from prony.evidence.profile import EventKind
from prony_explain.slow import NAMES, Beside, SlowRequests
from prony_selftest import slow
from prony_selftest.programs import NotRun
from prony_selftest.slow import STAGED, Staged, row, slow_table

STOPS, SLEEPS, _, HOLDS, BOTH = STAGED


def found(kind: EventKind, share: float, low: float, high: float, chance: float) -> SlowRequests:
    beside = Beside(kind, share, low, high, chance, events=30, time_share=0.03)
    return SlowRequests(80, 80_000, 41.0, 25, (beside,), (), ())


@pytest.mark.parametrize(
    ("staged", "low", "named", "right"),
    [
        (STOPS, 0.7, "yes", "yes"),
        (STOPS, 0.05, "no", "no"),
        (SLEEPS, 0.7, "yes", "no"),
        (SLEEPS, 0.05, "no", "yes"),
        (HOLDS, 0.7, "yes", "yes"),
        (HOLDS, 0.05, "no", "no"),
        (BOTH, 0.7, "yes", "no"),
    ],
)
def test_a_collection_or_a_lock_is_to_be_named_where_it_is_the_reason_and_only_there(
    staged: Staged, low: float, named: str, right: str
) -> None:
    made = row(staged, found(staged.kind, 0.9, low, 0.97, 0.12))
    assert made[1] == "80, 41 ms and more"
    assert made[2] == NAMES[staged.kind]
    assert made[3] == f"90% [{low:.0%}, 97%] of 30"
    assert made[-2:] == (named, right)


def test_what_was_not_read_is_not_right() -> None:
    nothing = SlowRequests(80, 80_000, 41.0, 25, (), (), ())
    assert row(SLEEPS, nothing)[-1] == "no"
    other = found("collection", 0.9, 0.7, 0.97, 0.12)
    assert row(HOLDS, other)[3:] == ("not read", "", "", "no")


def test_a_server_that_cannot_be_run_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_staged: Staged, _say: object) -> SlowRequests:
        raise NotRun("no JDK 17 or newer with a compiler was found")

    monkeypatch.setattr(slow, "run", refuse)
    made = slow_table(lambda _: None)
    assert made.count("not run: no JDK 17 or newer") == len(STAGED)
