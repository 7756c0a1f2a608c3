"""How long `prony load` measures by itself, and what `--within`, `--strict` and `--details` ask for."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from prony.cli import load, main, measure
from prony.cli.common import Common
from prony.errors import ExitCode
from prony.plan.load import SteadyWindow
from prony.plan.plan import Plan
from prony.report import reading
from prony.report.result import ResultView
from prony.store import Store
from tests.report import factory

URL = "http://127.0.0.1:1/"


@dataclass
class Asked:
    """What the command made of its words."""

    plans: list[Plan] = field(default_factory=list)
    view: ResultView | None = None
    """What the measurement comes to."""

    def __call__(self, *words: str) -> int:
        sys.argv = ["prony", *words]
        return main.main()

    @property
    def window(self) -> SteadyWindow:
        (cell,) = self.plans[-1].cells
        assert isinstance(cell.trial.measured, SteadyWindow)
        return cell.trial.measured


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()

    def measured(plan: Plan, common: Common, *_: Any, **__: Any) -> measure.Measured:
        made.plans.append(common.applied(plan))
        return measure.Measured(cast("Store", None), factory.ID, interrupted=False)

    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(measure, "measured", measured)
    monkeypatch.setattr(reading, "load_result", lambda *_: made.view)
    monkeypatch.setattr(reading, "remember_answer", lambda *_: None)
    made.view = factory.foreign_load()
    return made


def test_without_a_duration_it_ends_when_the_figure_is_known_and_within_a_minute(asked: Asked) -> None:
    assert asked("load", URL) == ExitCode.OK
    assert (asked.window.window_s, asked.window.precision) == (load.LONGEST_S, load.GOOD_ENOUGH) == (60, 0.05)


@pytest.mark.parametrize(
    ("words", "window_s", "precision"),
    [
        (("--within", "1%"), 60, 0.01),
        (("--duration", "20s"), 20, None),
        (("--duration", "20s", "--within", "2%"), 20, 0.02),
        (("--windows", "3"), 10, None),
    ],
)
def test_how_long_or_how_well_is_reported_by_options(
    asked: Asked, words: tuple[str, ...], window_s: float, precision: float | None
) -> None:
    assert asked("load", URL, *words) == ExitCode.OK
    assert (asked.window.window_s, asked.window.precision) == (window_s, precision)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), ExitCode.OK),
        (("--strict", "2%"), ExitCode.OK),
        (("--strict", "0.1%"), ExitCode.NO_FIGURE),
        (("--strict", "-1%"), ExitCode.USAGE),
        (("--strict", "well"), ExitCode.USAGE),
        (("--within", "0"), ExitCode.USAGE),
    ],
)
def test_the_exit_code_says_whether_the_figure_is_known_that_well(
    asked: Asked, words: tuple[str, ...], code: ExitCode
) -> None:
    assert asked("load", URL, *words) == code


def test_what_does_not_conform_is_exit_code_3(asked: Asked) -> None:
    asked.view = factory.hopeless()
    assert asked("load", URL) == ExitCode.NO_FIGURE


def test_details_are_printed_on_request(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    asked("load", URL)
    brief = capsys.readouterr().out
    asked("load", URL, "--details")
    whole = capsys.readouterr().out
    assert "--details" in brief
    assert "status 200" not in brief
    assert "status 200" in whole
    assert "--details" not in whole
