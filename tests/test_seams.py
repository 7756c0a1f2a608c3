"""The seams between the laboratory and the packages beside it: each has what the laboratory says of it, and
without any of them the laboratory still works.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from prony import seams
from prony.report.export import to_json
from prony.report.exports import Format
from prony.report.reading import load_result
from prony.store import Store, transfer
from prony_explain.explaining import Explaining
from tests.report.factory import FINGERPRINT
from tests.report.test_explained import under_two_loads

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = sorted((ROOT / "packages").glob("*/pyproject.toml"))


def declared() -> dict[tuple[str, str], str]:
    """(group, name) -> package, as the packages say it."""
    found: dict[tuple[str, str], str] = {}
    for file in PACKAGES:
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        for group, points in project["entry-points"].items():
            found |= {(group, name): project["name"] for name in points}
    return found


def test_prony_knows_what_its_packages_have() -> None:
    known = {key: one.package for key, one in seams.OWN.items()}
    assert {key: package for key, package in declared().items() if key[0] != seams.SCHEMAS} == known


@pytest.mark.parametrize(("group", "name"), sorted(declared()), ids=" ".join)
def test_each_seam_holds(group: str, name: str) -> None:
    there = seams.need(group, name, name)
    match group:
        case seams.COMMANDS:
            assert isinstance(there, typer.Typer) or callable(there)
            assert seams.summary(group, name) == seams.OWN[group, name].help
        case seams.FRONT_ENDS:
            from prony_frontends import front_end, names

            assert name in names()
            assert front_end(name).name == name
        case seams.EXPORTS:
            assert isinstance(there, Format)
        case _:
            assert callable(there) or callable(there.attached)


@pytest.mark.parametrize("file", PACKAGES, ids=lambda file: file.parent.name)
def test_a_package_is_pinned_to_the_version_of_the_laboratory(file: Path) -> None:
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    core = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == core["version"] == version(project["name"])
    own = [one for one in project["dependencies"] if one.startswith("prony")]
    assert f"prony=={core['version']}" in own
    assert all(one.endswith(f"=={core['version']}") for one in own)
    assert f"{project['name']}=={core['version']}" in str(core["optional-dependencies"])


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A Python with everything installed but the packages beside the laboratory."""
    site = tmp_path_factory.mktemp("site")
    for one in Path(sysconfig.get_paths()["purelib"]).iterdir():
        beside = one.name.startswith(("prony_", "__editable__", "_prony")) or one.suffix == ".pth"
        if not beside:
            (site / one.name).symlink_to(one)
    start = f"import sys; sys.path += [{str(site)!r}]; sys.path.insert(0, {str(ROOT)!r}); "
    return [sys.executable, "-I", "-S", "-c", start]


