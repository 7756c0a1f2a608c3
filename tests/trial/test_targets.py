"""One sequence for every kind of target: launched, at a URL, and a kind that the trial has never seen."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault
from prony.evidence.engine import IntervalRow
from prony.evidence.host import CpuPartition, Limits
from prony.evidence.server import Probe, ServerIdentity
from prony.host.affinity import granted_cpus
from prony.host.instructions import Instructions
from prony.judge.figures import figures
from prony.load.preflight import Responses
from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow, WholeRun
from prony.plan.population import Population
from prony.plan.response import Expectation
from prony.plan.stage import Stage
from prony.plan.step import Step
from prony.plan.target import CountKeys, Launch, Url
from prony.plan.trial import TrialPlan, WarmUpPlan, fixed
from prony.plan.workload import Workload
from prony.server.build import Built
from prony.server.catalogue import Catalogue
from prony.targets import ExternalServer, LaunchedServer, RunningExternal, ServerUnderTest, under_test
from prony.targets.base import RunningTarget
from prony.trial import measured_load
from prony.trial.load_run import INTERRUPTED
from prony.trial.run import CUT_SHORT, TrialOutcome, run_trial
from prony.trial.surroundings import Surroundings
from tests.load.test_engine import Reference
from tests.ports import refusing

HELLO = Workload(name="hello", steps=(Step(name="hello", path="/", expect=Expectation(status=(200,))),))
TIDY = HELLO.model_copy(update={"cleanup": (Step(name="tidy", path="/"),)})
SHORT = WholeRun(total_requests=200, duration_s=60)
COUNTS = CountKeys(path="/__prony/stats", pointer="/requests")


@dataclass
class Heard:
    """A listener that remembers, and can press Ctrl-C when a phase begins."""

    interrupt_at: str | None = None
    phases: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def phase(self, name: str, expected_s: float | None) -> None:  # noqa: ARG002 - of the protocol
        self.phases.append(name)
        if name == self.interrupt_at:
            raise KeyboardInterrupt

    def row(self, row: IntervalRow) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


class RemoteProcess(RunningExternal):
    """A server of ours that runs where nothing but its address, its count and its end can be asked for."""

    def __init__(self, at: Url, stops: list[str], interrupted_stop: bool) -> None:
        super().__init__(at)
        self._stops, self._interrupted_stop = stops, interrupted_stop

    def stop(self) -> bool:  # type: ignore[override]
        self._stops.append("stop")
        if self._interrupted_stop and len(self._stops) == 1:
            raise KeyboardInterrupt
        return True


@dataclass(frozen=True, slots=True)
class OnAnotherHost(ExternalServer):
    """A third kind: owned, and nothing of it is built here."""

    owned: bool = True
    interrupted_stop: bool = False
    stops: list[str] = field(default_factory=list)

    @property
    def identity(self) -> ServerIdentity:
        return ServerIdentity(name="there")

    def start(self, partition: CpuPartition) -> RemoteProcess:
        del partition
        return RemoteProcess(self.at, self.stops, self.interrupted_stop)


@pytest.fixture
def url() -> Iterator[Url]:
    reference = Reference()
    yield Url(url=reference.url, counts=COUNTS)
    reference.finish()


def measured(server: ServerUnderTest, heard: Heard, **changes: object) -> TrialOutcome:
    return asked(server, heard, None, **changes)


def asked(
    server: ServerUnderTest,
    heard: Heard,
    at_end: Callable[[RunningTarget], object] | None,
    **changes: object,
) -> TrialOutcome:
    values: dict[str, object] = {"workload": HELLO, "load": ClosedLoad(users=2), "measured": SHORT}
    plan = TrialPlan.model_validate(values | changes)
    cpus = tuple(granted_cpus())
    around = Surroundings(CpuPartition(server=cpus, client=cpus), Limits())
    return run_trial(plan, server, around, heard, at_end=at_end)


def completed(outcome: TrialOutcome) -> int:
    assert outcome.evidence.engine is not None
    return outcome.evidence.engine.totals.completed


def test_a_kind_that_nobody_knows_runs_through_the_same_trial(url: Url) -> None:
    server, heard = OnAnotherHost(url), Heard()
    outcome = measured(server, heard)
    assert outcome.failure is None
    assert completed(outcome) == 200
    assert outcome.evidence.server_count is not None
    assert outcome.evidence.server_count.requests == 200
    assert outcome.evidence.clean_stop is True
    assert server.stops == ["stop"]
    assert heard.phases == ["start", "window", "stop"]


@pytest.mark.parametrize("raised", [None, EnvironmentFault("it hung"), ValueError("a defect")])
def test_a_server_that_had_its_load_is_asked_before_its_stop(url: Url, raised: Exception | None) -> None:
    server, heard, ends = OnAnotherHost(url), Heard(), list[tuple[int | None, list[str]]]()

    def at_end(running: RunningTarget) -> None:
        ends.append((running.request_count(), [*server.stops]))
        if raised is not None:
            raise raised

    outcome = asked(server, heard, at_end)
    (count, stops), *more = ends
    assert count is not None
    assert count >= 200
    assert (stops, more, server.stops) == ([], [], ["stop"])
    assert outcome.failure is None
    assert completed(outcome) == 200
    assert outcome.notes == ((f"conformance was not checked: {raised}",) if raised else ())
    nobody = asked(ExternalServer(Url(url="http://127.0.0.1:9")), heard, at_end)
    assert nobody.failure is not None
    assert len(ends) == 1, "without a load nothing is asked"


def test_a_capacity_ends_with_a_probe_that_more_users_do_not_raise_it(url: Url) -> None:
    """Half as many users again, after the window, of a server of ours; by the plan it can be left out."""
    heard = Heard()
    window = {"measured": SteadyWindow(window_s=6.0), "warm_up": fixed(0.0), "load": ClosedLoad(users=4)}
    outcome = measured(OnAnotherHost(url), heard, **window)
    probe = outcome.evidence.scaling_probe
    assert probe is not None
    assert (probe.users, len(probe.rates_per_s), probe.failed_share) == (6, 3, 0.0)
    assert min(probe.rates_per_s) > 0
    assert probe.client_cpu is not None
    assert heard.phases[-2:] == ["probe", "stop"]
    assert outcome.evidence.server_count is not None
    assert outcome.evidence.engine is not None
    sent = outcome.evidence.engine.totals.sent
    assert outcome.evidence.server_count.requests == sent, "the probe is outside of all counts"


COUNTED: dict[str, object] = {"instructions": True, "measured": WholeRun(duration_s=1.0)}


def test_instructions_are_counted_over_the_measured_part(url: Url, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the kernel's task clock in place of instructions, which few virtual machines have: nanoseconds."""
    monkeypatch.setattr(measured_load, "Instructions", partial(Instructions, event=(1, 1)))
    outcome = measured(ExternalServer(url), Heard(), **COUNTED)
    window = outcome.evidence.server_window
    assert window is not None
    assert window.cpu_s is not None
    if (count := window.instructions) is None:
        pytest.skip(outcome.notes[0])
    assert count == pytest.approx(1e9 * window.cpu_s, rel=0.5, abs=0.1e9)
    assert figures(outcome.evidence).server_instructions_per_request


