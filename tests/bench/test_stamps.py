"""Receive time stamps, with and without: both kinds of runs, in an order of their own in each pair."""

from __future__ import annotations

import pytest

from bench import stamps
from bench.measure import Setting
from bench.tools import PeerLoad
from bench.tools.prony import Prony
from prony.load.engine import find_engine


def test_it_measures_pairs_of_both_and_both_sides(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []

    class Cost:
        requests_measured = 1_000_000

        def __init__(self, stamped: bool) -> None:
            self.cpu_us_per_request = 2.02 if stamped else 2.0
            self.server_cpu_s_measured = 3.0

    def once(tool: Prony, _engine: object, load: PeerLoad, _setting: Setting) -> Cost:
        asked.append(tool.plan(load).get("receive_stamps", True))
        return Cost(asked[-1])

    monkeypatch.setattr(stamps, "run_once", once)
    monkeypatch.setattr(stamps, "two_cpus", lambda: (0, 0))
    monkeypatch.setattr(stamps, "pin_self", lambda _: None)
    assert find_engine()
    assert stamps.main(["--pairs", "6", "--only", "closed-64"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(stamps.DRIVERS)
    assert ["1.010x" in line for line in lines] == [" client " in line for line in lines]
    assert asked.count(True) == asked.count(False) == 6 * len(stamps.DRIVERS)
    pairs = [asked[i : i + 2] for i in range(0, len(asked), 2)]
    assert all(set(pair) == {True, False} for pair in pairs)
    assert [True, False] in pairs
    assert [False, True] in pairs


def test_one_pair_has_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        stamps.main(["--pairs", "1"])
    assert "expected at least 2" in capsys.readouterr().err
