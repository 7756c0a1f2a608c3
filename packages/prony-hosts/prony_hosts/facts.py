"""Software versions that a worker reports at registration, and their comparison."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from pydantic import BaseModel, ConfigDict

import prony
from prony.load.engine import engine_version, find_engine

SHOWN = 10
"""Digits of a hash in messages."""


class Facts(BaseModel):
    """One host's software."""

    model_config = ConfigDict(frozen=True)

    hostname: str
    architecture: str
    python: str
    """The interpreter's path, for `pip install` on that host."""
    python_version: str
    prony: str
    package_sha256: str
    """Over every Python file of the package and its catalogue."""
    distributed: str
    """Version of Dask.distributed; message formats may differ between versions."""
    engine: str
    engine_sha256: str
    pid: int

    @property
    def version(self) -> str:
        """The versions for messages."""
        return (
            f"prony {self.prony} ({self.package_sha256[:SHOWN]}), distributed {self.distributed}, "
            f"engine {self.engine} "
            f"({self.engine_sha256[:SHOWN]}, {self.architecture})"
        )


@functools.cache
def facts() -> Facts:
    """Facts of this host. Raises EnvironmentFault without an engine."""
    return Facts(
        hostname=platform.node(),
        architecture=platform.machine(),
        python=sys.executable,
        python_version=platform.python_version(),
        prony=prony.__version__,
        package_sha256=_sha256_of(Path(prony.__file__).parent, Path(__file__).parent),
        distributed=metadata.version("distributed"),
        engine=engine_version(),
        engine_sha256=hashlib.sha256(find_engine().read_bytes()).hexdigest(),
        pid=os.getpid(),
    )


def _sha256_of(*packages: Path) -> str:
    digest = hashlib.sha256()
    for folder in packages:
        for file in sorted(folder.rglob("*.py")):
            digest.update(
                file.relative_to(folder.parent).as_posix().encode() + b"\0" + file.read_bytes() + b"\0"
            )
    return digest.hexdigest()


def differs(here: Facts, there: Facts) -> bool:
    """Whether the hosts run different software. Engines of two architectures are compared by version."""
    same = ["prony", "package_sha256", "distributed", "engine"]
    if here.architecture == there.architecture:
        same.append("engine_sha256")
    return any(getattr(here, name) != getattr(there, name) for name in same)


def refusal(name: str, ssh: str | None, here: Facts, there: Facts) -> str:
    """Both versions, and the command that installs the laboratory's."""
    return (
        f"{name} runs {there.version}; the laboratory runs {here.version}: results of different versions "
        f"cannot be combined. Install the laboratory's version there: {install_command(ssh, there)}"
    )


def install_command(ssh: str | None, there: Facts | None) -> str:
    """Shell command that copies this Prony's wheels to a host and installs them."""
    at = ssh or "HOST"
    python = there.python if there is not None else "python3"
    checkout, version = Path(__file__).parents[3], prony.__version__
    here = (checkout / "packages").is_dir()
    sources = (
        f"{checkout} {checkout}/packages/prony-hosts" if here else f"prony=={version} prony-hosts=={version}"
    )
    wheels = f"prony-{version}-*.whl prony_hosts-{version}-*.whl"
    return (
        f"pip wheel --no-deps -w dist {sources} && (cd dist && scp {wheels} {at}:) && "
        f"ssh {at} '{python} -m pip install --force-reinstall --no-deps {wheels}'"
    )


def from_registration(said: Mapping[str, object] | None) -> Facts | None:
    """The worker's facts; None when it is not a worker of Prony."""
    return Facts.model_validate(dict(said)) if said else None
