"""Second opinion: other tools beside Prony, counted by the server, and what explains a difference."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from prony.compare.cross_check import PRONY
from prony.experiment.cross_check import counter_of
from prony.peers import PEERS, Claim, Command, NotOffered, Request, Tool
from prony.peers.ab import Ab
from prony.peers.artillery import Artillery
from prony.peers.h2load import H2load
from prony.peers.jmeter import Jmeter
from prony.peers.oha import Oha
from prony.peers.runner import run
from prony.peers.wrk import Wrk
from prony.plan.plan import CrossCheck
from prony.selftest.faults.other_tools import words
from tests.frontends.conftest import Served, front, serve  # noqa: F401 - fixtures
from tests.verdicts import demanded_code

PRONY_COMMAND = Path(sys.executable).parent / "prony"
URL = "http://127.0.0.1:8080/a?b=1"
CLOSED = CrossCheck(connections=4, seconds=1, url=URL)
REQUEST = Request(CLOSED, URL, 1, 0.0, "", 0)


def test_every_peer_can_be_asked_or_says_why_not() -> None:
    for peer in PEERS:
        assert peer.install
        asked = 0
        for offered in (CLOSED, CLOSED.model_copy(update={"rate_per_s": 10})):
            try:
                command = peer.command(Path(peer.name), Request(offered, REQUEST.url, 1, 0.0, "", 0))
            except NotOffered as reason:
                assert str(reason)  # noqa: PT017 - either is right
                continue
            assert isinstance(command, Command)
            asked += 1
        assert asked


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
def test_what_each_tool_really_printed_is_read(peer: Tool, claim: Claim) -> None:
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

    def command(self, program: Path, request: Request) -> Command:  # noqa: ARG002 - likewise
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
    assert bad.failure == "it ended with exit code 3: no route"
    assert words(good) == "7/s"
    assert words(bad) == "ended without a rate (it ended with exit code 3: no route)"
    assert words(replace(good, claim=Claim(5, 1200, 2.0))) == "2/s (1,200 errors)"


def test_rounds_against_a_server_that_counts(serve: Callable[..., Served], tmp_path: Path) -> None:  # noqa: F811
    server = serve("--delay", "5ms")
    found = subprocess.run(
        [PRONY_COMMAND, "second-opinion", f"{server.url}/", "--with", "wrk,ab", "-c", "2", "-d", "1s",
         "--rounds", "1", "--json", "--db", tmp_path / "r.db"],
        capture_output=True, text=True, timeout=180, check=False,
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
    assert counter_of(server.url)() == server.ended()["requests"]


@pytest.mark.parametrize("server", ["reference", "reference:https"])
def test_a_server_of_the_catalogue_answers_all_rounds_and_is_gone_then(server: str, tmp_path: Path) -> None:
    found = subprocess.run(
        [PRONY_COMMAND, "second-opinion", server, "--with", "wrk,ab", "-c", "2", "-d", "1s", "--rounds", "2",
         "--json", "--db", tmp_path / "r.db"],
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert found.returncode == demanded_code(tmp_path / "r.db"), found.stderr
    (part,) = json.loads(found.stdout)["parts"]
    ran = {one["tool"]: one for one in part["cross_check"]["opinions"]}
    assert set(ran) | set(part["cross_check"]["left_out"]) == {PRONY, "wrk", "ab"}
    for name, one in ran.items():
        assert [run["failure"] for run in one["runs"]] == [None, None], name
        assert all(run["requests"] > 0 for run in one["runs"])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", urlsplit(part["cells"][0]["server"]).port or 0), 1)


def test_names_that_nobody_knows() -> None:
    found = subprocess.run(
        [PRONY_COMMAND, "second-opinion", "http://127.0.0.1:9/", "--with", "wrkk"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert found.returncode == 2
    assert "did you mean 'wrk'" in found.stderr
