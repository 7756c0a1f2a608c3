"""Time under load: rests and what is left out of turns take none."""

from __future__ import annotations

from prony.evidence.counts import Gap
from prony.evidence.engine import IntervalRow
from prony.evidence.host import HostRow
from prony.trial.load_time import LoadTime
from tests.judge import factory as f

# Warm until 5 s; turns from 10 s and (without a rest) 11.2 s, and from 15 s.
TIME = LoadTime(5000.0, ((10_000.0, 11_000.0), (11_200.0, 12_200.0), (15_000.0, 16_000.0)))


def row(from_ms: float, to_ms: float, completed: int, *, inside: bool) -> IntervalRow:
    return IntervalRow(t_ms=to_ms, duration_ms=to_ms - from_ms, completed=completed, in_window=inside)


ROWS = (
    row(3000, 4000, 90, inside=False),
    row(4000, 5000, 100, inside=False),
    row(5000, 6000, 0, inside=False),
    row(9800, 10_000, 15, inside=False),
    row(10_000, 11_000, 101, inside=True),
    row(11_000, 11_200, 20, inside=False),
    row(11_200, 12_200, 102, inside=True),
    row(12_200, 14_800, 1, inside=False),
    row(14_800, 15_000, 17, inside=False),
    row(15_000, 16_000, 103, inside=True),
)


def test_moments_between_stretches_are_where_they_meet() -> None:
    at = [TIME.of(ms) for ms in (0, 4000, 5000, 9000, 10_500, 11_100, 11_300, 13_000, 15_500, 99_000)]
    assert at == [0, 4000, 5000, 5000, 5500, 6000, 6100, 7000, 7500, 8000]
    assert TIME.end_ms == 8000


def test_a_report_has_a_window_in_one_stretch_after_the_warm_up() -> None:
    report = f.healthy().engine
    assert report is not None
    assert report.window is not None
    gap = Gap(start_ms=15_400, duration_ms=30, in_flight=2)
    window = report.window.model_copy(update={"opened_ms": 10_000.0, "duration_s": 3.0, "gaps": (gap,)})
    found = TIME.report(report.model_copy(update={"rows": ROWS, "window": window}))
    assert found.window is not None
    assert found.window.opened_ms == 5000
    assert [one.start_ms for one in found.window.gaps] == [7400]
    assert [(one.t_ms, one.completed) for one in found.rows] == [
        (4000, 90),
        (5000, 100),
        (6000, 101),
        (7000, 102),
        (8000, 103),
    ]


def test_rows_of_the_host_count_within_turns_only() -> None:
    spans = [(4000, 5010), (5010, 6000), (9990, 10_950), (10_950, 11_230), (11_230, 12_160), (14_500, 15_400)]
    rows = [HostRow(t_ms=to_ms, duration_ms=to_ms - from_ms) for from_ms, to_ms in spans]
    assert [one.t_ms for one in TIME.host_rows(rows)] == [5000, 5950, 6960]


def test_the_rate_left_out_is_that_after_a_rest() -> None:
    assert TIME.left_out_per_s(ROWS) == (15 + 17) / 0.4
    assert TIME.left_out_per_s(ROWS[:3]) is None
