"""Clean trials of fast servers: which set-ups there are, and what the count of accusations is worth."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from prony.evidence.engine import EngineThread
from prony.judge.finding import Status
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.selftest.faults.clean_trials import (
    AT_URL,
    FAST_USERS,
    CleanTrial,
    accusation,
    clean_trials_table,
    client_busy,
    every_setup,
    fast_setups,
)
from prony.selftest.faults.model import Setup
from prony.selftest.faults.trial import run_setup
from prony.selftest.proportion import upper_bound
from tests.judge import factory


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
    found = upper_bound(hits, count)
    assert found == pytest.approx(most, abs=2e-4)
    chance = sum(_binomial(k, count, found) for k in range(hits + 1))
    assert chance == pytest.approx(0.05, abs=1e-6)
    assert upper_bound(count, count) == 1.0


def _binomial(k: int, n: int, p: float) -> float:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def trial(verdict: Status, others: bool, setup: str = "busy server") -> CleanTrial:
    problems: dict[str, tuple[Status, str]] = {} if verdict is Status.VALID else {"client": (verdict, "why")}
    return CleanTrial(setup, verdict, problems, others)


def test_an_accusation_is_one_without_a_witness() -> None:
    trials = [trial(Status.VALID, False)] * 57
    trials += [trial(Status.SUSPECT, True), trial(Status.UNKNOWN, False), trial(Status.INVALID, False)]
    assert [one.accused for one in trials[57:]] == [False, False, True]
    table = clean_trials_table(trials)
    assert accusation(trials) in table
    assert "Suspect or invalid: 2 of 60 (3.3 %), which is at most 10.1 %" in table
    assert "Witness another process or the hypervisor: 1; the load generator's own threads: 0." in table
    assert "Without a witness: 1 of 60 (1.7 %), which is at most 7.7 %" in table


@pytest.mark.parametrize(
    ("check", "why", "busy", "accused"),
    [
        ("client", "saturated", True, False),
        ("client", "saturated", False, True),
        ("stall", "stood still", True, False),
        ("little", "6 of 8 users", True, True),
        ("bound_by", "client: load generator saturated", True, False),
        ("bound_by", "server CPU 35.3 % of what was granted", True, True),
    ],
)
def test_the_load_generators_threads_are_witnesses_of_itself_only(
    check: str, why: str, busy: bool, accused: bool
) -> None:
    problems = {check: (Status.INVALID, why), "steady": (Status.UNKNOWN, "short")}
    found = CleanTrial("busy server", Status.INVALID, problems, client_busy=busy)
    assert found.accused is accused
    assert f"own threads: {int(not accused)}. Without a witness: {int(accused)} of 1" in accusation([found])


@pytest.mark.parametrize(
    ("cpu_s", "run_delay_s", "busy"),
    [(0.93, 0.03, True), (0.9, 0.01, False), (0.945, 0.01, True), (0.3, 0.02, True), (0.3, None, False)],
)
def test_a_thread_without_cpu_time_to_spare_is_read_from_the_kernels_count(
    cpu_s: float, run_delay_s: float | None, busy: bool
) -> None:
    thread = EngineThread(cpu_s=cpu_s, wall_s=1.0, run_delay_s=run_delay_s)
    assert client_busy(factory.window(factory.healthy(), threads=(EngineThread(), thread))) is busy


def test_many_fast_set_ups_do_not_fill_the_table() -> None:
    trials = [trial(Status.SUSPECT, False, name) for name in fast_setups()]
    assert "36 fast servers (any CPU, 1 users, HTTPS, …)" in clean_trials_table(trials)


@pytest.mark.parametrize("tls", [False, True])
def test_a_server_beside_prony_is_measured_at_its_url_and_read(tls: bool) -> None:
    found = run_setup(Setup(serve=(), foreign=True, tls=tls, calibrated=True))
    evidence = found.evidence
    assert evidence.server.owned is False
    assert evidence.server_window is not None
    assert evidence.server_window.busiest_thread is not None
    assert evidence.server_count is not None
    assert evidence.calibration is not None


def test_a_plain_asyncio_server_with_one_user_is_among_the_clean_trials_and_is_read() -> None:
    """19,000 requests a second of Python were called suspect of the client: 98.5 % of a rate that the round
    trip bounds. Its verdict is that of the honest trials; how busy this host is must not decide here.
    """
    setup = every_setup()["asyncio server at a URL, 1 user"]
    assert setup.load == ClosedLoad(users=1)
    assert (setup.measured, setup.foreign, setup.calibrated) == (AT_URL, True, True)
    short = replace(setup, measured=SteadyWindow(window_s=2.0))
    found = run_setup(short)
    evidence = found.evidence
    assert evidence.server.owned is False
    assert evidence.server_window is not None
    assert evidence.server_window.busiest_thread is not None
    assert evidence.calibration is not None
    # Books that are kept right do not depend on who else is busy.
    assert found.status("little") in {Status.VALID, Status.UNKNOWN}, found.reason("little")
