"""`prony import`, `--explain`, the command line as a user runs it; experiment C through ab."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from prony.errors import UsageError
from prony.plan.load import ClosedLoad, WholeRun
from prony.plan.planfile_read import find
from prony_frontends import front_end
from prony_frontends.ab import run, translate
from prony_frontends.base import explain
from prony_frontends.importing import tool_line
from tests import command
from tests.exit_codes import demanded_code
from tests.frontends.conftest import Front, Served, explained, from_file, offered


def prony(*words: str | Path) -> subprocess.CompletedProcess[str]:
    done = command.run(words)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_shell_file_becomes_a_plan(tmp_path: Path) -> None:
    script, plan = tmp_path / "bench.sh", tmp_path / "plan.yaml"
    script.write_text("#!/bin/sh\n# warm\ncd /\n/usr/bin/ab -n 100 \\\n  -c 10 http://127.0.0.1:9/a > out\n")
    done = prony("import", script, "-o", plan)
    assert done.returncode == 0, done.stderr
    load = from_file(plan).trial
    assert load.load == ClosedLoad(users=10)
    assert load.measured == WholeRun(total_requests=100)


def test_a_quoted_line_becomes_a_plan_and_explain_prints_the_same(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    assert prony("import", "prony ab -n 3 -k http://127.0.0.1:9/", "-o", plan).returncode == 0
    shown = prony("ab", "--explain", "-n", "3", "-k", "http://127.0.0.1:9/")
    assert shown.returncode == 0
    assert shown.stdout == plan.read_text()


def test_what_an_imported_plan_sends_is_what_ab_sends(serve: Callable[..., Served], tmp_path: Path) -> None:
    first, second = serve(), serve()
    argv = ["-n", "3", "-H", "X: ${a}", "-C", "a=b"]
    offered(translate([*argv, f"{first.url}/x"]))
    file = tmp_path / "plan.yaml"
    file.write_text(explain(translate([*argv, f"{second.url}/x"])))
    offered(from_file(file))
    first.ended(), second.ended()
    assert first.recorded().replace(first.address.encode(), b"") == second.recorded().replace(
        second.address.encode(), b""
    )


@pytest.mark.parametrize(
    ("script", "tool"),
    [
        ("ab -n 1 http://h/", "ab"),
        ("prony fhb -c 2 http://h/", "fhb"),
        ("/opt/faban/bin/fhb -c 2 http://h/  # as ever", "fhb"),
    ],
)
def test_a_line_says_which_tool(script: str, tool: str) -> None:
    assert tool_line(script, [])[0] == tool


@pytest.mark.parametrize(
    "tail",
    ["> out", ">out 2>&1", "2>&1 | tee out", "| grep Requests", "; echo done", "&& true", "# end", "&"],
)
def test_what_the_shell_does_with_the_output_is_not_the_tools(tail: str) -> None:
    line = f"ab -n 5 -H 'a: b | c' 'http://h/?a=1&b=2' {tail}"
    assert tool_line(line, []) == ("ab", ["-n", "5", "-H", "a: b | c", "http://h/?a=1&b=2"])


@pytest.mark.parametrize(
    "line",
    [
        "RES=$(ab -n 5 http://h/ | grep Requests)",
        "time ab -n 5 http://h/",
        "LC_ALL=C ab -n 5 http://h/ | tail -3",
        "if ! ab -n 5 http://h/; then echo well; fi",
        "cd /tmp && ab -n 5 > out http://h/",
        "for i in 1 2; do ab -n 5 http://h/; done",
    ],
)
def test_a_tool_is_found_where_scripts_have_it(line: str) -> None:
    assert tool_line(line, []) == ("ab", ["-n", "5", "http://h/"])


@pytest.mark.parametrize("word", ["$URL", '"$URL"', '"${HOST}/x"', "$(cat url)", "`cat url`"])
def test_what_only_the_shell_knows_is_named(word: str) -> None:
    with pytest.raises(UsageError, match="only in the shell"):
        tool_line(f"ab -n 5 {word}", [])
    assert tool_line("ab 'http://h/?$filter=a'", []) == ("ab", ["http://h/?$filter=a"])


def test_numbers_and_codes_are_as_a_person_writes_them() -> None:
    made = front_end("fhb").translate(["-c", "2", "http://h/"])
    (step,) = yaml.safe_load(explain(made))["workloads"]["steps"]
    assert step["expect"]["status"] == ["2xx", "3xx"]
    rated = front_end("wrk2").translate(["-R", "200", "-d", "30s", "http://h/"])
    assert "rate_per_s: 200\n" in explain(rated)
    assert "duration_s: 30\n" in explain(rated)
    assert explained(rated).load == rated.trial.load


def test_two_lines_are_too_many(tmp_path: Path) -> None:
    script = tmp_path / "two.sh"
    script.write_text("ab http://h/\nab http://h/\n")
    with pytest.raises(UsageError, match="found 2"):
        tool_line(str(script), [])


def told(stderr: str) -> list[str]:
    """Its lines, without notes on where the server runs."""
    own = [line for line in stderr.splitlines() if line.startswith("prony: ")]
    return [line for line in own if not line.startswith("prony: note: ")]


def test_a_reader_who_leaves_costs_neither_load_nor_judgement(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = serve()
    with command.start(["ab", "-n", "20", "-c", "2", f"{server.url}/", "--db", tmp_path / "r.db"]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == demanded_code(tmp_path / "r.db"), said
    assert len(told(said)) == 2
    assert server.ended()["requests"] == 20


def test_the_command_line_keeps_its_words(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    csv = tmp_path / "out.csv"
    done = prony("ab", "-n", "20", "-c", "2", "-e", csv, f"{server.url}/", "--db", tmp_path / "r.db")
    assert done.returncode == demanded_code(tmp_path / "r.db"), done.stderr
    assert "Complete requests:      20" in done.stdout
    assert csv.read_text().startswith("Percentage served,Time in ms\n0,")
    assert len(told(done.stderr)) == 2
    assert server.ended()["requests"] == 20
    shown = prony("results", "list", "--json", "--db", tmp_path / "r.db")
    assert json.loads(shown.stdout)
    helped = prony("ab", "-h")
    assert helped.returncode == 0
    assert "--exit-like-original" in helped.stdout
    assert prony("ab", "-Q").returncode == 22  # ab's own
    assert " ab " in prony("--help").stdout


def test_experiment_c_through_ab_is_the_native_plan_in_small(
    serve: Callable[..., Served], front: Front
) -> None:
    """The part as-published of the plan embedded-containers is `ab -n 10000 -c 10`; here with 200."""
    text = find("embedded-containers").read_text()
    assert "loads: {users: 10}\n    measured: {total_requests: 10000}" in text
    native = translate(["-n", "10000", "-c", "10", "-k", "http://h/actuator/metrics"]).trial
    assert native.load == ClosedLoad(users=10)
    assert native.measured == WholeRun(total_requests=10_000)
    server = serve("--body-bytes", "500", "--delay", "fixed:5ms")
    code = run(["-n", "200", "-c", "10", "-k", f"{server.url}/actuator/metrics"], front.context())
    assert code == demanded_code(front.store)
    said = front.out.getvalue()
    (ran,) = front.store.trials(front.store.experiments()[0].id)
    assert "Complete requests:      200" in said
    assert "Document Length:        500 bytes" in said
    assert f"{ran.figures['requests_per_s']:.2f} [#/sec]" in said  # the figure that a native run prints
    assert ran.record.evidence.load.claim == "protocol"  # and the judgement that it gets
    assert server.ended()["requests"] == 200


def under_load(server: Served, *words: str | Path) -> subprocess.Popen[str]:
    """The command, once the server has answered some of its requests."""
    process = command.start(words)
    for _ in range(300):
        with urllib.request.urlopen(f"{server.url}/__prony/stats") as response:
            if json.load(response)["requests"] >= 50:
                return process
        time.sleep(0.1)
    process.kill()
    raise AssertionError(process.communicate())


def test_ctrl_c_prints_what_there_is(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve("--delay", "fixed:20ms")
    process = under_load(server, "ab", "-t", "60", f"{server.url}/", "--db", tmp_path / "r.db")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=180)
    assert "Traceback" not in err
    # ab exits with 1 when it is interrupted; a run that does not conform has the code 3 with any tool.
    assert process.returncode == (demanded_code(tmp_path / "r.db") or 1), err
    complete = re.search(r"^Complete requests:\s+(\d+)$", out, re.MULTILINE)
    assert complete is not None, out
    assert int(complete[1]) >= 1
    assert "prony: " in err


def test_a_run_whose_server_dies_does_not_conform(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve("--delay", "fixed:20ms")
    process = under_load(server, "ab", "-r", "-t", "60", f"{server.url}/", "--db", tmp_path / "r.db")
    server.process.kill()
    server.process.wait()
    _out, err = process.communicate(timeout=180)
    assert "Traceback" not in err
    assert process.returncode == 3, err
    assert "ended under load" in err
