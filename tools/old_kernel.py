"""The engine on kernels that this host does not run: `tools/old_kernel.py [RELEASE…]` boots those of these
Debian releases (bookworm has 6.1, trixie 6.12) under emulation, a minute or two each.

On each: the tests of `net`, a closed loop of 2 connections by either driver, and connections that are closed
while another one stays open, compared with what the server counts. Needs Debian on x86-64. The kernels are
downloaded by apt from this host's archive, which checks signatures, and are gone afterwards.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MANIFEST = ROOT / "engine" / "Cargo.toml"
RELEASES = ("bookworm", "trixie")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
KERNEL, SHELL = "linux-image-cloud-amd64", "busybox-static"
LIMIT_S = 600
MEMORY_MIB = 1024
DRIVERS = ("io_uring", "epoll")
SERVER = "127.0.0.1:8080"
SLOW_CLOCK = "a_read_of_a_stamped_connection"
"""A stamp has no place where reading the clocks takes longer than 2 µs, as it does under emulation."""
CLOSED = 20
"""Connections that each of two users closes while a third one waits for its response."""
WAITING_S = 20
INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
ip link set lo up
echo "@kernel $(uname -r)"
/tests net:: --test-threads 1 --skip {SLOW_CLOCK}
echo "@tests $?"
/engine serve --listen {SERVER} > /dev/null &
sleep 2
for plan in $(ls /plans); do
  (cat /plans/$plan; sleep {2 * WAITING_S}) | /engine run > /out &
  case $plan in *-close) sleep {WAITING_S - 5};; *) wait $!;; esac
  echo "@during $plan $(wget -q -O - http://{SERVER}/__prony/stats)"
  wait $!
  echo "@finished $plan $(grep '"event":"finished"' /out)"
done
echo "@end"
poweroff -f
"""


class Failed(Exception):
    """What went wrong; `str()` says it in a sentence."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """The output of a command. Raises Failed."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        raise Failed(f"{words[0]} was not found: apt-get install apt dpkg qemu-system-x86, and Rust")
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{words[0]} failed with {done.returncode}; see above")
    return done.stdout


def unpacked(release: str, folder: Path) -> Path:
    """Where kernel and shell of a release are. Raises Failed."""
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True)
    uris = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Component: main")
    mirror = next((uri for uri in uris.split() if uri.rstrip("/").endswith("/debian")), None)
    if mirror is None:
        raise Failed("apt knows no archive of Debian: this needs a Debian host")
    sources = folder / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {mirror} {release} main\n", encoding="utf-8")
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": folder,
        "APT::Sandbox::User": "root",
        "APT::Architecture": "amd64",
        "Acquire::Languages": "none",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    run("apt-get", *options, "-qq", "update")
    kernel = re.search(r"Depends: (linux-image-\S+)", run("apt-cache", *options, "depends", KERNEL))
    if kernel is None:
        raise Failed(f"{KERNEL} of {release} depends on no kernel")
    run("apt-get", *options, "-qq", "download", kernel[1], SHELL, cwd=folder)
    for package in folder.glob("*.deb"):
        run("dpkg-deb", "-x", package, folder / "root")
    return folder / "root"


def built() -> dict[str, Path]:
    """The engine, and the tests of its library. Raises Failed."""
    cargo = (
        "--quiet",
        "--locked",
        "--message-format=json",
        f"--manifest-path={MANIFEST}",
        "--package=prony-engine",
    )
    messages = {
        "engine": run("cargo", "build", "--profile=setup", "--bin=prony-engine", *cargo),
        "tests": run("cargo", "test", "--lib", "--no-run", *cargo),
    }
    found = {}
    for name, lines in messages.items():
        programs = [json.loads(line).get("executable") for line in lines.splitlines()]
        found[name] = Path(next(program for program in programs if program))
    return found


def plans() -> dict[str, dict[str, Any]]:
    """By name: two users for a second, and two users who close while a third one waits."""
    found: dict[str, dict[str, Any]] = {}
    for driver in DRIVERS:
        base = {
            "version": 1,
            "target": {"url": f"http://{SERVER}"},
            "driver": driver,
            "threads": {"cpus": []},
        }
        steps = {name: [{"path": path}] for name, path in (("now", "/"), ("later", f"/?delay={WAITING_S}s"))}
        scenarios = [{"name": name, "steps": walked} for name, walked in steps.items()]
        closing = {"name": "closing", "users": 2, "iterations_per_user": CLOSED, "scenarios": ["now"]}
        waiting = {"name": "waiting", "users": 1, "iterations_per_user": 1, "scenarios": ["later"]}
        found[f"{driver}-loop"] = base | {
            "load": {"model": "closed", "users": 2},
            "scenarios": scenarios[:1],
            "stop": {"after_ms": 1000},
        }
        found[f"{driver}-close"] = base | {
            "load": {"model": "closed", "populations": [closing, waiting]},
            "connection": {"reuse": "per_request"},
            "scenarios": scenarios,
            "stop": {"after_ms": 3 * WAITING_S * 1000},
        }
    return found


