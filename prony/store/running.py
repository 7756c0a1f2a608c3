"""Where running experiments stand: one small file each, beside the store, replaced as a whole while the
experiment runs and removed when it ends. Any process that can read the store's folder can follow it.

Nothing here is a result: a file that is lost or late costs a reader a second of news, and the experiment
nothing.
"""

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
"""A file of another host that has said nothing for this long is removed: whoever wrote it is gone."""
SILENT_S = 15.0
"""A running experiment writes every few seconds; after this long without a word it is shown as silent."""
MOST_SECONDS = 120
MOST_TRIALS = 50
MOST_NOTES = 20
MOST_TEXT = 2_000
"""Characters of a note or a reason: a finding may quote megabytes of a server's page."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="null")


class Second(_Record):
    """One second of load of the trial that runs."""

    at_s: float
    """Its end, from the start of the engine's run."""
    completed_per_s: float
    p99_ms: float | None = None
    failed: int = 0


class EndedTrial(_Record):
    """A trial that has ended."""

    index: int
    server: str
    conforms: bool
    requests_per_s: float | None = None
    took_s: float
    outcome: str = ""
    """Its figure and how well it is known, or why it has none."""


class Running(_Record):
    """Where one experiment stands. Times of day are aware; `…_s` are seconds."""

    id: str
    title: str
    owner: str
    """The process that runs it (prony.store.owner)."""
    started: datetime
    trials: int
    """Of this run; they may still become more."""
    done: int = 0
    elapsed_s: float = 0.0
    left_s: float | None = None
    trial: int = 0
    """Of the trial that runs, from 1; 0 before the first."""
    server: str = ""
    block: int = 0
    phase: str = ""
    phase_s: float = 0.0
    phase_expected_s: float | None = None
    seconds: tuple[Second, ...] = ()
    """The latest of the trial that runs."""
    ended: tuple[EndedTrial, ...] = ()
    """The latest trials that have ended, oldest first."""
    notes: tuple[str, ...] = ()
    silent_s: float = 0.0
    """How long ago this was written, as the reader sees it."""

    @property
    def is_silent(self) -> bool:
        """Whether its process has not been heard of for a while: stopped, or on a host that is gone."""
        return self.silent_s > SILENT_S


def folder(where: str) -> Path:
    """The folder of a store's files (`Store.where`): beside a file, and for a database server in the user's
    data folder, where only this host sees it.
    """
    if "://" not in where:
        return Path(f"{where}.running")
    data = os.environ.get("XDG_DATA_HOME")
    home = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local/share"
    return home / "prony" / "running" / hashlib.sha256(where.encode()).hexdigest()[:16]


def write(where: str, state: Running) -> None:
    """Replace the file of this experiment: a reader sees the old state or the new one. Raises OSError."""
    home = folder(where)
    path = home / f"{state.id}.json"
    temporary = home / f".{state.id}.{os.getpid()}.{threading.get_ident()}.tmp"
    text = state.model_dump_json()
    for last in (False, True):
        home.mkdir(parents=True, exist_ok=True)
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
    """The experiment has ended."""
    home = folder(where)
    with suppress(OSError):
        (home / f"{identifier}.json").unlink(missing_ok=True)
        home.rmdir()  # fails while another experiment runs


def running(where: str) -> tuple[Running, ...]:
    """Every experiment that runs, newest first. What a process left behind that was killed is removed."""
    found = [state for path in _files(where) if (state := _read(path)) is not None]
    return tuple(sorted(found, key=lambda one: (one.started, one.id), reverse=True))


def one(where: str, identifier: str) -> Running | None:
    """Where this experiment stands; None when it does not run."""
    known = {path.stem: path for path in _files(where)}  # never a path made of what a reader typed
    return _read(known[identifier]) if identifier in known else None


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
