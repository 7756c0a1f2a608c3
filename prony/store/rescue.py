"""Saves a trial that the database would not take, so that no measurement is lost. Must not fail with
anything but None.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

RESCUE_FORMAT = 1


def save(trial_id: str, content: Mapping[str, Any]) -> Path | None:
    """Write the content as JSON to the first folder that takes it; None when none does."""
    text = json.dumps({"prony_rescue": RESCUE_FORMAT, **content})
    for folder in _folders():
        path = _write(folder, trial_id, text)
        if path is not None:
            return path
    return None


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
