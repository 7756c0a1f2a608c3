"""Maven as a tool: finding it, and `package` with live progress and a readable failure.

Every version in our POMs is pinned, so Maven asks no registry for what the local repository already has; a
separate offline attempt would only cost time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.server import tool
from prony.server.cache import cache_dir
from prony.server.jdk import Jdk

GOAL = re.compile(r"\[INFO\] --- [\w\-]+:[\w.\-]+:([\w\-]+)")
ADVICE = re.compile(r"\[Help 1\] http|-X switch|-e switch|solutions, please read|^\[ERROR\]\s*$")


@dataclass(frozen=True, slots=True)
class Maven:
    """An installed Maven with the JDK that it compiles with."""

    command: Path
    version: str
    jdk: Jdk

    def __str__(self) -> str:
        return f"Maven {self.version} and JDK {self.jdk.major}"

    @property
    def key(self) -> tuple[str, ...]:
        """Class files depend on the compiler's major."""
        return (str(self.jdk.major), self.version)

    @property
    def versions(self) -> dict[str, str]:
        """None: a server names the JDK that it runs on, which may be another one."""
        return {}

    def programs(self, artifact: Path) -> dict[str, str]:  # noqa: ARG002 - the same for every tool
        """None: `{java}` is the JDK that the server runs on."""
        return {}

    def make(self, name: str, folder: Path, args: Sequence[str], log: Path, on_line: tool.OnLine) -> None:
        """Run `mvn package`."""
        command = [str(self.command), "--batch-mode", "-Dstyle.color=never", *args, "package"]
        fetched = 0

        def note(line: str) -> bool:
            nonlocal fetched
            if line.startswith("Downloaded "):
                fetched += 1
                on_line(f"fetching dependencies: {fetched} files")
            goal = GOAL.match(line)
            if goal:
                on_line(goal[1])
            return not line.startswith(("Downloading ", "Downloaded ", "Progress "))

        tool.run(name, command, folder, log, env=_env(self.jdk), note=note, telling=_telling)


def find(jdk: Jdk) -> Maven:
    """The `mvn` on the PATH and its version. Raises EnvironmentFault that says how to get one."""
    on_path = shutil.which("mvn")
    if on_path is None:
        raise EnvironmentFault(
            "Maven (mvn) was not found on the PATH; it builds the Java servers: install it, "
            "e.g. `apt-get install maven`, `dnf install maven` or `brew install maven`"
        )
    command = Path(on_path).resolve()
    return Maven(command, _version(command, jdk), jdk)


def _version(command: Path, jdk: Jdk) -> str:
    """Asking costs a JVM start, so the version is cached for as long as the file is unchanged."""
    stat = command.stat()
    identity = f"{command} {stat.st_mtime_ns} {stat.st_size}"
    memory = cache_dir() / "maven-version.json"
    try:
        remembered = json.loads(memory.read_text(encoding="utf-8"))
        if isinstance(remembered, dict) and identity in remembered:
            return str(remembered[identity])
    except (OSError, ValueError):
        pass  # not there yet, or half written by somebody who was killed: ask again
    version = tool.ask_version(
        [command, "--version"], r"Apache Maven ([\w.\-]+)", "reinstall Maven", env=_env(jdk)
    )
    memory.write_text(json.dumps({identity: version}), encoding="utf-8")
    return version


def _telling(lines: Sequence[str]) -> list[str]:
    """The error lines: Maven's own, without its standing advice, or simply the last ones."""
    errors = [line for line in lines if line.startswith("[ERROR] ") and not ADVICE.search(line)]
    return errors[: tool.LAST_LINES] or tool.last(lines)


def _env(jdk: Jdk) -> dict[str, str]:
    return {**os.environ, "JAVA_HOME": str(jdk.home)}
