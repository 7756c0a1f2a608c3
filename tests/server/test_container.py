"""An image as a server, by a stand-in for podman whose container is the toy server."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault, UsageError
from prony.host import cgroup
from prony.host.affinity import granted_cpus
from prony.host.proc import TICKS_PER_S
from prony.server.build import Built, build, lacking
from prony.server.catalogue import Catalogue
from prony.server.launch import launch
from prony.server.sockets import free_port, listeners
from tests.server.conftest import TOY
from tests.server.test_launch import gone, probe_of

ID = "4f" * 32
IMAGE = "image:localhost/app:1"
PODMAN = f"""#!{sys.executable}
import json, os, signal, sys
from pathlib import Path
here, words = Path(__file__).parent, sys.argv[1:]
with (here / "calls").open("a") as calls:
    calls.write(" ".join(words) + "\\n")
match words[0]:
    case "image":
        if not (here / "ports").exists():
            sys.exit("no such image")
        ports = json.loads((here / "ports").read_text())
        print(json.dumps([{{"Id": "sha256:" + "ab" * 32, "Config": {{"ExposedPorts": ports}}}}]))
    case "pull":
        sys.exit("Trying to pull\\nError: manifest unknown")
    case "create":
        print("{ID}")
    case "start":
        (here / "pid").write_text(str(os.getpid()))
        port = json.loads((here / "ports").read_text())
        port = min(int(one.split("/")[0]) for one in port if one.endswith("/tcp"))
        os.execv(sys.executable, [sys.executable, {str(TOY)!r}, "127.0.0.1", str(port)])
    case "rm":
        print(words[-1])
    case "inspect":
        print((here / "pid").read_text() if (here / "pid").exists() else 0)
"""


@pytest.fixture
def podman(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The stand-in is the only program on the PATH; what it was called with."""
    assert not cache.exists()
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "podman").write_text(PODMAN)
    (folder / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return lambda: (folder / "calls").read_text().splitlines()


def built(tmp_path: Path, ports: str) -> Built:
    (tmp_path / "bin" / "ports").write_text(ports)
    (one,) = build([Catalogue.load([]).resolve(IMAGE)])
    return one


def test_an_image_is_started_watched_and_removed_by_its_id(
    tmp_path: Path, podman: Callable[[], list[str]]
) -> None:
    port, cpus = free_port("127.0.0.1"), (min(granted_cpus()),)
    app = built(tmp_path, f'{{"{port}/tcp": {{}}, "1/udp": {{}}, "65535/tcp": {{}}}}')
    assert (app.spec.name, app.key, app.versions) == ("localhost/app:1", "ab" * 8, {"image": "ab" * 6})
    with launch(app, cpus=cpus) as server:
        server.wait_ready(probe_of(server), 30)
        pid = int((tmp_path / "bin" / "pid").read_text())
        assert (server.pid, server.pids(), server.port) == (pid, (pid,), port)
        assert server.identity.owns_port is True
        sample = server.sample()
        assert sample is not None
        assert sample.cpu_s > 0
        assert server.set_affinity(cpus) is True
        assert server.set_affinity((*cpus, max(cpus) + 1)) is False
    assert server.clean is True
    assert gone(pid)
    assert listeners(port, "127.0.0.1") == []
    create = f"create --rm --network host --log-driver none --cpuset-cpus {cpus[0]} {'ab' * 8}"
    assert [call for call in podman() if not call.startswith(("image", "inspect"))] == [
        create,
        f"start --attach --sig-proxy {ID}",
        f"rm --force {ID}",
    ]


def test_an_image_that_ends_at_once_is_removed_and_its_last_lines_are_said(
    tmp_path: Path, podman: Callable[[], list[str]]
) -> None:
    program = tmp_path / "bin" / "podman"
    program.write_text(PODMAN.replace("os.execv(", "print('no config', flush=True); sys.exit(3); os.execv("))
    app = built(tmp_path, f'{{"{free_port("127.0.0.1")}/tcp": {{}}}}')
    server = launch(app)
    with server, pytest.raises(EnvironmentFault, match=r"localhost/app:1 ended .* exit code 3") as fault:
        server.wait_ready(probe_of(server), 30)
    assert fault.value.details == "no config"
    assert podman()[-1] == f"rm --force {ID}"


def test_what_is_no_image_says_so(
    tmp_path: Path, podman: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = Catalogue.load([]).resolve(IMAGE)
    with pytest.raises(EnvironmentFault, match="pull localhost/app:1: Error: manifest unknown"):
        build([spec])
    assert podman()[-1] == "pull localhost/app:1"
    with pytest.raises(EnvironmentFault, match="manifest unknown"):
        build([Catalogue.load([]).resolve("image:app:1")])
    assert podman()[-1] == "pull docker.io/library/app:1"
    with pytest.raises(EnvironmentFault, match="exposes no TCP port; add EXPOSE"):
        built(tmp_path, "{}")
    for word in ("image:", "image:a b", "image:--privileged"):
        with pytest.raises(UsageError, match="names no image"):
            Catalogue.load([]).resolve(word)
    assert lacking(spec) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "podman or docker" in str(lacking(spec))


V1_FILES = {
    "cpuacct/a/libpod-{id}/cpuacct.usage": "3000000000",
    "cpuacct/a/libpod-{id}/cpuacct.stat": f"user {2 * TICKS_PER_S}\nsystem {TICKS_PER_S}\n",
    "memory/a/libpod-{id}/memory.usage_in_bytes": "5000",
    "memory/a/libpod-{id}/memory.max_usage_in_bytes": "7000",
    "memory/a/libpod-{id}/memory.stat": "cache 1\ninactive_file 1\ntotal_inactive_file 1000\n",
}
V2_FILES = {
    "a/docker-{id}.scope/cpu.stat": "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\n",
    "a/docker-{id}.scope/memory.current": "5000",
    "a/docker-{id}.scope/memory.peak": "7000",
    "a/docker-{id}.scope/memory.stat": "anon 9\ninactive_file 1000\n",
}


@pytest.mark.parametrize(
    ("group", "mounts", "files"),
    [
        (
            "5:cpuacct:/a/libpod-{id}\n4:memory:/a/libpod-{id}\n0::/\n",
            ("cgroup cgroup rw,cpuacct", "cgroup cgroup rw,memory"),
            V1_FILES,
        ),
        ("0::/a/docker-{id}.scope/below\n", ("cgroup2 cgroup2 rw",), V2_FILES),
    ],
    ids=["v1", "v2"],
)
def test_cpu_time_and_memory_are_those_of_the_containers_own_group(
    group: str, mounts: tuple[str, ...], files: dict[str, str], tmp_path: Path
) -> None:
    for at, mount in enumerate(mounts):
        point = f"/{mount.rpartition(',')[2]}" if "," in mount else "/"
        line = f"{at} 1 0:2 / {point} rw - {mount}\n"
        (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
        with (tmp_path / "proc/self/mountinfo").open("a") as info:
            info.write(line)
    (tmp_path / "proc/7").mkdir()
    (tmp_path / "proc/7/cgroup").write_text(group.format(id=ID))
    for name, text in files.items():
        file = tmp_path / name.format(id=ID)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert cgroup.use(7, ID, tmp_path) == cgroup.GroupUse(2.0, 1.0, 4000, 7000)
    assert cgroup.use(7, "another", tmp_path) is None, "the group of others says nothing of it"
