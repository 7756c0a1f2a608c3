"""Where the catalogue (servers, workloads, plans) is looked for.

In this order, all of them, first name wins: the folders in an environment variable, the checkout around the
current folder, the checkout of an editable install, and what a wheel installed below `<prefix>/share/prony`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def yaml_files(room: str) -> dict[str, Path]:
    """Every YAML file of a room: name -> file, of the first folder that has it."""
    found: dict[str, Path] = {}
    for root in roots(room):
        for file in sorted(root.glob("*.yaml")):
            found.setdefault(file.stem, file)
    return found


def roots(room: str) -> list[Path]:
    """The existing folders of one room (`servers`, `workloads`, `plans`), in the order of precedence.

    `PRONY_SERVERS`, `PRONY_WORKLOADS` and `PRONY_PLANS` hold further folders, separated as in PATH.
    """
    candidates = [
        Path(part) for part in os.environ.get(f"PRONY_{room.upper()}", "").split(os.pathsep) if part
    ]
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "servers").is_dir() and (folder / "workloads").is_dir():
            candidates.append(folder / room)
            break
    candidates.append(Path(__file__).resolve().parent.parent.parent / room)
    candidates.append(Path(sys.prefix) / "share" / "prony" / room)
    found: list[Path] = []
    for candidate in candidates:
        if candidate.is_dir() and candidate.resolve() not in found:
            found.append(candidate.resolve())
    return found
