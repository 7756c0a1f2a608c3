"""`prony servers check` as a user runs it, with a server that lies in no catalogue."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from prony.server.sockets import free_port
from tests.cli.conftest import Run

SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        found = self.path == "/"
        body = b"Hello, World!" if found else b"nothing here"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass

ThreadingHTTPServer.request_queue_size = 256
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder somewhere with a server.yaml that only names a command and a URL."""
    port = free_port("127.0.0.1")
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "server.py").write_text(SERVER)
    (folder / "server.yaml").write_text(
        f'command: [{sys.executable}, "{{dir}}/server.py", "{port}"]\nurl: http://127.0.0.1:{port}\n'
    )
    return folder


def test_a_server_of_ones_own_is_checked_from_any_folder(prony: Run, mine: Path) -> None:
    done = prony(mine.parent, "servers", "check", "./mine/server.yaml", "-w", "hello", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["schema"] == 1
    assert report["passed"] is True
    (server,) = report["servers"]
    assert (server["server"], server["workload"]) == ("mine", "hello")
    checks = {check["check"]: check for check in server["checks"]}
    assert checks["keep-alive"]["status"] == "passed"
    assert checks["keep-alive"]["found"] == "20 responses on 1 connection"


def test_what_is_wrong_is_shown_and_has_its_exit_code(prony: Run, mine: Path) -> None:
    script = mine / "server.py"
    script.write_text(script.read_text().replace("do_HEAD = do_GET", ""))
    done = prony(mine.parent, "servers", "check", "./mine", "-w", "hello")
    assert done.returncode == 6
    assert "mine under hello: passed" in done.stdout
    assert "HEAD has the status 501, GET 200" in " ".join(done.stdout.split())


def test_a_server_that_cannot_start_is_the_machines_fault(prony: Run, mine: Path) -> None:
    (mine / "server.py").write_text("raise SystemExit('no licence')")
    done = prony(mine.parent, "servers", "check", "./mine", "-w", "hello")
    assert done.returncode == 4
    assert "ended before it was ready" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no server was named"),
        (["--all", "./mine"], "both --all and ./mine were given"),
        (["./mine", "-w", "helo"], "unknown workload 'helo', did you mean 'hello'?"),
        (["./mine", "-w", "hello", "--set", "delay_ms"], "--set is 'delay_ms'; expected a name and a number"),
        (["./mine", "-w", "hello", "--set", "delay_ms=5"], "workload 'hello' has no setting 'delay_ms'"),
        (["./yours"], "/yours; name a server of the catalogue"),
    ],
)
def test_bad_input_gets_one_sentence(prony: Run, mine: Path, words: list[str], sentence: str) -> None:
    done = prony(mine.parent, "servers", "check", *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stdout == ""


def test_a_setting_that_a_workload_does_not_have_is_refused_in_a_comparison(prony: Run, mine: Path) -> None:
    done = prony(mine.parent, "compare", "./mine", "reference", "-w", "hello", "--set", "delay_ms=5")
    assert done.returncode == 2
    assert "workload 'hello' has no setting 'delay_ms'; it has none" in done.stderr


def test_the_list_of_servers_is_still_there(prony: Run, tmp_path: Path) -> None:
    done = prony(tmp_path, "servers", "--json")
    assert done.returncode == 0
    assert {"reference", "spring-tomcat"} <= {load["name"] for load in json.loads(done.stdout)["servers"]}
