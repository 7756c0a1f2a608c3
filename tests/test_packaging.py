"""The source distribution: whatever a build from it needs is in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def tracked() -> bool:
    """Whether git says here what belongs to the project."""
    if shutil.which("git") is None:
        return False
    return subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not tracked(), reason="an sdist holds what git tracks, and git does not say so here")
def test_an_sdist_can_build_the_engine_and_the_catalogue(tmp_path: Path) -> None:
    code = "import sys, prony_build; prony_build.build_sdist(sys.argv[1])"
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        check=True, cwd=ROOT, capture_output=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "packaging"), "PATH": tools},
    )  # fmt: skip
    (made,) = tmp_path.glob("prony-*.tar.gz")
    with tarfile.open(made) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert names >= {
        ".cargo/config.toml",  # the flag that LuaJIT is built with
        "engine/Cargo.lock", "engine/src/main.rs",
        "engine/js/src/processor.js",
        "engine/lua/build.rs", "engine/plan/src/lib.rs", "engine/script/src/lib.rs",
        "engine/serve/src/lib.rs",
        "packaging/prony_build.py", "packaging/prony.data/scripts/prony",
        "prony/report/html/style.css", "workloads/hello.yaml", "servers/tomcat/server.yaml",
    }  # fmt: skip
    assert {name.partition("/")[0] for name in names} >= {"servers", "workloads", "plans"}
    assert not [name for name in names if "/target/" in name or "/node_modules/" in name]
