"""The self-test of explanations: rows from staged runs, without a profiler."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prony.evidence.profile import Counters
from prony_selftest import explained
from prony_selftest.explained import (
    STAGED,
    Ran,
    Staged,
    counter_rows,
    difference_row,
    explain_tables,
    share_row,
)
from prony_selftest.programs import NotRun
from tests.explain.profiles import costs, profile, staged

PLAIN, DOUBLE = STAGED[0], STAGED[1]


def ran(program: Staged, burned_us: float, *, own_us: float | None = None) -> Ran:
    """Of a program that burns so much, beside 20 us of the container; `own_us`: what its own clock says."""
    samples = staged({"application": burned_us, "container": 20.0}, samples=20_000, slices=10, seed=3)
    values = tuple(costs(burned_us + 20, 6, error=0.01))
    share = (burned_us if own_us is None else own_us) / (burned_us + 20)
    return Ran(program, values, share, profile(samples), 5000.0)


def test_a_part_is_right_within_five_points() -> None:
    *_, right = share_row(ran(PLAIN, 100))
    *_, wrong = share_row(ran(PLAIN, 100, own_us=92))
    assert (right, wrong) == ("yes", "no")


def test_a_difference_is_right_when_its_interval_holds_what_the_clocks_say() -> None:
    every = {run.staged.name: run for run in (ran(PLAIN, 100), ran(DOUBLE, 200))}
    row = difference_row(DOUBLE.name, every[DOUBLE.name], every)
    assert row is not None
    assert row[0] == DOUBLE.name
    assert float(row[1].split()[0]) == pytest.approx(100, abs=4)
    assert row[3] == "yes"
    wrong = every | {DOUBLE.name: ran(DOUBLE, 200, own_us=150)}
    row = difference_row(DOUBLE.name, wrong[DOUBLE.name], wrong)
    assert row is not None
    assert row[3] == "no"


def test_less_is_a_negative_difference() -> None:
    every = {run.staged.name: run for run in (ran(PLAIN, 200), ran(DOUBLE, 100))}
    row = difference_row(DOUBLE.name, every[DOUBLE.name], every)
    assert row is not None
    assert row[1].startswith("-")
    assert row[2].startswith("-")
    assert row[3] == "yes"


def test_a_program_that_cannot_be_run_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(program: Staged, _say: object) -> Ran:
        if program is PLAIN:
            raise NotRun("no JDK with a compiler was found")
        return ran(program, 100)

    monkeypatch.setattr(explained, "run", refuse)
    monkeypatch.setattr(explained, "STAGED", (PLAIN, DOUBLE))
    monkeypatch.setattr(explained, "slow_table", lambda _say: "")
    made = explain_tables(1, lambda _: None)
    assert "not run: no JDK with a compiler was found" in made
    assert made.count(DOUBLE.name) == 1  # without the plain one there is no difference


def test_every_language_has_its_plain_program() -> None:
    for program in STAGED:
        assert any(run.does == explained.PLAIN[program.runtime] for run in STAGED)


@pytest.mark.parametrize(("found", "right"), [(65_536, "yes"), (62_500, "yes"), (70_000, "no"), (None, "no")])
def test_bytes_allocated_are_right_within_five_hundredths(found: int | None, right: str) -> None:
    program = next(run for run in STAGED if run.does.get("bytes") == 65_536)
    counters = Counters(
        seconds=10.0, allocated_bytes=None if found is None else found * 5000 * 8, allocated_s=8.0
    )
    run = replace(ran(program, 100), profile=profile(ran(program, 100).profile.cpu, counters=counters))
    (row,) = counter_rows(run)
    description = "not counted" if found is None else f"{found:,}"
    assert row[1:] == ("bytes allocated", "65,536", description, right)
    assert counter_rows(ran(PLAIN, 100)) == []


@pytest.mark.parametrize(
    ("does", "counted", "row"),
    [
        ("calls", 40.2, ("system calls", "42", "40.20", "yes")),
        ("calls", 39.8, ("system calls", "42", "39.80", "no")),
        ("hand", 4.19, ("voluntary context switches", "4", "4.19", "yes")),
        ("hand", 4.21, ("voluntary context switches", "4", "4.21", "no")),
    ],
)
def test_calls_and_switches_are_right_within_five_hundredths(
    does: str, counted: float, row: tuple[str, ...]
) -> None:
    """The clock that a request reads twice is a system call, too."""
    program = next(run for run in STAGED if run.does.get(does) in (40, 2))
    counters = Counters(
        seconds=10.0,
        switches_voluntary=round(counted * 5000 * 10),
        system_calls={"write": round(counted * 5000 * 0.5)},
        system_calls_s=0.5,
    )
    run = replace(ran(program, 100), profile=profile(ran(program, 100).profile.cpu, counters=counters))
    assert [counter_row[1:] for counter_row in counter_rows(run)] == [row]
