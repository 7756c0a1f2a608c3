"""Build tools of servers (Maven, npm, pip): output in a log, live progress, readable errors."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from prony.errors import EnvironmentFault
from prony.server.cache import cache_dir
from prony.server.jdk import Jdk

LAST_LINES = 20
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_under_way: set[subprocess.Popen[str]] = set()

OnLine = Callable[[str], None]


class BuildTool(Protocol):
    """An installed build tool; `str()` names it with its version."""

    @property
    def key(self) -> tuple[str, ...]:
        """What of the tool decides the build."""

    @property
    def versions(self) -> dict[str, str]:
        """For the server's identity."""
        return {}

    def programs(self, artifact: Path) -> dict[str, str]:  # noqa: ARG002 - the same for every tool
        """Placeholders for a command that uses the artifact."""
        return {}

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
    errors_of: Callable[[Sequence[str]], list[str]] | None = None,
) -> None:
    """Run `command` in `folder`; all output goes to the end of `log`. `note` sees every line and says whether
    it may matter in a failure; `errors_of` picks those that do. Raises EnvironmentFault with them, else with
    the last lines.
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
            lines = []
            for raw in process.stdout:
                written.write(raw)
                line = ESCAPES.sub("", raw).rstrip()
                if note is None or note(line):
                    lines.append(line)
            code = process.wait()
        except BaseException:
            _kill(process)
            process.wait()
            raise
        finally:
            _under_way.discard(process)
    if code != 0:
        shown_errors = errors_of(lines) if errors_of is not None else []
        shown_errors = shown_errors or [line for line in lines if line][-LAST_LINES:]
        raise EnvironmentFault(
            f"the build of {name} failed: {program} ended with exit code {code} (log: {log})",
            details="\n".join(shown_errors[:LAST_LINES]),
        )


def end_under_way() -> None:
    """Kills every running tool, from any thread: `run` raises EnvironmentFault."""
    for process in list(_under_way):
        _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    if process.returncode is None:  # else its number may be another's
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def ask_version(
    command: Sequence[str | Path], pattern: str, advice: str, env: Mapping[str, str] | None = None
) -> str:
    """The first group of `pattern` in its output. Raises EnvironmentFault ending with `advice`."""
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


GOAL = re.compile(r"\[INFO\] --- [\w\-]+:[\w.\-]+:([\w\-]+)")
ADVICE = re.compile(r"\[Help 1\] http|-X switch|-e switch|solutions, please read|^\[ERROR\]\s*$")


@dataclass(frozen=True, slots=True)
class Maven(BuildTool):
    """Every version in our POMs is pinned, so Maven asks no registry for what the local repository has."""

    command: Path
    version: str
    jdk: Jdk

    def __str__(self) -> str:
        return f"Maven {self.version} and JDK {self.jdk.major}"

    @property
    def key(self) -> tuple[str, ...]:
        """Class files depend on the compiler's major."""
        return (str(self.jdk.major), self.version)

    def make(self, name: str, folder: Path, args: Sequence[str], log: Path, on_line: OnLine) -> None:
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

        def errors(lines: Sequence[str]) -> list[str]:
            return [line for line in lines if line.startswith("[ERROR] ") and not ADVICE.search(line)]

        run(name, command, folder, log, env=_java_home(self.jdk), note=note, errors_of=errors)


def find_maven(jdk: Jdk) -> Maven:
    """Maven on the PATH. Raises EnvironmentFault with the line that installs it."""
    on_path = shutil.which("mvn")
    if on_path is None:
        raise EnvironmentFault(
            "no Maven (mvn) on the PATH, which builds the Java servers: install it, "
            "e.g. `apt-get install maven`, `dnf install maven` or `brew install maven`"
        )
    command = Path(on_path).resolve()
    return Maven(command, _maven_version(command, jdk), jdk)


def _maven_version(command: Path, jdk: Jdk) -> str:
    """Cached while the file is unchanged: asking costs a JVM start."""
    stat = command.stat()
    identity = f"{command} {stat.st_mtime_ns} {stat.st_size}"
    memory = cache_dir() / "maven-version.json"
    with suppress(OSError, ValueError):  # not there yet, or half written by somebody who was killed
        remembered = json.loads(memory.read_text(encoding="utf-8"))
        if isinstance(remembered, dict) and identity in remembered:
            return str(remembered[identity])
    version = ask_version(
        [command, "--version"], r"Apache Maven ([\w.\-]+)", "reinstall Maven", env=_java_home(jdk)
    )
    memory.write_text(json.dumps({identity: version}), encoding="utf-8")
    return version


