"""The cache of builds, with a Maven of our own that counts how often it is asked."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault
from prony.server.build import build
from prony.server.catalogue import Catalogue
from prony.server.spec import ServerSpec

MVN = """#!/bin/sh
if [ "$1" = --version ]; then echo "Apache Maven 9.9.9"; exit 0; fi
echo run >> "{runs}"
echo "[INFO] --- maven-compiler-plugin:3.0:compile (default) @ app ---"
if grep -q broken source.txt; then
  echo "[INFO] BUILD FAILURE"
  echo "[ERROR] source.txt:[1,1] this is broken"
  echo "[ERROR] Re-run Maven using the -X switch to enable full debug logging."
  exit 1
fi
sleep "$(cat slow 2>/dev/null || echo 0)"
mkdir -p target && echo "$* $JAVA_HOME" > target/app.jar && cat source.txt >> target/app.jar
"""


@pytest.fixture
def bench(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources, a Maven and a JDK; builds go to `cache`."""
    assert not cache.exists()
    tools = tmp_path / "tools"
    for name, text in (
        ("maven/mvn", MVN.format(runs=tmp_path / "runs")),
        ("jdk/bin/java", "#!/bin/sh\n"),
        ("jdk/bin/javac", "#!/bin/sh\n"),
    ):
        path = tools / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    (tools / "jdk" / "release").write_text('JAVA_VERSION="17.0.1"\n', encoding="utf-8")
    monkeypatch.setenv("PATH", f"{tools / 'maven'}:/usr/bin:/bin")
    monkeypatch.setenv("PRONY_JDK", str(tools / "jdk"))
    source = tmp_path / "servers" / "app"
    source.mkdir(parents=True)
    (source / "source.txt").write_text("one\n", encoding="utf-8")
    (source / "server.yaml").write_text(
        "build: {tool: maven, artifact: target/app.jar, args: [-Pone]}\ncommand: [cat, '{artifact}']\n",
        encoding="utf-8",
    )
    return tmp_path


def spec_of(bench: Path) -> ServerSpec:
    return Catalogue.load([bench / "servers"]).resolve("app")


def runs(bench: Path) -> int:
    path = bench / "runs"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def test_a_build_is_made_once_for_its_content(bench: Path, cache: Path) -> None:
    lines: list[str] = []
    (first,) = build([spec_of(bench)], on_line=lambda name, line: lines.append(f"{name}: {line}"))
    assert first.artifact is not None
    assert not first.from_cache
    assert first.artifact.parent == cache / "builds" / f"app-{first.key}"
    content = first.artifact.read_text(encoding="utf-8")
    assert content == f"--batch-mode -Dstyle.color=never -Pone package {bench / 'tools' / 'jdk'}\none\n"
    assert "app: building with Maven 9.9.9 and JDK 17" in lines
    assert "app: compile" in lines
    assert not (bench / "servers" / "app" / "target").exists(), "the sources are not written to"

    (again,) = build([spec_of(bench)])
    assert again.from_cache
    assert again.artifact == first.artifact
    assert runs(bench) == 1


@pytest.mark.parametrize("what", ["content", "name", "args", "tool"])
def test_what_decides_the_build_makes_a_new_one(bench: Path, what: str) -> None:
    app = bench / "servers" / "app"
    (first,) = build([spec_of(bench)])
    if what == "content":
        (app / "source.txt").write_text("two\n", encoding="utf-8")
    elif what == "name":
        (app / "more.txt").write_text("", encoding="utf-8")
    elif what == "args":
        text = (app / "server.yaml").read_text(encoding="utf-8")
        (app / "server.yaml").write_text(text.replace("-Pone", "-Ptwo"), encoding="utf-8")
    else:
        mvn = bench / "tools" / "maven" / "mvn"
        mvn.write_text(mvn.read_text(encoding="utf-8").replace("9.9.9", "9.9.10"), encoding="utf-8")
    (second,) = build([spec_of(bench)])
    assert second.key != first.key
    assert not second.from_cache


def test_what_only_says_how_to_run_it_does_not(bench: Path) -> None:
    (first,) = build([spec_of(bench)])
    file = bench / "servers" / "app" / "server.yaml"
    file.write_text(file.read_text(encoding="utf-8") + "ceilings: {worker_threads: 7}\n", encoding="utf-8")
    (bench / "servers" / "app" / "target").mkdir()
    (bench / "servers" / "app" / "target" / "left.over").write_text("x", encoding="utf-8")
    (second,) = build([spec_of(bench)])
    assert second.from_cache
    assert second.key == first.key


def test_a_failed_build_shows_the_telling_lines_and_leaves_nothing(bench: Path, cache: Path) -> None:
    (bench / "servers" / "app" / "source.txt").write_text("broken\n", encoding="utf-8")
    with pytest.raises(EnvironmentFault, match=r"app.*: mvn .* 1 \(log: .*\)$") as fault:
        build([spec_of(bench)])
    assert fault.value.details == "[ERROR] source.txt:[1,1] this is broken"
    log = cache / "logs" / "build-app.log"
    assert str(log) in str(fault.value)
    assert "BUILD FAILURE" in log.read_text(encoding="utf-8")
    assert not [path for path in (cache / "builds").iterdir() if path.is_dir()]


def test_a_missing_artifact_names_the_key_to_correct(bench: Path) -> None:
    file = bench / "servers" / "app" / "server.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("app.jar", "other.jar"), encoding="utf-8")
    with pytest.raises(EnvironmentFault, match=r"target/other\.jar.*build\.artifact"):
        build([spec_of(bench)])


def test_no_maven_says_how_to_get_it(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(bench / "nowhere"))
    with pytest.raises(EnvironmentFault, match=r"mvn.*apt-get install maven"):
        build([spec_of(bench)])


def test_two_builds_at_once_make_one(bench: Path) -> None:
    (bench / "servers" / "app" / "slow").write_text("0.5", encoding="utf-8")
    spec = spec_of(bench)
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(build([spec])[0].from_cache)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, True]
    assert runs(bench) == 1


def test_an_unwritable_cache_is_said(bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "file"))
    with pytest.raises(EnvironmentFault, match="PRONY_CACHE"):
        build([spec_of(bench)])


def test_only_the_newest_builds_are_kept(bench: Path, cache: Path) -> None:
    for number in range(5):
        (bench / "servers" / "app" / "source.txt").write_text(f"{number}\n", encoding="utf-8")
        (latest,) = build([spec_of(bench)])
    kept = [path.name for path in (cache / "builds").iterdir() if path.is_dir()]
    assert len(kept) == 3
    assert f"app-{latest.key}" in kept
