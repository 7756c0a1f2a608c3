"""Clean trials of fast servers: which set-ups there are, and what the count that conforms is worth."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from prony.judge.finding import Kind
from prony.plan.load import ClosedLoad, SteadyWindow
from prony_selftest.faults.clean_trials import (
    AT_URL,
    FAST_USERS,
    CleanTrial,
    clean_trials_table,
    conforming,
    every_setup,
    fast_setups,
)
from prony_selftest.faults.model import Setup
from prony_selftest.faults.trial import run_setup
from prony_selftest.proportion import upper_bound


def test_fast_servers_are_there_in_every_kind_and_a_short_run_meets_them_all() -> None:
    fast, every = fast_setups(), list(every_setup())
    assert len(fast) == len(FAST_USERS) * 2 * 3
    assert {one.load.users for one in fast.values() if isinstance(one.load, ClosedLoad)} == set(FAST_USERS)
    as_users_measure = [one for one in fast.values() if isinstance(one.measured, SteadyWindow)]
    as_users_measure = [one for one in as_users_measure if not one.tls]
    assert [one.load for one in as_users_measure] == [ClosedLoad(users=users) for users in FAST_USERS]
    assert all(one.foreign and one.connections.keep_alive for one in as_users_measure)
    assert len(every) == len(set(every)) == len(every_setup())
    first = [fast[name] for name in every[:14] if name in fast]
    assert {one.foreign for one in first} == {one.tls for one in first} == {True, False}
    assert {one.connections.keep_alive for one in first} == {True, False}
    assert "busy server" in every[:7]


@pytest.mark.parametrize(("hits", "count", "most"), [(0, 60, 0.0487), (0, 300, 0.00994), (1, 300, 0.0157)])
def test_the_bound_is_the_exact_binomial_one(hits: int, count: int, most: float) -> None:
    outcome = upper_bound(hits, count)
    assert outcome == pytest.approx(most, abs=2e-4)
    chance = sum(_binomial(k, count, outcome) for k in range(hits + 1))
    assert chance == pytest.approx(0.05, abs=1e-6)
    assert upper_bound(count, count) == 1.0


def _binomial(k: int, n: int, p: float) -> float:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def trial(conforms: bool, setup: str = "busy server") -> CleanTrial:
    return CleanTrial(setup, {} if conforms else {"counts": "why"}, {})


def test_what_does_not_conform_has_its_bound() -> None:
    trials = [*[trial(True)] * 58, trial(False), trial(False)]
    assert conforming(trials) in clean_trials_table(trials)
    assert conforming(trials).startswith("Do not conform: 2 of 60, which is at most 10.1 %")


def test_many_fast_set_ups_do_not_fill_the_table() -> None:
    trials = [trial(False, name) for name in fast_setups()]
    assert "36 fast servers (any CPU, 1 users, HTTPS, …)" in clean_trials_table(trials)


@pytest.mark.parametrize("tls", [False, True])
def test_a_server_beside_prony_is_measured_at_its_url_and_read(tls: bool) -> None:
    outcome = run_setup(Setup(serve=(), foreign=True, tls=tls, calibrated=True))
    evidence = outcome.evidence
    assert evidence.server.owned is False
    assert evidence.server_window is not None
    assert evidence.server_window.busiest_thread is not None
    assert evidence.server_count is not None
    assert evidence.calibration is not None


@pytest.mark.rarely
def test_a_plain_asyncio_server_with_one_user_is_among_the_clean_trials_and_is_read() -> None:
    """How busy this host is must not decide here."""
    setup = every_setup()["asyncio server at a URL, 1 user"]
    assert setup.load == ClosedLoad(users=1)
    assert (setup.measured, setup.foreign, setup.calibrated) == (AT_URL, True, True)
    short = replace(setup, measured=SteadyWindow(window_s=2.0))
    outcome = run_setup(short)
    evidence = outcome.evidence
    assert evidence.server.owned is False
    assert evidence.server_window is not None
    assert evidence.server_window.busiest_thread is not None
    assert evidence.calibration is not None
    # Books that are kept right do not depend on who else is busy.
    assert outcome.kind("little") is not Kind.NOT_CONFORMING, outcome.reason("little")