def _java_home(jdk: Jdk) -> dict[str, str]:
    return {**os.environ, "JAVA_HOME": str(jdk.home)}


HOW_TO_GET_NODE = "install Node 20 or newer with npm, e.g. `apt-get install nodejs npm`"
NPM_QUIET = ("--no-audit", "--no-fund", "--no-update-notifier")
NPM_ERROR = re.compile(r"^npm (error|ERR!) ?(?P<text>.*)$")


@dataclass(frozen=True, slots=True)
class Npm(BuildTool):
    """An installed npm and the Node that runs the server: `npm ci` from a committed package-lock.json."""

    node: Path
    npm: Path
    version: str
    """Node's: the packages are fixed by the lock file, whatever npm's version."""

    def __str__(self) -> str:
        return f"npm and Node {self.version}"

    @property
    def key(self) -> tuple[str, ...]:
        """Packages may bring parts that are compiled for a version of Node."""
        return (self.version,)

    @property
    def versions(self) -> dict[str, str]:
        return {"node": self.version}

    def programs(self, artifact: Path) -> dict[str, str]:  # noqa: ARG002 - the same for every tool
        return {"node": str(self.node)}

    def make(self, name: str, folder: Path, args: Sequence[str], log: Path, on_line: OnLine) -> None:
        """Without scripts of packages."""
        if not (folder / "package-lock.json").is_file():
            raise EnvironmentFault(
                f"the build of {name} needs a package-lock.json beside its package.json; make one with "
                "`npm install --package-lock-only`"
            )

        def errors(lines: Sequence[str]) -> list[str]:
            texts = [error["text"] for line in lines if (error := NPM_ERROR.match(line))]
            return [text for text in texts if text and "complete log of this run" not in text]

        on_line("installing packages")
        command = [str(self.npm), "ci", "--omit=dev", "--ignore-scripts", *NPM_QUIET, *args]
        run(name, command, folder, log, errors_of=errors)


def find_npm() -> Npm:
    """npm and Node on the PATH. Raises EnvironmentFault with the line that installs them."""
    paths = {program: shutil.which(program) for program in ("node", "npm")}
    node, npm = paths["node"], paths["npm"]
    if node is None or npm is None:
        missing = " or ".join(program for program, path in paths.items() if path is None)
        raise EnvironmentFault(f"no {missing} on the PATH, which run the Node servers: {HOW_TO_GET_NODE}")
    version = ask_version([node, "--version"], r"v([\w.\-]+)", HOW_TO_GET_NODE)
    return Npm(Path(node).resolve(), Path(npm), version)


REQUIREMENTS = "requirements.txt"
VENV = "venv"
FETCHED = re.compile(r"\s*(?:Downloading|Using cached) (\S+)")


@dataclass(frozen=True, slots=True)
class Pip(BuildTool):
    """A virtual environment from hashed requirements. It is moved afterwards, so its programs are reached by
    `{python} -m`.
    """

    python: str = sys.executable
    version: str = platform.python_version()

    def __str__(self) -> str:
        return f"pip and Python {self.version}"

    @property
    def key(self) -> tuple[str, ...]:
        """An environment belongs to one installation of Python."""
        return (self.version, sys.base_prefix)

    @property
    def versions(self) -> dict[str, str]:
        return {"python": self.version}

    def programs(self, artifact: Path) -> dict[str, str]:
        return {"python": str(artifact / VENV / "bin" / "python")}

    def make(self, name: str, folder: Path, args: Sequence[str], log: Path, on_line: OnLine) -> None:
        if not (folder / REQUIREMENTS).is_file():
            raise EnvironmentFault(
                f"the build of {name} needs a {REQUIREMENTS} with hashes; make one with "
                "`pip-compile --generate-hashes`"
            )
        on_line("making a virtual environment")
        run(name, [self.python, "-m", "venv", VENV], folder, log, shown="python -m venv")

        def note(line: str) -> bool:
            fetched = FETCHED.match(line)
            if fetched:
                on_line(f"fetching {fetched[1]}")
            return True

        def errors(lines: Sequence[str]) -> list[str]:
            return [line for line in lines if line.lstrip().startswith(("ERROR:", "error:"))]

        command = [
            str(folder / VENV / "bin" / "python"), "-m", "pip", "install", "--require-hashes",
            "--disable-pip-version-check", "--no-input", *args, "-r", REQUIREMENTS,
        ]  # fmt: skip
        run(name, command, folder, log, shown="pip", note=note, errors_of=errors)
