"""Runs a build tool: output in a log, live progress, readable errors."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from prony.errors import EnvironmentFault

LAST_LINES = 20
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
"""Terminal colour codes."""
_under_way: set[subprocess.Popen[str]] = set()

OnLine = Callable[[str], None]


class BuildTool(Protocol):
    """An installed build tool; `str()` names it with its version."""

    @property
    def key(self) -> tuple[str, ...]:
        """The part of the tool's version that decides the build."""

    @property
    def versions(self) -> dict[str, str]:
        """Runtime versions for the server's identity, name -> version."""

    def programs(self, artifact: Path) -> dict[str, str]:
        """Placeholders for a command that uses the artifact."""

    def make(self, name: str, folder: Path, args: Sequence[str], log: Path, on_line: OnLine) -> None:
        """Build in `folder`. Raises EnvironmentFault with the error lines."""


def run(
    name: str,
    command: Sequence[str],
    folder: Path,
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    shown: str = "",
    note: Callable[[str], bool] | None = None,
    telling: Callable[[Sequence[str]], list[str]] | None = None,
) -> None:
    """Run `command` in `folder`; its whole output goes to the end of `log`. `note` sees every line and says
    whether it may matter in a failure; `telling` picks those that do (default: the last ones).

    Raises EnvironmentFault with them when it fails. An interruption ends the tool, too.
    """
    program = shown or Path(command[0]).name
    with log.open("a", encoding="utf-8", errors="replace") as written:
        written.write(f"$ {' '.join(map(str, command))}\n")
        written.flush()
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        _under_way.add(process)
        try:
            assert process.stdout is not None
            lines = _follow(process.stdout, written, note)
            code = process.wait()
        except BaseException:
            _kill(process)
            process.wait()
            raise
        finally:
            _under_way.discard(process)
    if code != 0:
        raise EnvironmentFault(
            f"the build of {name} failed: {program} ended with exit code {code} (log: {log})",
            details="\n".join((telling or last)(lines)),
        )


def end_under_way() -> None:
    """Ends every tool that this process runs now, from whatever thread: `run` raises EnvironmentFault."""
    for process in list(_under_way):
        _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    if process.returncode is None:  # else its number may be another's
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def last(lines: Sequence[str]) -> list[str]:
    """The last non-empty lines."""
    return [line for line in lines if line][-LAST_LINES:]


def _follow(output: IO[str], written: IO[str], note: Callable[[str], bool] | None) -> list[str]:
    lines: list[str] = []
    for raw in output:
        written.write(raw)
        line = ESCAPES.sub("", raw).rstrip()
        if note is None or note(line):
            lines.append(line)
    return lines


def ask_version(
    command: Sequence[str | Path], pattern: str, advice: str, env: Mapping[str, str] | None = None
) -> str:
    """The first group of `pattern` in what the program prints. Raises EnvironmentFault that ends with
    `advice`.
    """
    program = command[0]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise EnvironmentFault(f"{program} --version failed: {fault}; {advice}") from fault
    named = re.search(pattern, done.stdout)
    if named is None:
        said = (done.stderr or done.stdout).strip()
        raise EnvironmentFault(f"{program} --version printed no version; {advice}", details=said[-2000:])
    return named[1]
