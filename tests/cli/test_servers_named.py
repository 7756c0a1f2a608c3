"""Every command that takes a server takes a name of the catalogue, a path, a URL and a command line alike, or
says in one sentence what to name in its place.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.cli import main, measure, targets
from prony.errors import ExitCode, UsageError
from prony.evidence.conformance import CheckResult, CheckStatus, Conformance
from prony.experiment.requirements import find_targets
from prony.experiment.testbed import Targets
from prony.plan.plan import Plan
from prony.plan.target import Launch, Url
from prony.plan.workload import Workload
from prony.server.spec import ServerSpec
from prony.targets import LaunchedServer

SERVER = """
title: a server of this test
workloads: [hello]
command: ["{engine}", serve, --listen, "{host}:{port}"]
variants: {fast: {}}
"""
URL = "http://127.0.0.1:1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two builds of one name, a program beside them, and a folder to look at them from."""
    for build in ("base", "candidate", "a:b"):
        place = tmp_path / build / "app"
        place.mkdir(parents=True)
        (place / "server.yaml").write_text(SERVER)
    (tmp_path / "serve").write_text("#!/bin/sh\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("base/app")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRONY_DB", str(tmp_path / "results.db"))
    return tmp_path


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Those that commands would measure: their servers are found, and nothing is started."""
    made: list[Plan] = []

    def run(plan: Plan, *_given: object, **_more: object) -> int:
        find_targets(plan, Targets())
        made.append(plan)
        return ExitCode.OK

    monkeypatch.setattr(measure, "run", run)
    return made


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["prony", *words])
    return main.main()


COMMANDS: dict[str, Callable[[str, str], tuple[str, ...]]] = {
    "compare": lambda one, other: ("compare", one, other),
    "aa": lambda one, _: ("aa", one),
    "gate": lambda one, other: ("gate", one, other),
    "explain": lambda one, _: ("explain", one),
    "sweep": lambda one, _: ("sweep", one, "--users", "1"),
    "capacity": lambda one, _: ("capacity", one, "--slo", "p99<1s"),
    "second-opinion": lambda one, _: ("second-opinion", one, "--with", "ab"),
    "load": lambda one, _: ("load", one),
}
"""From a server and another of its kind."""
PATHS = (
    "./base/app",
    "base/app/",
    "base/app/server.yaml",
    "{folder}/base/app",
    "elsewhere/../base/app",
    "./link/",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_a_server_of_every_command(
    command: str, path: str, folder: Path, plans: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    word = path.format(folder=folder)
    assert typed(monkeypatch, *COMMANDS[command](word, "./candidate/app")) == 0
    (plan,) = plans
    target = plan.cells[0].target
    assert isinstance(target, Launch)
    monkeypatch.chdir(folder / "elsewhere")  # resumed from another folder it is the same server
    assert Targets().of(plan.cells[0]).identity.title == "a server of this test"
    assert Path(target.address).is_absolute()
    expected = ("app@base", "app@candidate") if command in ("compare", "gate") else ("app",)
    assert plan.servers == expected


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("word", "server"), [("reference", "reference"), ("reference:h2c", "reference:h2c")])
@pytest.mark.usefixtures("folder")
def test_a_name_is_a_server_of_every_command(
    command: str, word: str, server: str, plans: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert typed(monkeypatch, *COMMANDS[command](word, "./candidate/app")) == 0
    target = plans[0].cells[0].target
    assert isinstance(target, Launch)
    assert (plans[0].servers[0], target.address, target.known_as) == (server, word, None)


@pytest.mark.parametrize(
    ("command", "in_its_place"),
    [
        ("compare", None),
        ("sweep", None),
        ("capacity", None),
        ("second-opinion", None),
        ("load", None),
        ("aa", "a folder with a server.yaml"),
        ("gate", "a folder with a server.yaml"),
        ("explain", "prony load {word} --explain"),
    ],
)
@pytest.mark.parametrize("word", [f"{URL}/", "127.0.0.1:1", "127.0.0.1:1/"])
@pytest.mark.usefixtures("folder")
def test_a_url_is_measured_or_refused_by_what_to_use(
    command: str,
    in_its_place: str | None,
    word: str,
    plans: list[Plan],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = typed(monkeypatch, *COMMANDS[command](word, "http://127.0.0.1:2/"))
    if in_its_place is None:
        assert code == 0
        assert isinstance(plans[0].cells[0].target, Url)
        assert plans[0].servers[0] == URL
        return
    assert code == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"prony: {word} is already running; ")
    assert in_its_place.format(word=word) in line


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("word", "server", "words"),
    [
        ("./serve --port={port}", "serve", ("./serve", "--port={port}")),
        ("MODE=x ./serve -p {port} a/b.py", "serve b.py", ("./serve", "-p", "{port}", "a/b.py")),
        (
            "python3 -m http.server {port}",
            "python3 -m http.server",
            ("python3", "-m", "http.server", "{port}"),
        ),
    ],
)
def test_a_command_line_is_a_server_of_every_command(
    command: str,
    word: str,
    server: str,
    words: tuple[str, ...],
    folder: Path,
    plans: list[Plan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert typed(monkeypatch, *COMMANDS[command](word, "node app.js {port}")) == 0
    cell = plans[0].cells[0]
    assert cell.server == server
    assert [step.path for step in cell.trial.workload.all_steps] == ["/"]
    monkeypatch.chdir(folder / "elsewhere")
    under = Targets().of(cell)
    assert isinstance(under, LaunchedServer)
    assert (under.spec.command, under.spec.folder) == (words, folder)
    assert under.spec.env == ({"MODE": "x"} if word.startswith("MODE") else {})


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_an_image_is_a_server_of_every_command(
    command: str, plans: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = COMMANDS[command]("image:nginx:1.29", "image:reg.example:5000/caddy@sha256:12")
    assert typed(monkeypatch, *words) == 0
    if command == "compare":
        assert typed(monkeypatch, command, "--image", "nginx:1.29", "--image", words[2][len("image:") :]) == 0
        assert plans[0].servers == plans[1].servers == ("nginx:1.29", words[2][len("image:") :])
    cell = plans[-1].cells[0]
    assert cell.server == "nginx:1.29"
    assert cell.trial.warm_up.method in ("pinned", "fixed"), "its CPU set is that of its creation"
    under = Targets().of(cell)
    assert isinstance(under, LaunchedServer)
    assert under.spec.image == "nginx:1.29"


@pytest.mark.parametrize("command", [*COMMANDS, "servers check", "servers build"])
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("./serve --port 8080", "has no {port}"),
        ("./serve", "./serve --port={port}"),
        ("./serve '{port}", "is no command line"),
        ("cd base && ./serve {port}", "sh -c"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_command_line_without_its_port_is_refused(
    command: str, word: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = COMMANDS[command](word, "./candidate/app") if command in COMMANDS else (*command.split(), word)
    assert typed(monkeypatch, *words) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert word in line
    assert said in line


@pytest.mark.usefixtures("folder")
def test_command_lines_of_one_name_keep_their_folders() -> None:
    words = ("python3 base/app.py {port}", "python3 candidate/app.py {port}")
    assert [s.name for s in targets.servers(words)] == ["python3 base/app.py", "python3 candidate/app.py"]
    assert [s.name for s in targets.servers(("A=1 ./serve {port}", "A=2 ./serve {port}"))] == [
        "A=1 ./serve",
        "A=2 ./serve",
    ]
    shells = [f"sh -c 'exec ./{name} {{port}}'" for name in ("a", "b")]
    assert [s.name for s in targets.servers(shells)] == [
        "sh -c exec ./a {port}",
        "sh -c exec ./b {port}",
    ]


def test_init_writes_what_the_command_line_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "MODE=x ./serve --port={port}"
    assert typed(monkeypatch, "init", line) == 0
    (server,) = targets.servers(["."])
    (direct,) = targets.servers([line])
    for field in ("command", "env", "workdir", "folder", "title"):
        assert getattr(server.launched, field) == getattr(direct.launched, field)
    assert targets.request([server], "workload.yaml").all_steps[0].path == "/"
    assert typed(monkeypatch, "init", line) == ExitCode.USAGE  # nothing is overwritten
    assert "server.yaml and workload.yaml exist" in capsys.readouterr().err
    monkeypatch.chdir(folder / "elsewhere")
    assert typed(monkeypatch, "init", "java -jar app.jar --port={port}") == 0
    assert targets.server(".").launched.command[:3] == ("{java}", "{jvm}", "-jar")


@pytest.mark.parametrize("named", ["./base/app", "../x/base/app", "{folder}/base/app", "reference", URL])
def test_a_plan_finds_its_servers_from_every_folder(
    named: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path is relative to the plan's file, as its workloads are."""
    (folder / "x").symlink_to(".")
    file = folder / "plan.yaml"
    file.write_text(f"servers: ['{named.format(folder=folder)}']\nworkloads: hello\ntrials: 1\n")
    if named.startswith("../"):
        file = file.rename(folder / "elsewhere" / "plan.yaml")
    for here in (folder, folder / "elsewhere", Path("/")):
        monkeypatch.chdir(here)
        assert typed(monkeypatch, "run", str(file), "--dry-run", "--json") == 0, capsys.readouterr().err
        (trial,) = json.loads(capsys.readouterr().out)["trials"]
        assert trial["cell"].startswith(f"main/{named.format(folder=folder)}/hello/")


