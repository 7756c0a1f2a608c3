"""JSON of trends and of running experiments, for programs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prony.report.labels import stored_unit
from prony.report.out import Out
from prony_serve.trends.series import Break, ChangePoint, TrendTrial, TrendView, change_words, direction


class TrendTrialOut(Out):
    """A trial of a series."""

    id: str
    experiment: str
    started: str = Field(description="ISO 8601")
    setting: int = Field(description="index in `settings`, from 0")
    conforms: bool
    value: float | None = Field(description="null where no figure is printed")
    counts: bool = Field(description="conforms, its figure is bounded, no control: part of the search")
    weight: float = Field(description="0 to 1, in levels and tests: a half where its budget is 2 %")
    quick: bool
    versions: dict[str, str]
    reason: str


class SettingOut(Out):
    """What is constant within a setting of a series."""

    fingerprint: str
    jdk: str
    plan: str


class BreakOut(Out):
    """A setting measured for the first time after another: never a change of the server."""

    trial: str
    started: str
    differences: list[tuple[str, str, str]] = Field(description="what, before, after")


class ChangePointOut(Out):
    """The level changed between two trials of one setting."""

    trial: str = Field(description="first trial of the new level")
    experiment: str
    last_before: str
    started: str
    direction: Literal["better", "worse", "changed"]
    ratio: float = Field(description="after ÷ before, of geometric means")
    before: float
    after: float
    trials_before: int
    trials_after: int
    p_value: float = Field(description="at a searched position: a rank, no error rate")
    sentence: str
    differences: list[tuple[str, str, str]] = Field(description="what, before, after")


class TrendOut(Out):
    """`GET /api/trend`: one figure of a server under a workload and a load over time."""

    schema_: Literal[2] = Field(default=2, alias="schema")
    kind: Literal["trend"] = "trend"
    server: str
    workload: str
    load: str
    figure: str
    unit: str
    sentence: str
    settings: list[SettingOut]
    trials: list[TrendTrialOut]
    breaks: list[BreakOut]
    changes: list[ChangePointOut]


class SeriesOut(Out):
    """A series with a trend."""

    server: str
    workload: str
    load: str
    trials: int
    newest: str = Field(description="ISO 8601")


class SeriesListOut(Out):
    """`GET /api/trends`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["trends"] = "trends"
    series: list[SeriesOut]


def trend_out(view: TrendView) -> TrendOut:
    """The JSON model of a trend."""
    places = {setting: place for place, setting in enumerate(view.settings)}
    return TrendOut.filled(
        view,
        unit=stored_unit(view.figure),
        sentence=view.words,
        settings=[
            SettingOut(fingerprint=setting.fingerprint_key, jdk=setting.jdk, plan=setting.plan_key)
            for setting in view.settings
        ],
        trials=[_trial(trial, places[trial.setting]) for trial in view.trials],
        breaks=[_break(point) for point in view.breaks],
        changes=[_change(view, point) for point in view.changes],
    )


def _trial(trial: TrendTrial, setting: int) -> TrendTrialOut:
    return TrendTrialOut.filled(
        trial,
        experiment=trial.experiment_id,
        started=trial.started.isoformat(),
        setting=setting,
        weight=round(trial.weight, 4),
        versions=dict(trial.versions),
    )


def _break(broken: Break) -> BreakOut:
    return BreakOut(
        trial=broken.trial.id, started=broken.trial.started.isoformat(), differences=list(broken.differences)
    )


def _change(view: TrendView, point: ChangePoint) -> ChangePointOut:
    return ChangePointOut.filled(
        point.change,
        trial=point.trial.id,
        experiment=point.trial.experiment_id,
        last_before=point.last.id,
        started=point.trial.started.isoformat(),
        direction=direction(point),
        sentence=change_words(view, point),
        differences=list(point.differences),
    )