def test_where_instructions_are_not_readable_a_note_says_why(
    url: Url, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured_load, "Instructions", partial(Instructions, event=(0, 999)))
    outcome = measured(OnAnotherHost(url), Heard(), **COUNTED)
    assert outcome.failure is None
    assert [note for note in outcome.notes if note.startswith(measured_load.INSTRUCTIONS)]
    assert figures(outcome.evidence).server_instructions_per_request is None
    assert not measured(OnAnotherHost(url), Heard()).notes


@pytest.mark.parametrize(
    ("server", "changes"),
    [
        (ExternalServer, {}),
        (OnAnotherHost, {"scaling_probe": False}),
        (OnAnotherHost, {"load": OpenLoad(rate_per_s=100)}),
        (OnAnotherHost, {"measured": SHORT}),
    ],
)
def test_nobody_elses_server_and_no_other_claim_is_probed(
    url: Url, server: type[ExternalServer], changes: dict[str, object]
) -> None:
    heard = Heard()
    window = {"measured": SteadyWindow(window_s=1.0), "warm_up": fixed(0.0)}
    outcome = measured(server(url), heard, **(window | changes))
    assert outcome.failure is None
    assert outcome.evidence.scaling_probe is None
    assert "probe" not in heard.phases


def test_a_url_is_neither_started_nor_stopped(url: Url) -> None:
    heard = Heard()
    outcome = measured(ExternalServer(url), heard)
    assert heard.phases == ["window"]
    evidence = outcome.evidence
    assert evidence.server.owned is False
    assert (evidence.clean_stop, evidence.start_up) == (None, None)
    assert evidence.partition is not None, "where it may run is read"
    assert evidence.server_window is not None
    assert evidence.server_window.busiest_thread is not None
    assert evidence.server_window is not None, "its processes are on this host and ours to read"
    assert evidence.server_count is not None
    assert evidence.server_count.requests == 200


