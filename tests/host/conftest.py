"""A host made of files: what the readers would find under / on another host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Grow = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def tree(tmp_path: Path) -> Grow:
    """Write files (path below the root -> text) and get the root."""
    root = tmp_path / "root"
    root.mkdir()

    def grow(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root

    return grow
