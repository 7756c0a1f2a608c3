"""Profiles as a recording of the Flight Recorder: the JDK's own `jfr` reads the stacks that went in."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from prony.evidence.profile import Profile, Sampling, Stack
from prony.report import exports
from prony.report.cell_view import TrialView
from prony.report.result import ResultView
from prony.server.jdk import find_jdks
from prony_explain.exports.jfr import method
from prony_explain.sampling import sampling
from tests.report import factory

JAVA: Stack = ("[exec-1 tid=41]", "java/lang/Thread.run_[0]", "shop/Burn.spin_[j]")
KERNEL: Stack = ("[exec-1 tid=41]", "java/net/Socket.write_[i]", "libc.so.6`write", "tcp_sendmsg_[k]")
SCRIPT: Stack = ("/srv/app/router.js`match_[s]",)
BYTES: Stack = ("[exec-2 tid=42]", "shop/Cart.add_[j]", "java/lang/String")
CPU = sampling("samples", [(0.0, 1.0, {JAVA: 300, KERNEL: 7}), (1.0, 2.0, {JAVA: 20, SCRIPT: 3})])
ALLOCATED = sampling("bytes", [(2.0, 2.5, {BYTES: 1_048_576})])


def explained(trial: TrialView, cpu: Sampling, runtime: str) -> TrialView:
    profile = Profile.model_validate(
        {"runtime": runtime, "profiler": "x", "ended_s": 2.5, "cpu": cpu, "allocation": ALLOCATED}
    )
    evidence = trial.record.evidence.model_copy(update={"profile": profile})
    return replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))


def view(*runtimes: str, cpu: Sampling = CPU) -> ResultView:
    """A result whose first servers have a profile."""
    made = factory.experiment(blocks=1)
    (part,) = made.parts
    cells = tuple(
        replace(cell, explained=(explained(cell.trials[0], cpu, runtimes[at]),))
        if at < len(runtimes)
        else cell
        for at, cell in enumerate(part.cells)
    )
    return replace(made, parts=(replace(part, cells=cells),))


def jfr() -> Path:
    """The JDK's program that reads recordings."""
    found = [one.home / "bin" / "jfr" for one in find_jdks() if one.major >= 17]
    there = [one for one in found if one.exists()]
    if not there:
        pytest.skip("no JDK 17 or newer with bin/jfr was found")
    return there[0]


def events(made: ResultView, folder: Path, kind: str) -> list[dict[str, Any]]:
    """What `jfr print` says of the events of one type."""
    file = folder / "made.jfr"
    content = exports.named("jfr").write(made).content
    assert isinstance(content, bytes)
    file.write_bytes(content)
    done = subprocess.run(
        [str(jfr()), "print", "--json", "--stack-depth", "200", "--events", kind, str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["recording"]["events"]
    return [one["values"] for one in found]


def stack(event: dict[str, Any]) -> tuple[str, ...]:
    """Thread and functions, the outermost first."""
    frames = event["stackTrace"]["frames"]
    names = [f"{f['method']['type']['name']}:{f['method']['name']}".replace("/", ".") for f in frames]
    thread = event.get("sampledThread") or event["eventThread"]
    return (f"{thread['javaName']} {thread['osThreadId']}", *reversed(names))


def test_jfr_reads_the_stacks_with_their_samples_and_times(tmp_path: Path) -> None:
    found = events(view("jvm"), tmp_path, "jdk.ExecutionSample")
    assert Counter(map(stack, found)) == {
        ("exec-1 41", "java.lang.Thread:run", "shop.Burn:spin"): 320,
        ("exec-1 41", "java.net.Socket:write", "libc.so.6:write", "[kernel]:tcp_sendmsg"): 7,
        (f"{view('jvm').parts[0].cells[0].label} 0", "router.js:match"): 3,
    }
    assert {one["state"] for one in found} == {"STATE_RUNNABLE"}
    (cell, *_) = view("jvm").parts[0].cells
    engine = cell.trials[0].record.evidence.engine
    assert engine is not None
    assert engine.window is not None
    opened_s = engine.ready.started_unix_ns / 1e9 + engine.window.opened_ms / 1000
    times = sorted(datetime.fromisoformat(one["startTime"]).timestamp() - opened_s for one in found)
    assert 0 <= times[0] < times[-1] <= 2
    assert sum(at < 1 for at in times) == 307


def test_allocations_have_their_class_and_their_bytes(tmp_path: Path) -> None:
    (one,) = events(view("jvm"), tmp_path, "jdk.ObjectAllocationSample")
    assert one["objectClass"]["name"].replace("/", ".") == "java.lang.String"
    assert one["weight"] == 1_048_576
    assert stack(one) == ("exec-2 42", "shop.Cart:add")


def test_of_several_servers_each_is_a_chunk_with_its_name_outermost(tmp_path: Path) -> None:
    made = view("jvm", "native")
    found = events(made, tmp_path, "jdk.ExecutionSample")
    labels = [cell.label for cell in made.parts[0].cells[:2]]
    assert Counter(stack(one)[1] for one in found) == {f"{label}:": 330 for label in labels}
    # What others allocate has no class at the end of its stack.
    assert len(events(made, tmp_path, "jdk.ObjectAllocationSample")) == 1


def test_a_frame_without_a_name_is_no_thread(tmp_path: Path) -> None:
    cpu = sampling("samples", [(0.0, 1.0, {("[unknown]`[unknown]",): 3})])
    made = view("native", cpu=cpu)
    assert Counter(map(stack, events(made, tmp_path, "jdk.ExecutionSample"))) == {
        (f"{made.parts[0].cells[0].label} 0", "[unknown]:[unknown]"): 3
    }


def test_what_is_not_java_has_its_library_or_file_for_a_class() -> None:
    assert method("libjvm.so`JavaThread::run") == ("libjvm.so", "JavaThread::run", "Native")
    assert method("schedule_[k]") == ("[kernel]", "schedule", "Kernel")
    assert method("/a/b.py`f_[s]") == ("b.py", "f", "Interpreted")
    assert method("a/B.c_[1]") == ("a/B", "c", "C1 compiled")