def test_a_url_can_be_watched_while_it_warms_up(url: Url) -> None:
    warm_up = WarmUpPlan(min_s=1.0, cap_s=2.0, settle_min_s=1.0, settle_cap_s=2.0)
    outcome = measured(ExternalServer(url), Heard(), measured=SteadyWindow(window_s=1.0), warm_up=warm_up)
    assert outcome.failure is None
    found = outcome.evidence.warm_up
    assert found is not None
    assert (found.method, found.cap_s) == ("unpinned", 2.0)
    assert [phase.name for phase in outcome.evidence.phases] == ["warm-up", "window"]
    assert {phase.server_cpus for phase in outcome.evidence.phases} == {()}


def test_a_warm_up_of_a_fixed_time(url: Url) -> None:
    outcome = measured(ExternalServer(url), Heard(), measured=SteadyWindow(window_s=1.0), warm_up=fixed(1.0))
    found = outcome.evidence.warm_up
    assert found is not None
    assert (found.method, found.cap_s, found.steady) == ("fixed", 1.0, None)
    warm_up, window = outcome.evidence.phases
    assert (warm_up.name, warm_up.start_ms, window.name) == ("warm-up", 0.0, "window")
    assert window.start_ms >= warm_up.end_ms >= 1000


def test_a_url_where_nobody_listens_is_an_outcome() -> None:
    with refusing() as port:
        outcome = measured(ExternalServer(Url(url=f"http://127.0.0.1:{port}")), Heard())
    assert isinstance(outcome.fault, EnvironmentFault)
    assert str(outcome.failure).startswith(f"http://127.0.0.1:{port} gives no response: connection refused")
    assert outcome.evidence.engine is None


