"""A scripted server and a store of its own for every test of a front end."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from prony.cli.common import Common
from prony.evidence.engine import EngineReport, Window
from prony.evidence.trial import StageReport
from prony.experiment.testbed import Progress, Testbed
from prony.judge.limits import CheckLimits
from prony.load import reference
from prony.load.contract import EngineLoad, engine_load
from prony.load.engine import EngineRun, find_engine
from prony.plan import captured_values
from prony.plan.plan import Plan
from prony.plan.planfile_read import read
from prony.plan.target import Url
from prony.plan.trial import TrialPlan
from prony.store import Store
from prony.trial.preparation import offer_stage
from prony_frontends.base import Context, FrontEndOptions, Translated, explain
from prony_frontends.command import offers
from prony_frontends.jmeter import requests
from tests import command


@pytest.fixture
def same_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of `prony jmeter` name the Java of this host, as JMeter's do, and so are as long."""
    asked = ["java", "-XshowSettings:properties", "-version"]
    said = subprocess.run(asked, check=True, timeout=60, capture_output=True, text=True).stderr
    version = re.search(r"java\.version = (\S+)", said)
    assert version is not None, said
    monkeypatch.setattr(requests, "AGENT", re.sub(r"Java/[^)]*", f"Java/{version[1]}", requests.AGENT))


@dataclass
class Served:
    """A running `prony-engine serve`."""

    process: subprocess.Popen[str]
    address: str
    record: Path

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def ended(self) -> dict[str, Any]:
        """Stop it; what it counted."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        lines = self.process.stdout.read().splitlines()
        self.process.wait(60)
        counted: dict[str, Any] = json.loads(lines[-1])
        assert counted["event"] == "finished"
        return counted

    def recorded(self) -> bytes:
        """The bytes of the requests as they came."""
        return self.record.read_bytes()


@pytest.fixture(autouse=True)
def brief_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in tests/command.py: the ceiling is measured, though not for long."""
    monkeypatch.setattr(reference, "WARM_S", command.CALIBRATION_WARM_S)
    monkeypatch.setattr(reference, "MEASURED_S", command.CALIBRATION_S)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts a scripted server with these options; all of them end with the test."""
    running: list[Served] = []

    def start(*options: str, listen: str = "127.0.0.1:0") -> Served:
        record = tmp_path / f"record-{len(running)}"
        process = subprocess.Popen(
            [str(find_engine()), "serve", "--listen", listen, "--stdin-guard",
             "--record", str(record), *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        served = Served(process, json.loads(process.stdout.readline())["address"], record)
        running.append(served)
        return served

    yield start
    for served in running:
        if served.process.poll() is None:
            served.process.kill()
        served.process.wait()


@dataclass
class Front:
    """A context whose streams can be read, and its store."""

    store: Store
    out: StringIO
    err: StringIO
    bench: Callable[[], Testbed]
    database: Path

    def context(self, *, seed: int | None = None, driver: str | None = None, **asked: Any) -> Context:
        common = Common(seed=seed, driver=driver, db=str(self.database))
        return Context(FrontEndOptions(**asked), offers(common), self.out, self.err)


@pytest.fixture
def front(tmp_path: Path) -> Front:
    from prony.experiment.testbed import prepare

    database = tmp_path / "results.db"
    return Front(Store.open(database), StringIO(), StringIO(), lambda: prepare(None, None), database)


def as_asked(load: Translated) -> EngineLoad:
    """What the engine is asked for, on any CPU."""
    at = load.target
    return engine_load(load.trial, url=at.url, tls=at.tls, addresses=at.addresses, cpus=(), seed=1)


def changed(made: Translated, /, **trial: Any) -> Translated:
    """The same with these fields of its trial."""
    return replace(made, trial=made.trial.model_copy(update=trial))


def moved(load: Translated, port: int) -> Translated:
    """The same on another port of this host."""
    return replace(load, target=load.target.model_copy(update={"url": f"http://127.0.0.1:{port}"}))


def read_plan(file: Path) -> Plan:
    """The plan of a file with a running server."""
    return read(file, limits=CheckLimits, seed=1)


def explained(made: Translated) -> TrialPlan:
    """The trial of the plan file that `--explain` prints."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(explain(made))
        file.flush()
        return from_file(Path(file.name)).trial


def from_file(file: Path) -> Translated:
    """Its load."""
    plan = read_plan(file)
    (cell,) = plan.cells
    assert isinstance(cell.target, Url)
    return Translated(plan.name, cell.target, cell.trial, plan.title)


def offered(load: Translated) -> EngineReport:
    """The load alone, by the engine, with nothing around it: quick, for what the server sees of it."""
    run = EngineRun(as_asked(load))
    try:
        while not run.finished:
            run.next_event(10.0)
        return run.report()
    finally:
        run.close()


@dataclass(frozen=True)
class Alone:
    """A run of the engine alone, as a front end prints it."""

    report: EngineReport
    stages: tuple[StageReport, ...] = ()
    interrupted: bool = False

    @property
    def window(self) -> Window:
        assert self.report.window is not None
        return self.report.window


class QuickDesk(Context):
    """A context whose runs are the load alone: no calibration, no judgement, nothing stored."""

    __slots__ = ()

    def measure(self, translated: Translated, progress: Progress) -> Any:  # noqa: ARG002
        load = translated.trial
        around = as_asked(translated)
        before = () if load.before is None else (offer_stage(around, load.before, "before"),)
        values = {name: value for stage in before for name, value in stage.report.values.items()}
        known = captured_values.knowing(load.workload, values)
        report = offered(changed(translated, workload=known))
        after: tuple[StageReport, ...] = ()
        if load.after is not None:
            known = captured_values.knowing(load.after.workload, values)
            after = (offer_stage(around, load.after.model_copy(update={"workload": known}), "after"),)
        return Alone(report, (*before, *after))

    def end(self, ran: Any, original: int = 0) -> int:  # noqa: ARG002
        return original


def quick_desk() -> tuple[QuickDesk, StringIO, StringIO]:
    """With its standard output and standard error."""

    def closed(*_: object) -> Any:
        raise AssertionError("nothing is opened for a load alone")

    out, err = StringIO(), StringIO()
    return QuickDesk(FrontEndOptions(), closed, out, err), out, err
