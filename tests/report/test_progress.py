"""Progress: what is told, how often, and that a broken screen never reaches the measurement."""

from __future__ import annotations

import io
import logging
import re
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from prony.evidence.engine import IntervalRow
from prony.evidence.trial import Evidence
from prony.judge.finding import Bias, Finding, Judgement
from prony.report.progress import PlainProgress, RichProgress, choose_progress
from prony.report.progress_state import SilentProgress
from tests.judge.factory import healthy, open_model
from tests.records import record
from tests.wording import assert_as_written


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def row(completed: int = 8153, failed: int = 0) -> IntervalRow:
    return IntervalRow(t_ms=1000, duration_ms=1000, completed=completed, failed=failed, p99_ns=1_900_000)


CPU = Finding(
    check="isolation",
    code="other_processes",
    reason="other processes took 2 % of the server's CPUs",
    bias={"requests_per_s": Bias(high=0.02), "p99_ms": Bias(low=-0.04)},
)
ERRORS = Finding(
    check="errors", code="too_many", conforms=False, reason="12 % of 4,000 requests failed, such as refused"
)


def ended(
    progress: SilentProgress,
    seconds: float,
    *findings: Finding,
    evidence: Evidence | None = None,
    **figures: float,
) -> None:
    """A trial with these findings ends."""
    judgement = Judgement(conforms=all(finding.conforms for finding in findings), findings=findings)
    progress.trial_stored(record(evidence or healthy()), judgement, figures)
    progress.trial_ended(judgement, figures, seconds)


def one_trial(progress: SilentProgress, pass_seconds: Callable[[float], None]) -> None:
    progress.experiment_started(9, 540.0)
    progress.build("spring-tomcat", "compiling 4 files\n")
    progress.trial_started(1, "spring-tomcat", 0, 60)
    progress.phase("start", None)
    pass_seconds(4)
    progress.phase("warm-up", 28.0)
    for _ in range(12):
        pass_seconds(1)
        progress.row(row())
    progress.phase("window", 10.0)
    pass_seconds(10)
    ended(progress, 26.0, CPU, requests_per_s=8000.0)
    progress.note("spring-tomcat: a note")
    progress.finished()
    progress.finished()


def test_plain_lines_tell_every_change_and_where_it_stands_every_five_seconds() -> None:
    clock, stream = Clock(), io.StringIO()

    def pass_seconds(seconds: float) -> None:
        clock.now += seconds

    one_trial(PlainProgress(stream, clock=clock), pass_seconds)
    assert_as_written("progress", stream.getvalue())


def test_failures_and_missing_figures_are_reported() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = PlainProgress(stream, clock=clock)
    progress.trial_started(1, "x", 0, 100)
    progress.phase("window", 10)
    clock.now += 6
    progress.row(row(failed=12))
    ended(progress, 8, CPU, ERRORS, requests_per_s=8000.0)
    assert "12 failed" in stream.getvalue()
    printed = "x: does not conform: errors: 12 % of 4,000 requests failed, such as refused, took 8 s"
    assert printed in stream.getvalue(), "why is said at once"
    ended(progress, 8)
    assert "x: no figure" in stream.getvalue()
    assert "trial 1 of ?" in stream.getvalue()


def terminal(stream: io.StringIO, width: int = 100) -> Console:
    return Console(file=stream, width=width, force_terminal=True, color_system=None)


@pytest.mark.parametrize("width", [40, 80, 140])
def test_live_bars_draw_the_trial_and_leave_what_ended(width: int) -> None:
    clock, stream = Clock(), io.StringIO()
    progress = RichProgress(terminal(stream, width), clock=clock)

    def pass_seconds(seconds: float) -> None:
        clock.now += seconds
        frames.append(draw(progress, width))

    frames: list[str] = []
    one_trial(progress, pass_seconds)
    during = next(frame for frame in frames if "warm-up 3" in frame)
    assert "1/9 spring" in during
    if width >= 80:
        assert "8,153/s" in during
        assert "p99 1.9 ms" in during
        assert "left" in during
    assert all(len(line) <= width for frame in frames for line in frame.splitlines())
    line = "1/9 spring-tomcat  8,000 requests/s  −0.3 / +2.3 %  26 s"
    assert line in " ".join(stream.getvalue().split("\n"))[:4000] or (width < 60)
    assert not progress._live.is_started


def draw(progress: RichProgress, width: int) -> str:
    """What the screen would show now."""
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, force_terminal=True).print(progress._drawing())
    return out.getvalue()


def test_the_estimate_of_what_is_left_learns_from_the_trials_that_ended() -> None:
    clock = Clock()
    progress = RichProgress(terminal(io.StringIO()), clock=clock)
    progress.experiment_started(4, 400)
    assert progress._state.left_s() == 400
    progress.trial_started(1, "x", 0, 100)
    clock.now += 30
    assert progress._state.left_s() == 370
    ended(progress, 30)
    assert progress._state.left_s() == 90
    assert progress._state.share() == pytest.approx(0.25)
    for index in (2, 3, 4):
        progress.trial_started(index, "x", 0, 100)
        ended(progress, 30)
    assert progress._state.left_s() is None
    assert progress._state.share() == 1.0
    progress.finished()


