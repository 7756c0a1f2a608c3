"""hosts.yaml: what it becomes, and what is said of what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from prony.cli.main import app
from prony.errors import UsageError
from prony_hosts.certificates import CA_KEY, LAB, ON_HOST, identity, make
from prony_hosts.file import read, ssh_parts, transport_fault

LAB_LINE = "lab: {scheduler: 'tcp://127.0.0.1:8786'}\n"


def refusal(folder: Path, text: str) -> str:
    file = folder / "hosts.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as fault:
        read(file)
    return str(fault.value).removeprefix(f"{file}:")


def test_the_file_of_the_page(tmp_path: Path) -> None:
    make(tmp_path / "certs")
    file = tmp_path / "hosts.yaml"
    file.write_text(
        "lab: {scheduler: 'tls://10.0.0.1:8786', certificates: ./certs}\n"
        "server: {ssh: perf@10.0.0.2, cpus: 0-15}\n"
        "load: [{ssh: perf@10.0.0.3, link: 10 Gbit/s}, {ssh: perf@10.0.0.4, weight: 2, name: big}]\n",
        encoding="utf-8",
    )
    found = read(file)
    assert [(host.name, host.role, host.weight) for host in found.hosts()] == [
        ("10.0.0.2", "server", 1.0),
        ("10.0.0.3", "load", 1.0),
        ("big", "load", 2.0),
    ]
    assert found.load[0].link == 10e9
    assert found.lab.certificates == tmp_path / "certs"


def test_two_groups_of_servers_are_called_by_their_group(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(
        f"{LAB_LINE}servers: {{x86: {{ssh: a}}, arm: {{connect: b}}}}\nload: [{{connect: c}}]\n",
        encoding="utf-8",
    )
    found = read(file).hosts()
    assert [(host.group, host.name, host.worker) for host in found] == [
        ("x86", "x86", "x86"),
        ("arm", "arm", "b"),
        ("", "c", "c"),
    ]


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("load: [{ssh: a, wight: 2}]", "'load.0.wight'"),
        ("load: [{ssh: a, connect: b}]", "connect: NAME"),
        ("load: [{ssh: a, cpus: 3-x}]", "0-3,8"),
        ("load: []", "'load'"),
        ("load: [{ssh: a, weight: 0}]", "'load.0.weight'"),
        ("load: [{ssh: a, link: fast}]", "10 Gbit/s"),
        ("load: [{ssh: x@a}, {ssh: y@a}]", "'a'"),
        ("server: {ssh: a}\nservers: {x: {ssh: b}}\nload: [{ssh: c}]", "servers:"),
        ("server: {ssh: a}", "'load'"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, rest: str, said: str) -> None:
    assert said in refusal(tmp_path, LAB_LINE + rest)


@pytest.mark.parametrize(
    ("lab", "said"),
    [
        ("{scheduler: 'tcp://10.0.0.1:8786'}", "tcp:// beyond loopback"),
        ("{scheduler: 'tls://10.0.0.1:8786'}", "tls:// needs certificates"),
        ("{scheduler: 'tls://10.0.0.1:8786', certificates: none}", "does not exist; create it"),
        ("{scheduler: 10.0.0.1}", "expected tls://ADDRESS:PORT"),
        ("{scheduler: 'tls://10.0.0.1:99999', certificates: .}", "expected tls://ADDRESS:PORT"),
    ],
)
def test_how_the_scheduler_may_be_reached(tmp_path: Path, lab: str, said: str) -> None:
    assert said in refusal(tmp_path, f"lab: {lab}\nload: [{{ssh: a}}]\n")


def test_plain_tcp_beyond_loopback_takes_the_users_word() -> None:
    assert transport_fault("tcp://10.0.0.1:8786", certificates=False, insecure=True) is None
    assert transport_fault("tcp://[::1]:8786", certificates=False, insecure=False) is None


@pytest.mark.parametrize(
    "place",
    ["127.attacker.example", "localhost.corp.example", "[::1:2:3:4]", "0.0.0.0", "[::]", "[::ffff:10.0.0.1]"],
)
def test_what_only_looks_like_loopback_is_not(place: str) -> None:
    fault = transport_fault(f"tcp://{place}:8786", certificates=False, insecure=False)
    assert fault is not None
    assert "tcp://" in fault
    for loopback in ("localhost", "127.3.2.1"):
        assert transport_fault(f"tcp://{loopback}:8786", certificates=False, insecure=False) is None


def test_a_worker_on_plain_tcp_does_not_listen_beyond_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refusal(tmp_path, f"{LAB_LINE}load: [{{connect: a, listen: 0.0.0.0}}]\n")
    assert "--insecure" in said
    monkeypatch.setattr("prony_hosts.process.serve", lambda *_: None)
    words = ["hosts", "worker", "tcp://127.0.0.1:8786", "--listen", "0.0.0.0"]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, UsageError)
    assert "--insecure" in str(done.exception)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", (None, "a", None)),
        ("perf@a:2222", ("perf", "a", 2222)),
        ("perf@[fd00::1]:2222", ("perf", "fd00::1", 2222)),
        ("fd00::1", (None, "fd00::1", None)),
    ],
)
def test_user_host_and_port_of_ssh(text: str, parts: tuple[str | None, str, int | None]) -> None:
    assert ssh_parts(text) == parts


def test_certificates_are_the_owners_and_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    files = make(folder)
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert (folder / CA_KEY) in files
    with pytest.raises(UsageError, match=r"ca\.\w+ exists"):
        make(folder)
    (folder / LAB).chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        identity(folder, LAB)
    (folder / ON_HOST).unlink()
    with pytest.raises(UsageError, match=r"host\.pem"):
        identity(folder, ON_HOST)


def test_a_certificate_that_ran_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony_hosts.certificates.VALID_DAYS", 0)
    make(tmp_path / "certs")
    with pytest.raises(UsageError, match=r"\d{4}-\d\d-\d\d"):
        identity(tmp_path / "certs", LAB)