@pytest.mark.needs("openssl")
def test_plain_http_at_a_port_of_tls_is_named(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *made.split(), *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = listener.accept()
                with plain, contextlib.suppress(OSError):
                    context.wrap_socket(plain, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        outcome = measured(ExternalServer(Url(url=url)), Heard())
        listener.shutdown(socket.SHUT_RDWR)
    assert outcome.failure == f"{url} gives no response: the server speaks TLS on this port; give https://"


class Silent:
    """A server that answers its n-th request, and lets the earlier ones wait in vain."""

    result = Responses(no_response="no response in time", timed_out=True)

    def __init__(self, answers: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests, self.answers, self.now_s = 0, answers, 0.0
        monkeypatch.setattr("prony.targets.external.time.monotonic", lambda: self.now_s)

    def __call__(self) -> Probe | None:
        self.requests += 1
        self.now_s += 2.0
        answer = Probe(step="GET", status=200, body_bytes=2, meets_expectation=True)
        return answer if self.requests == self.answers else None


def test_a_busy_server_is_polled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Silent(3, monkeypatch)
    running = ExternalServer(Url(url="http://127.0.0.1:9")).start(CpuPartition(server=(0,), client=(0,)))
    running.wait_ready(silent, 30.0)
    assert silent.requests == 3


def test_a_server_without_a_response_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Silent(99, monkeypatch)
    running = ExternalServer(Url(url="http://127.0.0.1:9")).start(CpuPartition(server=(0,), client=(0,)))
    with pytest.raises(EnvironmentFault, match="gives no response within 30 s: no response in time"):
        running.wait_ready(silent, 30.0)


def test_a_wrong_response_names_the_request(url: Url) -> None:
    wrong = Workload(name="w", steps=(Step(name="no", path="/__none", expect=Expectation(status=(418,))),))
    outcome = measured(ExternalServer(url), Heard(), workload=wrong)
    assert outcome.failure is not None
    assert outcome.failure.startswith(f"GET {url.url}/__none: status ")
    assert outcome.evidence.engine is None


@pytest.fixture
def mine(tmp_path: Path) -> Callable[..., LaunchedServer]:
    """`mine(keys…)`: a server of a catalogue of its own, with these keys in its server.yaml."""

    def make(**keys: str) -> LaunchedServer:
        folder = tmp_path / "servers" / "mine"
        folder.mkdir(parents=True)
        serve = '["{engine}", "serve", "--listen", "{host}:{port}"]'
        lines = [f"command: {serve}", *(f"{key}: {value}" for key, value in keys.items())]
        (folder / "server.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        server = under_test(Launch(address="mine"), Catalogue.load([tmp_path / "servers"]))
        assert isinstance(server, LaunchedServer)
        server.built, server.log_dir = Built(server.spec), tmp_path
        return server

    return make


def test_a_port_that_is_taken_fails_the_trial_in_one_sentence(mine: Callable[..., LaunchedServer]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = measured(mine(url=f"http://127.0.0.1:{port}"), Heard())
    assert isinstance(outcome.fault, EnvironmentFault)
    assert outcome.failure is not None
    assert f"port {port} is taken" in outcome.failure
    assert outcome.evidence.server.name == "mine"
    assert outcome.evidence.engine is None


def test_a_backing_service_that_is_not_ready_fails_the_trial_in_one_sentence(
    mine: Callable[..., LaunchedServer], tmp_path: Path
) -> None:
    server = mine(services="[keeper]")
    services = tmp_path / "servers" / "services"
    services.mkdir()
    command = f'["{sys.executable}", "-c", "raise SystemExit(5)", "{{host}}", "{{port}}"]'
    (services / "keeper.yaml").write_text(
        f'command: {command}\nready: {{send: "?", expect: "!"}}\npackage: keeper\n', encoding="utf-8"
    )
    outcome = measured(server, Heard())
    assert isinstance(outcome.fault, EnvironmentFault)
    assert outcome.failure is not None
    assert outcome.failure.startswith("service keeper ended before it was ready: exit code 5")
    assert outcome.evidence.clean_stop is None, "it was never started"


def test_a_workload_that_begins_with_a_block_is_measured_without_a_preflight(
    mine: Callable[..., LaunchedServer],
) -> None:
    workload = Workload.model_validate(
        {"name": "twice", "steps": [{"loop": {"count": 2}, "steps": [{"path": "/"}]}]}
    )
    outcome = measured(mine(), Heard(), workload=workload)
    assert outcome.failure is None
    assert outcome.evidence.probes == ()
    assert outcome.evidence.start_up is not None
    assert completed(outcome) == 200


@pytest.mark.parametrize("phase", ["clean-up", "stop"])
def test_an_interrupt_after_the_measured_part_does_not_cost_the_trial(url: Url, phase: str) -> None:
    server = OnAnotherHost(url, interrupted_stop=phase == "stop")
    heard = Heard(interrupt_at=phase if phase == "clean-up" else None)
    outcome = measured(server, heard, workload=TIDY)
    assert outcome.interrupted
    assert outcome.notes == (CUT_SHORT,)
    assert INTERRUPTED not in outcome.notes, "a run that goes on must not repeat it"
    assert completed(outcome) == 200
    assert outcome.evidence.server_window is not None
    assert outcome.evidence.clean_stop is True
    assert len(server.stops) == (2 if phase == "stop" else 1)


def test_an_interrupt_before_the_measured_part_stops_the_server(url: Url) -> None:
    server = OnAnotherHost(url)
    with pytest.raises(KeyboardInterrupt):
        measured(server, Heard(interrupt_at="window"))
    assert server.stops == ["stop"]


def test_a_load_after_the_measured_one_that_cannot_run_does_not_cost_the_trial(
    url: Url, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prony.trial import run

    def refused(*_: object) -> None:
        raise EnvironmentFault("the engine could not be started: Too many open files")

    monkeypatch.setattr(run, "offer_stage", refused)
    users = Population(name="after", users=1, iterations_per_user=1)
    after = Stage(workload=HELLO, loads=ClosedLoad(users=1, populations=(users,)))
    outcome = measured(OnAnotherHost(url), Heard(), after=after)
    assert outcome.fault is None
    assert outcome.failure is None
    assert completed(outcome) == 200
    assert "Too many open files" in outcome.notes[0]


STRICT = HELLO.model_copy(
    update={"steps": (Step(path="/", expect=Expectation(status=(404,)), ends_run_on_error=True),)}
)
"""Its first request fails and ends the run."""


def test_a_load_before_the_measured_one_may_end_the_trial(url: Url) -> None:
    users = Population(name="first", users=2, iterations_per_user=50)
    before = Stage(workload=STRICT, loads=ClosedLoad(users=2, populations=(users,)))
    outcome = measured(OnAnotherHost(url), Heard(), before=before)
    assert outcome.fault is not None
    assert outcome.evidence.engine is None
    (stage,) = outcome.evidence.stages
    assert stage.report.reason == "request_failed"


def test_a_load_that_a_failed_request_ends_is_a_result_with_a_note(url: Url) -> None:
    outcome = measured(OnAnotherHost(url), Heard(), workload=STRICT, preflight=False)
    assert (outcome.failure, outcome.interrupted) == (None, False)
    assert outcome.evidence.engine is not None
    assert outcome.evidence.engine.reason == "request_failed"
    assert len(outcome.notes) == 1
