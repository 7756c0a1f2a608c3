"""Files that a load needs on the hosts that offer it: bodies, feeders, certificates. Their contents travel
with the load, and each host puts them into a folder of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from prony.errors import UsageError
from prony.load.contract import EngineLoad
from prony.plan.step import Step
from prony.plan.target import TlsOptions
from prony.plan.workload import Workload

Files = Mapping[str, bytes]
"""Path on the laboratory -> contents."""
MOST_BYTES = 256 * 1024 * 1024
"""Of all files of a load together: they are held in memory on the way."""


def of_load(load: EngineLoad) -> dict[str, bytes]:
    """The files that this load names, with their contents. Raises UsageError for one that cannot be read."""
    return _read(lambda where: moved(load, where))


def of_workload(workload: Workload) -> dict[str, bytes]:
    """The same of a workload by itself."""
    return _read(lambda where: moved_workload(workload, where))


def _read(visit: Callable[[Callable[[str], str]], object]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}

    def read(path: str) -> str:
        if path not in found:
            try:
                found[path] = Path(path).read_bytes()
            except OSError as fault:
                raise UsageError(
                    f"{path} cannot be read: {fault.strerror}; it is sent to the hosts"
                ) from fault
        return path

    visit(read)
    _check_size(found)
    return found


def _check_size(files: Files) -> None:
    size = sum(map(len, files.values()))
    if size > MOST_BYTES:
        raise UsageError(
            f"the files of this load have {size // 2**20} MiB together; expected at most "
            f"{MOST_BYTES // 2**20} MiB with --hosts: they are sent to each host before the load"
        )


def put(files: Files, folder: Path) -> Callable[[str], str]:
    """Writes them into the folder; gives from a path on the laboratory the one here."""
    here: dict[str, str] = {}
    for path, contents in files.items():
        name = f"{hashlib.sha256(path.encode()).hexdigest()[:12]}-{Path(path).name}"
        file = folder / name
        if not file.is_file() or file.read_bytes() != contents:
            file.write_bytes(contents)
            file.chmod(0o600)
        here[path] = str(file)
    return lambda path: here.get(path, path)


def moved(load: EngineLoad, where: Callable[[str], str]) -> EngineLoad:
    """The load with every path as `where` says."""
    return load.model_copy(
        update={"workload": moved_workload(load.workload, where), "tls": _moved_tls(load.tls, where)}
    )


def moved_workload(workload: Workload, where: Callable[[str], str]) -> Workload:
    """The workload with every path as `where` says."""

    def step(one: Step) -> Step:
        if one.body_file is None and not any(part.file for part in one.body_parts):
            return one
        parts = tuple(
            part if part.file is None else part.model_copy(update={"file": where(part.file)})
            for part in one.body_parts
        )
        file = None if one.body_file is None else where(one.body_file)
        return one.model_copy(update={"body_file": file, "body_parts": parts})

    feeders = {
        name: feeder if feeder.file is None else feeder.model_copy(update={"file": where(feeder.file)})
        for name, feeder in workload.feeders.items()
    }
    return workload.with_steps(step).model_copy(update={"feeders": feeders})


def _moved_tls(tls: TlsOptions, where: Callable[[str], str]) -> TlsOptions:
    paths = {name: getattr(tls, name) for name in ("ca", "client_cert", "client_key")}
    return tls.model_copy(
        update={name: None if path is None else Path(where(str(path))) for name, path in paths.items()}
    )