def test_checks_and_builds_tell_folders_of_one_name_apart(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from prony_conformance import command as conformance_command

    seen: list[Path] = []

    def checked(spec: ServerSpec, under: Workload, _jdk: str | None) -> Conformance:
        seen.append(spec.folder)
        passed = CheckResult(
            server=spec.name,
            workload=under.name,
            check="start",
            status=CheckStatus.PASSED,
            found="",
            expected="",
        )
        return Conformance(server=spec.name, workload=under.name, results=(passed,))

    monkeypatch.setattr(conformance_command, "_checked", checked)
    words = ("./base/app/", str(folder / "candidate/app"), "reference")
    assert typed(monkeypatch, "servers", "check", *words) == 0
    assert seen[:2] == [folder / "base/app", folder / "candidate/app"]
    assert typed(monkeypatch, "servers", "build", *words) == 0
    out = capsys.readouterr().out
    assert out.count("app@base") >= 2
    assert out.count("app@candidate") >= 2
    for verb in ("check", "build"):
        assert typed(monkeypatch, "servers", verb, URL) == ExitCode.USAGE
        assert "is already running" in capsys.readouterr().err


def test_folders_of_one_name_are_distinguished_by_the_nearest_folder_that_differs(folder: Path) -> None:
    def names(*words: str) -> list[str]:
        return [s.name for s in targets.servers(words)]

    assert names("./base/app", "./candidate/app") == ["app@base", "app@candidate"]
    assert names("./base/app:fast", "./candidate/app") == ["app:fast", "app"]
    assert names("./base/app:fast", "./candidate/app:fast") == ["app:fast@base", "app:fast@candidate"]
    assert names("./base/app", "./base/app/") == ["app", "app"]  # compare refuses what is one s
    assert names("./a:b/app", "./a:b/app:fast") == ["app", "app:fast"]
    deep = folder / "old" / "base" / "app"
    deep.mkdir(parents=True)
    (deep / "server.yaml").write_text(SERVER)
    assert names("base/app", "old/base/app") == [f"app@{folder.name}", "app@old"]
    mine = folder / "reference"
    mine.mkdir()
    (mine / "server.yaml").write_text(SERVER)
    assert names("reference", "./reference") == ["reference", f"reference@{folder.name}"]


def test_a_folder_that_is_named_like_a_server_is_pointed_at(folder: Path) -> None:
    (folder / "base/app").rename(folder / "app")
    with pytest.raises(UsageError, match=r"unknown server 'app', did you mean './app'\?"):
        targets.server("app")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("./base/app", URL), "is already running, and Prony starts the others"),
        (("./base/app", "./link"), "a server was named twice"),
        ((URL, "127.0.0.1:1"), "a server was named twice"),
        ((f"{URL}/a", "http://127.0.0.1:2/b"), "the URLs request /a and /b"),
        ((f"{URL}/a", "http://127.0.0.1:2/a", "-w", "hello"), "--workload brings its own paths"),
        ((URL, "http://127.0.0.1:2", "--warm-up", "pinned"), "taskset"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_compared_is_refused(
    words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, "compare", *words) == ExitCode.USAGE
    assert said in " ".join(capsys.readouterr().err.split())
