"""One experiment as one file: compressed JSON lines, histograms included, for another host. The first line
is the header, each further one a trial with its judgements, the last one a checksum over all others. Must not
interpret records beyond reading them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pydantic

from prony import __version__
from prony.errors import StoreError, UsageError
from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Judgement
from prony.store import rescue
from prony.store.catalogue import Store
from prony.store.rows import RawExperiment
from prony.store.schema import RECORD_FORMAT

FORMAT = "prony-results"
VERSION = 1
_LOCAL = frozenset({"owner"})
"""Columns without meaning on another host."""
MOST_LINE_BYTES = 1 << 30
"""A longer line is not a trial; it is refused before it fills memory."""


def write(store: Store, experiment_id: str, path: Path) -> int:
    """Write one experiment (full id) to `path`, completely or not at all; returns the number of trials."""
    found = store.raw(experiment_id)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with gzip.open(temporary, "wb") as file:
            digest = hashlib.sha256()
            for line in _lines(found):
                encoded = (json.dumps(line, ensure_ascii=False) + "\n").encode()
                digest.update(encoded)
                file.write(encoded)
            file.write((json.dumps({"sha256": digest.hexdigest()}) + "\n").encode())
        temporary.replace(path)
    except OSError as fault:
        raise StoreError(f"{path} cannot be written ({fault.strerror}); name another file.") from fault
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return len(found.trials)


def _lines(found: RawExperiment) -> Iterator[dict[str, Any]]:
    experiment = {key: value for key, value in found.experiment.items() if key not in _LOCAL}
    yield {
        "format": FORMAT,
        "version": VERSION,
        "written_by": __version__,
        "trials": len(found.trials),
        "experiment": experiment,
    }
    for trial in found.trials:
        record = zlib.decompress(trial["record"]).decode()  # as it is: a stored record is never changed
        judged = [one for one in found.judgements if one["trial_id"] == trial["id"]]
        yield {"trial": trial | {"record": record}, "judgements": judged}


def read(store: Store, path: Path) -> tuple[str, int]:
    """Import an experiment: its id, and the number of new trials. Importing a file again changes nothing.
    Raises UsageError for a file that is no such export, and StoreError when it contradicts what is stored;
    the store is then unchanged.
    """
    rescued = _rescued(path)
    found = _parsed(path) if rescued is None else _with_experiment(store, rescued, path)
    return str(found.experiment["id"]), store.add_raw(found)


def _rescued(path: Path) -> RawExperiment | None:
    """The trial of a rescue file; None for any other file."""
    try:
        with path.open("rb") as file:
            if file.read(1) != b"{":
                return None
        return rescue.read(path, path.read_text(encoding="utf-8"))
    except FileNotFoundError as fault:
        raise _absent(path) from fault
    except OSError as fault:
        raise UsageError(f"{path} cannot be read: {fault.strerror}") from fault


def _with_experiment(store: Store, found: RawExperiment, path: Path) -> RawExperiment:
    """With the experiment's row from the store, where the file has none."""
    if found.experiment:
        return found
    (trial,) = found.trials
    identifier = str(trial["experiment_id"])
    if identifier not in {row.id for row in store.experiments()}:
        raise UsageError(
            f"{path} is a trial of {identifier}, which is not in {store.where}; import it into the store "
            "in which the experiment was started (--db)"
        )
    return replace(found, experiment=store.raw(identifier).experiment)


def _parsed(path: Path) -> RawExperiment:
    lines = list(_checked(path))
    header = lines[0]
    try:
        Fingerprint.model_validate_json(header["experiment"]["fingerprint"])
        trials = [_trial(line) for line in lines[1:]]
        judgements = [one for line in lines[1:] for one in line["judgements"]]
        for one in judgements:
            Judgement.model_validate_json(one["judgement"])
        if len(trials) != header["trials"]:
            raise ValueError(f"{len(trials)} of {header['trials']} trials are there")
        foreign = [trial["id"] for trial in trials if trial["experiment_id"] != header["experiment"]["id"]]
        if foreign:
            raise ValueError(f"{foreign[0]} belongs to another experiment")
    except (KeyError, TypeError, ValueError, pydantic.ValidationError) as fault:
        raise UsageError(
            f"{path} is an export of Prony {header.get('written_by', '?')} that this one ({__version__}) "
            "does not understand; nothing was imported: use the same version on both hosts",
            details=str(fault),
        ) from fault
    return RawExperiment(header["experiment"], tuple(trials), tuple(judgements))


def _trial(line: dict[str, Any]) -> dict[str, Any]:
    trial = dict(line["trial"])
    record = TrialRecord.model_validate_json(trial["record"])
    if record.id != trial["id"] or trial["record_format"] != RECORD_FORMAT:
        raise ValueError(f"{trial['id']} does not match its record")
    return trial | {"record": zlib.compress(trial["record"].encode())}


def _checked(path: Path) -> Iterator[dict[str, Any]]:
    """The lines without the checksum, which is verified. Raises UsageError in one sentence."""
    digest = hashlib.sha256()
    lines: list[dict[str, Any]] = []
    try:
        with gzip.open(path, "rb") as file:
            while encoded := file.readline(MOST_LINE_BYTES):
                line = json.loads(encoded)
                if not isinstance(line, dict):
                    raise ValueError("a line is not an object")
                if "sha256" in line:
                    if line["sha256"] != digest.hexdigest() or not lines:
                        raise ValueError("its checksum is wrong")
                    return iter(lines)
                if not lines:
                    _check_header(line, path)
                digest.update(encoded)
                lines.append(line)
        raise ValueError("its end is missing")
    except gzip.BadGzipFile as fault:
        raise _foreign(path) from fault
    except FileNotFoundError as fault:
        raise _absent(path) from fault
    except (EOFError, zlib.error, ValueError, UnicodeDecodeError) as fault:
        if not lines:
            raise _foreign(path) from fault
        raise UsageError(
            f"{path} is damaged ({fault}); nothing was imported: export and copy it again"
        ) from fault
    except OSError as fault:
        raise UsageError(f"{path} cannot be read: {fault.strerror}") from fault


def _check_header(line: dict[str, Any], path: Path) -> None:
    if line.get("format") != FORMAT:
        raise _foreign(path)
    version = line.get("version")
    if version != VERSION:
        raise UsageError(
            f"{path} has version {version} of the format and this Prony ({__version__}) knows {VERSION}; "
            "use the same version on both hosts"
        )


def _absent(path: Path) -> UsageError:
    return UsageError(f"no file {path}; expected an export (prony results export) or a rescued trial")


def _foreign(path: Path) -> UsageError:
    return UsageError(f"{path} is not an export of Prony's results; expected what prony results export wrote")
