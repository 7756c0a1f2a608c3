"""One experiment as one file: compressed JSON lines, histograms included, for another host. The first line is
the header, each further one a trial with its judgements, the last one a checksum over all others.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from prony import __version__
from prony.errors import StoreError, UsageError
from prony.store import exported, rescue
from prony.store.catalogue import Store
from prony.store.columns import parsed, shown
from prony.store.rows import RawExperiment

FORMAT = "prony-results"
VERSION = 2
AS_STORED = "stored"
"""The order of the trials. Earlier versions, which do not name one, wrote them in the order of their ids."""
MOST_LINE_BYTES = 64 * 2**20
"""A longer line is no trial (the largest published one has 290 kB); it is refused before it fills memory."""
LONGEST_CHECKSUM = 200
MOST_ROWS = 200_000
"""Trials and judgements of one experiment."""
MOST_BYTES = 16 * 2**30
"""Of a whole file when it is unpacked, which takes minutes to read."""


def write(store: Store, experiment_id: str, path: Path) -> int:
    """Write one experiment (full id) to `path`, completely or not at all; returns the number of trials."""
    return write_raw(store.raw(experiment_id), path)


def write_raw(found: RawExperiment, path: Path) -> int:
    """The same of rows: as they are stored, or as they may be published (publishing.py). The same rows make
    the same file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as whole, gzip.GzipFile("", "wb", fileobj=whole, mtime=0) as file:
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
    experiment = {key: value for key, value in found.experiment.items() if key not in exported.LOCAL}
    yield {
        "format": FORMAT,
        "version": VERSION,
        "written_by": __version__,
        "trials": len(found.trials),
        "order": AS_STORED,
        "experiment": experiment,
        "notes": found.notes,
    }
    for trial in found.trials:
        record = zlib.decompress(trial["record"]).decode()  # as it is: a stored record is never changed
        judged = [one for one in found.judgements if one["trial_id"] == trial["id"]]
        yield {"trial": trial | {"record": record}, "judgements": judged}


def read(store: Store, path: Path, *, most_bytes: int = MOST_BYTES) -> tuple[str, int]:
    """Import an experiment: its id, and the number of new trials. Importing a file again changes nothing.
    Raises UsageError for a file that is no such export, or that unpacks to more than `most_bytes`, and
    StoreError when it contradicts what is stored; the store is then unchanged.
    """
    rescued = _rescued(path)
    found = _parsed(path, most_bytes) if rescued is None else _with_experiment(store, rescued, path)
    return str(found.experiment["id"]), store.add_raw(found)


def _rescued(path: Path) -> RawExperiment | None:
    """The trial of a rescue file; None for any other file."""
    try:
        with path.open("rb") as file:
            beginning = file.read(1)
            if beginning != b"{":
                return None
            whole = beginning + file.read(MOST_LINE_BYTES)
    except FileNotFoundError as fault:
        raise _absent(path) from fault
    except OSError as fault:
        raise UsageError(f"{path} cannot be read: {fault.strerror}") from fault
    if rescue.MARK.encode() not in whole:
        return None
    if len(whole) > MOST_LINE_BYTES:
        raise UsageError(f"{path} is larger than a trial that Prony saved; nothing was imported")
    return rescue.read(path, whole)


def _with_experiment(store: Store, found: RawExperiment, path: Path) -> RawExperiment:
    """With the experiment's row from the store, where the file has none."""
    if found.experiment:
        return found
    (trial,) = found.trials
    identifier = str(trial["experiment_id"])
    if not store.has(identifier):
        raise UsageError(
            f"{path} is a trial of {identifier}, which is not in {store.where}; import it into the store "
            "in which the experiment was started (--db)"
        )
    return replace(found, experiment=store.raw(identifier).experiment)


def _parsed(path: Path, most_bytes: int) -> RawExperiment:
    """The rows, one line in memory at a time; of a trial its compressed record is kept."""
    lines = _objects(path, _verified(path, most_bytes))
    header = next(lines)
    version = header.get("written_by")
    try:
        experiment = exported.experiment(header.get("experiment"))
        trials: list[dict[str, Any]] = []
        ids: set[str] = set()
        judgements: list[dict[str, Any]] = []
        for line in lines:
            trials.append(exported.trial(line.get("trial")))
            ids.add(trials[-1]["id"])
            judged = exported.rows("judgements", line.get("judgements"))
            judgements += [exported.judgement(one, {trials[-1]["id"]}) for one in judged]
            if len(trials) + len(judgements) > MOST_ROWS:
                raise exported.Misfit(f"expected at most {MOST_ROWS:,} trials and judgements")
        notes = [exported.note(one) for one in exported.rows("notes", header.get("notes", []))]
        if not len(trials) == len(ids) == header.get("trials"):
            raise exported.Misfit(f"{len(ids)} of {shown(header.get('trials'))} trials are there")
        for one in (*trials, *notes):
            if one["experiment_id"] != experiment["id"]:
                raise exported.Misfit(f"{one.get('id', 'a note')} belongs to another experiment")
    except exported.Misfit as fault:
        written_by = version if isinstance(version, str) and len(version) <= 32 else "?"
        raise UsageError(
            f"{path} is an export of Prony {written_by} that this one ({__version__}) does not understand; "
            f"nothing was imported: {fault}"
        ) from fault
    if header.get("order") != AS_STORED:
        trials.sort(key=lambda trial: (trial["started"], trial["id"]))
    return RawExperiment(experiment, tuple(trials), tuple(judgements), tuple(notes))


def _verified(path: Path, most_bytes: int) -> int:
    """The number of lines before the checksum, when the file is whole. Raises UsageError in one sentence."""
    digest = hashlib.sha256()
    count = total = 0
    with _readable(path, lambda: count > 0), gzip.open(path, "rb") as file:
        while encoded := file.readline(min(MOST_LINE_BYTES, most_bytes - total) + 1):
            total += len(encoded)
            if total > most_bytes:
                raise UsageError(
                    f"{path} unpacks to more than {most_bytes:,} bytes; nothing was imported: use "
                    "prony results import on the host of the store"
                )
            if len(encoded) > MOST_LINE_BYTES:
                raise ValueError(f"a line has more than {MOST_LINE_BYTES:,} bytes, which no trial has")
            if not count:
                _check_header(_object(encoded), path)
            elif len(encoded) < LONGEST_CHECKSUM and "sha256" in (last := _object(encoded)):
                if last["sha256"] != digest.hexdigest():
                    raise ValueError("its checksum is wrong")
                return count
            digest.update(encoded)
            count += 1
            if count > MOST_ROWS:
                raise ValueError(f"it has more than {MOST_ROWS:,} lines")
        raise ValueError("its end is missing")


def _objects(path: Path, count: int) -> Iterator[dict[str, Any]]:
    """So many lines of a file that is whole."""
    with _readable(path, lambda: True), gzip.open(path, "rb") as file:
        for _ in range(count):
            yield _object(file.readline(MOST_LINE_BYTES + 1))


def _object(encoded: bytes) -> dict[str, Any]:
    line = parsed(encoded)
    if not isinstance(line, dict):
        raise ValueError("a line is not an object")
    return line


@contextmanager
def _readable(path: Path, begun: Callable[[], bool]) -> Iterator[None]:
    """Turns what may be wrong with a file into a UsageError; `begun`: it is known to be an export."""
    try:
        yield
    except gzip.BadGzipFile as fault:
        raise _foreign(path) from fault
    except FileNotFoundError as fault:
        raise _absent(path) from fault
    except (EOFError, zlib.error, ValueError, RecursionError) as fault:
        if not begun():
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
