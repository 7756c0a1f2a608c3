"""Backing services: started before their server, watched beside it, gone after it, missed with a sentence."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault, ExitCode, UsageError
from prony.server import proc
from prony.server.build import Built, build, lacking
from prony.server.launch import launch
from prony.server.probe import status_probe
from prony.server.sockets import listeners

Toy = Callable[..., Built]
KEEPER = """
import socket, sys
host, port, lines = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
if "broken" in lines:
    print("the keeper is broken", file=sys.stderr)
    sys.exit(5)
with socket.create_server((host, port)) as listening:
    while True:
        connection, _ = listening.accept()
        with connection:
            connection.recv(100)
            connection.sendall(b"NO\\r\\n" if "mute" in lines else b"VERSION 1.2.3\\r\\n")
"""
needs_memcached = pytest.mark.needs("memcached")


@pytest.fixture
def keeper(tmp_path: Path) -> Callable[..., None]:
    """`keeper("broken")`: a service of that name in the toy's catalogue, run with these words."""

    def make(*words: str, program: str = sys.executable) -> None:
        folder = tmp_path / "servers" / "services"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "keeper.py").write_text(KEEPER, encoding="utf-8")
        more = "".join(f", {word}" for word in words)
        (folder / "keeper.yaml").write_text(
            f'command: ["{program}", "{folder}/keeper.py", "{{host}}", "{{port}}"{more}]\n'
            'ready: {send: "version\\r\\n", expect: "VERSION (\\\\S+)"}\n'
            "package: keeper-of-things\n",
            encoding="utf-8",
        )

    return make


def test_a_service_lives_as_long_as_its_server(toy: Toy, keeper: Callable[..., None]) -> None:
    keeper()
    built = toy(services="[keeper]", env='{KEEPER: "{keeper.host}:{keeper.port}"}')
    cpu = min(os.sched_getaffinity(0))
    with launch(built, cpus=[cpu]) as server:
        server.wait_ready(status_probe(server.host, server.port), 30)
        (service,) = server.services
        assert service.version == "1.2.3"
        assert service.started_monotonic_s < server.started_monotonic_s
        environ = Path(f"/proc/{server.pid}/environ").read_bytes().split(b"\0")
        assert f"KEEPER=127.0.0.1:{service.port}".encode() in environ
        assert service.port != server.port
        assert not set(service.pids()) & set(server.pids()), "it is not counted as the server's"
        assert server.service_pids() == set(service.pids())
        assert os.sched_getaffinity(service.pid) == {cpu}
        opened = server.service_samples()["keeper"]
        use = service.use(opened, server.service_samples()["keeper"])
        assert use.shares_server_cpus
        assert use.cpus == (cpu,)
        assert use.cpu_s is not None
        assert use.rss_end_bytes
        assert server.ended_service() is None
    assert server.clean
    assert service.clean
    assert not proc.alive(service.pid)
    assert not listeners(service.port, service.host)
    assert not service.scratch.exists()


def test_a_service_has_the_cpus_that_are_set_apart(toy: Toy, keeper: Callable[..., None]) -> None:
    keeper()
    first, *_, last = sorted(os.sched_getaffinity(0)) * 2
    with launch(toy(services="[keeper]"), cpus=[first], service_cpus=[last]) as server:
        (service,) = server.services
        assert os.sched_getaffinity(service.pid) == {last}
        assert not service.use().shares_server_cpus


def test_a_service_that_dies_is_noticed(toy: Toy, keeper: Callable[..., None]) -> None:
    keeper()
    with launch(toy(services="[keeper]")) as server:
        server.wait_ready(status_probe(server.host, server.port), 30)
        os.kill(server.services[0].pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while server.ended_service() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.ended_service() == "keeper: killed by SIGKILL"
        assert server.alive(), "the server itself lives"
    assert server.clean


def test_a_service_that_dies_before_its_server_is_ready(toy: Toy, keeper: Callable[..., None]) -> None:
    keeper()
    with launch(toy("--silent", services="[keeper]")) as server:
        os.kill(server.services[0].pid, signal.SIGKILL)
        with pytest.raises(EnvironmentFault, match=r"keeper .* toy .*SIGKILL"):
            server.wait_ready(status_probe(server.host, server.port), 30)


def test_a_service_that_cannot_start_says_why(toy: Toy, keeper: Callable[..., None]) -> None:
    keeper("broken")
    with pytest.raises(EnvironmentFault, match=r"keeper .*exit code 5") as fault:
        launch(toy(services="[keeper]"))
    assert fault.value.details is not None
    assert "the keeper is broken" in fault.value.details


def test_a_service_that_never_answers_rightly_is_stopped(
    toy: Toy, keeper: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper("mute")
    monkeypatch.setattr("prony.server.service.RunningService.wait_ready.__defaults__", (1.0,))
    with pytest.raises(EnvironmentFault, match=r"keeper .* 1 s: .*VERSION") as fault:
        launch(toy(services="[keeper]"))
    log = re.search(r"\(log: (.*)\)", str(fault.value))
    assert log is not None
    left = [pid for pid in Path("/proc").iterdir() if pid.name.isdigit() and _runs(pid, "keeper.py", "mute")]
    assert left == []


def _runs(process: Path, *words: str) -> bool:
    try:
        line = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    return all(any(part.endswith(word) for part in line) for word in words)


def test_a_missing_program_says_how_to_install_it_before_anything_is_built(
    toy: Toy, keeper: Callable[..., None]
) -> None:
    keeper(program="no-such-keeper")
    with pytest.raises(EnvironmentFault, match=r"'no-such-keeper'.*apt-get install keeper") as f:
        build([toy(services="[keeper]").spec])
    assert f.value.exit_code is ExitCode.ENVIRONMENT
    assert "\n" not in str(f.value)
    assert lacking(toy(services="[keeper]").spec) == str(f.value), "a plan says the same beforehand"
    assert lacking(toy().spec) is None


def test_an_unknown_service_names_the_known_ones(toy: Toy, keeper: Callable[..., None]) -> None:
    keeper()
    with pytest.raises(UsageError, match=r"'keepr'.*'keeper'.*memcached"):
        build([toy(services="[keepr]").spec])


def test_a_server_that_cannot_start_leaves_no_service(toy: Toy, keeper: Callable[..., None]) -> None:
    keeper("lonely")
    spec = toy(services="[keeper]").spec
    with pytest.raises(EnvironmentFault, match="no-such-server"):
        launch(Built(spec.model_copy(update={"command": ("no-such-server",)})))
    left = [
        pid for pid in Path("/proc").iterdir() if pid.name.isdigit() and _runs(pid, "keeper.py", "lonely")
    ]
    assert left == []


@needs_memcached
def test_memcached_is_fresh_every_time(toy: Toy) -> None:
    import socket

    for _ in range(2):
        with launch(toy(services="[memcached]")) as server:
            (service,) = server.services
            assert service.version is not None
            assert service.version.startswith("1.")
            with socket.create_connection((service.host, service.port), 5) as connection:
                connection.sendall(b"get a\r\n")
                assert connection.recv(100) == b"END\r\n"
                connection.sendall(b"set a 0 100 1\r\nx\r\n")
                assert connection.recv(100) == b"STORED\r\n"
        assert server.clean
