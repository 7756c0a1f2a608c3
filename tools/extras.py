"""Prints the third-party requirements of all packages, extras included, for the lock file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[1] / "packages"
OWN = "prony"


def needed() -> Iterator[str]:
    """Requirements, without Prony's own packages."""
    for file in sorted(PACKAGES.glob("*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        for extra in (project["dependencies"], *project.get("optional-dependencies", {}).values()):
            yield from (requirement for requirement in extra if not requirement.startswith(OWN))


if __name__ == "__main__":
    print("\n".join(sorted(set(needed()))))
