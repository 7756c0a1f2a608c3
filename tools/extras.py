"""Prints what the packages beside the laboratory need from others, all extras included: for the lock file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[1] / "packages"
OWN = "prony"


def needed() -> Iterator[str]:
    """Requirements, Prony's own packages left out."""
    for file in sorted(PACKAGES.glob("*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        for extra in (project["dependencies"], *project.get("optional-dependencies", {}).values()):
            yield from (one for one in extra if not one.startswith(OWN))


if __name__ == "__main__":
    print("\n".join(sorted(set(needed()))))
