"""The build backend: maturin, preceded by staging the catalogue so that the wheel carries it.

Maturin packs the Python package and the engine's binary; the servers, workloads and plans live in
their own rooms beside them. For a wheel they are copied into the `data` tree (installed below
`<prefix>/share/prony`); an editable install needs no copy, the checkout itself is the catalogue.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import maturin
from maturin import (  # noqa: F401  (hooks handed on unchanged)
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parent.parent
STAGE = ROOT / "packaging" / "prony.data" / "data"
ROOMS = ("servers", "workloads", "plans")
BUILT = ("target", "node_modules", "__pycache__", ".venv")


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Stage the catalogue, build the wheel, and leave the checkout as it was."""
    share = STAGE / "share" / "prony"
    shutil.rmtree(STAGE, ignore_errors=True)
    try:
        for room in ROOMS:
            if (ROOT / room).is_dir():
                shutil.copytree(ROOT / room, share / room, ignore=shutil.ignore_patterns(*BUILT))
        name: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
        return name
    finally:
        shutil.rmtree(STAGE, ignore_errors=True)
