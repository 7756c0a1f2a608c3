"""Which JDKs are found, and which one is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import EnvironmentFault, UsageError
from prony.server import jdk
from prony.server.jdk import Jdk, choose, find_jdks, is_lts
from prony.server.spec import JdkRange


def home(folder: Path, release: str | None = None, says: str = "", compiler: bool = True) -> Path:
    """A folder that looks like a Java installation."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{says}\" 2025' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    if compiler:
        (folder / "bin" / "javac").write_text("#!/bin/sh\n", encoding="utf-8")
        (folder / "bin" / "javac").chmod(0o755)
    if release is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="Acme"\nJAVA_VERSION="{release}"\n', encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRONY_JDK", raising=False)


def test_versions_are_read_from_the_release_file_or_asked_for(tmp_path: Path) -> None:
    homes = [
        home(tmp_path / "a", release="17.0.9"),
        home(tmp_path / "b", release="1.8.0_392", compiler=False),
        home(tmp_path / "c", says="25-ea"),
    ]
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "empty").mkdir()
    found = find_jdks([*homes, tmp_path / "link", tmp_path / "empty", tmp_path / "missing"])
    assert [(each.major, each.has_compiler) for each in found] == [(25, True), (17, True), (8, False)]
    assert [each.vendor for each in found] == ["", "Acme", "Acme"]


def test_they_are_looked_for_in_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home(tmp_path / "jvm" / "x", release="21.0.1")
    home(tmp_path / "path", release="11.0.2")
    monkeypatch.setattr(jdk, "FOLDERS_OF_JDKS", (str(tmp_path / "jvm"), str(tmp_path / "none")))
    monkeypatch.setenv("JAVA_HOME", str(home(tmp_path / "home", release="17.0.1")))
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    assert [each.major for each in find_jdks()] == [21, 17, 11]


def some(*majors: int, compiler: bool = True) -> list[Jdk]:
    return [Jdk(Path(f"/jdk{major}"), major, f"{major}.0.1", "Acme", compiler) for major in majors]


@pytest.mark.parametrize(
    ("there", "wanted", "chosen"),
    [
        ((17, 21, 25), JdkRange(min=17), 25),
        ((17, 21, 24), JdkRange(min=17), 21),  # the newest LTS before the newest
        ((23, 24), JdkRange(min=17), 24),  # no LTS there
        ((17, 21, 25), JdkRange(min=17, max=21), 21),
        ((17, 21, 25), JdkRange(min=17, max=25, prefer=17), 17),
        ((21, 25), JdkRange(min=17, max=25, prefer=17), 25),
    ],
)
def test_the_choice(there: tuple[int, ...], wanted: JdkRange, chosen: int) -> None:
    assert choose(wanted, jdks=some(*there)).major == chosen


def test_nothing_that_fits_says_what_is_there_and_how_to_get_one() -> None:
    with pytest.raises(
        EnvironmentFault,
        match=r"17 to 21 .*11\.0\.1 \(Acme\) at /jdk11\).*openjdk-17-jdk",
    ):
        choose(JdkRange(min=17, max=21), jdks=some(11))
    with pytest.raises(EnvironmentFault, match=r"\(javac\) 17 or newer"):
        choose(JdkRange(min=17), jdks=some(17, compiler=False), compiler=True)
    with pytest.raises(EnvironmentFault, match=r": none\)"):
        choose(JdkRange(min=17), jdks=[])


def test_an_override_is_obeyed_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = JdkRange(min=17, max=25, prefer=17)
    assert choose(wanted, jdks=some(17, 25), override="25").major == 25
    monkeypatch.setenv("PRONY_JDK", str(home(tmp_path / "mine", release="21.0.4")))
    assert choose(wanted, jdks=some(17)).major == 21
    assert choose(wanted, jdks=some(17), override="17").major == 17
    assert choose(wanted, jdks=some(17), override="").major == 17
    with pytest.raises(UsageError, match=r"JDK 21 .*: 17"):
        choose(wanted, jdks=some(17), override="21")
    with pytest.raises(UsageError, match=r"'/nowhere'.*bin/java"):
        choose(wanted, jdks=some(17), override="/nowhere")
    with pytest.raises(UsageError, match=r"JDK 11 .* 17 to 25"):
        choose(wanted, jdks=some(11, 17), override="11")


def test_long_term_support_lines() -> None:
    assert [major for major in range(8, 34) if is_lts(major)] == [8, 11, 17, 21, 25, 29, 33]
