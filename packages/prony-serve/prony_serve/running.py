"""State of running experiments, for readers in other processes: a small file each next to the store."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from prony.store import owner

FORGOTTEN_S = 86_400.0
SILENT_S = 15.0
"""Age at which an experiment, which writes every few seconds, is shown as silent."""
MOST_SECONDS = 120
MOST_TRIALS = 50
MOST_NOTES = 20
MOST_TEXT = 2_000
"""Most characters of a note or a reason: a finding may quote megabytes of a page."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="null")


class Second(_Record):
    at_s: float
    """Its end, from the start of the engine's run."""
    completed_per_s: float
    p99_ms: float | None = None
    failed: int = 0


class EndedTrial(_Record):
    index: int
    server: str
    conforms: bool
    requests_per_s: float | None = None
    took_s: float
    outcome: str = ""


class Running(_Record):
    """State of an experiment. Times of day are time-zone aware; `…_s` are seconds."""

    id: str
    title: str
    owner: str
    started: datetime
    trials: int
    done: int = 0
    elapsed_s: float = 0.0
    left_s: float | None = None
    trial: int = 0
    """Index of the current trial, from 1; 0 before the first."""
    server: str = ""
    block: int = 0
    phase: str = ""
    phase_s: float = 0.0
    phase_expected_s: float | None = None
    seconds: tuple[Second, ...] = ()
    ended: tuple[EndedTrial, ...] = ()
    notes: tuple[str, ...] = ()
    silent_s: float = 0.0
    """Age of the file for the reader."""

    @property
    def is_silent(self) -> bool:
        return self.silent_s > SILENT_S


def folder(where: str) -> Path:
    """Folder of a store's files: next to a file; for a database server in the user's data folder."""
    if "://" not in where:
        return Path(f"{where}.running")
    data = os.environ.get("XDG_DATA_HOME")
    home = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local/share"
    return home / "prony" / "running" / hashlib.sha256(where.encode()).hexdigest()[:16]


def write(where: str, state: Running) -> None:
    home = folder(where)
    path = home / f"{state.id}.json"
    temporary = home / f".{state.id}.{os.getpid()}.{threading.get_ident()}.tmp"
    text = state.model_dump_json()
    for last in (False, True):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
            return
        except FileNotFoundError:  # another experiment ended just now and took the empty folder with it
            if last:
                raise
        finally:
            temporary.unlink(missing_ok=True)


def remove(where: str, identifier: str) -> None:
    home = folder(where)
    with suppress(OSError):
        (home / f"{identifier}.json").unlink(missing_ok=True)
        home.rmdir()  # fails while another experiment runs


def running(where: str) -> tuple[Running, ...]:
    """Running experiments, newest first; removes files of killed processes."""
    states = [state for path in _files(where) if (state := _read(path)) is not None]
    return tuple(sorted(states, key=lambda state_: (state_.started, state_.id), reverse=True))


def find(where: str, identifier: str) -> Running | None:
    """State of this experiment; None when it does not run."""
    files = {path.stem: path for path in _files(where)}  # never a path from user input
    return _read(files[identifier]) if identifier in files else None


def _files(where: str) -> list[Path]:
    with suppress(OSError):
        return [path for path in folder(where).iterdir() if path.suffix == ".json" and path.is_file()]
    return []


def _read(path: Path) -> Running | None:
    try:
        state = Running.model_validate_json(path.read_bytes())
        silent_s = max(0.0, time.time() - path.stat().st_mtime)
    except (OSError, ValidationError, ValueError):
        return None
    if owner.is_gone(state.owner) or silent_s > FORGOTTEN_S:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return None
    return state.model_copy(update={"silent_s": silent_s})
