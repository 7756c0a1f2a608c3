"""What a release is made with: the bill of materials and its licences, builds that say nothing of where they
were made, what is looked for in a wheel, and the workflow that does it all.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from prony.load.engine import find_engine

ROOT = Path(__file__).resolve().parents[1]
Tool = Callable[[str], ModuleType]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Tool:
    """A program of tools/ as a module, which finds the others beside it."""

    def load(name: str) -> ModuleType:
        monkeypatch.syspath_prepend(str(ROOT / "tools"))
        spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("MIT OR Apache-2.0", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("MIT AND (GPL-3.0-only OR ISC)", True),
        ("(MIT OR GPL-2.0-only) AND (Zlib AND AGPL-3.0-only)", False),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", True),
        ("(MIT OR GPL-2.0-only) AND Unicode-3.0", True),
        ("(MIT", False),
        ("MIT ISC", False),
        ("", False),
        ("proprietary", False),
    ],
)
def test_a_licence_is_allowed_as_its_expression_says(tool: Tool, licence: str, allowed: bool) -> None:
    assert tool("sbom").known(licence) is allowed


@pytest.mark.parametrize(
    ("told", "licence"),
    [
        ({"License-Expression": "MIT OR ISC", "License": "other"}, "MIT OR ISC"),
        ({"License": "Apache License 2.0"}, "Apache-2.0"),
        ({"License": "EPL-2.0 OR GPL-2.0-or-later", "Classifier": "License :: OSI Approved"},
         "EPL-2.0 OR GPL-2.0-or-later"),
        ({"License": "All of it\nin lines", "Classifier": "License :: OSI Approved :: MIT License"}, "MIT"),
        ({"License": "as the file says"}, ""),
    ],
)  # fmt: skip
def test_a_package_says_its_licence_in_one_of_three_ways(
    tool: Tool, told: dict[str, str], licence: str
) -> None:
    message = Message()
    for name, text in told.items():
        message[name] = text
    assert tool("sbom").licence_of(message) == licence


def test_crates_are_those_that_are_linked_or_build_what_is(tool: Tool) -> None:
    def package(name: str, version: str = "1.0.0", source: str | None = "registry") -> dict[str, Any]:
        key = f"{name}@{version}"
        return {"id": key, "name": name, "version": version, "license": "MIT/Apache-2.0", "source": source}

    def needs(name: str, *kinds: str | None) -> dict[str, Any]:
        return {"pkg": name, "dep_kinds": [{"kind": kind} for kind in kinds]}

    told = {
        "packages": [
            package("prony-engine", source=None), package("linked"), package("builds"), package("tests"),
            package("both"), package("behind"), package("behind", "2.0.0"),
        ],
        "resolve": {"nodes": [
            {"id": "prony-engine@1.0.0", "deps": [
                needs("linked@1.0.0", None), needs("builds@1.0.0", "build"), needs("tests@1.0.0", "dev"),
                needs("both@1.0.0", "dev", None),
            ]},
            {"id": "linked@1.0.0", "deps": [needs("behind@1.0.0", None)]},
            {"id": "builds@1.0.0", "deps": [needs("behind@2.0.0", None)]},
        ]},
    }  # fmt: skip
    lock = {"package": [{"name": "linked", "version": "1.0.0", "checksum": "c0ffee"}]}
    sbom = tool("sbom")
    found = sbom.linked(told, lock)
    assert [f"{one.name} {one.version}" for one in found] == [
        "behind 1.0.0", "behind 2.0.0", "both 1.0.0", "builds 1.0.0", "linked 1.0.0",
    ]  # fmt: skip
    assert {one.licence for one in found} == {"MIT OR Apache-2.0"}
    assert [one.sha256 for one in found if one.sha256] == ["c0ffee"]
    assert sbom.several(found) == ["behind 1.0.0, 2.0.0"]
    assert sbom.refused([sbom.Component("cargo", "x", "1", ""), *found]) == ["x 1: no licence"]


def test_a_bill_of_materials_names_each_by_its_url(tool: Tool) -> None:
    sbom = tool("sbom")
    made = sbom.bill("prony", "1.2.3", "Apache-2.0", [sbom.Component("cargo", "x", "4", "MIT", "ab")])
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    assert made["metadata"]["component"]["purl"] == "pkg:pypi/prony@1.2.3"
    (one,) = made["components"]
    assert one["purl"] == one["bom-ref"] == "pkg:cargo/x@4"
    assert one["licenses"] == [{"expression": "MIT"}]
    assert one["hashes"] == [{"alg": "SHA-256", "content": "ab"}]


def test_everything_that_prony_is_made_of_has_a_licence_that_somebody_looked_at() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "sbom.py", "--audit"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.match(r"\d{3} packages; in several versions: ", done.stdout)
    assert "not checked: known vulnerabilities" in done.stdout


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the time of a build is that of a commit")
def test_a_build_does_not_say_where_it_was_made(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGO_HOME", "/home/me/.cargo")
    wheels = tool("wheels")
    env = wheels.environment(ROOT, Path("/elsewhere/target"))
    for flags, option in (
        (env["CARGO_ENCODED_RUSTFLAGS"].split("\x1f"), "--remap-path-prefix"),
        (env["CFLAGS"].split(), "-ffile-prefix-map"),
    ):
        for place, name in (
            (ROOT, "/prony"),
            ("/elsewhere/target", "/target"),
            ("/home/me/.cargo", "/cargo"),
        ):
            assert f"{option}={place}={name}" in flags
    assert "-DLUAJIT_ENABLE_CHECKHOOK" in env["CFLAGS"], "scripts would run uncompiled"
    assert env["SOURCE_DATE_EPOCH"].isdigit()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["maturin"]["sbom"]["rust"] is False, "it names the folder of the build"


def test_what_differs_between_two_builds_is_named(tool: Tool) -> None:
    differing = tool("wheels").differing
    assert differing({"a": "1", "b": "2"}, {"a": "1", "b": "2"}) == []
    assert differing({"a": "1", "b": "2"}, {"b": "3", "c": "4"}) == ["a", "b", "c"]


def test_a_target_that_rust_lacks_is_said_with_what_to_do(
    tool: Tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rustc = tmp_path / "rustc"
    rustc.write_text(f"#!/bin/sh\necho {tmp_path}\n")
    rustc.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert tool("wheels").main(["--only", "arm64", "--to", str(tmp_path / "dist")]) == 1
    assert "rustup target add aarch64-unknown-linux-gnu" in capsys.readouterr().err
    assert not (tmp_path / "dist").exists()


def test_the_functions_that_modules_of_scripts_need_are_found_in_an_engine(
    tool: Tool, tmp_path: Path
) -> None:
    smoke = tool("smoke_wheel")
    smoke.exports(find_engine())
    bare = tmp_path / "engine"
    bare.write_bytes(Path(sys.executable).read_bytes())
    with pytest.raises(smoke.Wrong, match="does not export lua_pushinteger and luaL_newstate"):
        smoke.exports(bare)
    bare.write_text("#!/bin/sh\n")
    with pytest.raises(smoke.Wrong, match="not a 64-bit ELF program"):
        smoke.exports(bare)


def test_the_workflow_of_a_release_calls_what_there_is() -> None:
    loaded = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    assert loaded[True]["push"] == {"tags": ["v*"]}, "on: is true in YAML 1.1"
    jobs = loaded["jobs"]
    assert jobs["draft"]["needs"] == ["build", "arm64"]
    steps = [str(step["run"]) for job in jobs.values() for step in job["steps"] if "run" in step]
    targets = re.findall(r"^make (\S+)", "\n".join(steps), re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets == ["setup", "audit", "wheels"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    for file in re.findall(r"tools/\w+\.py|docs/\w+\.md|requirements/\S+", "\n".join(steps)):
        assert (ROOT / file).exists(), file
    assert json.dumps(loaded).count('contents": "write"') == 1, "only the draft may write"


@pytest.mark.parametrize(
    ("words", "position", "expected"),
    [("prony comp", 1, {"compare", "compare-results"}), ("prony load --dri", 2, {"--driver"})],
)
def test_a_shell_completes_commands_and_options(words: str, position: int, expected: set[str]) -> None:
    asked = {"_PRONY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(position)}
    done = subprocess.run(
        [Path(sys.executable).parent / "prony"],
        env=os.environ | asked, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert set(done.stdout.split()) == expected, done.stderr
