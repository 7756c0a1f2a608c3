"""Two builds of the engine in alternated pairs: the same only where the pairs show it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import builds
from prony.compare.ratio import ratio
from prony.load.engine import find_engine

SAME = ratio([1.0, 1.001, 0.999, 1.0, 1.0], [1.0] * 5, range(5), range(5))


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.995, 1.005, "same"),
        (0.98, 1.005, "unknown"),
        (0.995, 1.02, "unknown"),
        (1.02, 1.05, "different"),
        (0.9, 0.98, "different"),
        (None, None, "unknown"),
    ],
)
def test_only_an_interval_within_the_band_is_the_same(
    low: float | None, high: float | None, verdict: str
) -> None:
    assert builds.judged(replace(SAME, low=low, high=high)).partition(":")[0] == verdict


def test_it_measures_pairs_of_both(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[Path] = []

    class Cost:
        cpu_us_per_request = 2.0

    def once(_tool: object, engine: Path, *_: object) -> Cost:
        ran.append(engine)
        return Cost()

    monkeypatch.setattr(builds, "run_once", once)
    monkeypatch.setattr(builds, "two_cpus", lambda: (0, 0))
    monkeypatch.setattr(builds, "pin_self", lambda _: None)
    engine = find_engine()
    twin = engine.with_name("..") / engine.parent.name / engine.name
    assert builds.main(["--pairs", "6", "--base", str(engine), "--other", str(twin)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(builds.COMPARED)
    assert all("1.000x [1.000, 1.000] (95 %, 6 pairs): same" in line for line in lines)
    assert ran.count(engine) == ran.count(twin) == 6 * len(lines)
    assert {ran[i] for i in range(0, len(ran), 2)} == {engine, twin}  # neither is always the first


def test_a_build_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.touch()
    with pytest.raises(SystemExit):
        builds.main(["--base", str(base), "--other", str(tmp_path / "none")])
    assert f"no engine at {tmp_path / 'none'}; make bench-builds" in capsys.readouterr().err
