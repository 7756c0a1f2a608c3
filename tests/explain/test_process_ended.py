"""A process that ends while it is profiled has one name for it, whoever notices first and by whatever. The
processes are real; stand-ins for a JVM and for Node end at the step that they are told.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from prony_explain import attach, counters, inspector
from prony_explain.attach import NotAttached
from prony_explain.inspector import Inspector, NotOpened
from prony_explain.processes import ProcessEnded, cause, ended
from prony_explain.profilers.perf import Perf
from tests.explain.burning import killing, profiled, running
from tests.processes import started

DIES = "def die(after_s=0.0):\n    time.sleep(after_s)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
JVM = f"""
import os, signal, socket, sys, time
{DIES}
step = sys.argv[1]
if step == "as it is woken":
    signal.signal(signal.SIGQUIT, lambda *_: die())
    print("ready", flush=True)
    time.sleep(600)
at = socket.socket(socket.AF_UNIX)
at.bind(f"/tmp/.java_pid{{os.getpid()}}")
at.listen()
if step == "refuses":
    at.close()
    print("ready", flush=True)
    die(0.2)
print("ready", flush=True)
asked, _ = at.accept()
if step == "unread":
    asked.recv(1)
    die()
if step == "read":
    asked.recv(1 << 16)
    die()
if step == "hangs up first":
    asked.close()
    die(0.2)
asked.close()
time.sleep(600)
"""
NODE = f"""
import json, os, signal, socket, sys, time
{DIES}
step = sys.argv[1]
signal.signal(signal.SIGUSR1, (lambda *_: die()) if step == "as it is woken" else signal.SIG_IGN)
at = socket.create_server(("127.0.0.1", 0))
port = at.getsockname()[1]
print("ready", port, flush=True)
if step == "as it is woken":
    time.sleep(600)
if step == "refuses":
    at.close()
    die(0.2)
asked, _ = at.accept()
asked.recv(4096)
if step == "asked for its list":
    die()
body = json.dumps([{{"webSocketDebuggerUrl": f"ws://127.0.0.1:{{port}}/it"}}]).encode()
asked.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
asked.close()
taken, _ = at.accept()
taken.recv(4096)
if step == "shaking hands":
    die()
taken.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\n\\r\\n")
taken.recv(1)
if step == "unread":
    die()
taken.recv(4096)
if step == "read":
    die()
if step == "hangs up first":
    taken.close()
    die(0.2)
taken.close()
time.sleep(600)
"""


@contextmanager
def stand_in(script: str, step: str) -> Iterator[tuple[int, str]]:
    """Its process, and what it says when it is ready. Once it has died it is a zombie, as nobody waits."""
    with subprocess.Popen([sys.executable, "-c", script, step], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.pid, process.stdout.readline().strip()
        finally:
            process.kill()
            with suppress(FileNotFoundError):
                Path(f"/tmp/.java_pid{process.pid}").unlink()


def load(pid: int) -> None:
    attach.load(pid, Path("/nowhere/libasyncProfiler.so"), "stop")


def jcmd(pid: int) -> None:
    attach.jcmd(pid, "GC.heap_info")


@pytest.mark.parametrize("ask", [load, jcmd])
@pytest.mark.parametrize("step", ["refuses", "unread", "read", "hangs up first", "as it is woken"])
def test_a_jvm_that_dies_when_it_is_asked_has_ended(step: str, ask: Callable[[int], None]) -> None:
    with stand_in(JVM, step) as (pid, _), pytest.raises(ProcessEnded) as raised:
        ask(pid)
    assert str(raised.value) == str(ProcessEnded(pid))


@pytest.mark.parametrize("ask", [load, jcmd])
def test_a_jvm_that_hangs_up_and_lives_has_not(ask: Callable[[int], None]) -> None:
    """No answer is none: that an agent was loaded was taken for granted."""
    with stand_in(JVM, "lives") as (pid, _), pytest.raises(NotAttached):
        ask(pid)


@pytest.mark.parametrize(
    "step", ["refuses", "asked for its list", "shaking hands", "unread", "read", "hangs up first"]
)
def test_a_node_that_dies_when_it_is_asked_has_ended(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with stand_in(NODE, step) as (pid, said):
        monkeypatch.setattr(inspector, "_port_of", lambda _pid: int(said.split()[1]))
        with pytest.raises(ProcessEnded) as raised:
            Inspector(pid).ask("Profiler.enable")
    assert str(raised.value) == str(ProcessEnded(pid))


def test_a_node_that_dies_as_it_is_woken_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspector, "_port_of", lambda _pid: None)
    with stand_in(NODE, "as it is woken") as (pid, _), pytest.raises(ProcessEnded):
        Inspector(pid)


def test_a_node_that_hangs_up_and_lives_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with stand_in(NODE, "lives") as (pid, said):
        monkeypatch.setattr(inspector, "_port_of", lambda _pid: int(said.split()[1]))
        asked = Inspector(pid)
        with pytest.raises(NotOpened):
            asked.ask("Profiler.enable")


@pytest.fixture(params=["zombie", "waited for"])
def dead(request: pytest.FixtureRequest) -> Iterator[int]:
    """The number of a process that was killed."""
    with started("sleep", "600") as process:
        process.send_signal(signal.SIGKILL)
        if request.param == "waited for":
            process.wait()
        else:
            assert ended(process.pid, 60)
        yield process.pid


def test_one_that_is_dead_is_not_deaf(dead: int) -> None:
    """What a dead process does not catch or open is not blamed on its options."""
    for asks in (load, jcmd, Inspector):
        with pytest.raises(ProcessEnded):
            asks(dead)
    assert isinstance(cause(OSError("whatever"), dead), ProcessEnded)


def test_perf_on_a_dead_process_says_that_it_has_ended(
    dead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not that it may not be used, as perf itself would have it."""
    perf = tmp_path / "perf"
    perf.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo perf version 6 && exit\necho no such process >&2\nexit 1"
    )
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = counters.count_calls([dead], lambda _s: False, 0.1)
    assert found.by_name is None
    assert str(ProcessEnded(dead)) in found.missing
    with pytest.raises(ProcessEnded):
        Perf([dead]).attach()


def test_of_a_process_that_is_killed_under_perf_the_slices_until_then_are_kept() -> None:
    burns = "print('ready', flush=True)\nwhile True:\n    sum(range(100_000))"
    with running(sys.executable, "-c", burns) as pid:
        over = killing(pid, wait=1)

        def half(wait_s: float) -> bool:
            """perf waits once, for the whole window; the rest of it is not waited for."""
            over(wait_s / 2)
            return not ended(pid, 60)

        found = profiled(Perf([pid]), slices=24, slice_s=0.5, ended=half)
    assert found.cpu is not None
    assert found.cut_short == "process-ended"
    assert len(found.cpu.slices) < 14


def test_one_that_lives_is_no_cause() -> None:
    with started("sleep", "600") as process:
        fault = OSError("whatever")
        assert cause(fault, process.pid) is fault
        process.kill()