def archive(folder: Path, to: Path) -> None:
    """Writes a folder as an initramfs: cpio in the format `newc` (Linux: early-userspace/buffer-format)."""
    with gzip.open(to, "wb", compresslevel=1) as out:

        def entry(name: str, mode: int, data: bytes) -> None:
            head = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
            start = b"070701" + "".join(f"{number:08x}" for number in head).encode() + name.encode() + b"\0"
            for part in (start, data):
                out.write(part + b"\0" * (-len(part) % 4))

        for path in sorted(folder.rglob("*")):
            name, mode = str(path.relative_to(folder)), path.stat().st_mode
            entry(name, mode, path.read_bytes() if stat.S_ISREG(mode) else b"")
        entry("TRAILER!!!", 0, b"")


def system(folder: Path, unpacked_in: Path, programs: dict[str, Path]) -> None:
    """A root file system that boots, runs everything and turns itself off."""
    for name in ("proc", "sys", "dev", "bin", "plans", "tmp"):
        (folder / name).mkdir(parents=True)
    shutil.copy(next(unpacked_in.rglob("bin/busybox")), folder / "bin")
    for name, program in programs.items():
        run("objcopy", "--strip-debug", program, folder / name)
        for library in re.findall(r"/\S+", run("ldd", program)):
            to = folder / library.lstrip("/")
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, to)
    for name, value in plans().items():
        (folder / "plans" / name).write_text(json.dumps(value) + "\n", encoding="utf-8")
    (folder / "init").write_text(INIT, encoding="utf-8")
    (folder / "init").chmod(0o755)


def boot(kernel: Path, initramfs: Path) -> str:
    """What the system prints until it is off. Raises Failed."""
    machine = "-nodefaults -no-reboot -display none -serial stdio -accel tcg -cpu max"
    command = ["qemu-system-x86_64", *machine.split(), "-m", str(MEMORY_MIB)]
    command += ["-kernel", str(kernel), "-initrd", str(initramfs), "-append", "console=ttyS0 quiet panic=-1"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise Failed(
            f"the emulated system was not off after {LIMIT_S} s:\n{str(late.output)[-2000:]}"
        ) from None
    return done.stdout


def faults(output: str) -> list[str]:
    """What a system printed that is not right, a sentence each."""
    said = [line.strip()[1:].split(" ", 2) for line in output.splitlines() if line.startswith("@")]
    if ["end"] not in said:
        return ["it did not come to its end"]
    found = [] if ["tests", "0"] in said else ["tests of net failed"]
    events = {(words[0], words[1]): json.loads(words[2]) for words in said if len(words) == 3}
    before = 0
    for plan in sorted(plans()):
        during, totals = events["during", plan], events["finished", plan]["totals"]
        completed, failed, abandoned = (totals[key] for key in ("completed", "failed", "abandoned"))
        counted = during["requests"] - before
        before = during["requests"]
        if failed or not completed or not completed <= counted <= completed + abandoned:
            found.append(
                f"{plan}: {completed} completed, {failed} failed, {abandoned} abandoned, server {counted}"
            )
        # The one that waits, and that of who asked.
        if plan.endswith("-close") and (completed != 2 * CLOSED + 1 or during["connections_open"] > 2):
            found.append(f"{plan}: {completed} completed, {during['connections_open']} connections open")
    return found


def main(releases: list[str]) -> int:
    """Exit code 0: everything held on every kernel; 1: something did not."""
    programs = built()
    wrong = False
    for release in releases or RELEASES:
        with tempfile.TemporaryDirectory(prefix="prony-kernel-") as temporary:
            folder = Path(temporary)
            root = unpacked(release, folder / "packages")
            system(folder / "system", root, programs)
            archive(folder / "system", folder / "initramfs")
            output = boot(next((root / "boot").glob("vmlinuz-*")), folder / "initramfs")
        kernel = re.search(r"^@kernel (\S+)", output, re.MULTILINE)
        found = faults(output)
        wrong = wrong or bool(found)
        if found:
            print("\n".join(line[:400] for line in output.splitlines()))
        print(f"Linux {kernel[1] if kernel else f'of {release}'}: {'; '.join(found) or 'holds'}", flush=True)
    return int(wrong)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failed as failed:
        sys.exit(f"old_kernel: {failed}")
