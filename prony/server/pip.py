"""pip as a tool: a virtual environment from a requirements file with hashes, for a server in Python.

The environment is made with the Python that runs Prony. It is moved once it is made, so its programs are
reached by `{python} -m`, never by their scripts.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.errors import EnvironmentFault
from prony.server import tool

REQUIREMENTS = "requirements.txt"
FOLDER = "venv"
FETCHED = re.compile(r"\s*(?:Downloading|Using cached) (\S+)")


@dataclass(frozen=True, slots=True)
class Pip:
    """The Python that makes the environment, with its venv and pip."""

    python: str
    version: str

    def __str__(self) -> str:
        return f"pip and Python {self.version}"

    @property
    def key(self) -> tuple[str, ...]:
        """An environment belongs to one installation of Python."""
        return (self.version, sys.base_prefix)

    @property
    def versions(self) -> dict[str, str]:
        """Python's version."""
        return {"python": self.version}

    def programs(self, artifact: Path) -> dict[str, str]:
        """`{python}` is the environment's."""
        return {"python": str(artifact / FOLDER / "bin" / "python")}

    def make(self, name: str, folder: Path, args: Sequence[str], log: Path, on_line: tool.OnLine) -> None:
        """Make the environment and install what the file says, each package checked by its hash."""
        if not (folder / REQUIREMENTS).is_file():
            raise EnvironmentFault(
                f"the build of {name} needs a {REQUIREMENTS} with hashes; make one with "
                "`pip-compile --generate-hashes`"
            )
        on_line("making a virtual environment")
        tool.run(name, [self.python, "-m", "venv", FOLDER], folder, log, shown="python -m venv")

        def note(line: str) -> bool:
            fetched = FETCHED.match(line)
            if fetched:
                on_line(f"fetching {fetched[1]}")
            return True

        command = [
            str(folder / FOLDER / "bin" / "python"), "-m", "pip", "install", "--require-hashes",
            "--disable-pip-version-check", "--no-input", *args, "-r", REQUIREMENTS,
        ]  # fmt: skip
        tool.run(name, command, folder, log, shown="pip", note=note, telling=_telling)


def find() -> Pip:
    """The Python that runs Prony."""
    return Pip(sys.executable, platform.python_version())


def _telling(lines: Sequence[str]) -> list[str]:
    """pip's error lines, or simply the last ones."""
    errors = [line for line in lines if line.lstrip().startswith(("ERROR:", "error:"))]
    return errors[: tool.LAST_LINES] or tool.last(lines)
