"""The seam of the front ends: a load is run, explained as a plan that runs likewise, and judged aloud."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.cli.common import Common
from prony.cli.main import is_front_end
from prony.errors import EnvironmentFault, UsageError
from prony.experiment import calibrating, trials
from prony.judge.finding import Bias, Finding, Judgement, Kind
from prony.judge.limits import CheckLimits
from prony.plan.load import ClosedLoad, Connections, OpenLoad, SteadyWindow, WholeRun
from prony.plan.planfile_read import read
from prony.plan.step import Step
from prony.plan.target import TlsOptions, Url, parse_url
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Workload
from prony.report.progress_state import SilentProgress
from prony.store import StoredJudgement, StoredTrial
from prony_frontends import command as frontends
from prony_frontends import importing
from prony_frontends.base import Note, Ran, Refused, Translated, exit_code, explain, print_judgement
from prony_frontends.command import divided
from tests import command
from tests.exit_codes import demanded_code
from tests.frontends.conftest import Front, Served
from tests.judge.factory import healthy
from tests.records import record

TEXT = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=1, max_size=12)


def translated(url: str, requests: int = 400, users: int = 4) -> Translated:
    trial = TrialPlan(
        workload=Workload(name="toy", steps=(Step(path="/a?b=1", headers={"X-Toy": "1"}),)),
        load=ClosedLoad(users=users),
        measured=WholeRun(total_requests=requests),
        warm_up=fixed(0.0),
        preflight=False,
    )
    return Translated("toy", parse_url(url).target, trial, "toy", (Note("a_code", "a note", "an element"),))


def test_the_server_sees_the_load_and_nothing_else(serve: Callable[..., Served], front: Front) -> None:
    server = serve("--body-bytes", "12")
    context = front.context(seed=7)
    ran = context.measure(translated(server.url), SilentProgress())
    assert context.end(ran, 0) == demanded_code(front.store)
    assert server.ended()["requests"] == 400
    assert ran.window.completed == 400
    assert ran.trial.record.seed == 7
    said = front.err.getvalue().splitlines()
    assert said[0] == "prony: note: an element: a note"
    assert len(said) == 3
    assert said[1].startswith("prony: conforms: " if ran.judgement.conforms else "prony: does not conform: ")
    content = ran.judgement.finding("content")
    assert content is not None
    assert content.code == "ok", content.reason
    assert front.store.experiment(ran.identifier).name == "toy"


def test_responses_unlike_each_other_are_told(serve: Callable[..., Served], front: Front) -> None:
    server = serve("--wrong-body", "share=0.5")
    ran = front.context().measure(translated(server.url, 600), SilentProgress())
    content = ran.judgement.finding("content")
    assert content is not None
    assert content.kind is Kind.PROVIDED
    assert "most frequent" in content.reason


def test_an_interrupt_after_the_load_costs_the_calibration_and_nothing_else(
    serve: Callable[..., Served], front: Front, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrating, "calibrate", interrupted)
    monkeypatch.setattr(trials, "ceiling_decides", lambda *_: True)  # else the load of this moment does
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))  # with no ceiling of an earlier test
    server = serve()
    ran = front.context().measure(translated(server.url), SilentProgress())
    assert ran.interrupted
    assert (ran.window.completed, server.ended()["requests"]) == (400, 400)
    assert ran.evidence.calibration is None


def told(*findings: Finding, **figures: float) -> list[str]:
    """What is said of a run with these findings."""
    judgement = Judgement(conforms=all(one.conforms for one in findings), findings=findings)
    stored = StoredJudgement(judgement, dict(figures), datetime.now(UTC), "1")
    trial = StoredTrial(record(healthy()), (stored,), "1")
    err = StringIO()
    print_judgement(Ran("261127-abcd", trial, False, lambda _: None), err)
    return err.getvalue().splitlines()


FINE = Finding(check="errors", reason="no request failed")
SLOWER = Finding(
    check="client",
    code="saturated",
    reason="the client's thread was busy",
    advice="give it more CPUs",
    bias={"requests_per_s": Bias(high=0.02), "p99_ms": Bias(low=-0.04)},
)


def test_two_lines_say_how_good_the_figures_are_and_what_they_rest_on() -> None:
    flag = Finding(check="identity", code="unread", reason="no owner", provided="nothing answered for it")
    assert told(FINE, SLOWER, flag, requests_per_s=8000.0) == [
        "prony: conforms: requests/s good to −0.3 / +2.3 % (261127-abcd)",
        "prony: largest source: −4 % of p99 by client: the client's thread was busy; give it more CPUs. "
        "Provided that nothing answered for it",
    ]
    assert told(FINE, requests_per_s=8000.0)[1] == "prony: all 1 checks passed"


def test_on_a_busy_machine_the_second_line_says_not_to_compare() -> None:
    busy = Finding(
        check="isolation",
        code="other_processes",
        reason="other processes took 57 % of the server's CPUs",
        advice="stop the other load and repeat",
        bias={"requests_per_s": Bias(high=None)},
        outside=True,
    )
    assert told(FINE, busy, requests_per_s=8000.0)[1] == (
        "prony: other processes took 57 % of the server's CPUs: do not compare these figures "
        "(not bounded above of requests/s); stop the other load and repeat"
    )
    also_the_client = busy.model_copy(update={"outside": False})
    assert told(FINE, also_the_client, requests_per_s=8000.0) == told(FINE, busy, requests_per_s=8000.0)
    little = busy.model_copy(update={"bias": {"requests_per_s": Bias(high=0.02)}})
    assert told(FINE, little, requests_per_s=8000.0)[1].startswith(
        "prony: largest source: +2 % of requests/s"
    )


def test_of_a_run_that_does_not_conform_two_lines_say_why() -> None:
    wrong = Finding(check="errors", conforms=False, reason="12 %\nfailed", advice="look at the log")
    assert told(SLOWER, wrong, requests_per_s=8000.0) == [
        "prony: does not conform: the figures above must not be used (261127-abcd)",
        "prony: errors: 12 % failed; look at the log",
    ]


def test_nobody_listens(front: Front) -> None:
    with pytest.raises(EnvironmentFault, match="nothing takes connections at 127"):
        front.context().measure(translated("http://127.0.0.1:9/"), SilentProgress())
    assert front.store.experiments() == []


def test_a_run_that_does_not_conform_exits_3_unless_the_original_is_asked_for(
    serve: Callable[..., Served], front: Front
) -> None:
    server = serve("--reset", "share=0.5")
    ran = front.context().measure(translated(server.url), SilentProgress())
    assert not ran.judgement.conforms
    assert exit_code(ran, exit_like_original=False, original=0) == 3
    assert exit_code(ran, exit_like_original=True, original=22) == 22


@settings(max_examples=60, deadline=None)
@given(
    method=st.sampled_from(["GET", "POST", "HEAD"]),
    headers=st.dictionaries(st.sampled_from(["A", "b", "C-d"]), TEXT, max_size=3),
    body=st.none() | TEXT,
    load=st.builds(ClosedLoad, users=st.integers(1, 50), ramp_up_s=st.floats(0, 9))
    | st.builds(OpenLoad, rate_per_s=st.floats(1, 99), max_users=st.none() | st.integers(1, 9)),
    measured=st.builds(
        WholeRun, total_requests=st.integers(1, 99), duration_s=st.none() | st.floats(0.5, 9.0)
    )
    | st.builds(SteadyWindow, window_s=st.floats(1, 99)),
    warm_up_s=st.floats(0, 99),
    connections=st.builds(
        Connections, keep_alive=st.booleans(), http_version=st.sampled_from(["1.0", "1.1"])
    ),
    timeout_ms=st.integers(1, 99_999),
)
def test_the_plan_that_is_explained_is_the_load_again(
    tmp_path_factory: pytest.TempPathFactory, method: str, headers: dict[str, str], body: str | None,
    load: ClosedLoad | OpenLoad, measured: WholeRun | SteadyWindow, warm_up_s: float,
    connections: Connections, timeout_ms: int,
) -> None:  # fmt: skip
    step = Step.model_validate({"path": "/x", "method": method, "headers": headers, "body": body})
    trial = TrialPlan(
        workload=Workload(name="w", steps=(step,)), load=load, measured=measured,
        warm_up=fixed(warm_up_s if isinstance(measured, SteadyWindow) else 0.0),
        driver="epoll", connections=connections, request_timeout_ms=timeout_ms, connect_timeout_ms=77,
        preflight=False, source_addresses=("127.0.0.2",), request_parts=True, log="/l.csv",
    )  # fmt: skip
    target = Url(url="https://127.0.0.1:8443", addresses=("127.0.0.1:8",), tls=TlsOptions(insecure=True))
    file = tmp_path_factory.mktemp("plan") / "plan.yaml"
    file.write_text(explain(Translated("toy", target, trial, "t", (Note("own", "two\nlines"),))))
    plan = read(file, limits=CheckLimits, seed=5)
    (cell,) = plan.cells
    assert (plan.title, plan.seed, cell.target, cell.trial) == ("t", 5, target, trial)
    assert (plan.goes_on, plan.resume_command) == (True, "run")


def test_prony_run_runs_what_is_explained(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve("--delay", "fixed:5ms")  # 25 responses within a millisecond are no window
    file = tmp_path / "plan.yaml"
    file.write_text(explain(translated(server.url, 25)))
    done = command.run(["run", file, "--details", "--db", tmp_path / "r.db"])
    assert done.returncode == demanded_code(tmp_path / "r.db"), done.stderr
    assert "25 requests completed" in done.stdout
    assert server.ended()["requests"] == 25
    shown = command.run(["run", file, "--quick", "--dry-run", "--json"])
    assert shown.returncode == 0, shown.stderr
    planned = json.loads(shown.stdout)
    assert (planned["quick"], len(planned["trials"])) == (True, 1)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("servers: {url: 'http://h/x'}\nworkloads: {steps: [{path: /}]}\nloads: {users: 1}\n"
         "measured: {total_requests: 1}\n", "expected scheme, host and port alone: http://h:80"),
        ("servers: {url: 'http://h', urk: 1}\nworkloads: {steps: [{path: /}]}\nloads: {users: 1}\n"
         "measured: {total_requests: 1}\n", "plan.yaml:1: unknown key 'servers.urk'"),
        ("servers: {url: 'http://h'}\nloads: {users: 1}\nmeasured: {total_requests: 1}\n",
         "the key 'workloads' is missing in the part 'main'"),
        ("servers: {url: 'http://h'}\nworkload: {steps: [{path: /}]}\n",
         "plan.yaml:2: unknown key 'workload', did you mean 'workloads'?"),
        ("servers: {url: 'http://h'}\nworkloads:\n  - hello\n  - steps: [{paht: /}]\n",
         "plan.yaml:4: unknown key 'workloads.1.steps.0.paht', did you mean 'path'?"),
        ("servers: {url: 'http://h'}\nworkloads: helo\n", "plan.yaml:2: unknown workload 'helo'"),
        ("servers: {url: 'http://h'}\nworkloads: hello\njdk: 21\n",
         "plan.yaml:3: jdk applies to servers that Prony launches; http://h:80 is already running"),
        ("servers: {url: 'http://h'}\nworkloads: hello\nmeasured: {total_requests: 1}\nwarm_up: 3\n",
         "plan.yaml:4: warm_up applies to a steady window"),
        ("servers: {url: 'http://h'}\nworkloads: hello\nwarm_up: -3\n",
         "plan.yaml:3: 'warm_up' is -3: expected seconds, 0 or more"),
    ],
)  # fmt: skip
def test_a_url_plan_that_is_wrong_is_refused_in_a_sentence(tmp_path: Path, body: str, said: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(body)
    with pytest.raises(UsageError) as refused:
        read(file, limits=CheckLimits, seed=1)
    assert said in str(refused.value)


def test_pronys_own_options_are_taken_out_wherever_they_stand() -> None:
    own, rest = divided(["-n", "5", "--explain", "-H", "a: b", "--db=x.db", "--seed", "3", "http://h/"])
    assert rest == ["-n", "5", "-H", "a: b", "http://h/"]
    assert own.flags == {"--explain"}
    assert own.common == Common(seed=3, db="x.db")
    with pytest.raises(UsageError, match="--seed needs a value"):
        divided(["--seed"])
    own, rest = divided(["--seed", "3", "http://h/", "--", "--seed", "7", "--explain"])
    assert rest == ["http://h/", "--", "--seed", "7", "--explain"]
    assert own.common == Common(seed=3)
    assert not own.flags
    own, _ = divided(["--limits", "a=1", "--limits=b=2", "--report", "p.html", "--client-cpus", "1"])
    assert own.common == Common(limits=["a=1", "b=2"], report=Path("p.html"), client_cpus="1")


def test_options_are_those_of_every_command_and_need_no_words_of_their_own() -> None:
    said = frontends.usage()
    for option, (name, known) in frontends.shared().items():
        assert option in said
        assert " ".join(known.help.split())[:40] in " ".join(said.split())
        assert hasattr(Common(), name)


def test_a_refusal_names_element_file_line_and_a_way_out() -> None:
    fault = Refused("JDBC Request", "plan.jmx", 12, "a sampler 'find users'", "use an HTTP Request")
    assert str(fault) == (
        "plan.jmx:12: JDBC Request is not supported: a sampler 'find users'; use an HTTP Request"
    )
    assert fault.exit_code == 2


def test_what_is_no_script_is_no_import(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected one command line of a tool"):
        importing.tool_line("echo hello", [])
    with pytest.raises(UsageError, match="does not exist"):
        importing.tool_line(str(tmp_path / "none.jmx"), [])
    script = tmp_path / "a.lua"
    script.write_text("")
    assert importing.tool_line(str(script), ["http://h/"]) == ("wrk", ["-s", str(script), "http://h/"])


def test_a_word_that_is_no_tool_is_no_front_end() -> None:
    assert not is_front_end(["compare", "a", "b"])
    assert not is_front_end([])
