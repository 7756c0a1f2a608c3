"""Maven as a tool: finding it, and `package` with live progress and a readable failure. Must not know what a
server is.

Every version in our POMs is pinned, so Maven asks no registry for what the local repository already has; a
separate offline attempt would only cost time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from prony.errors import EnvironmentFault
from prony.server.cache import cache_dir
from prony.server.jdk import Jdk

LAST_LINES = 20
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
"""Maven's start script resets colours that nobody set."""
GOAL = re.compile(r"\[INFO\] --- [\w\-]+:[\w.\-]+:([\w\-]+)")
ADVICE = re.compile(r"\[Help 1\] http|-X switch|-e switch|solutions, please read|^\[ERROR\]\s*$")


@dataclass(frozen=True, slots=True)
class Maven:
    """An installed Maven."""

    command: Path
    version: str

    def __str__(self) -> str:
        return f"Maven {self.version}"


def find(jdk: Jdk) -> Maven:
    """The `mvn` on the PATH and its version. Raises EnvironmentFault that says how to get one."""
    on_path = shutil.which("mvn")
    if on_path is None:
        raise EnvironmentFault(
            "Maven (mvn) was not found on the PATH; it builds the Java servers: install it, "
            "e.g. `apt-get install maven`, `dnf install maven` or `brew install maven`"
        )
    command = Path(on_path).resolve()
    return Maven(command, _version(command, jdk))


def _version(command: Path, jdk: Jdk) -> str:
    """Asking costs a JVM, so the answer is remembered for as long as the file stays the same."""
    stat = command.stat()
    identity = f"{command} {stat.st_mtime_ns} {stat.st_size}"
    memory = cache_dir() / "maven-version.json"
    try:
        remembered = json.loads(memory.read_text(encoding="utf-8"))
        if isinstance(remembered, dict) and identity in remembered:
            return str(remembered[identity])
    except (OSError, ValueError):
        pass  # not there yet, or half written by somebody who was killed: ask again
    try:
        done = subprocess.run(
            [command, "--version"], capture_output=True, text=True, timeout=60, check=False, env=_env(jdk)
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise EnvironmentFault(f"{command} --version did not answer: {fault}; reinstall Maven") from fault
    named = re.search(r"Apache Maven ([\w.\-]+)", done.stdout)
    if named is None:
        said = (done.stderr or done.stdout).strip()
        raise EnvironmentFault(
            f"{command} --version did not say its version; reinstall Maven", details=said[-2000:]
        )
    memory.write_text(json.dumps({identity: named[1]}), encoding="utf-8")
    return named[1]


def package(
    name: str,
    maven: Maven,
    jdk: Jdk,
    folder: Path,
    args: Sequence[str],
    log: Path,
    on_line: Callable[[str], None],
) -> None:
    """Run `mvn package` in `folder`; its whole output goes to `log`, what matters of it to `on_line`.

    Raises EnvironmentFault with the last lines when it fails. An interruption ends Maven, too.
    """
    command = [str(maven.command), "--batch-mode", "-Dstyle.color=never", *args, "package"]
    with log.open("w", encoding="utf-8", errors="replace") as written:
        written.write(f"$ JAVA_HOME={jdk.home} {' '.join(command)}\n")
        process = subprocess.Popen(
            command, cwd=folder, env=_env(jdk), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            lines = _follow(process.stdout, written, on_line)
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if code != 0:
        raise EnvironmentFault(
            f"the build of {name} failed: mvn ended with exit code {code} (log: {log})",
            details="\n".join(_telling(lines)),
        )


def _follow(output: IO[str], written: IO[str], on_line: Callable[[str], None]) -> list[str]:
    lines: list[str] = []
    fetched = 0
    for raw in output:
        written.write(raw)
        line = ESCAPES.sub("", raw).rstrip()
        if line.startswith(("Downloading ", "Progress ")):
            continue
        if line.startswith("Downloaded "):
            fetched += 1
            on_line(f"fetching dependencies: {fetched} files")
            continue
        lines.append(line)
        goal = GOAL.match(line)
        if goal:
            on_line(goal[1])
    return lines


def _telling(lines: Sequence[str]) -> list[str]:
    """The lines that say what went wrong: Maven's error lines, without its standing advice, or simply the
    last ones.
    """
    errors = [line for line in lines if line.startswith("[ERROR] ") and not ADVICE.search(line)]
    return errors[:LAST_LINES] or [line for line in lines if line][-LAST_LINES:]


def _env(jdk: Jdk) -> dict[str, str]:
    return {**os.environ, "JAVA_HOME": str(jdk.home)}
