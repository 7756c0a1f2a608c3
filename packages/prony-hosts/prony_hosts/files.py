"""Copies the files of a load (bodies, feeders, certificates) to the hosts that offer it."""

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
"""Path in the laboratory -> contents."""
MOST_BYTES = 256 * 1024 * 1024
"""Limit on the files of a load, which are held in memory during transfer."""


def of_load(load: EngineLoad) -> dict[str, bytes]:
    """Contents of the files that the load names. Raises UsageError for an unreadable file."""
    return _read(lambda where: moved(load, where))


def of_workload(workload: Workload) -> dict[str, bytes]:
    """Contents of the files that the workload names."""
    return _read(lambda where: moved_workload(workload, where))


def _read(visit: Callable[[Callable[[str], str]], object]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}

    def read(path: str) -> str:
        if path not in contents:
            try:
                contents[path] = Path(path).read_bytes()
            except OSError as fault:
                raise UsageError(f"{path} cannot be read: {fault.strerror}; the hosts need a copy") from fault
        return path

    visit(read)
    _check_size(contents)
    return contents


def _check_size(files: Files) -> None:
    size = sum(map(len, files.values()))
    if size > MOST_BYTES:
        raise UsageError(
            f"the files of this load are {size // 2**20} MiB; expected at most "
            f"{MOST_BYTES // 2**20} MiB with --hosts: each host gets a copy before the load"
        )


def put(files: Files, folder: Path) -> Callable[[str], str]:
    """Writes the files into the folder. Returns a map from laboratory paths to local paths."""
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
    """The load with every path mapped by `where`."""
    return load.model_copy(
        update={"workload": moved_workload(load.workload, where), "tls": _moved_tls(load.tls, where)}
    )


def moved_workload(workload: Workload, where: Callable[[str], str]) -> Workload:
    """The workload with every path mapped by `where`."""

    def moved_step(step: Step) -> Step:
        if step.body_file is None and not any(part.file for part in step.body_parts):
            return step
        parts = tuple(
            part if part.file is None else part.model_copy(update={"file": where(part.file)})
            for part in step.body_parts
        )
        file = None if step.body_file is None else where(step.body_file)
        return step.model_copy(update={"body_file": file, "body_parts": parts})

    feeders = {
        name: feeder if feeder.file is None else feeder.model_copy(update={"file": where(feeder.file)})
        for name, feeder in workload.feeders.items()
    }
    return workload.with_steps(moved_step).model_copy(update={"feeders": feeders})


def _moved_tls(tls: TlsOptions, where: Callable[[str], str]) -> TlsOptions:
    paths = {name: getattr(tls, name) for name in ("ca", "client_cert", "client_key")}
    return tls.model_copy(
        update={name: None if path is None else Path(where(str(path))) for name, path in paths.items()}
    )
