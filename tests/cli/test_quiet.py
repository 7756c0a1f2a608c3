"""A trial waits for a quiet host where somebody can say that it need not."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from prony.cli import quiet
from prony.cli.quiet import Quiet
from prony.host.quiet import busiest_other
from tests.experiment.conftest import Notes


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def entered(self, seconds: float) -> bool:
        self.now_s += seconds
        return False


def test_it_waits_until_the_host_is_quiet_and_no_longer_than_two_minutes() -> None:
    clock, notes = Clock(), Notes()
    busy = iter(["python3", "python3", None, None])
    waits = Quiet(lambda _: next(busy), clock.entered, clock)
    waits(notes, ())
    assert clock.now_s == 2.0
    waits(notes, ())
    assert clock.now_s == 2.0, "a quiet host costs nothing"
    assert len(notes.said) == 1
    waits = Quiet(lambda _: "python3", clock.entered, clock)
    for _ in range(3):
        waits(notes, ())
    assert clock.now_s < 2.0 + quiet.MOST_S + 2.0, "in all, however many trials follow"


def test_enter_measures_anyway_from_then_on() -> None:
    presses = itertools.count()
    waits = Quiet(lambda _: str(next(presses)), lambda _: True, Clock())
    for _ in range(3):
        waits(Notes(), ())
    assert next(presses) == 1


@pytest.mark.parametrize(
    ("terminal", "ci", "waits"), [(True, "", True), (False, "", False), (True, "1", False)]
)
def test_it_never_waits_in_ci_or_without_a_terminal(
    terminal: bool, ci: str, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: terminal)
    assert (quiet.attended() is not None) is waits


def test_a_busy_process_is_found_unless_it_is_ours() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as burner:
        try:
            while (busy := busiest_other(sample_s=0.5)) is None:
                pass
            assert "pid" in busy
            assert f"(pid {burner.pid})" not in str(busiest_other([burner.pid], sample_s=0.5))
        finally:
            burner.kill()
