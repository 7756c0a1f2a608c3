"""The agent in a bare JVM: what it answers, and that no fault of its own reaches the application."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prony.evidence.server import JvmSnapshot
from prony.server.agent import LONGEST_SOCKET_PATH, AgentClient
from prony.server.build import Built, build
from prony.server.catalogue import Catalogue

APPLICATION = """
public class App {
    public static void main(String[] args) throws Exception {
        System.out.println("application runs");
        System.in.read();
    }
}
"""


@pytest.fixture(scope="module")
def jvm() -> Built:
    """Any JVM server: it brings a JDK and the agent's jar."""
    catalogue = Catalogue.load([Path(__file__).resolve().parents[2] / "servers"])
    spec = catalogue.resolve("spring-tomcat").model_copy(update={"build": None})
    return build([spec])[0]


@contextmanager
def application(jvm: Built, folder: Path, argument: str) -> Iterator[subprocess.Popen[str]]:
    """A running application with the agent in it; it ends when its input closes."""
    assert jvm.jdk is not None
    (folder / "App.java").write_text(APPLICATION, encoding="utf-8")
    process = subprocess.Popen(
        [str(jvm.jdk.java), f"-javaagent:{jvm.agent}{argument}", str(folder / "App.java")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdin, process.stdout, process.stderr:
        try:
            assert process.stdout.readline() == "application runs\n"
            yield process
        finally:
            process.kill()
            process.wait()


def ask(path: Path, question: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(str(path))
        client.sendall(question)
        try:
            with client.makefile("rb") as lines:
                return lines.readline()
        except ConnectionResetError:
            return b""  # hung up with some of the question unread


@pytest.mark.e2e
@pytest.mark.everyday
def test_every_question_gets_one_line(jvm: Built, tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    with application(jvm, tmp_path, f"={path}"):
        line = json.loads(ask(path, b"snapshot\n"))
        assert set(line) == set(JvmSnapshot.model_fields) - {"t_monotonic_s", "compilers_cpu_s"}
        assert ask(path, b"shutdown\n") == b"", "anything else ends the connection"
        assert ask(path, b"x" * 1000) == b"", "an endless line, too"
        client = AgentClient(path)
        first, second = client.snapshot(), client.snapshot()
        assert first is not None
        assert second is not None
        assert second.t_monotonic_s > first.t_monotonic_s
        assert second.threads_live == first.threads_live
        client.close()


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("case", "reason"),
    [("no path", "no socket path"), ("exists", "Address already in use"), ("too long", "too long")],
)
def test_a_socket_that_cannot_be_made_harms_nobody(
    jvm: Built, tmp_path: Path, case: str, reason: str
) -> None:
    path = tmp_path / "agent.sock"
    if case == "exists":
        path.write_text("mine", encoding="utf-8")
    if case == "too long":
        path = tmp_path / ("a" * (LONGEST_SOCKET_PATH + 1))
    with application(jvm, tmp_path, "" if case == "no path" else f"={path}") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.close()
        assert process.wait(30) == 0, "the application ended by itself, in order"
        complaint = process.stderr.read()
    assert complaint.startswith("agent: ")
    assert reason in complaint
    assert "the server runs without it" in complaint
    assert complaint.count("\n") == 1
    if case == "exists":
        assert path.read_text(encoding="utf-8") == "mine"


def test_a_missing_agent_is_no_reading(tmp_path: Path) -> None:
    client = AgentClient(tmp_path / "nobody.sock")
    assert client.snapshot() is None
    client.close()


@pytest.mark.parametrize("line", [b"", b"garbage\n", b"{}\n", b'{"uptime_s":1}\n', b"x" * 100])
def test_a_strange_line_is_no_reading(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "agent.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(60)
        client = AgentClient(path)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(line)

        thread = threading.Thread(target=serve)
        thread.start()
        assert client.snapshot() is None
        thread.join()
        client.close()
