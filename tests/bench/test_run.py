"""A miniature run against the real server: structure alone, no speeds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cases import CASES
from bench.measure import Setting, ToolFailed, run_once
from bench.server import BODY
from bench.tools import Claim, Command, LoadGenerator, PeerLoad
from bench.tools.prony import Prony
from prony.errors import EnvironmentFault
from prony.host.affinity import granted_cpus
from prony.host.partition import partition
from prony.load.engine import find_engine
from prony_peers.h2load import H2load
from prony_peers.kernel import start_pinned, wait
from prony_peers.wrk import Wrk

pytestmark = pytest.mark.e2e
CLOSED = next(case for case in CASES if case.name == "closed-64")


def one_cpu_each() -> Setting:
    """A CPU for each side; the same one where there is no other, for no speed is asserted."""
    found = partition()
    return Setting(found.client[-1], found.server[0], None, BODY)


@pytest.mark.parametrize("tool", [Wrk(), Prony("io_uring"), Prony("epoll")], ids=lambda tool: tool.name)
def test_one_run(tool: LoadGenerator) -> None:
    program = tool.find()
    if program is None:
        pytest.skip(f"{tool.name} is not installed: {tool.install}")
    setting = one_cpu_each()
    found = run_once(tool, program, PeerLoad(CLOSED, "", 1, 0.3, BODY, setting.client_cpu), setting)
    assert found.whole is not None
    assert 0 < found.requests_measured < found.whole.requests  # the warm-up is not in it
    assert found.cpu_s_measured > 0
    assert 0 < found.busy <= 1.1  # one CPU; the clocks are read one after the other
    assert 64 <= found.whole.connections <= 65  # wrk tries one first
    assert abs(found.claim.requests - found.whole.requests) <= 64 + 0.001 * found.whole.requests
    assert found.claim.errors == 0
    assert found.peak_rss_bytes is not None
    assert 0.5e6 < found.peak_rss_bytes < 200e6  # not this Python's
    assert tool.version(program) != "unknown"


@pytest.mark.needs("h2load")
@pytest.mark.needs("nghttpd")
@pytest.mark.parametrize("tool", [H2load(), Prony("io_uring"), Prony("epoll")], ids=lambda tool: tool.name)
def test_one_run_on_nghttpd_has_the_tools_own_count(tool: LoadGenerator) -> None:
    program, setting = tool.find(), one_cpu_each()
    assert program is not None
    case = next(case for case in CASES if case.name == "h2c-8x32-nghttpd")
    found = run_once(tool, program, PeerLoad(case, "", 1, 0.3, BODY, setting.client_cpu), setting)
    assert found.whole is None
    assert found.requests_measured == found.claim.requests > 0
    assert found.claim.errors == 0
    assert found.cpu_s_measured > 0


class Fleeting:
    """A tool that ends at once."""

    name = "fleeting"
    install = ""

    def __init__(self, script: str) -> None:
        self._script = script

    def find(self) -> Path:
        return Path(sys.executable)

    def version(self, program: Path) -> str:
        return str(program)

    def command(self, program: Path, request: PeerLoad) -> Command:
        return Command((str(program), "-S", "-c", self._script, request.url))

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:  # noqa: ARG002 - it prints nothing
        if exit_code:
            raise ValueError(stderr.splitlines()[-1])
        return Claim(requests=0)


@pytest.mark.parametrize(
    ("script", "warm_s", "said"),
    [  # a host that stands still for a second changes none of them
        ("raise SystemExit('no such host')", 0.3, "exit code 1: no such host"),
        ("pass", 1.5, "ended during its warm-up"),
        ("import time; time.sleep(2)", 0.3, "no request reached the server"),
    ],
)
def test_a_run_without_figures_says_why(script: str, warm_s: float, said: str) -> None:
    setting = one_cpu_each()
    tool = Fleeting(script)
    with pytest.raises(ToolFailed, match=re.escape(said)):
        run_once(tool, tool.find(), PeerLoad(CLOSED, "", 2, warm_s, BODY, setting.client_cpu), setting)


def test_a_process_that_does_not_end_is_ended() -> None:
    process = start_pinned(
        ["sleep", "60"], granted_cpus()[0], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert wait(process, 0.2) is None
    assert process.returncode == -9


def test_a_program_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(EnvironmentFault, match="could not be started"):
        start_pinned(
            ["/nowhere/tool"], granted_cpus()[0], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["--only", "closed-65"], "closed-64", 2),
        (["--tools", "hey"], "h2load", 2),
        (["--seconds", "0.5"], "valid integer", 2),
        (["--markdown", "/nowhere/at/all.md"], "/nowhere/at does not exist", 2),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], said: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_writes_its_table(tmp_path: Path) -> None:
    file = tmp_path / "table.md"
    arguments = [
        "--rounds",
        "1",
        "--seconds",
        "1",
        "--seed",
        "5",
        "--only",
        "closed-64",
        "--markdown",
        str(file),
    ]
    assert find_engine()
    if partition().shared:
        pytest.skip("there is one CPU only, and the bench refuses to share it")
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments, "--tools", "prony-epoll"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    text = file.read_text()
    assert "--rounds 1 --seconds 1 --seed 5 --only closed-64 --tools prony-epoll" in text
    assert "| prony-epoll | " in text
    assert "Fingerprint: " in text
