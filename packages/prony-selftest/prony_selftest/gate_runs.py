"""Real gates, each with its own store: the same build twice, and one with 5 % more work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from prony.compare.noninferiority import Change
from prony.errors import ExitCode
from prony_selftest.proportion import CONFIDENCE, upper_bound
from prony_selftest.tables import Say, prose, table

WORK_US, SLOWER_WORK_US = 400, 420
"""CPU time per request, and 5 % more; large compared with the kernel's part."""
OPTIONS = (
    "--protocol", "500ms,2s", "--users", "8", "--trials", "4", "--max-trials", "16", "--budget", "2m",
    "--margin", "3%",
)  # fmt: skip
"""The reference server needs no warm-up, so half a second before a run of two suffices."""
TIMEOUT_S = 300
SERVER = """
title: the reference server, {work_us} us of CPU time per request
workloads: [hello]
command: ["{{engine}}", serve, --listen, "{{host}}:{{port}}", --cpus, "{{cpu_list}}", --work, {work_us}us,
          --content-type, text/plain, --body-file, "{{dir}}/hello.txt"]
"""
HELLO = "Hello, World!"


@dataclass(frozen=True, slots=True)
class RealGate:
    """One gate; `change` None: the command failed, and `message` has the reason."""

    change: Change | None
    message: str
    blocks: int
    seconds: float
    requests_ratio: float | None
    """Candidate ÷ base, requests per second."""


def real_gates(runs: int, say: Say) -> Iterator[str]:
    """Both series, after each gate: `runs` slow-downs, and half as many again of the same build."""
    with tempfile.TemporaryDirectory(prefix="prony-gates-") as made:
        folder = Path(made)
        for name, work_us in (("base", WORK_US), ("again", WORK_US), ("slower", SLOWER_WORK_US)):
            write_server(folder / name, work_us)
        unchanged: list[RealGate] = []
        worse: list[RealGate] = []
        for candidate, count, gates in (("again", runs * 3 // 2, unchanged), ("slower", runs, worse)):
            for number in range(1, count + 1):
                gates.append(last := _gate(folder, candidate, number))
                took = f"{last.blocks} blocks, {last.seconds:.0f} s"
                say(f"{candidate} {number}/{count}: {last.message} ({took})")
                yield gates_table(unchanged, worse)


def write_server(folder: Path, work_us: int) -> None:
    """A folder with a reference server of this name."""
    folder.mkdir()
    (folder / "server.yaml").write_text(SERVER.format(work_us=work_us), encoding="utf-8")
    (folder / "hello.txt").write_text(HELLO, encoding="utf-8")


def run_prony(
    folder: Path, words: Sequence[str], database: Path, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """A command as a user runs it in this folder. Raises TimeoutExpired."""
    return subprocess.run(
        [sys.executable, "-m", "prony", *words],
        cwd=folder,
        env=os.environ | {"PRONY_DB": str(database)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def _gate(folder: Path, candidate: str, seed: int) -> RealGate:
    words = ("gate", "./base", f"./{candidate}", *OPTIONS, "--seed", str(seed), "--json")
    database = folder / f"{candidate}.db"
    begun = time.monotonic()
    try:
        done = run_prony(folder, words, database, TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return RealGate(None, f"did not end within {TIMEOUT_S} s", 0, time.monotonic() - begun, None)
    took_s = time.monotonic() - begun
    try:
        (part,) = json.loads(done.stdout)["parts"]
        gate = part["gate"]
        change = Change(gate["change"])
    except (ValueError, KeyError, TypeError):
        lines = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return RealGate(None, lines[0], 0, took_s, None)
    if done.returncode != CODES[change]:
        return RealGate(None, f"{change.value} with exit code {done.returncode}", 0, took_s, None)
    ratio = next(
        (figure["ratio"] for figure in gate["figures"] if figure["figure"] == "requests_per_s"), None
    )
    return RealGate(change, f"{change.value}: {gate['sentence']}", gate["blocks"], took_s, ratio)


CODES = {
    Change.NO_WORSE: ExitCode.OK,
    Change.WORSE: ExitCode.WORSE,
    Change.CANNOT_TELL: ExitCode.UNDECIDED,
    Change.NOT_MEASURABLE: ExitCode.NO_FIGURE,
}


def gates_table(unchanged: Sequence[RealGate], slower: Sequence[RealGate]) -> str:
    """Results of both series, with the exact bounds of false alarms and detections."""
    head = (
        "candidate", "gates", *(change.value for change in Change), "failed", "requests/s, measured",
        "blocks", "seconds per gate",
    )  # fmt: skip
    rows = [
        _row("the same build", unchanged),
        _row(f"{SLOWER_WORK_US} µs of work in place of {WORK_US} µs", slower),
    ]
    alarms = sum(gate.change is Change.WORSE for gate in unchanged)
    detected = sum(gate.change is Change.WORSE for gate in slower)
    summary = (
        f"False alarms: {alarms} of {len(unchanged)}, which is at most "
        f"{100 * upper_bound(alarms, len(unchanged)):.1f} % with {CONFIDENCE:.0%} confidence. Slow-downs "
        f"detected: {detected} of {len(slower)}, which is at least "
        f"{100 * (1 - upper_bound(len(slower) - detected, len(slower))):.1f} %. "
        f"Each gate is `prony gate ./base ./candidate {' '.join(OPTIONS)}`."
    )
    return table(head, rows) + "\n\n" + prose(summary) + "\n"


def _row(name: str, gates: Sequence[RealGate]) -> tuple[object, ...]:
    counted = Counter(gate.change for gate in gates)
    ratios = [gate.requests_ratio for gate in gates if gate.requests_ratio is not None]
    moved = f"{100 * (median(ratios) - 1):+.1f} % (median)" if ratios else ""
    return (
        name,
        len(gates),
        *(counted[change] for change in Change),
        counted[None],
        moved,
        _median([float(gate.blocks) for gate in gates]),
        _median([gate.seconds for gate in gates]),
    )


def _median(values: Sequence[float]) -> str:
    return f"{median(values):.0f} (at most {max(values):.0f})" if values else ""
