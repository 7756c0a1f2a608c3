"""Folders of the catalogue (servers, workloads, plans)."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def yaml_files(room: str) -> dict[str, Path]:
    """YAML files of a kind: name -> file, from the first folder that has it."""
    files: dict[str, Path] = {}
    for root in roots(room):
        for file in sorted(root.glob("*.yaml")):
            files.setdefault(file.stem, file)
    return files


def roots(room: str) -> list[Path]:
    """Existing folders of a kind (`servers`, `workloads`, `plans`), by precedence."""
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
    folders: list[Path] = []
    for candidate in candidates:
        if candidate.is_dir() and candidate.resolve() not in folders:
            folders.append(candidate.resolve())
    return folders
