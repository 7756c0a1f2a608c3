"""Export files: compressed JSON lines with a header, a trial with its judgements per line, a checksum."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from prony import __version__
from prony.errors import StoreError, UsageError
from prony.files import whole
from prony.store import exported, rescue
from prony.store.catalogue import Store
from prony.store.columns import parsed, shown
from prony.store.rows import RawExperiment

FORMAT = "prony-results"
VERSION = 2
AS_STORED = "stored"
"""Order of the trials. Earlier versions, without this key, wrote them in order of ids."""
MOST_LINE_BYTES = 64 * 2**20
"""Longest line, to protect memory (the largest published trial has 290 kB)."""
LONGEST_CHECKSUM = 200
MOST_ROWS = 200_000
MOST_JUDGED_BYTES = 256 * 2**20
"""Most bytes of judgements, which are kept in memory (10,000 of the largest published have 120 MB)."""
MOST_BYTES = 16 * 2**30
"""Most bytes of an unpacked file, which take minutes to read."""


def write(store: Store, experiment_id: str, path: Path) -> int:
    """Writes an experiment (full id) to `path` atomically; returns the number of trials."""
    return write_raw(store.raw(experiment_id), path)


def write_raw(rows: RawExperiment, path: Path) -> int:
    """Writes rows, stored or anonymised, reproducibly."""
    try:
        with whole(path) as packed, gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as file:
            digest = hashlib.sha256()
            for line in _lines(rows):
                encoded = (json.dumps(line, ensure_ascii=False) + "\n").encode(errors="replace")
                digest.update(encoded)
                file.write(encoded)
            file.write((json.dumps({"sha256": digest.hexdigest()}) + "\n").encode())
    except OSError as fault:
        raise StoreError(f"{path} cannot be written ({fault.strerror}); name another file.") from fault
    return len(rows.trials)


def _lines(rows: RawExperiment) -> Iterator[dict[str, Any]]:
    experiment = {key: value for key, value in rows.experiment.items() if key not in exported.LOCAL}
    yield {
        "format": FORMAT,
        "version": VERSION,
        "written_by": __version__,
        "trials": len(rows.trials),
        "order": AS_STORED,
        "experiment": experiment,
        "notes": rows.notes,
    }
    for trial in rows.trials:
        record = zlib.decompress(trial["record"]).decode()  # unchanged, as stored records are immutable
        judged = [row for row in rows.judgements if row["trial_id"] == trial["id"]]
        yield {"trial": trial | {"record": record}, "judgements": judged}


def read(store: Store, path: Path, *, most_bytes: int = MOST_BYTES) -> tuple[str, int]:
    """Imports an experiment (idempotent); returns (id, number of new trials). Raises, changing nothing,
    UsageError for another file or one of more than `most_bytes` unpacked, StoreError for a contradiction.
    """
    rescued = _rescued(path)
    experiment = _parsed(path, most_bytes) if rescued is None else _with_experiment(store, rescued, path)
    return str(experiment.experiment["id"]), store.add_raw(experiment)


def _rescued(path: Path) -> RawExperiment | None:
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


def _with_experiment(store: Store, rows: RawExperiment, path: Path) -> RawExperiment:
    if rows.experiment:
        return rows
    (trial,) = rows.trials
    identifier = str(trial["experiment_id"])
    if not store.has(identifier):
        raise UsageError(
            f"{path} is a trial of {identifier}, which is not in {store.where}; import it into the store "
            "in which the experiment was started (--db)"
        )
    return replace(rows, experiment=store.raw(identifier).experiment)


def _parsed(path: Path, most_bytes: int) -> RawExperiment:
    lines = _objects(path, _verified(path, most_bytes))
    header = next(lines)
    version = header.get("written_by")
    try:
        experiment = exported.experiment(header.get("experiment"))
        trials: list[dict[str, Any]] = []
        ids: set[str] = set()
        judgements: list[dict[str, Any]] = []
        judged_bytes = 0
        for line in lines:
            trials.append(exported.trial(line.get("trial")))
            ids.add(trials[-1]["id"])
            judged = exported.rows("judgements", line.get("judgements"))
            judgements += (new := [exported.judgement(row, {trials[-1]["id"]}) for row in judged])
            judged_bytes += sum(len(row["judgement"]) + len(row["figures"]) for row in new)
            if len(trials) + len(judgements) > MOST_ROWS or judged_bytes > MOST_JUDGED_BYTES:
                raise exported.Misfit(
                    f"expected at most {MOST_ROWS:,} trials and judgements, of {MOST_JUDGED_BYTES:,} bytes"
                )
        notes = [exported.note(row) for row in exported.rows("notes", header.get("notes", []))]
        if not len(trials) == len(ids) == header.get("trials"):
            raise exported.Misfit(f"{len(ids)} of {shown(header.get('trials'))} trials are there")
        for row in (*trials, *notes):
            if row["experiment_id"] != experiment["id"]:
                raise exported.Misfit(f"{row.get('id', 'a note')} belongs to another experiment")
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
    """Number of lines before a correct checksum. Raises UsageError."""
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
    """Turns errors of a file into UsageError; `begun`: it is known to be an export."""
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
    return UsageError(f"{path} is not an export of Prony's results; expected a file of prony results export")
