"""A small server of our own that can be told to misbehave, in a catalogue of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prony.server import command
from prony.server.build import Built
from prony.server.catalogue import Catalogue
from tests.command import HASTY_JVM

TOY = Path(__file__).parent / "toy.py"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that nobody else uses."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("PRONY_CACHE", str(folder))
    return folder


@pytest.fixture
def hasty_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the children of tests/command.py; these tests look at responses, threads and ports."""
    usual = command.inherited
    monkeypatch.setattr(command, "inherited", lambda tmp: usual(tmp) | HASTY_JVM)


@pytest.fixture
def toy(tmp_path: Path, cache: Path) -> Callable[..., Built]:
    """`toy("--workers", "2", reports="figures")`: a built server that runs toy.py with these arguments."""

    assert not cache.exists(), "logs go there, too"

    def make(*args: str, **keys: object) -> Built:
        folder = tmp_path / "servers" / "toy"
        folder.mkdir(parents=True, exist_ok=True)
        words = ", ".join(f'"{word}"' for word in ("{python}", str(TOY), "{host}", "{port}", *args))
        lines = [f"command: [{words}]", *(f"{key}: {value}" for key, value in keys.items())]
        (folder / "server.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return Built(Catalogue.load([tmp_path / "servers"]).resolve("toy"))

    return make
