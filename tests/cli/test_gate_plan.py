"""From the options of `prony gate` to its plan, and what is refused in one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prony.cli.common import Common
from prony.cli.gate import FIGURES, GateFiles, GateOptions, figures_of, names, plan_of, protocol_of
from prony.cli.targets import TrialOptions
from prony.errors import EnvironmentFault, UsageError
from prony.plan.load import SteadyWindow, WholeRun

WANTED = GateOptions(
    figures=figures_of(FIGURES),
    margin=0.03,
    budget_s=1200.0,
    trials=5,
    most_trials=None,
    protocol=None,
    baseline=None,
)
ASKED = TrialOptions(users=8)
COMMON = Common(seed=1)


def changed(**more: object) -> GateOptions:
    from dataclasses import replace

    return replace(WANTED, **more)  # type: ignore[arg-type]


def build(folder: Path, name: str = "server") -> str:
    """A build of its own: the same server in another folder."""
    place = folder / name
    place.mkdir(parents=True)
    (place / "server.yaml").write_text('title: mine\nworkloads: [hello]\ncommand: ["./mine", "{port}"]\n')
    return str(place)


def test_both_builds_are_cells_of_one_part_with_the_budget_as_looks(tmp_path: Path) -> None:
    base, candidate = build(tmp_path, "base"), build(tmp_path, "candidate")
    plan = plan_of([base, candidate], WANTED, ASKED, COMMON)
    (part,) = plan.parts
    assert (plan.command, part.shape, plan.resume_command) == ("gate", "gate", "gate")
    assert plan.servers == ("base", "candidate")
    assert part.gate is not None
    assert (part.gate.base, part.gate.candidate) == ("base", "candidate")
    assert part.until_clear is not None
    assert 5 <= part.until_clear <= 1200 / sum(cell.trial_s for cell in plan.cells)
    assert part.budget_s == 1200
    assert isinstance(plan.cells[0].trial.measured, SteadyWindow)
    assert [one.block for one in plan.order()[:4]] == [0, 0, 1, 1]
    assert plan.changes == ()
    (change,) = plan_of([base, candidate], changed(budget_s=60.0), ASKED, COMMON).changes
    assert re.search(r"after 5 blocks.*--budget \d+m", change)


def test_two_builds_of_one_name_are_known_by_their_roles(tmp_path: Path) -> None:
    base, candidate = build(tmp_path / "base", "perf"), build(tmp_path / "candidate", "perf")
    plan = plan_of([base, candidate], WANTED, ASKED, COMMON)
    assert plan.servers == ("perf@base", "perf@candidate")
    assert {cell.target.address for cell in plan.cells if cell.target.kind == "launch"} == {base, candidate}
    assert names("a", "b") == ("a", "b")


def test_a_protocol_fixes_warm_up_and_run(tmp_path: Path) -> None:
    words = [build(tmp_path, "base"), build(tmp_path, "candidate")]
    plan = plan_of(words, changed(protocol=protocol_of("500ms,2s")), ASKED, COMMON)
    measured = plan.cells[0].trial.measured
    assert isinstance(measured, WholeRun)
    assert (measured.warm_up_s, measured.duration_s) == (0.5, 2.0)
    with pytest.raises(UsageError, match="--window"):
        plan_of(words, changed(protocol=(1.0, 2.0)), TrialOptions(window="5s"), COMMON)


def test_builds_take_turns_where_that_is_asked_for(tmp_path: Path) -> None:
    words = [build(tmp_path, "base"), build(tmp_path, "candidate")]
    asked = (False, True, None)
    plain, duet, default = (plan_of(words, changed(duet=one), ASKED, COMMON).parts[0] for one in asked)
    assert (plain.duet, duet.duet, default.duet) == (False, True, True)
    fixed = plan_of(words, changed(protocol=(1.0, 2.0)), ASKED, COMMON).parts[0]
    assert not fixed.duet
    assert (duet.until_clear or 0) < (plain.until_clear or 0)
    with pytest.raises(UsageError, match="--baseline"):
        plan_of(words[1:], changed(duet=True, baseline="main"), ASKED, COMMON)


def test_figures_have_short_names_and_a_direction() -> None:
    assert figures_of(FIGURES) == ("requests_per_s", "server_cpu_us_per_request")
    assert figures_of(" p50_ms ,peak_rss_mib") == ("p50_ms", "peak_rss_mib")


def test_p99_has_a_margin_of_its_own(tmp_path: Path) -> None:
    words = [build(tmp_path, "base"), build(tmp_path, "candidate")]
    gate = plan_of(words, changed(figures=figures_of(FIGURES), p99=True), ASKED, COMMON).parts[0].gate
    assert gate is not None
    assert gate.figures == ("requests_per_s", "server_cpu_us_per_request", "p99_ms")
    assert gate.margins == {"p99_ms": 0.2}
    without = plan_of(words, changed(figures=figures_of(FIGURES)), ASKED, COMMON).parts[0].gate
    assert without is not None
    assert (without.figures, without.margins) == (("requests_per_s", "server_cpu_us_per_request"), {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p98_ms", "unknown figure 'p98_ms'.*did you mean"),
        ("threads", "'threads'"),
        ("", "expected figures such as"),
        ("p99_ms,p99_ms", "each once"),
        ("cpu_us_per_request,server_cpu_us_per_request", "each once"),
    ],
)
def test_figures_that_cannot_be_gated_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        figures_of(text)


@pytest.mark.parametrize("text", ["3s", "3s,", "a,b", ",5s", "3s,0.1s"])
def test_a_protocol_is_two_times(text: str) -> None:
    with pytest.raises(UsageError, match="--protocol"):
        protocol_of(text)


def test_the_last_look_follows_from_the_budget_and_is_not_before_the_first() -> None:
    assert WANTED.looks(60.0) == 20
    assert changed(budget_s=1e6).looks(60.0) == 100
    assert WANTED.looks(300.0) == 5
    assert changed(most_trials=12).looks(300.0) == 12  # the clock will tell
    for wrong in (changed(trials=2), changed(most_trials=4), changed(most_trials=101)):
        with pytest.raises(UsageError, match=r"--trials|--max-trials"):
            wrong.looks(10.0)


def test_what_is_no_pair_of_builds_is_refused(tmp_path: Path) -> None:
    one = build(tmp_path, "base")
    with pytest.raises(UsageError, match="expected a base and a candidate"):
        plan_of([one], WANTED, ASKED, COMMON)
    with pytest.raises(UsageError, match="--baseline"):
        plan_of([one, one], changed(baseline="main"), ASKED, COMMON)
    with pytest.raises(UsageError, match=r"http://127\.0\.0\.1:1"):
        plan_of([one, "http://127.0.0.1:1"], WANTED, ASKED, COMMON)
    with pytest.raises(UsageError, match="none"):
        plan_of([one, str(tmp_path / "none")], WANTED, ASKED, COMMON)


def test_files_that_cannot_be_written_are_refused_beforehand(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--junit"):
        GateFiles(junit=tmp_path / "none" / "x.xml").check()
    with pytest.raises(UsageError, match="--markdown"):
        GateFiles(markdown=tmp_path / "gate.svg").check()
    GateFiles(tmp_path / "x.xml", tmp_path / "gate.md").check()


def test_a_fault_stands_in_the_files_and_is_raised(tmp_path: Path) -> None:
    files = GateFiles(tmp_path / "x.xml", tmp_path / "gate.md")
    with pytest.raises(EnvironmentFault), files.reporting_faults():
        raise EnvironmentFault("the build of base failed: <javac>")
    assert "the build of base failed: &lt;javac&gt;" in (tmp_path / "x.xml").read_text()
    assert "the build of base failed" in (tmp_path / "gate.md").read_text()