def test_short_trials_do_not_promise_that_long_ones_will_be_short() -> None:
    """A plan of a part with short trials and one with long ones: 3 x 10 s, then 2 x 100 s."""
    clock = Clock()
    progress = RichProgress(terminal(io.StringIO()), clock=clock)
    progress.experiment_started(5, 230)
    for index in (1, 2, 3):
        progress.trial_started(index, "x", 0, 10)
        ended(progress, 12)
    assert progress._state.left_s() == pytest.approx(240)  # a fifth longer than planned
    progress.trial_started(4, "x", 0, 100)
    ended(progress, 120, ERRORS)
    progress.trial_started(4, "x", 0, 100)  # again, as it was disturbed
    clock.now += 60
    ended(progress, 120)
    assert progress._state.left_s() == pytest.approx(120)
    assert progress._state.done == 4
    progress.finished()


def test_a_resumed_experiment_counts_all_of_its_trials() -> None:
    stream = io.StringIO()
    plain, live = PlainProgress(stream), RichProgress(terminal(io.StringIO()))
    for progress in (plain, live):
        progress.experiment_started(2, 60.0, 4)
        progress.trial_started(5, "tomcat", 0, 30)
    assert "2 trials" in stream.getvalue()
    assert "5 of 6" in stream.getvalue()
    drawn = draw(live, 100)
    assert "5/6 tomcat" in drawn
    assert "4 of 6" in drawn
    ended(live, 30)
    assert "5 of 6" in draw(live, 100)
    assert live._state.left_s() == 30
    live.finished()


def test_a_trial_that_rests_is_shown_again_when_the_one_within_it_has_ended() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.experiment_started(2, 60.0)
    progress.trial_started(1, "tomcat", 0, 30)
    progress.phase("rest", None)
    progress.trial_started(2, "jetty", 0, 30)
    ended(progress, 30)
    progress.phase("stop", 1)
    ended(progress, 30)
    named = re.findall(r"trial (\d of 2 \w+): (?:stop|.*took)", stream.getvalue())
    assert named == ["2 of 2 jetty", "1 of 2 tomcat", "1 of 2 tomcat"]
    assert progress._state.done == 2
    assert progress._state.took_planned_s == 60


class BrokenStream(io.StringIO):
    """A terminal that went away."""

    def write(self, _: str) -> int:
        raise BrokenPipeError("the reader is gone")


def test_a_broken_screen_ends_in_the_log_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    for progress in (
        PlainProgress(BrokenStream()),
        RichProgress(Console(file=BrokenStream(), force_terminal=True)),
    ):
        with caplog.at_level(logging.INFO, logger="prony.report.progress"):
            one_trial(progress, lambda _: None)
        assert any("progress" in record.message for record in caplog.records)
        caplog.clear()


def test_live_lines_say_at_once_why_a_trial_does_not_conform() -> None:
    stream = io.StringIO()
    progress = RichProgress(terminal(stream, 140))
    progress.experiment_started(3, 30)
    progress.trial_started(1, "tomcat", 0, 10)
    ended(progress, 8, ERRORS)
    progress.finished()
    line = "1/3 tomcat  does not conform: errors: 12 % of 4,000 requests failed, such as refused  8 s"
    assert line in stream.getvalue()


def test_where_the_rate_is_given_the_line_is_about_p99() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.trial_started(1, "tomcat", 0, 10)
    ended(progress, 8, CPU, evidence=open_model(), requests_per_s=8000.0, p99_ms=2.4)
    line = stream.getvalue().splitlines()[-1]
    assert "tomcat: p99 2.4 ms −" in line
    assert " %, took 8 s" in line


def test_where_nothing_bounds_a_rate_above_it_is_at_least_so_much() -> None:
    stream = io.StringIO()
    for high in (None, 1.5):
        full = CPU.model_copy(update={"bias": {"requests_per_s": Bias(high=high)}})
        ended(PlainProgress(stream), 8, full, requests_per_s=8000.0)
    assert stream.getvalue().count("at least 7,980 requests/s") == 2


def test_a_fault_while_drawing_does_not_stop_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = RichProgress(terminal(io.StringIO()))
    drawn: list[float] = []

    def broken() -> None:
        drawn.append(time.monotonic())
        raise ValueError("nonsense")

    monkeypatch.setattr(progress, "_draw", broken)
    progress.experiment_started(1, 10)
    deadline_s = time.monotonic() + 30
    while len(drawn) < 4 and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert len(drawn) >= 4, "it is drawn again and again"
    progress.finished()
    assert not progress._live.is_started


def test_an_interrupt_is_not_swallowed() -> None:
    class Interrupting(io.StringIO):
        def write(self, _: str) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        PlainProgress(Interrupting()).note("x")


def test_redraws_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    progress = RichProgress(terminal(stream))
    drawn = []
    monkeypatch.setattr(progress._live, "refresh", lambda: drawn.append(1))
    begun = time.monotonic()
    progress.experiment_started(1, 10)
    for _ in range(2000):
        progress.row(row())
    time.sleep(0.8)
    progress.finished()
    # Starting and stopping draw once each, the ticker at most four times a second.
    assert len(drawn) <= 4 * (time.monotonic() - begun) + 3


def test_the_form_follows_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(choose_progress(Console(file=io.StringIO())), PlainProgress)
    assert isinstance(choose_progress(Console(file=io.StringIO(), force_terminal=True)), RichProgress)
    assert isinstance(choose_progress(Console(), silent=True), SilentProgress)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(choose_progress(Console(file=io.StringIO(), force_terminal=True)), PlainProgress)


def test_silence_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with SilentProgress() as progress:
        one_trial(progress, lambda _: None)
    assert capsys.readouterr() == ("", "")
