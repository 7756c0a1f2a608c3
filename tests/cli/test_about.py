"""`prony --version`, and with --verbose what a report of a defect needs to say."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import prony
from prony.cli.main import app, libraries
from prony.load.engine import find_engine


def test_the_version_alone_is_a_line() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.stdout) == (0, f"prony {prony.__version__}\n")


@pytest.mark.parametrize("words", [["--version", "--verbose"], ["--verbose", "--version"]])
def test_verbose_names_the_engine_by_its_hash_and_what_it_can_do(words: list[str]) -> None:
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0] == f"prony {prony.__version__}"
    assert any(str(find_engine()) in line for line in lines)
    assert f"              SHA-256 {hashlib.sha256(find_engine().read_bytes()).hexdigest()}" in lines
    assert [line.split()[1] for line in lines if line.startswith("driver")] == ["io_uring:", "epoll:"]
    named = [line.split()[1] for line in lines if line.startswith("library")]
    assert named == ["LuaJIT", "QuickJS", "rustls", "ring", "io-uring"]


def test_libraries_are_those_that_the_probe_names(tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text("""#!/bin/sh\necho '{"drivers": [], "libraries": {"LuaJIT": "210.7.4"}}'\n""")
    engine.chmod(0o755)
    assert libraries(engine) == {"LuaJIT": "210.7.4"}
    engine.write_text("#!/bin/sh\necho '{\"drivers\": []}'\n")
    assert libraries(engine) == {}
    assert libraries(tmp_path / "none") == {}


def test_without_an_engine_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_ENGINE", "/nowhere")
    shown = CliRunner().invoke(app, ["--version", "--verbose"])
    assert shown.exit_code == 0
    assert "PRONY_ENGINE=/nowhere is not an executable file" in shown.stdout
