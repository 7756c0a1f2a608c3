"""`prony --version --verbose`: which parts this is made of, for the report of a defect. Measures nothing."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import prony
from prony.errors import EnvironmentFault


def version(*, verbose: bool = False) -> Iterator[str]:
    """Lines. What cannot be had is said in its place."""
    yield f"prony {prony.__version__}"
    if not verbose:
        return
    from prony.host.readings import probed_drivers
    from prony.load.engine import engine_version, find_engine
    from prony.server.cache import cache_dir

    yield f"installed in  {Path(prony.__file__).parent}"
    yield f"Python        {platform.python_version()}, {sys.executable}"
    yield f"host          {platform.system()} {platform.release()}, {platform.machine()}"
    try:
        engine = find_engine()
        yield f"engine        {engine_version()}, {engine}"
        yield f"              SHA-256 {hashlib.sha256(engine.read_bytes()).hexdigest()}"
        for name, driver in (probed_drivers(str(engine)) or {}).items():
            yield f"driver        {name}: {'works' if driver.works else driver.reason}"
        for name, built_with in libraries(engine).items():
            yield f"library       {name} {built_with}"
    except (EnvironmentFault, OSError) as fault:
        yield f"engine        {fault}"
    try:
        yield f"cache         {cache_dir()}"
    except EnvironmentFault as fault:
        yield f"cache         {fault}"


def libraries(engine: Path) -> dict[str, str]:
    """Name -> version of what the engine was built with, as its probe tells; empty where it does not."""
    try:
        done = subprocess.run([engine, "probe"], capture_output=True, text=True, timeout=10, check=False)
        told = json.loads(done.stdout)["libraries"]
        return {str(name): str(version) for name, version in told.items()}
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError, AttributeError):
        return {}