def run(alone: list[str], code: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """This code in that Python."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "PRONY_TEST"))}
    return subprocess.run(
        [*alone[:-1], alone[-1] + code, *words],
        cwd=ROOT, env=plain | env, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


OPTIONS = ("-p", "no:cacheprovider", "-o", f"pythonpath={ROOT}")
MAIN = "from prony.cli.main import main; sys.exit(main())"


def test_without_packages_the_help_names_their_commands_with_the_line_that_installs_them(
    alone: list[str],
) -> None:
    done = run(alone, MAIN, "--help")
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    for (group, name), known in seams.OWN.items():
        if group in (seams.COMMANDS, seams.FRONT_ENDS) and " " not in name:
            extra = known.package.removeprefix("prony-")
            assert f" {name} {known.help} (install it: pip install 'prony[{extra}]')" in text


@pytest.mark.parametrize(
    "words",
    [
        ("serve",), ("hosts", "check", "x.yaml"), ("explain", "latest"), ("selftest", "--list"),
        ("aa", "tomcat"),
        ("second-opinion", "http://127.0.0.1:9/"), ("import", "x.jmx", "-o", "x.yaml"), ("wrk", "-c", "1"),
        ("results", "push", "latest"), ("results", "publish", "latest"), ("servers", "check", "tomcat"),
        ("load", "http://127.0.0.1:9/", "--explain", "--attach"),
        ("load", "http://127.0.0.1:9/", "--hosts", "hosts.yaml"),
        ("load", "http://127.0.0.1:9/", "--push", "http://127.0.0.1:9/"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_without_its_package_a_command_says_which_one_to_install(
    alone: list[str], words: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(alone, MAIN, *words, PRONY_DB=str(tmp_path / "r.db"))
    assert done.returncode == 4
    assert "pip install 'prony[" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_front_end_of_another_package_is_a_command(alone: list[str], tmp_path: Path) -> None:
    (tmp_path / "foreign.py").write_text("def main(words): return 40 + len(words)\n")
    described = tmp_path / "foreign-1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1\n")
    (described / "entry_points.txt").write_text("[prony.front_ends]\nsiege = foreign:main\n")
    start = f"sys.path.append({str(tmp_path)!r}); "
    assert run(alone, start + MAIN, "siege", "-c", "1").returncode == 43
    assert "Of the package foreign" in run(alone, start + MAIN, "--help").stdout
    assert run(alone, MAIN, "siege").returncode == 2


@pytest.mark.parametrize("words", [("--version",), ("load", "--help"), ("results", "list")], ids=" ".join)
def test_a_command_of_the_laboratory_does_not_search_all_that_is_installed(
    alone: list[str], words: tuple[str, ...], tmp_path: Path
) -> None:
    start = "from prony import seams; seams.entry_points = None; "
    done = run(alone, start + MAIN, *words, PRONY_DB=str(tmp_path / "r.db"))
    assert (done.returncode, done.stderr) == (0, "")


def test_without_packages_completion_names_their_commands(alone: list[str]) -> None:
    asked = {"_PRONY_COMPLETE": "complete_bash", "COMP_WORDS": "prony se", "COMP_CWORD": "1"}
    code = "sys.argv[0] = 'prony'; " + MAIN
    assert set(run(alone, code, **asked).stdout.split()) == {"second-opinion", "selftest", "serve", "servers"}


@pytest.mark.parametrize("stored", [True, False], ids=["with its explanation", "of an earlier version"])
def test_a_laboratory_alone_shows_what_a_package_explained(
    alone: list[str], tmp_path: Path, stored: bool
) -> None:
    view = under_two_loads()
    (part,) = view.parts
    store = Store.open(tmp_path / "r.db")
    identifier = store.create_experiment(
        name=view.title, spec=view.plan.as_stored(), fingerprint=FINGERPRINT, seed=view.plan.seed, quick=False
    )
    for cell in part.cells:
        for trial in (*cell.every, *cell.explained):
            record = trial.record.model_copy(update={"experiment_id": identifier})
            store.add_trial(record, trial.judgement, trial.figures)
    if stored:
        Explaining().explain(store, identifier)
    store.finish_experiment(identifier)
    explained = [trial.record.explanation for trial in store.trials(identifier) if trial.record.explanation]
    pictures = [one for explanation in explained for one in explanation["pictures"]]
    here = to_json(load_result(store, identifier)).parts[0]
    file = tmp_path / "results.prony"
    transfer.write(store, identifier, file)
    store.close()

    other = {"PRONY_DB": str(tmp_path / "other.db")}
    assert run(alone, MAIN, "results", "import", str(file), **other).returncode == 0
    there = json.loads(run(alone, MAIN, "results", "show", "latest", "--json", **other).stdout)["parts"][0]
    assert (there["explanations"] == here.explanations) is stored
    assert (there["differences"] == here.differences) is stored
    text = run(alone, MAIN, "results", "show", "latest", "--details", **other).stdout
    assert ("CPU time per request by part" in text) is stored
    assert ("prony-explain" in text) is not stored
    page = tmp_path / "page.html"
    assert run(alone, MAIN, "report", "latest", "-o", str(page), **other).returncode == 0
    shown = page.read_text(encoding="utf-8")
    assert shown.count("data:image/svg+xml;base64,") == len(pictures)
    assert bool(pictures) is stored
    assert "<script" not in shown


def test_the_tests_of_the_laboratory_pass_without_the_packages(alone: list[str]) -> None:
    """All are collected, which imports what they use; those that need neither time nor a machine are run."""
    start = "import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    collected = run(alone, start, "--collect-only", "-q", *OPTIONS, "tests")
    assert collected.returncode == 0, collected.stdout[-3000:]
    folders = [f"tests/{name}" for name in ("compare", "plan", "steady")]
    done = run(alone, start, "-q", *OPTIONS, *folders)
    assert done.returncode == 0, done.stdout[-3000:]
