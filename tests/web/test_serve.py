"""`prony serve` as a command: where it listens, what it refuses to do, and how it ends."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .conftest import Shown
from .server import PATIENCE_S, serving


def refused(tmp_path: Path, *options: str) -> tuple[int, str]:
    """The exit code and what is said of a site that is not to be started."""
    command = [
        sys.executable,
        "-m",
        "prony",
        "serve",
        "--db",
        str(tmp_path / "r.db"),
        "--port",
        "0",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--host", "0.0.0.0"), 2, "--token-file"),
        (("--host", "::"), 2, "--token-file"),
        (("--port", "99999"), 2, "--port is 99999"),
        (("--trusted-proxy", "10.0.0.1"), 2, "--trusted-proxy needs --trusted-header"),
        (("--trusted-header", "X-User", "--trusted-proxy", "ten"), 2, "'ten'"),
        (("--token-file", "/nonexistent"), 2, "/nonexistent"),
        (("--host", "no such host", "--trusted-header", "X"), 2, "'no such host'"),
        (("--host", "192.0.2.1", "--trusted-header", "X"), 4, "192.0.2.1"),
    ],
)
def test_what_it_refuses_is_one_sentence(
    tmp_path: Path, options: tuple[str, ...], code: int, sentence: str
) -> None:
    found, said = refused(tmp_path, *options)
    assert (found, sentence in said, said.count("\n")) == (code, True, 1), said


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, said = refused(tmp_path, "--port", str(taken.getsockname()[1]))
    assert code == 4
    assert "Address already in use" in said


def test_a_store_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    path.write_text("not a database")
    code, said = refused(tmp_path)
    assert code == 5
    assert path.read_text() == "not a database"
    assert str(path) in said


def test_it_answers_over_a_socket_and_ends_when_it_is_told(shown: Shown, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("correct-horse-battery-staple\n")
    with serving(shown.store.where, "--token-file", str(token)) as address:
        at = urlsplit(address)
        connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=PATIENCE_S)
        connection.request("GET", "/api/results?limit=1")
        reply = connection.getresponse()
        assert (reply.status, "error" in json.loads(reply.read())) == (401, True)
        assert reply.getheader("server") is None
        authorized = {"Authorization": "Bearer correct-horse-battery-staple"}
        connection.request("GET", "/api/results?limit=1", headers=authorized)
        assert len(json.loads(connection.getresponse().read())["experiments"]) == 1
        connection.close()
