"""A server named by its command line, such as `python3 app.py --port={port}`: run as typed, without a shell,
where it was typed.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePath

from prony.errors import UsageError
from prony.plan.target import IMAGE
from prony.server.spec import ServerSpec

_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OF_A_SHELL = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"})


def parsed(line: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Its words, and the variables before them (`PORT={port} node app.js`). Raises UsageError."""
    try:
        words = shlex.split(line)
    except ValueError as fault:
        raise UsageError(f"'{line}' is no command line: {str(fault).lower()}") from fault
    variables: dict[str, str] = {}
    while words and (assignment := _VARIABLE.fullmatch(words[0])):
        variables[assignment[1]] = assignment[2]
        del words[0]
    if not any("{port}" in word for word in (*words, *variables.values())):
        raise UsageError(
            f"'{line}' has no {{port}}; write it where the program takes its port, such as "
            "'python3 app.py --port={port}' or 'PORT={port} node app.js'"
        )
    if not words or _OF_A_SHELL.intersection(words):
        raise UsageError(
            f"'{line}' is not one program; a shell runs several: sh -c '… exec PROGRAM {{port}}'"
        )
    return tuple(words), variables


def server_of(line: str, folder: Path) -> ServerSpec:
    """Called by its words without the port and without folders: `python3 app.py`. Raises UsageError."""
    words, variables = parsed(line)
    return ServerSpec(
        name=_name(words, short=True),
        file=folder / "server.yaml",
        title=line,
        command=words,
        env=variables,
        workdir=".",
    )


def image_of(address: str) -> ServerSpec:
    """The server of `image:NAME`, called by that name. Raises UsageError."""
    image = address.removeprefix(IMAGE).strip()
    if not image or image.startswith("-") or len(image.split()) > 1:
        raise UsageError(f"'{address}' names no image; expected one such as {IMAGE}nginx:1.29")
    return ServerSpec(
        name=image, file=Path.cwd() / "server.yaml", title=image, command=("{container}",), image=image
    )


def long_name(line: str) -> str:
    """With folders and variables, where short names are the same."""
    words, variables = parsed(line)
    said = tuple(f"{name}={value}" for name, value in variables.items())
    return _name((*said, *words), short=False)


def _name(words: tuple[str, ...], *, short: bool) -> str:
    shown: list[str] = []
    for word in words:
        if word == "{port}" and shown and shown[-1].startswith("-"):
            shown.pop()
        if "{port}" not in word or " " in word:  # a shell's script names the program
            shown.append((PurePath(word).name if short and " " not in word else "") or word)
    return " ".join(shown) or words[0]
