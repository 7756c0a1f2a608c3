"""Hosts for the tests: network namespaces joined by a bridge, each with a link of its own.

    with Rig(tmp_path) as rig:
        rig.sshd("load1")                   # a real sshd; `ssh load1` with rig.home as HOME reaches it
        worker = rig.start("load1", [...])  # a process there; clock_ahead_s=3 moves its monotonic clock
        rig.rate("load1", 100e6)            # both ways; rig.way("load1", delay_ms=5, loss=0.01)
        rig.down("load1"), rig.up("load1")  # its link

When the rig is closed, every process in its namespaces is killed and the namespaces are gone. What a killed
test run left over is removed by the next rig. Must not know Prony.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Literal

import pytest

HOSTS = ("lab", "server", "load1", "load2")
NETWORK = "10.77.0"
SSH_PORT = 2222
PREFIX = "prony-rig"
NEEDED = ("ip", "tc", "ethtool", "unshare", "ssh-keygen", "sshd")
WIRE = Path(__file__).with_name("wire.py")
Carrier = Literal["netem", "wire"]
GONE_S = 5.0
"""A killed process is gone after this; one in the kernel's hands may take a moment."""


@cache
def impossible() -> str | None:
    """Why this user or this machine may not make a rig, whatever is installed; None where it may."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if _program("ip") is None:
        return None  # that a program is missing is said by the marker `needs`
    name = f"{PREFIX}-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, timeout=10)
    if made.returncode:
        return f"no network namespace: {made.stderr.strip()}"
    _ip("netns", "del", name)
    return None


@cache
def no_netem() -> str | None:
    """Why `tc netem` cannot be used here, as the kernel says it; None where it can."""
    name = f"{PREFIX}-{os.getpid()}-netem"
    _ip("netns", "add", name)
    try:
        words = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
        done = subprocess.run(
            ["ip", "netns", "exec", name, *words], capture_output=True, text=True, timeout=10
        )
    finally:
        _ip("netns", "del", name)
    return f"tc netem: {done.stderr.strip()}" if done.returncode else None


def needs_rig() -> list[pytest.MarkDecorator]:
    """For `pytestmark`: programs that are missing fail in CI; a runner that allows no namespaces does not."""
    why_not = impossible()
    return [pytest.mark.needs(*NEEDED), pytest.mark.skipif(why_not is not None, reason=str(why_not))]


class Rig:
    """The hosts of HOSTS with addresses 10.77.0.1 and up, in the order of that list."""

    def __init__(self, folder: Path, hosts: Sequence[str] = HOSTS) -> None:
        self.hosts = tuple(hosts)
        self.folder = folder
        self.home = folder / "home"
        self._base = f"{PREFIX}-{os.getpid()}"
        self._switch = f"{self._base}-switch"
        self._started: list[subprocess.Popen[bytes]] = []
        self._has_ssh: list[str] = []

    def __enter__(self) -> Rig:
        _remove_left_over()
        try:
            _ip("netns", "add", self._switch)
            self._in_switch("ip", "link", "add", "bridge", "type", "bridge")
            self._in_switch("ip", "link", "set", "bridge", "up")
            for host in self.hosts:
                self._join(host)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill what runs in the namespaces and remove them. Harmless when called twice."""
        for name in self._namespaces():
            remove(name)
        for process in self._started:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait(GONE_S)

    def _namespaces(self) -> list[str]:
        return [name for name in _all_namespaces() if name.startswith(f"{self._base}-")]

    def namespace(self, host: str) -> str:
        return f"{self._base}-{host}"

    def address(self, host: str) -> str:
        return f"{NETWORK}.{self.hosts.index(host) + 1}"

    def _join(self, host: str) -> None:
        """A veth pair: `eth0` in the host's namespace, a port named after the host on the bridge."""
        space = self.namespace(host)
        _ip("netns", "add", space)
        _ip("-n", self._switch, "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", space)
        self._in_switch("ip", "link", "set", host, "master", "bridge", "up")
        _ip("-n", space, "link", "set", "lo", "up")
        _ip("-n", space, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        _ip("-n", space, "link", "set", "eth0", "up")

    def _in_switch(self, *words: str) -> None:
        _run("ip", "netns", "exec", self._switch, *words)

    # Processes

    def command(self, host: str, words: Sequence[str], *, clock_ahead_s: int = 0) -> list[str]:
        """The words that run a command on a host. `clock_ahead_s` moves CLOCK_MONOTONIC and CLOCK_BOOTTIME of
        the process and its children (a time namespace).
        """
        ahead = str(clock_ahead_s)
        other = ["unshare", "--time", "--monotonic", ahead, "--boottime", ahead] if clock_ahead_s else []
        return ["ip", "netns", "exec", self.namespace(host), *other, *words]

    def start(
        self,
        host: str,
        words: Sequence[str],
        *,
        clock_ahead_s: int = 0,
        env: Mapping[str, str] | None = None,
        output: Path | None = None,
        errors: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a process on a host, in a group of its own; stdout goes to `output`, stderr to `errors` or to
        the same file. `Popen.pid` is the process itself, but with a moved clock its parent: see `processes`.
        """
        nowhere = Path(os.devnull)
        with (output or nowhere).open("ab") as out, (errors or output or nowhere).open("ab") as err:
            process = subprocess.Popen(
                self.command(host, words, clock_ahead_s=clock_ahead_s),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self.environment(env),
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def run(
        self,
        host: str,
        words: Sequence[str],
        *,
        timeout_s: float = 30.0,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a host until it ends."""
        return subprocess.run(
            self.command(host, words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=self.environment(env),
        )

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """That of the tests with the rig's HOME."""
        self.home.mkdir(parents=True, exist_ok=True)
        return {**os.environ, "HOME": str(self.home), **(more or {})}

    def processes(self, host: str, having: str = "") -> list[int]:
        """The processes of a host whose command line has these words, oldest first."""
        listed = subprocess.run(
            ["ip", "netns", "pids", self.namespace(host)], capture_output=True, text=True, timeout=10
        )
        return sorted(pid for pid in map(int, listed.stdout.split()) if having in command_line(pid))

    def kill(self, host: str, having: str) -> list[int]:
        """SIGKILL to the processes of a host whose command line has these words; which they were."""
        found = self.processes(host, having)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return found

    def left(self, host: str) -> list[str]:
        """Command lines of what runs on a host, sshd aside."""
        lines = (command_line(pid) for pid in self.processes(host))
        return [line for line in lines if line and "sshd" not in line.split()[0]]

    # Links

    def down(self, host: str) -> None:
        """Pull the cable, on the switch's side."""
        self._in_switch("ip", "link", "set", host, "down")

    def up(self, host: str) -> None:
        self._in_switch("ip", "link", "set", host, "up")

    def rate(self, host: str, bits_per_s: float) -> None:
        """A link that carries this much each way, with 20 ms of buffer."""
        shaper = ["root", "tbf", "rate", f"{bits_per_s:.0f}bit", "burst", "32kb", "latency", "20ms"]
        _run(*self.command(host, ["tc", "qdisc", "replace", "dev", "eth0", *shaper]))
        self._in_switch("tc", "qdisc", "replace", "dev", host, *shaper)

    def way(
        self,
        host: str,
        *,
        delay_ms: float = 0.0,
        loss: float = 0.0,
        by: Carrier | None = None,
    ) -> None:
        """Each packet takes this long to the host and from it, and is lost with this probability: `tc netem`,
        or, where the kernel has none, a process that moves the packets (wire.py). Once for a host.
        """
        if delay_ms <= 0 and loss <= 0:
            raise ValueError("a way needs a delay or a loss")
        if (by or ("wire" if no_netem() else "netem")) == "wire":
            self._wire(host, delay_ms, loss)
            return
        words = ["root", "netem", "delay", f"{delay_ms}ms", "loss", f"{loss:%}", "limit", "100000"]
        _run(*self.command(host, ["tc", "qdisc", "replace", "dev", "eth0", *words]))
        self._in_switch("tc", "qdisc", "replace", "dev", host, *words)

    def _wire(self, host: str, delay_ms: float, loss: float) -> None:
        """Takes the host's port from the bridge, and moves packets between it and a new one."""
        near, far = f"{host}-near", f"{host}-far"
        self._in_switch("ip", "link", "add", near, "type", "veth", "peer", "name", far)
        self._in_switch("ip", "link", "set", host, "nomaster")
        self._in_switch("ip", "link", "set", near, "up")
        self._in_switch("ip", "link", "set", far, "master", "bridge", "up")
        # Packets that the kernel would cut, join or sum up later must be as they are on a wire.
        for name in self.hosts:
            _run(*self.command(name, ["ethtool", "-K", "eth0", *_AS_ON_A_WIRE]))
        for port in (host, near, far):
            self._in_switch("ethtool", "-K", port, *_AS_ON_A_WIRE)
        words = [sys.executable, "-u", str(WIRE), host, near, str(delay_ms), str(loss)]
        wire = subprocess.Popen(
            ["ip", "netns", "exec", self._switch, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._started.append(wire)
        assert wire.stdout is not None
        with wire.stdout:
            assert wire.stdout.readline() == b"ready\n", "the wire did not start"

    # ssh

    def sshd(self, host: str) -> None:
        """A real sshd on port 2222 of the host that lets in the key of `home`; `ssh HOST` reaches it."""
        ssh = self._client_files()
        folder = self.folder / f"sshd-{host}"
        folder.mkdir()
        Path("/run/sshd").mkdir(exist_ok=True)
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "host"))
        settings = {
            "Port": SSH_PORT,
            "ListenAddress": self.address(host),
            "HostKey": folder / "host",
            "PidFile": folder / "pid",
            "AuthorizedKeysFile": ssh / "id_ed25519.pub",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "StrictModes": "no",
            "UsePAM": "no",
            "Subsystem": "sftp internal-sftp",
        }
        config = folder / "sshd_config"
        config.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        log = folder / "log"
        self.start(host, [str(_program("sshd")), "-D", "-e", "-f", str(config)], output=log)
        self._has_ssh.append(host)
        self._write_client_files(ssh)
        self.until_listening(host, SSH_PORT)

    def _client_files(self) -> Path:
        ssh = self.home / ".ssh"
        if not ssh.exists():
            ssh.mkdir(parents=True, mode=0o700)
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(ssh / "id_ed25519"))
        return ssh

    def _write_client_files(self, ssh: Path) -> None:
        hosts = [
            f"Host {host}\n  HostName {self.address(host)}\n  Port {SSH_PORT}\n  User root\n"
            f"  IdentityFile {ssh}/id_ed25519\n  UserKnownHostsFile {ssh}/known_hosts\n"
            for host in self._has_ssh
        ]
        (ssh / "config").write_text("".join(hosts))
        keys = [
            f"[{self.address(host)}]:{SSH_PORT} {(self.folder / f'sshd-{host}' / 'host.pub').read_text()}"
            for host in self._has_ssh
        ]
        (ssh / "known_hosts").write_text("".join(keys))

    def until_listening(self, host: str, port: int) -> None:
        """Wait for a socket that the laboratory can connect to."""
        with self.inside("lab"):
            for _ in range(200):
                with suppress(OSError), socket.create_connection((self.address(host), port), timeout=1):
                    return
                time.sleep(0.05)
        raise AssertionError(f"nothing listens on {host}:{port}")

    @contextmanager
    def inside(self, host: str) -> Iterator[None]:
        """This thread's sockets are of that host."""
        here_path, there_path = Path("/proc/thread-self/ns/net"), Path(f"/run/netns/{self.namespace(host)}")
        with here_path.open() as here, there_path.open() as there:
            _set_namespace(there.fileno())
            try:
                yield
            finally:
                _set_namespace(here.fileno())


_AS_ON_A_WIRE = ("tx", "off", "tso", "off", "gso", "off", "gro", "off")


def _set_namespace(descriptor: int) -> None:
    import ctypes  # os.setns is there from Python 3.12 on

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=20)
    if done.returncode:
        raise AssertionError(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")


def _ip(*words: str) -> None:
    _run("ip", *words)


def _all_namespaces() -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, timeout=10)
    return [line.split()[0] for line in listed.stdout.splitlines() if line]


def remove(name: str) -> None:
    """Kill what runs in a namespace of a rig, and remove it."""
    until = time.monotonic() + GONE_S
    while time.monotonic() < until:
        listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, timeout=10)
        pids = [int(word) for word in listed.stdout.split()]
        if not pids:
            break
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    try:
        _ip("netns", "del", name)
    except AssertionError:
        if name in _all_namespaces():  # else another test run has just removed it
            raise


def _remove_left_over() -> None:
    """Rigs whose test run is gone."""
    for name in _all_namespaces():
        words = name.removeprefix(f"{PREFIX}-").split("-")
        if name.startswith(f"{PREFIX}-") and words[0].isdecimal() and not Path(f"/proc/{words[0]}").exists():
            remove(name)


def command_line(pid: int) -> str:
    """Empty for a process that is gone, a zombie included."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""
