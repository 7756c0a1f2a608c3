"""`prony gate` as a user runs it: two builds, real processes, the files of a build server, the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from prony.report.schema import ResultOut
from tests.e2e.conftest import Lab

SHORT = ("--protocol", "300ms,1s", "--users", "8", "--seed", "1", "--trials", "3", "--budget", "4m")


def build(lab: Lab, name: str, *options: str) -> str:
    lab.server(name, *options)
    return f"./servers/{name}"


def test_a_much_slower_build_is_worse_and_every_file_says_so(lab: Lab) -> None:
    """1 ms of CPU time for a request against 0.05 ms: no load of the host hides that."""
    base, candidate = build(lab, "base", "--work", "50us"), build(lab, "candidate", "--work", "1ms")
    files = ("--junit", "gate.xml", "--markdown", "gate.md", "--report", "gate.html")
    # The margin and six blocks at the most: a factor of ten is far beyond both.
    done = lab.run(
        "gate", base, candidate, *SHORT, "--max-trials", "6", "--margin", "50%", *files, *lab.lenient,
        "--figures", "requests_per_s,cpu_us_per_request", "--json",
    )  # fmt: skip
    assert done.returncode == 7, done.stderr
    result = ResultOut.model_validate(json.loads(done.stdout))
    (part,) = result.parts
    assert part.gate is not None
    assert part.gate.change == "worse"
    assert {one.figure: one.change for one in part.gate.figures if one.change == "worse"}
    suite = ElementTree.parse(lab.folder / "gate.xml").getroot().find("testsuite")
    assert suite is not None
    assert int(suite.get("failures") or 0) >= 1
    assert (lab.folder / "gate.md").read_text().startswith("### ❌ Prony gate: worse")
    ElementTree.parse(lab.folder / "gate.svg")
    assert "candidate is worse than base by more than 50 %" in (lab.folder / "gate.html").read_text()
    again = lab.run("results", "show", "latest")
    assert again.returncode == 7
    assert again.stdout.lstrip().startswith("candidate is worse than base")


@pytest.mark.rarely
def test_the_same_build_twice_is_no_worse(lab: Lab) -> None:
    """By CPU time per request, which other load does not change by nine tenths."""
    server = build(lab, "same", "--work", "200us")
    done = lab.run(
        "gate", server, server, *SHORT, "--max-trials", "20", "--margin", "90%", *lab.lenient,
        "--figures", "cpu_us_per_request",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "same@candidate is no worse than same@base" in " ".join(done.stdout.split())


@pytest.mark.rarely
def test_a_build_that_does_not_start_is_a_fault_in_every_file(lab: Lab) -> None:
    base = build(lab, "base")
    broken = lab.folder / "servers" / "broken"
    broken.mkdir(parents=True)
    (broken / "server.yaml").write_text('workloads: [hello]\ncommand: ["./no-such-program"]\n')
    done = lab.run("gate", base, "./servers/broken", *SHORT, "--max-trials", "3", "--junit", "gate.xml")
    assert done.returncode == 4
    error = ElementTree.parse(lab.folder / "gate.xml").getroot().find("testsuite/testcase/error")
    assert error is not None
    assert "no-such-program" in (error.get("message") or "")


def test_options_are_refused_in_one_sentence(lab: Lab) -> None:
    base, candidate = build(lab, "base"), build(lab, "candidate")
    for words, said in (
        (("--margin", "0"), "--margin is '0'"),
        (("--budget", "0s"), "--budget is 0s"),
        (("--figures", "p98_ms"), "unknown figure 'p98_ms'"),
        (("--trials", "2"), "first look"),
    ):
        done = lab.run("gate", base, candidate, *words)
        assert done.returncode == 2, words
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert not Path(lab.db).exists()
