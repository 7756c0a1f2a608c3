"""Rescue files for trials that the database refused. Saving must not raise."""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from prony import __version__
from prony.errors import UsageError
from prony.store import exported
from prony.store.columns import parsed
from prony.store.rows import RawExperiment

FORMAT = 3
MARK = "prony_rescue"


def save(
    experiment: Mapping[str, Any] | None, trial: Mapping[str, Any], judgement: Mapping[str, Any]
) -> Path | None:
    """Writes the rows as JSON to the first writable directory; None without one."""
    content = {
        MARK: FORMAT,
        "experiment": None if experiment is None else {**experiment, "status": "interrupted"},
        "trial": {**trial, "record": zlib.decompress(trial["record"]).decode()},
        "judgement": dict(judgement),
    }
    text = json.dumps(content)
    for folder in _folders():
        path = _write(folder, str(trial["id"]), text)
        if path is not None:
            return path
    return None


def read(path: Path, text: bytes) -> RawExperiment:
    """The rows of a rescue file; the experiment's may be empty. Raises UsageError."""
    try:
        content = parsed(text)
        if content[MARK] != FORMAT:
            raise UsageError(
                f"{path} has version {content[MARK]} of the format of a rescued trial and this Prony "
                f"({__version__}) reads {FORMAT}; use the version that wrote it"
            )
        trial = exported.trial(content["trial"])
        judgement = exported.judgement(content["judgement"], {str(trial["id"])})
        row = content["experiment"]
        experiment = {} if row is None else exported.experiment(exported.without_local(row))
        if experiment and experiment["id"] != trial["experiment_id"]:
            raise exported.Misfit(f"{trial['id']} belongs to another experiment")
        return RawExperiment(experiment, (trial,), (judgement,))
    except exported.Misfit as fault:
        raise UsageError(
            f"{path} is not a trial that Prony saved, or it is damaged; nothing was imported: {fault}"
        ) from fault
    except (KeyError, TypeError, ValueError, RecursionError) as fault:
        raise UsageError(
            f"{path} is not a trial that Prony saved, or it is damaged; nothing was imported",
            details=str(fault),
        ) from fault


def _folders() -> list[Path]:
    folders = [Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/dev/shm")]
    with suppress(OSError, RuntimeError):  # no home, or a working folder that was deleted
        folders += [Path.home(), Path.cwd()]
    return folders


def _write(folder: Path, trial_id: str, text: str) -> Path | None:
    try:
        descriptor, name = tempfile.mkstemp(prefix=f"prony-{trial_id}-", suffix=".json", dir=folder)
    except OSError:
        return None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        Path(name).unlink(missing_ok=True)
        return None
    return Path(name)
