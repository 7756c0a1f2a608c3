"""Bad input: one clear sentence, the documented exit code, never a traceback."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from tests.command import PRONY
from tests.e2e.conftest import PATIENCE_S, Here, Lab
from tests.ports import refusing
from tests.server.test_jdk import home

CASES = [
    (["compare", "spring-tomct", "spring-jetty"], 2, "did you mean 'spring-tomcat'"),
    (["compare"], 2, "or URLs; or --resume ID"),
    (["compare", "spring-tomcat"], 2, "at least two"),
    (["compare", "reference", "reference"], 2, "named twice"),
    (["compare", "spring-tomcat", "reference"], 2, "share no workload"),
    (["compare", "spring-tomcat", "spring-jetty", "--workload", "hullo"], 2, "did you mean 'hello'"),
    (["compare", "spring-tomcat", "spring-jetty", "--workload", "hello"], 2, "'hello'"),
    (["compare", "spring-tomcat", "spring-jetty", "--users", "0"], 2, "expected 1 to"),
    (["compare", "spring-tomcat", "spring-jetty", "--trials", "-1"], 2, "expected 1 to"),
    (["compare", "spring-tomcat", "spring-jetty", "--window", "soon"], 2, "expected a time"),
    (
        ["compare", "spring-tomcat", "spring-jetty", "--driver", "kqueue"],
        2,
        "expected auto, io_uring or epoll",
    ),
    (["compare", "spring-tomcat", "spring-jetty", "--server-cpus", "999"], 2, "999"),
    (
        ["compare", "spring-tomcat", "spring-jetty", "--report", "no/such/folder.html"],
        2,
        "no directory",
    ),
    (["load", "http://127.0.0.1:8080/", "-c", "0"], 2, "0 users"),
    (["load", "http://127.0.0.1:8080/", "-c", "99999999"], 2, "1,000,000"),
    (["load", "http://127.0.0.1:8080/", "-n", "0"], 2, "0 requests"),
    (["load", "http://127.0.0.1:8080/", "-n", "5", "-d", "5s"], 2, "--duration and --requests"),
    (["load", "http://127.0.0.1:8080/", "--rate", "0"], 2, "--rate is 0"),
    (["load", "http://127.0.0.1:8080/", "--rate", "5", "-c", "5"], 2, "found --users and --rate"),
    (["load", "http://127.0.0.1:8080/", "--rate", "5", "--think", "1s"], 2, "--think applies to --sessions"),
    (
        ["load", "http://127.0.0.1:8080/", "--arrivals", "poisson"],
        2,
        "--arrivals applies to an open load (--rate or --phases)",
    ),
    (["load", "http://127.0.0.1:8080/", "--rate", "5", "--arrivals", "even"], 2, "constant or poisson"),
    (["load", "http://127.0.0.1:8080/", "--rate", "5", "--max-users", "0"], 2, "--max-users is 0"),
    (["load", "http://127.0.0.1:8080/", "--ramp-up", "9s", "--warmup", "2s"], 2, "the ramp to be over"),
    (["load", "ftp://127.0.0.1/"], 2, "expected http://"),
    (["load", "http://127.0.0.1:99999/"], 2, "no valid port"),
    (["load", "http:///x"], 2, "names no host"),
    (["load", "no url"], 2, "'no url' has no {port}"),
    (["results", "show", "nothing-like-it"], 2, "measure something first"),
    (["report", "nothing-like-it", "-o", "x.html"], 2, "measure something first"),
    (["compare", "--no-such-option"], 2, "No such option"),
]


@pytest.mark.parametrize(("words", "code", "part"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_one_sentence_and_the_documented_exit_code(
    here: Here, words: list[str], code: int, part: str
) -> None:
    done = here(*words)
    assert done.returncode == code, done.stderr
    assert part in done.stderr
    assert done.stdout == ""


def test_connection_refused_names_the_address(lab: Lab) -> None:
    with refusing() as port:
        done = lab.run("load", f"http://127.0.0.1:{port}/")
    assert done.returncode == 4
    assert f"http://127.0.0.1:{port} gives no response: connection refused" in done.stderr


def test_a_host_that_nobody_knows_is_named(lab: Lab) -> None:
    done = lab.run("load", "http://no-such-host.invalid/")
    assert done.returncode == 4
    assert "the host 'no-such-host.invalid' is not known" in done.stderr


def test_a_foreign_database_file_is_refused_and_left_alone(lab: Lab) -> None:
    lab.db.write_text("these are somebody's notes\n")
    done = lab.run("results", "list")
    assert done.returncode == 5
    assert str(lab.db) in done.stderr
    assert lab.db.read_text() == "these are somebody's notes\n"


def test_the_port_of_a_server_is_taken(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for name in ("one", "two"):
            place = lab.folder / "servers" / name
            place.mkdir(parents=True)
            (place / "server.yaml").write_text(
                f"command: [sleep, '60']\nurl: http://127.0.0.1:{port}\nworkloads: [hello]\n"
            )
        done = lab.run("compare", "one", "two", "--quick", "--trials", "1")
    assert done.returncode == 4
    assert f"port {port} is taken" in done.stderr


def test_a_server_that_exits_at_once_is_quoted(lab: Lab) -> None:
    for name in ("one", "two"):
        place = lab.folder / "servers" / name
        place.mkdir(parents=True)
        (place / "server.yaml").write_text(
            "command: [sh, -c, 'echo no such database; exit 7']\nworkloads: [hello]\n"
        )
    done = lab.run("compare", "one", "two", "--quick", "--trials", "1")
    assert done.returncode == 4
    assert "7" in done.stderr
    assert "no such database" in done.stderr


def test_a_misspelt_key_in_a_server_file_is_named_with_its_line(lab: Lab) -> None:
    place = lab.folder / "servers" / "mine"
    place.mkdir(parents=True)
    (place / "server.yaml").write_text("title: x\ncomand: [x]\n")
    done = lab.run("compare", "mine", "reference")
    assert done.returncode == 2
    assert "server.yaml:2" in done.stderr
    assert "did you mean 'command'" in done.stderr


def test_an_empty_store_is_no_error(lab: Lab) -> None:
    done = lab.run("results", "list")
    assert done.returncode == 0
    assert "prony compare" in done.stdout


def test_no_maven_says_how_to_get_it(lab: Lab, tmp_path: Path) -> None:
    java = home(tmp_path / "jdk", "21.0.1")
    lab.env = {
        "PATH": "/usr/nowhere",
        "JAVA_HOME": str(java),
        "PRONY_JDK": "",
        "PRONY_CACHE": str(tmp_path / "cache"),
    }
    done = lab.run("compare", "spring-tomcat", "spring-jetty", "--quick", "--trials", "1")
    assert done.returncode == 4
    assert "(mvn)" in " ".join(done.stderr.split())


def test_no_words_at_all_print_the_help(lab: Lab) -> None:
    lab.installed = True
    done = lab.run()
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: prony")


def test_a_reader_that_leaves_early_is_no_defect(lab: Lab) -> None:
    lab.installed = True
    process = lab.start("servers", "--json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(timeout=PATIENCE_S) == 0


def test_a_full_disk_below_the_output_is_no_defect(lab: Lab) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [str(PRONY), "servers"],
            env=lab.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 4
    assert "cannot be written: No space left on device" in done.stderr
    assert "defect" not in done.stderr
