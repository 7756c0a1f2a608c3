"""The options that every measuring command shares: where they are, what they do to a plan, and what may stand
beside --resume.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from prony import seams
from prony.cli import capacity, compare, load, main, run, sweep
from prony.cli.common import Common
from prony.errors import UsageError
from prony.plan import workload
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.plan.part import Follow, Part
from prony.plan.plan import MAIN, Plan
from prony.plan.target import Launch, Target, Url
from tests.experiment.conftest import trial_plan

EVERYWHERE = {
    "--seed", "--limits", "--repeat-disturbed", "--request-parts", "--instructions", "--driver",
    "--server-cpus", "--client-cpus", "--db", "--json", "--report", "--resume", "--budget",
}  # fmt: skip
STARTS_SERVERS = {"--jdk"}
needs_peers = pytest.mark.skipif(
    not seams.installed(seams.COMMANDS, "second-opinion"), reason="prony-peers is not installed"
)
needs_selftest = pytest.mark.skipif(
    not seams.installed(seams.COMMANDS, "aa"), reason="prony-selftest is not installed"
)
COMPARES = {"--until-clear", "--max-trials"}


def parameters(name: str) -> list[Any]:
    """Of a command, whichever package it is in."""
    group: Any = typer.main.get_command(main.app)
    parameters_of: list[Any] = group.get_command(typer.Context(group), name).params
    return parameters_of


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("compare", STARTS_SERVERS | COMPARES),
        ("run", STARTS_SERVERS | COMPARES),
        ("sweep", STARTS_SERVERS),
        pytest.param("aa", STARTS_SERVERS, marks=needs_selftest),
        ("capacity", STARTS_SERVERS),
        pytest.param("second-opinion", STARTS_SERVERS, marks=needs_peers),
        ("load", set()),
    ],
)
def test_each_command_has_the_options_that_apply_to_it(name: str, more: set[str]) -> None:
    offered = {option for parameter in parameters(name) for option in parameter.opts}
    assert EVERYWHERE | more <= offered
    assert not ((STARTS_SERVERS | COMPARES) - more) & offered
    assert ("--share-process" in offered) == (name in ("run", "sweep", "capacity")), "several loads"
    assert made(*TWO).model_copy(update={"command": name}).resume_command == name
    assert not {"--repeats", "--rounds"} & offered
    assert ("--trials" in offered) == (name not in ("run", "capacity")), (
        "a file says how many, a search draws"
    )


@needs_selftest
def test_the_same_words_of_help_everywhere() -> None:
    texts: dict[str, set[str]] = {}
    for name in ("compare", "run", "sweep", "capacity", "aa", "load"):
        for parameter in parameters(name):
            for option in EVERYWHERE & set(parameter.opts):
                if (name, option) == ("capacity", "--budget"):
                    continue  # a search has one by default
                texts.setdefault(option, set()).add(parameter.help)
    assert {option for option, said in texts.items() if len(said) > 1} == set()


def made(*targets: Target, trials: int = 3) -> Plan:
    cells = tuple(cell_of(MAIN, f"s{at}", target, trial_plan(), trials) for at, target in enumerate(targets))
    part = Part(name=MAIN, title="t", shape="comparison")
    return Plan(name="t", command="compare", title="t", parts=(part,), cells=cells)


TWO = (Launch(address="a"), Launch(address="b"))


def test_they_change_every_cell_of_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "limits.yaml"
    file.write_text("errors_share_max: 0.5\n")
    applied = Common(
        limits=[str(file), "content_share_max=0.25"],
        driver="epoll",
        request_parts=True,
        instructions=True,
        jdk="21",
        repeat_disturbed=2,
    )
    plan = applied.applied(made(*TWO))
    assert plan.repeat_disturbed == 2
    for cell in plan.cells:
        assert cell.limits == {"errors_share_max": 0.5, "content_share_max": 0.25}
        assert (cell.trial.driver, cell.trial.request_parts) == ("epoll", True)
        assert cell.trial.instructions
        assert isinstance(cell.target, Launch)
        assert cell.target.jdk == "21"


def test_without_any_the_plan_is_as_it_was() -> None:
    plan = made(*TWO)
    assert Common().applied(plan) == plan


def test_until_clear_is_for_parts_that_compare() -> None:
    assert Common(until_clear=True).applied(made(*TWO)).parts[0].until_clear == 20
    with pytest.raises(UsageError, match="--until-clear"):
        Common(until_clear=True).applied(made(TWO[0]))
    plan = made(*TWO)
    second = Part(
        name="second", title="t", shape="comparison", follows=Follow(part=MAIN, share=0.7, rate="own")
    )
    both = Common(until_clear=True).applied(plan.model_copy(update={"parts": (*plan.parts, second)}))
    assert [part.until_clear for part in both.parts] == [20, 20]
    with pytest.raises(UsageError, match="--max-trials"):
        Common(until_clear=True).applied(made(*TWO, trials=2))


def sweep_of(target: Target, command: str = "run") -> Plan:
    loads = [trial_plan(ClosedLoad(users=users)) for users in (1, 8)]
    cells = tuple(cell_of(MAIN, "s", target, trial, 3) for trial in loads)
    part = Part(name=MAIN, title="t", shape="sweep")
    return Plan(name="t", command=command, title="t", parts=(part,), cells=cells)


def test_loads_share_processes_where_that_is_asked_for() -> None:
    applied = Common(share_process="loads").applied(sweep_of(TWO[0]))
    assert [part.share_process for part in applied.parts] == ["loads"]
    assert [part.share_process for part in Common().applied(applied).parts] == ["loads"], "the plan's"
    assert [part.share_process for part in Common(share_process="none").applied(applied).parts] == [None]
    with pytest.raises(UsageError, match="--share-process loads"):
        Common(share_process="loads").applied(sweep_of(Url(url="http://h:1")))
    with pytest.raises(UsageError, match="--share-process"):
        Common(share_process="loads").applied(made(*TWO))
    with pytest.raises(UsageError, match="--share-process"):
        Common(share_process="all").applied(sweep_of(TWO[0]))


def test_workloads_share_processes_where_that_is_asked_for() -> None:
    trials = [trial_plan().model_copy(update={"workload": workload.load(name)}) for name in ("hello", "ping")]
    cells = tuple(cell_of(MAIN, "s", TWO[0], trial, 3) for trial in trials)
    part = Part(name=MAIN, title="t")
    plan = Plan(name="t", command="run", title="t", parts=(part,), cells=cells)
    applied = Common(share_process="workloads").applied(plan)
    assert [part.share_process for part in applied.parts] == ["workloads"]
    assert len({one.process for one in applied.order()}) == 3
    assert [part.share_process for part in Common(share_process="none").applied(applied).parts] == [None]
    with pytest.raises(UsageError, match="--share-process loads"):
        Common(share_process="loads").applied(plan)
    with pytest.raises(UsageError, match="--share-process workloads"):
        Common(share_process="workloads").applied(made(*TWO))


def test_windows_are_those_of_every_steady_cell() -> None:
    applied = Common(windows=4).applied(made(*TWO))
    steady = [cell.trial.measured for cell in applied.cells if cell.trial.measured.kind == "steady"]
    assert steady
    assert {one.windows for one in steady} == {4}
    with pytest.raises(UsageError, match="--windows"):
        Common(windows=0)
    with pytest.raises(UsageError, match="--within"):
        Common(windows=2, within="2%")


@pytest.mark.parametrize(
    ("planned", "asked"),
    [
        ({"windows": 5}, Common(within="2%")),
        ({"precision": 0.02}, Common(windows=4)),
    ],
    ids=["the plan has windows", "the plan has a precision"],
)
def test_windows_and_a_precision_are_refused_wherever_they_come_from(
    planned: dict[str, float], asked: Common
) -> None:
    plan = made(*TWO)
    cells = [
        cell.model_copy(
            update={"trial": cell.trial.model_copy(update={"measured": SteadyWindow(window_s=10, **planned)})}
        )
        for cell in plan.cells
    ]
    plan = plan.model_copy(update={"cells": tuple(cells)})
    with pytest.raises(UsageError, match="--within"):
        asked.applied(plan)
    assert Common(windows=1).applied(plan).cells[0].trial.measured.kind == "steady"


def test_what_does_not_apply_is_refused() -> None:
    with pytest.raises(UsageError, match="--jdk"):
        Common(jdk="21").applied(made(Url(url="http://127.0.0.1:1")))
    with pytest.raises(UsageError, match="--driver"):
        Common(driver="kqueue").applied(made(*TWO))
    with pytest.raises(UsageError, match="--repeat-disturbed"):
        Common(repeat_disturbed=-1)
    with pytest.raises(UsageError, match="--strict"):
        Common(strict="300%", resume="latest")
    with pytest.raises(UsageError, match="errors_share_max"):
        Common(limits=["errors_share_ma=1"]).applied(made(*TWO))


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (("compare", "--resume", "x", "--users", "3"), "--users"),
        (("compare", "a", "b", "--resume", "x"), "servers"),
        (("compare", "--resume", "x", "--band", "1%"), "--band"),
        (("run", "--resume", "x", "--quick", "--seed", "4"), "--seed, --quick"),
        (("sweep", "http://127.0.0.1:1/", "--resume", "x"), "target"),
        (("load", "http://127.0.0.1:1/", "--resume", "x", "-c", "3"), "target, --users"),
        (("second-opinion", "--resume", "x", "--trials", "4"), "--trials"),
        (("capacity", "--resume", "x", "--slo", "p99<1s"), "--slo"),
        (("compare", "--resume", "x", "--users", "0"), "--users"),
        (("run", "--resume", "x", "--seed", "0"), "--seed"),
        (("sweep", "--resume", "x", "--warm-up-cap", "9s"), "--warm-up-cap"),
        (("run", "--resume", "x", "--repeat-disturbed", "-1"), "expected 0 to 100"),
        (("compare", "--resume", "x", "--repeat-disturbed", "101"), "expected 0 to 100"),
    ],
)
def test_resume_takes_the_stored_plan_and_nothing_else(
    words: tuple[str, ...], refused: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["prony", *words])
    assert main.main() == 2
    assert refused in capsys.readouterr().err


def test_commands_are_what_the_parser_calls() -> None:
    """The shared options are handed over in one value, whichever command it is."""
    for module in (capacity, compare, load, run, sweep):
        assert "common" not in module.command.__annotations__


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sweep", "http://127.0.0.1:1/", "--warm-up-cap", "5s"), "--warm-up-cap"),
        (("sweep", "tomcat", "--warmup", "5s"), "--warmup applies to a URL"),
        pytest.param(
            ("aa", "http://127.0.0.1:1/"),
            "prony aa compares fresh processes: name a server",
            marks=needs_selftest,
        ),
        pytest.param(
            ("aa", "tomcat", "--trials", "9"),
            "--each 5, --trials 9",
            marks=needs_selftest,
        ),
        pytest.param(("aa",), "or --resume ID", marks=needs_selftest),
        (
            ("capacity", "http://127.0.0.1:1/", "--slo", "p99<1s", "--warm-up-cap", "5s"),
            "use --warmup",
        ),
        (("capacity", "tomcat", "--slo", "p99<1s", "--warmup", "5s"), "--warm-up-cap"),
        (("capacity", "tomcat", "--slo", "p99<1s", "--warm-up-cap", "0s"), "--warm-up-cap is"),
    ],
)
def test_an_option_that_does_not_fit_the_target_is_refused(
    words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["prony", *words])
    assert main.main() == 2
    assert said in " ".join(capsys.readouterr().err.split())
