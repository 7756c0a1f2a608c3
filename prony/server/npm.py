"""npm as a tool: `npm ci` from a committed package-lock.json, for a server that runs on Node."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.server import tool

HOW_TO_GET = "install Node 20 or newer with npm, e.g. `apt-get install nodejs npm`"
QUIET = ("--no-audit", "--no-fund", "--no-update-notifier")
TROUBLE = re.compile(r"^npm (error|ERR!) ?(?P<text>.*)$")


@dataclass(frozen=True, slots=True)
class Npm:
    """An installed npm and the Node that runs the server."""

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
        """Node's version."""
        return {"node": self.version}

    def programs(self, artifact: Path) -> dict[str, str]:  # noqa: ARG002 - the same for every tool
        """`{node}`."""
        return {"node": str(self.node)}

    def make(self, name: str, folder: Path, args: Sequence[str], log: Path, on_line: tool.OnLine) -> None:
        """Install what the lock file says, without scripts of packages. Raises EnvironmentFault."""
        if not (folder / "package-lock.json").is_file():
            raise EnvironmentFault(
                f"the build of {name} needs a package-lock.json beside its package.json; make one with "
                "`npm install --package-lock-only`"
            )
        on_line("installing packages")
        command = [str(self.npm), "ci", "--omit=dev", "--ignore-scripts", *QUIET, *args]
        tool.run(name, command, folder, log, telling=_telling)


def find() -> Npm:
    """The `node` and `npm` on the PATH. Raises EnvironmentFault that says how to get them."""
    found = {program: shutil.which(program) for program in ("node", "npm")}
    node, npm = found["node"], found["npm"]
    if node is None or npm is None:
        missing = " and ".join(program for program, path in found.items() if path is None)
        raise EnvironmentFault(f"{missing} was not found on the PATH; it runs the Node servers: {HOW_TO_GET}")
    version = tool.ask_version([node, "--version"], r"v([\w.\-]+)", HOW_TO_GET)
    return Npm(Path(node).resolve(), Path(npm), version)


def _telling(lines: Sequence[str]) -> list[str]:
    """npm's error lines without the prefix and without where its own log is, or simply the last ones."""
    found = [trouble["text"] for line in lines if (trouble := TROUBLE.match(line))]
    return [text for text in found if text and "complete log of this run" not in text][
        : tool.LAST_LINES
    ] or tool.last(lines)
