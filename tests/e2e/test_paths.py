"""`prony compare ./x ./y` as a user types it: two small servers of his own, one of them a script."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests import command
from tests.e2e.conftest import SHORTEST, Lab

SCRIPT = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Hello(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", "13")
        self.end_headers()
        self.wfile.write(b"Hello, World!")

    def log_message(self, *_words):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Hello).serve_forever()
"""


def script(folder: Path) -> None:
    """The same answer from Python, in a folder of the same name."""
    folder.mkdir(parents=True)
    (folder / "hello.py").write_text(SCRIPT)
    words = json.dumps([sys.executable, "{dir}/hello.py", "{port}"])
    (folder / "server.yaml").write_text(f"title: a script\nworkloads: [hello]\ncommand: {words}\n")


@pytest.mark.rarely
def test_folders_are_compared_from_another_one_and_told_apart(lab: Lab) -> None:
    lab.server("app", "--work", "50us")
    script(lab.folder / "scripts" / "app")
    elsewhere = lab.folder / "else" / "where"
    elsewhere.mkdir(parents=True)
    words = ("../../servers/app/", "../../scripts/app", *SHORTEST, "--trials", "1", *lab.lenient, "--json")
    env = lab.environment() | {"PRONY_SERVERS": ""}
    done = command.run(["compare", *words], env=env, cwd=elsewhere)
    assert done.returncode in (0, 3), done.stderr
    shown = json.loads(done.stdout)
    (part,) = shown["parts"]
    requests = {cell["server"]: cell["trials"][0]["counters"]["requests"] for cell in part["cells"]}
    assert sorted(requests) == ["app@scripts", "app@servers"]
    assert min(requests.values()) > 0
    titles = {server["address"]: server["title"] for server in shown["servers"]}
    assert titles == {"app@servers": "the reference server, app", "app@scripts": "a script"}
