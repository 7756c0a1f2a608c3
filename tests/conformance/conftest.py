"""A server with the faults it is given on its command line, and the suite's result for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prony.evidence.conformance import CheckResult
from prony.plan.workload import Workload
from prony.server.build import Built
from prony.server.catalogue import Catalogue
from prony_conformance import checks, suite
from prony_conformance.suite import check_fresh

LIAR = Path(__file__).parent / "faulty_server.py"
Examine = Callable[..., dict[str, CheckResult]]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Built]:
    """`built(command words…, ceilings="{closes_after: 7}")`: a server of a catalogue of its own."""
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))

    def make(*words: str, **keys: object) -> Built:
        folder = tmp_path / "servers" / "subject"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hello.txt").write_text("Hello, World!")
        quoted = ", ".join(f'"{word}"' for word in words)
        lines = [f"command: [{quoted}]", *(f"{key}: {value}" for key, value in keys.items())]
        (folder / "server.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return Built(Catalogue.load([tmp_path / "servers"]).resolve("subject"))

    return make


@pytest.fixture
def faulty_server(built: Callable[..., Built]) -> Callable[..., Built]:
    """`faulty_server("--wrong-body")`: the Python server with these faults."""

    def make(*faults: str, **keys: object) -> Built:
        return built("{python}", str(LIAR), "{host}", "{port}", *faults, **keys)

    return make


@pytest.fixture
def engine(built: Callable[..., Built]) -> Callable[..., Built]:
    """`engine("--close-after", "1")`: the reference server with these troubles."""

    def make(*troubles: str, **keys: object) -> Built:
        words = ("{engine}", "serve", "--listen", "{host}:{port}", "--content-type", "text/plain")
        return built(*words, "--body-file", "{dir}/hello.txt", *troubles, **keys)

    return make


@pytest.fixture
def examine(monkeypatch: pytest.MonkeyPatch) -> Examine:
    """`examine(built, workload, "head")`: results by check; everything when no check is named."""

    monkeypatch.setattr(checks, "CLOSE_PATIENCE_S", 0.5)
    monkeypatch.setattr(suite, "WRONG_PATIENCE_S", 0.0)

    def run(built: Built, workload: Workload, *only: str) -> dict[str, CheckResult]:
        found = check_fresh(built, workload, only=only or None, start_timeout_s=20.0)
        return {result.check: result for result in found.results}

    return run
