"""The Makefile: by which profile each target has the engine built, and that no source of it is forgotten."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def planned(target: str, stamps: Path, *words: str, **env: str) -> str:
    """What make would run for a target where nothing was made yet."""
    foreign = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PROFILE")
    plain = {name: value for name, value in os.environ.items() if name not in foreign}
    done = subprocess.run(
        ["make", "--dry-run", target, f"STAMPS={stamps}", *words],
        cwd=ROOT, env=plain | env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def profiles(said: str) -> set[str]:
    """Those by which cargo and the build backend are asked for what is installed."""
    installs = r"cargo build --quiet --profile (\w+) .*\n(?:.*\n)*?.*MATURIN_PEP517_ARGS=\"--profile (\w+)\""
    return {name for pair in re.findall(installs, said) for name in pair}


@pytest.mark.parametrize("target", ["setup", "demo", "test", "selftest", "servers"])
def test_what_one_waits_for_has_the_quicker_build(tmp_path: Path, target: str) -> None:
    assert profiles(planned(target, tmp_path)) == {"setup"}


@pytest.mark.parametrize("target", ["bench", "bench-builds", "bench-hosts", "bench-million", "bench-serve"])
def test_what_a_request_costs_is_measured_of_a_release_build(tmp_path: Path, target: str) -> None:
    assert profiles(planned(target, tmp_path)) == {"release"}
    hurried = planned(target, tmp_path, PROFILE="setup")
    assert profiles(hurried) == {"release"}, "whatever the environment says"


def test_another_profile_can_be_asked_for(tmp_path: Path) -> None:
    assert profiles(planned("setup", tmp_path, "PROFILE=release")) == {"release"}
    assert profiles(planned("setup", tmp_path, PROFILE="release")) == {"release"}


def test_an_engine_of_one_profile_does_not_pass_for_that_of_another(tmp_path: Path) -> None:
    for name in ("toolchains", "venv", "packages", "engine-setup", "engine-release", "installed-setup"):
        (tmp_path / name).touch()
    assert "pip install" not in planned("setup", tmp_path)
    said = planned("bench", tmp_path)
    assert "cargo build" not in said
    assert said.index(f"rm -f {tmp_path}/installed-*") < said.index("--profile release")


def test_no_wheel_is_built_by_a_profile_for_those_in_a_hurry(tmp_path: Path) -> None:
    assert "--profile" not in planned("wheels", tmp_path)
    assert "--profile" not in (ROOT / "tools" / "wheels.py").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "profile" not in project["tool"]["maturin"]


def test_every_crate_of_the_engine_is_among_its_sources() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(r"^ENGINE_SOURCES := .*find ([^-]+) -name", makefile, re.MULTILINE)
    assert found is not None
    manifest = tomllib.loads((ROOT / "engine" / "Cargo.toml").read_text(encoding="utf-8"))
    members = {f"engine/{name}" for name in manifest["workspace"]["members"]}
    assert set(found[1].split()) == {"engine/src", *members}
