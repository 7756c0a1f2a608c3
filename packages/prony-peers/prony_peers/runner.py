"""Runs a tool and parses its claim."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prony_peers.base import Claim, LoadGenerator, NotOffered, PeerLoad
from prony_peers.kernel import start_pinned, wait

END_GRACE_S = 20.0
"""Grace beyond the requested duration; then the tool is killed."""


@dataclass(frozen=True, slots=True)
class PeerRun:
    """One run of a tool."""

    claim: Claim
    failure: str | None
    """Why there is no claim."""
    cpu_s: float | None
    """CPU of the tool and its children over the whole run, by the kernel; None when it was killed."""
    wall_s: float


def run(tool: LoadGenerator, program: Path, request: PeerLoad, cpus: Sequence[int]) -> PeerRun:
    """Runs the tool on these CPUs in a directory of its own. Raises NotOffered and EnvironmentFault."""
    command = tool.command(program, request)
    with tempfile.TemporaryDirectory(prefix="prony-peer-") as name:
        folder = Path(name)
        for file, text in command.files.items():
            (folder / file).write_text(text, encoding="utf-8")
        with (folder / "stdout").open("w+b") as out, (folder / "stderr").open("w+b") as err:
            began_s = time.monotonic()
            process = start_pinned(command.argv, cpus, stdout=out, stderr=err, folder=folder)
            try:
                ended = wait(process, request.seconds + END_GRACE_S)
            finally:
                _make_sure_it_ended(process)
            wall_s = time.monotonic() - began_s
            outputs = [(folder / part).read_text("utf-8", "replace") for part in ("stdout", "stderr")]
    if ended is None:
        return PeerRun(Claim(0), f"it did not end within {END_GRACE_S:g} s after its duration", None, wall_s)
    try:
        return PeerRun(tool.claim(outputs[0], outputs[1], ended.exit_code), None, ended.cpu_s, wall_s)
    except (NotOffered, ValueError) as fault:
        why = f"it ended with exit code {ended.exit_code}: {fault}"
        return PeerRun(Claim(0), why, ended.cpu_s, wall_s)


def _make_sure_it_ended(process: subprocess.Popen[bytes]) -> None:
    """Kills it with its children: it leads its own session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        process.wait()
