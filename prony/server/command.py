"""From the command template of a `server.yaml` to the command that is executed.

Placeholders: `{artifact}`, `{java}`, `{node}`, `{python}`, `{engine}` (what runs it), `{host}`, `{port}`,
`{scheme}`, `{cpus}` (how many are granted), `{cpu_list}` (which, as 0,1), `{worker_threads}` (the declared
ones), `{tmp}`, `{dir}` (the server.yaml's folder), `{tls_cert}`, `{tls_key}`, `{tls_keystore}`,
`{tls_password}`, `{tls_ca}` (with scheme https), `{NAME.host}`, `{NAME.port}` (of a declared service), every
setting by its name, and two words of their own: `{jvm}`, the flags that the laboratory adds, and `{options}`,
the server's `options` as `--name=value`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from prony.errors import EnvironmentFault, UsageError
from prony.plan.yamlfile import nearest
from prony.server.build import Built

FLAGS = "{jvm}"
OPTIONS = "{options}"
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
"""Environment variables passed on; others (JAVA_TOOL_OPTIONS …) could change a server unnoticed."""


def expand(built: Built, places: Mapping[str, str], jvm_flags: Sequence[str]) -> list[str]:
    """The command. Raises UsageError for an unknown placeholder, EnvironmentFault without its program."""
    spec = built.spec
    known = placeholders(built, places)
    words: list[str] = []
    for word in spec.command:
        if word == FLAGS:
            words += jvm_flags
        elif word == OPTIONS:
            for name, value in spec.options.items():
                if value is True:
                    words.append(f"--{name}")
                elif value is not None and value is not False:
                    words.append(f"--{name}={fill(str(value), known, spec.file)}")
        else:
            words.append(fill(word, known, spec.file))
    words[0] = _program(words[0], spec.folder, spec.name)
    return words


def environment(built: Built, places: Mapping[str, str]) -> dict[str, str]:
    """Inherited variables, its own temporary directory, and the `env` of its server.yaml."""
    known = placeholders(built, places)
    own = {name: fill(value, known, built.spec.file) for name, value in built.spec.env.items()}
    return inherited(places["tmp"]) | own


def inherited(tmp: str) -> dict[str, str]:
    """For every launched process; `tmp`: its temporary directory."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | {"TMPDIR": tmp}


def placeholders(built: Built, places: Mapping[str, str]) -> dict[str, str]:
    """Name -> value; a setting may itself contain placeholders."""
    known = {"python": sys.executable} | dict(built.programs) | dict(places) | {"dir": str(built.spec.folder)}
    if built.artifact is not None:
        known["artifact"] = str(built.artifact)
    if built.jdk is not None:
        known["java"] = str(built.jdk.java)
    settings = {name: fill(str(value), known, built.spec.file) for name, value in built.spec.settings.items()}
    return known | settings


def fill(word: str, known: Mapping[str, str], file: Path) -> str:
    """Placeholders replaced. Raises UsageError for an unknown one."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name == "engine":
            from prony.load.engine import find_engine

            return str(find_engine())
        if name not in known:
            all_known = sorted((*known, "engine"))
            raise UsageError(
                f"{file}: unknown placeholder '{{{name}}}'{nearest(name, all_known)}; "
                f"known here: {', '.join(all_known)}"
            )
        return known[name]

    return re.sub(r"\{(\w+(?:\.\w+)?)\}", value, word)


def _program(word: str, folder: Path, server: str) -> str:
    """Absolute; with a slash relative to the server's folder, else from the PATH."""
    program = str(folder / word) if "/" in word else shutil.which(word)
    if program is None or not os.access(program, os.X_OK) or Path(program).is_dir():
        raise EnvironmentFault(f"server {server}: no executable '{word}'; install it or correct the command")
    return program
