"""Second opinion: other tools beside Prony, counted by the server, and what explains a difference."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault
from prony.evidence.trial import ToolRun
from prony.experiment.experiment import Experiment, remaining
from prony.experiment.testbed import Targets
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad, Connections, WholeRun
from prony.plan.part import CrossCheck, Part
from prony.plan.plan import MAIN, Plan
from prony.plan.target import Url
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import from_url
from prony.report.progress_state import SilentProgress
from prony.server import proc
from prony.store import Store
from prony.trial.measured_load import peers_around
from prony_peers import PEERS, Claim, Command, LoadGenerator, NotOffered, PeerLoad
from prony_peers import around_trial as peer_tools
from prony_peers.ab import Ab
from prony_peers.artillery import Artillery
from prony_peers.base import Offer
from prony_peers.h2load import H2load
from prony_peers.jmeter import Jmeter
from prony_peers.oha import Oha
from prony_peers.opinions import PRONY
from prony_peers.runner import run
from prony_peers.wrk import Wrk
from prony_selftest.faults.other_tools import words
from tests import command as prony
from tests.exit_codes import demanded_code
from tests.frontends.conftest import Front, Served, front, serve  # noqa: F401 - fixtures

URL = "http://127.0.0.1:8080/a?b=1"
CLOSED = Offer(connections=4)
REQUEST = PeerLoad(CLOSED, URL, 1, 0.0, "", 0)


def test_every_peer_can_be_asked_or_says_why_not() -> None:
    for peer in PEERS:
        assert peer.install
        asked = 0
        for offered in (CLOSED, replace(CLOSED, rate_per_s=10)):
            try:
                command = peer.command(Path(peer.name), PeerLoad(offered, REQUEST.url, 1, 0.0, "", 0))
            except NotOffered as reason:
                assert str(reason)  # noqa: PT017 - either is right
                continue
            assert isinstance(command, Command)
            asked += 1
        assert asked


def test_over_http_2_connections_and_streams_are_asked_for_apart() -> None:
    plan = TrialPlan(
        workload=from_url("/a"),
        load=ClosedLoad(users=12),
        measured=WholeRun(duration_s=1),
        connections=Connections(http_version="2", count=4),
    )
    found = peer_tools.available(["wrk", "h2load"], plan, "http://127.0.0.1:1")
    assert "h2load" in {*found.versions, *found.left_out}
    assert "wrk" in found.left_out
    for over, connections, streams in (
        ({"http_version": "2", "count": 4}, 4, 3),
        ({"http_version": "2"}, 12, 1),
        ({}, 12, None),
    ):
        asked = plan.model_copy(update={"connections": Connections.model_validate(over)})
        offer = peer_tools.request_of(asked, "http://h", cpu=0, seed=1).case
        assert (offer.connections, offer.streams) == (connections, streams)
    argv = H2load().command(Path("h2load"), peer_tools.request_of(plan, "http://h", cpu=0, seed=1)).argv
    assert {"-c4", "-m3"} <= set(argv)
    assert "--h1" not in argv


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--streams", "2"], "--http-version 2"),
        (["--http-version", "2", "--streams", "0"], "--streams is 0"),
        (["--http-version", "2", "--streams", "2", "--connection-per-request"], "--connection-per-request"),
        (["--http-version", "3"], "--http-version"),
    ],
)
def test_what_does_not_fit_http_2_is_refused(argv: list[str], says: str) -> None:
    found = prony.run(["second-opinion", "http://127.0.0.1:1/", *argv])
    assert found.returncode == 2
    assert says in found.stderr


@pytest.mark.needs("wrk")
@pytest.mark.needs("h2load")
@pytest.mark.needs("nghttpd")
def test_a_round_over_http_2(tmp_path: Path) -> None:
    from bench.nghttpd import Nghttpd

    with Nghttpd(sorted(os.sched_getaffinity(0))[0]) as server:
        found = prony.run(
            ["second-opinion", server.url, "--with", "h2load,wrk", "-c", "2", "-d", "1s", "--trials", "1",
             "--http-version", "2", "--streams", "3", "--json", "--db", tmp_path / "r.db"],
        )  # fmt: skip
    assert found.returncode == demanded_code(tmp_path / "r.db"), found.stderr
    shown = prony.run(["results", "show", "latest", "--details", "--db", tmp_path / "r.db"])
    assert "2 connections x 3 streams" in " ".join(shown.stdout.split())
    result = json.loads(found.stdout)["parts"][0]["cross_check"]
    assert set(result["left_out"]) == {"wrk"}
    for one in result["opinions"]:
        (only,) = one["runs"]
        assert only["failure"] is None
        assert only["requests"] > 0
        assert only["errors"] == 0


GOLDEN = Path(__file__).parent / "golden"
"""What each tool printed on a server that waits 20 ms, in 2 s: 4 connections, or 20 requests per second."""


@pytest.mark.parametrize(
    ("peer", "claim"),
    [
        (Wrk(), Claim(requests=388, per_s=193.60)),
        (Ab(), Claim(requests=393, per_s=195.62)),
        (H2load(), Claim(requests=388, per_s=194.0, abandoned=4)),
        (Oha(), Claim(requests=390, per_s=196.86174016108095, abandoned=4)),
        (Jmeter(), Claim(requests=917, per_s=438.1)),
        (Artillery(), Claim(requests=40, per_s=21.0)),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_what_each_tool_really_printed_is_read(peer: LoadGenerator, claim: Claim) -> None:
    said = (GOLDEN / f"{peer.name}.txt").read_text("utf-8")
    assert peer.claim(said, "", 0) == claim
    assert {one.name for one in PEERS} == {file.stem for file in GOLDEN.iterdir()}
    with pytest.raises(ValueError, match="no such host"):
        peer.claim("", "no such host", 1)


def test_what_artillery_and_jmeter_print() -> None:
    said = (
        "http.responses: .... 7\nSummary report @ 1\nerrors.ETIMEDOUT: ...... 2\nhttp.codes.200: .... 38\n"
        "http.codes.503: .... 2\nhttp.responses: ...... 40\n"
    )
    assert Artillery().claim(said, "", 0) == Claim(requests=40, errors=4)
    with pytest.raises(ValueError, match="no script"):
        Artillery().claim("", "no script", 1)
    table = (
        "summary +   90 in 00:00:01 =  90.0/s Avg: 1 Min: 0 Max: 9 Err:     0 (0.00%) Active: 4\n"
        "summary =  190 in 00:00:02 =  95.0/s Avg: 1 Min: 0 Max: 9 Err:     3 (1.58%)\n"
    )
    assert Jmeter().claim(table, "", 0) == Claim(requests=190, errors=3, per_s=95.0)
    plan = Jmeter().command(Path("jmeter"), REQUEST).files["plan.jmx"]
    assert '<stringProp name="HTTPSampler.path">/a?b=1</stringProp>' in plan


class Shell:
    """A tool that does what its test says."""

    name, install = "shell", "-"

    def __init__(self, script: str) -> None:
        self.script = script

    def find(self) -> Path | None:
        return Path("/bin/sh")

    def version(self, program: Path) -> str:  # noqa: ARG002 - the verb's shape
        return "0"

    def command(self, program: Path, request: PeerLoad) -> Command:  # noqa: ARG002 - likewise
        return Command((str(program), "run.sh"), files={"run.sh": self.script})

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:
        if exit_code:
            raise ValueError(stderr.strip())
        return Claim(requests=int(stdout), per_s=7.0)


def test_a_tool_is_run_in_a_folder_of_its_own_and_quoted_where_it_fails() -> None:
    cpus = sorted(os.sched_getaffinity(0))[:1]
    good = run(Shell("cat run.sh | wc -l"), Path("/bin/sh"), REQUEST, cpus)
    assert (good.claim.requests, good.failure) == (0, None)
    assert good.cpu_s is not None
    bad = run(Shell("echo no route >&2; exit 3"), Path("/bin/sh"), REQUEST, cpus)
    assert bad.failure is not None
    assert bad.failure.endswith("3: no route")
    assert words(good) == "7/s"
    assert bad.failure in words(bad)
    assert words(replace(good, claim=Claim(5, 1200, 2.0))) == "2/s (1,200 errors)"


def test_rounds_against_a_server_that_counts(serve: Callable[..., Served], tmp_path: Path) -> None:  # noqa: F811
    server = serve("--delay", "5ms")
    found = prony.run(
        ["second-opinion", f"{server.url}/", "--with", "wrk,ab", "-c", "2", "-d", "1s", "--trials", "1",
         "--json", "--db", tmp_path / "r.db"],
    )  # fmt: skip
    assert found.returncode == demanded_code(tmp_path / "r.db"), found.stderr
    result = json.loads(found.stdout)["parts"][0]["cross_check"]
    ran = {one["tool"]: one for one in result["opinions"]}
    assert set(ran) | set(result["left_out"]) == {PRONY, "wrk", "ab"}
    for name, one in ran.items():
        (only,) = one["runs"]
        assert only["failure"] is None
        assert only["counted"] is not None, name
        assert abs(only["counted"] - only["requests"]) <= 4, name
        assert only["client_cpu_s"] > 0
    assert sum(run["counted"] for one in ran.values() for run in one["runs"]) == server.ended()["requests"]


@pytest.mark.parametrize("server", ["reference", "reference:https"])
@pytest.mark.rarely
def test_a_server_of_the_catalogue_is_launched_for_each_round_as_for_any_trial(
    server: str, tmp_path: Path
) -> None:
    found = prony.run(
        ["second-opinion", server, "--with", "wrk,ab", "-c", "2", "-d", "1s", "--trials", "2", "--json",
         "--db", tmp_path / "r.db"],
    )  # fmt: skip
    assert found.returncode == demanded_code(tmp_path / "r.db"), found.stderr
    (part,) = json.loads(found.stdout)["parts"]
    ran = {one["tool"]: one for one in part["cross_check"]["opinions"]}
    assert set(ran) | set(part["cross_check"]["left_out"]) == {PRONY, "wrk", "ab"}
    for name, one in ran.items():
        assert [run["failure"] for run in one["runs"]] == [None, None], name
        assert sorted(run["round"] for run in one["runs"]) == [1, 2], name
        assert all(run["requests"] > 0 for run in one["runs"])
    store = Store.open(tmp_path / "r.db")
    trials = store.trials(store.experiment("latest").id)
    assert len({trial.record.evidence.server.pid for trial in trials}) == 2
    for trial in trials:
        evidence = trial.record.evidence
        assert (evidence.server.owned, evidence.clean_stop) == (True, True)
        assert evidence.start_up is not None
        assert evidence.conformance is not None
        assert {run.tool for run in evidence.beside} == set(ran) - {PRONY}
        assert evidence.server.pid is not None
        assert not proc.alive(evidence.server.pid)


def cross_check(url: str, tools: tuple[str, ...], trials: int) -> Plan:
    trial = TrialPlan(
        workload=from_url("/"),
        load=ClosedLoad(users=2),
        measured=WholeRun(total_requests=50),
        warm_up=fixed(0.0),
        preflight=False,
        beside=tools,
    )
    part = Part(name=MAIN, title="x", shape="cross-check", cross_check=CrossCheck())
    cell = cell_of(MAIN, url, Url(url=url), trial, trials)
    return Plan(name="second-opinion", command="second-opinion", title="x", parts=(part,), cells=(cell,))


def experiment_of(plan: Plan, front: Front) -> Experiment:  # noqa: F811
    return Experiment(plan, Targets(), front.store, front.bench(), SilentProgress())


def test_a_round_whose_tools_were_interrupted_is_run_again(
    serve: Callable[..., Served],  # noqa: F811
    front: Front,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []

    def run_tool(name: str, *_: object) -> ToolRun:
        calls.append(name)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return ToolRun(tool=name, requests=5, errors=0, seconds=1.0, wall_s=1.0)

    monkeypatch.setattr("prony.trial.measured_load.peers_around", lambda tools, _: ([], list(tools)))
    monkeypatch.setattr(peer_tools, "run_tool", run_tool)
    plan = cross_check(serve().url, ("wrk", "ab"), trials=2)
    experiment = experiment_of(plan, front)
    with pytest.raises(KeyboardInterrupt):
        experiment.run()
    left = remaining(plan, front.store.trials(experiment.identifier))
    assert [one.block for one in left] == [1]
    experiment_of(plan, front).resume(experiment.identifier)
    assert calls == ["wrk", "ab", "wrk", "ab", "wrk", "ab"]
    trials = front.store.trials(experiment.identifier)
    assert [len(trial.record.evidence.beside) for trial in trials] == [2, 1, 2]


def test_a_tool_that_fails_is_no_failure_of_the_trial(
    serve: Callable[..., Served],  # noqa: F811
    front: Front,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise EnvironmentFault("wrk could not be started on CPU [1]")

    monkeypatch.setattr(peer_tools, "run", broken)
    experiment = experiment_of(cross_check(serve().url, ("wrk",), trials=1), front)
    experiment.run()
    (trial,) = front.store.trials(experiment.identifier)
    (only,) = trial.record.evidence.beside
    assert only.failure == "wrk could not be started on CPU [1]"
    assert trial.record.failure is None
    assert trial.record.evidence.engine is not None


def test_the_order_of_a_round_is_drawn_and_holds_each_tool_once() -> None:
    tools = ("a", "b", "c")
    drawn = {(tuple(before), tuple(after)) for before, after in (peers_around(tools, n) for n in range(400))}
    assert all(sorted((*before, *after)) == list(tools) for before, after in drawn)
    assert len(drawn) == 24


def test_names_that_nobody_knows() -> None:
    found = prony.run(["second-opinion", "http://127.0.0.1:9/", "--with", "wrkk"])
    assert found.returncode == 2
    assert "'wrk'" in found.stderr
