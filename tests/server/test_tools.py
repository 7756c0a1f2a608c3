"""npm and pip as build tools: what is built once, what is said when it fails, and that no lock file names a
registry.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault
from prony.server.build import build
from prony.server.catalogue import Catalogue
from prony.server.spec import ServerSpec

SERVERS = Path(__file__).resolve().parents[2] / "servers"
NODE = '#!/bin/sh\n[ "$1" = --version ] && echo v22.1.0\n'
NPM = """#!/bin/sh
echo "$*" >> "{runs}"
if grep -q broken package.json; then
  echo "npm error code ENOVERSIONS"
  echo "npm error There is no version of it"
  echo "npm error A complete log of this run can be found in: somewhere"
  exit 1
fi
mkdir node_modules && echo made > node_modules/thing && ln -s thing node_modules/link
"""


@pytest.fixture
def node(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server in JavaScript, and a Node and an npm of our own on the PATH."""
    assert not cache.exists()
    for name, text in (("node", NODE), ("npm", NPM.format(runs=tmp_path / "runs"))):
        path = tmp_path / "tools" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:/usr/bin:/bin")
    app = tmp_path / "servers" / "app"
    app.mkdir(parents=True)
    (app / "package.json").write_text("{}", encoding="utf-8")
    (app / "package-lock.json").write_text("{}", encoding="utf-8")
    (app / "server.js").write_text("//", encoding="utf-8")
    (app / "server.yaml").write_text(
        "build: {tool: npm}\ncommand: ['{node}', '{artifact}/server.js']\n", encoding="utf-8"
    )
    return tmp_path


def spec_of(root: Path) -> ServerSpec:
    return Catalogue.load([root / "servers"]).resolve("app")


def test_npm_installs_once_what_the_lock_file_says(node: Path) -> None:
    (first,) = build([spec_of(node)])
    assert first.artifact is not None
    assert (first.artifact / "server.js").is_file(), "the whole folder is the artifact"
    assert (first.artifact / "node_modules" / "link").is_symlink()
    assert first.programs["node"] == str(node / "tools" / "node")
    assert first.versions == {"node": "22.1.0"}
    (again,) = build([spec_of(node)])
    assert again.from_cache
    assert (node / "runs").read_text(encoding="utf-8").splitlines() == [
        "ci --omit=dev --ignore-scripts --no-audit --no-fund --no-update-notifier"
    ]
    assert not (node / "servers" / "app" / "node_modules").exists(), "the sources are not written to"


def test_another_node_makes_another_build(node: Path) -> None:
    (first,) = build([spec_of(node)])
    (node / "tools" / "node").write_text(NODE.replace("v22", "v23"), encoding="utf-8")
    (second,) = build([spec_of(node)])
    assert first.key != second.key


def test_what_npm_says_is_shown_without_its_noise(node: Path) -> None:
    (node / "servers" / "app" / "package.json").write_text('{"broken": 1}', encoding="utf-8")
    with pytest.raises(EnvironmentFault, match=r"app.*: npm .* 1 ") as fault:
        build([spec_of(node)])
    assert fault.value.details == "code ENOVERSIONS\nThere is no version of it"


def test_a_missing_lock_file_or_tool_says_what_to_do(node: Path) -> None:
    (node / "servers" / "app" / "package-lock.json").unlink()
    with pytest.raises(EnvironmentFault, match=r"package-lock\.json.*npm install --package-lock-only"):
        build([spec_of(node)])
    (node / "tools" / "npm").unlink()
    if any(Path(place, "npm").exists() for place in ("/usr/bin", "/bin")):
        return  # this host has one of its own there
    with pytest.raises(EnvironmentFault, match=r"npm .*Node 20"):
        build([spec_of(node)])


@pytest.fixture
def python(tmp_path: Path, cache: Path) -> Path:
    """A server in Python that needs nothing."""
    assert not cache.exists()
    app = tmp_path / "servers" / "app"
    app.mkdir(parents=True)
    (app / "requirements.txt").write_text("", encoding="utf-8")
    (app / "server.yaml").write_text(
        "build: {tool: pip}\ncommand: ['{python}', '{artifact}/server.py']\n", encoding="utf-8"
    )
    return tmp_path


def test_pip_makes_an_environment_that_still_works_where_it_is_kept(python: Path) -> None:
    (built,) = build([spec_of(python)])
    program = built.programs["python"]
    assert built.artifact is not None
    assert Path(program).is_relative_to(built.artifact)
    prefix = subprocess.run(
        [program, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True
    )
    assert prefix.stdout.strip() == str(built.artifact / "venv")
    assert built.versions["python"] == ".".join(map(str, sys.version_info[:3]))
    (again,) = build([spec_of(python)])
    assert again.from_cache
    assert again.programs == built.programs


def test_a_requirement_without_a_hash_is_refused(python: Path) -> None:
    (python / "servers" / "app" / "requirements.txt").write_text("wheel==0.45.1\n", encoding="utf-8")
    with pytest.raises(EnvironmentFault, match=r"app.*: pip .* 1 ") as fault:
        build([spec_of(python)])
    assert fault.value.details is not None
    assert "hashes are required" in fault.value.details.lower()


def test_no_lock_file_names_a_registry() -> None:
    locks = [path for path in SERVERS.glob("*/package-lock.json") if "node_modules" not in path.parts]
    assert locks
    for lock in locks:
        packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]
        assert not [name for name, keys in packages.items() if "resolved" in keys]
        assert all("integrity" in keys for name, keys in packages.items() if name)
    for requirements in SERVERS.glob("*/requirements.txt"):
        text = requirements.read_text(encoding="utf-8")
        assert "://" not in text
        assert "--hash=sha256:" in text
