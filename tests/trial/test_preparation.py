"""A workload's preparation and clean-up around a trial: once before the load, once after it, in no figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from prony.evidence.engine import IntervalRow
from prony.evidence.host import CpuPartition, Limits
from prony.experiment.conclude import conclude
from prony.host.affinity import granted_cpus
from prony.plan.load import ClosedLoad, WholeRun
from prony.plan.response import Capture, Expectation
from prony.plan.step import Step
from prony.plan.trial import TrialPlan
from prony.plan.workload import Workload
from prony.server.build import Built
from prony.server.catalogue import Catalogue
from prony.targets import LaunchedServer
from prony.trial.run import TrialOutcome, run_trial
from prony.trial.surroundings import Surroundings
from tests.conformance.conftest import LIAR
from tests.records import record

REQUESTS = 200
FILL = Step(
    name="fill",
    method="PUT",
    path="/p${sequence}",
    body='{"name":"${sequence}"}',
    repeat=50,
    expect=Expectation(status=(201,)),
)
READ = Step(name="read", path="/p${random int 1 50}", expect=Expectation(body_contains=('"name"',)))
EMPTY = Step(
    name="empty", method="DELETE", path="/p${sequence}", repeat=50, expect=Expectation(status=(200,))
)


@dataclass
class Heard:
    """A listener that remembers."""

    phases: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def phase(self, name: str, expected_s: float | None) -> None:  # noqa: ARG002 - of the protocol
        self.phases.append(name)

    def row(self, row: IntervalRow) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def heard() -> Heard:
    return Heard()


def run(folder: Path, workload: Workload, heard: Heard, *faults: str) -> TrialOutcome:
    place = folder / "servers" / "mine"
    place.mkdir(parents=True)
    words = ", ".join(f'"{word}"' for word in ("{python}", str(LIAR), "{host}", "{port}", *faults))
    (place / "server.yaml").write_text(f"command: [{words}]\n")
    spec = Catalogue.load([folder / "servers"]).resolve("mine")
    server = LaunchedServer(spec, Built(spec), log_dir=folder)
    cpus = tuple(granted_cpus())
    plan = TrialPlan(
        workload=workload, load=ClosedLoad(users=4), measured=WholeRun(total_requests=REQUESTS, duration_s=60)
    )
    surroundings = Surroundings(CpuPartition(server=cpus, client=cpus), Limits())
    return run_trial(plan, server, surroundings, heard)


def test_what_the_steps_need_is_there_and_is_taken_back(tmp_path: Path, heard: Heard) -> None:
    workload = Workload(name="read", prepare=(FILL,), steps=(READ,), cleanup=(EMPTY,))
    outcome = run(tmp_path, workload, heard)
    assert outcome.failure is None
    assert heard.phases == ["start", "prepare", "window", "clean-up", "stop"]
    assert heard.notes == [], "each of the fifty was there to be deleted"
    report = outcome.evidence.engine
    assert report is not None
    assert (report.totals.completed, report.totals.failed) == (REQUESTS, 0), "the figures hold the load alone"
    assert outcome.evidence.probes[0].meets_expectation
    assert outcome.evidence.clean_stop is True


def test_what_the_preparation_captured_is_known_to_preflight_steps_and_clean_up(
    tmp_path: Path, heard: Heard
) -> None:
    create = FILL.model_copy(
        update={"path": "/p${uuid}", "repeat": 1, "capture": {"id": Capture(header="Location")}}
    )
    read = READ.model_copy(update={"path": "/${id}"})
    delete = EMPTY.model_copy(update={"path": "/${id}", "repeat": 1})
    workload = Workload(name="captured", prepare=(create,), steps=(read,), cleanup=(delete,))
    outcome = run(tmp_path, workload, heard)
    assert outcome.failure is None
    assert [probe.why_not for probe in outcome.evidence.probes] == [None]
    assert outcome.evidence.engine is not None
    assert outcome.evidence.engine.totals.failed == 0
    assert heard.notes == []


def test_without_them_nothing_is_sent_but_the_load(tmp_path: Path, heard: Heard) -> None:
    hello = Step(name="hello", path="/", expect=Expectation(body_equals="Hello, World!"))
    assert run(tmp_path, Workload(name="hello", steps=(hello,)), heard).failure is None
    assert heard.phases == ["start", "window", "stop"]


def test_a_preparation_that_fails_leaves_a_trial_that_does_not_conform_in_one_sentence(
    tmp_path: Path, heard: Heard
) -> None:
    workload = Workload(name="read", prepare=(FILL,), steps=(READ,), cleanup=(EMPTY,))
    outcome = run(tmp_path, workload, heard, "--read-only")
    assert outcome.failure is not None
    assert "50 x 405" in outcome.failure
    assert "window" not in heard.phases
    assert outcome.evidence.engine is None
    ended = conclude(record(outcome.evidence, outcome.failure))
    assert not ended.judgement.conforms
    first = ended.judgement.not_conforming[0]
    assert (first.check, first.code, first.reason) == ("identity", "ended_early", outcome.failure)


def test_data_that_the_steps_do_not_find_is_reported_before_the_load(tmp_path: Path, heard: Heard) -> None:
    elsewhere = READ.model_copy(update={"path": "/q1"})
    outcome = run(tmp_path, Workload(name="read", prepare=(FILL,), steps=(elsewhere,)), heard)
    assert "404, expected 200" in str(outcome.failure)
    assert "window" not in heard.phases


def test_a_clean_up_that_fails_is_noted_and_the_figures_stay(tmp_path: Path, heard: Heard) -> None:
    more = EMPTY.model_copy(update={"repeat": 51})
    outcome = run(tmp_path, Workload(name="read", prepare=(FILL,), steps=(READ,), cleanup=(more,)), heard)
    assert outcome.failure is None
    assert outcome.evidence.engine is not None
    assert len(heard.notes) == 1
    assert heard.notes[0].startswith("mine: the clean-up of read failed: 1 of 51 requests failed")
