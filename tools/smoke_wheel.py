"""Tests wheels as a user with nothing but pip: installs a wheel in an empty folder and measures with it. The
engine of another architecture runs under qemu-user, with the laboratory of the native wheel.

`tools/smoke_wheel.py [--all] WHEEL…`. Wheels that cannot be tested here are reported; with `--all` they fail.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENGINE = "prony-engine"
WITHIN_S = 30.0
"""Limit from `pip install` in an empty folder to the figures of a load, with a warm pip cache."""
NOT_IN_CORE = ("distributed", "starlette", "altair", "asyncssh", "vl_convert", "pyarrow")
SERVER = "sanic"
"""A server of the catalogue whose build needs nothing beyond pip."""
FOR_SCRIPTS = ("lua_pushinteger", "luaL_newstate")
"""Lua functions of the engine, needed by C modules that scripts load."""
MEASURED, NO_FIGURE = 0, 3
LOAD = ("-c", "2", "-d", "2s", "--warmup", "1s")
SYSROOTS = {"aarch64": Path("/usr/aarch64-linux-gnu"), "x86_64": Path("/usr/x86_64-linux-gnu")}
"""C libraries of other architectures in Debian's packages."""
PACKAGES = "qemu-user-static and libc6-arm64-cross (Debian)"
SYMBOL, SECTION = struct.Struct("<IBBHQQ"), struct.Struct("<IIQQQQIIQQ")
DYNAMIC_SYMBOLS = 11


class Wrong(Exception):
    """A wheel is faulty; `str()` says how."""


class Missing(Exception):
    """This machine lacks a requirement of the test; `str()` says which."""


@dataclass(frozen=True, slots=True)
class Place:
    """An empty folder, and an isolated environment."""

    folder: Path
    programs: Path
    """Put before the system's PATH."""
    engine: Path | None = None

    def run(self, *words: str | Path, codes: Sequence[int] = (0,)) -> str:
        """Standard output of a command; Wrong for other exit codes than these."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env=self.env(),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode not in codes:
            raise Wrong(f"{words[0]} {words[1]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def env(self) -> dict[str, str]:
        kept = ("PIP_", "LANG", "LC_", "SSL_", "REQUESTS_")
        env = {name: value for name, value in os.environ.items() if name.startswith(kept)}
        env |= {"PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(self.folder)}
        # pip's cache is shared: the speed of the network is not tested.
        env["PIP_CACHE_DIR"] = os.environ.get("PIP_CACHE_DIR") or str(Path.home() / ".cache" / "pip")
        return env if self.engine is None else env | {"PRONY_ENGINE": str(self.engine)}


def machine_of(wheel: Path) -> str:
    """Its architecture."""
    return wheel.stem.rpartition("manylinux_2_28_")[2]


def try_wheel(wheel: Path, beside: Sequence[Path] = ()) -> list[str]:
    """Tests a wheel; returns sentences. `beside`: wheels of the same build. Raises Wrong and Missing."""
    machine = machine_of(wheel)
    with tempfile.TemporaryDirectory(prefix="prony-smoke-") as name:
        folder = Path(name)
        exports(unpacked(wheel, folder))
        if machine == platform.machine():
            return installed(wheel, folder)
        native = next((other for other in beside if machine_of(other) == platform.machine()), None)
        return emulated(folder, machine, native)


def unpacked(wheel: Path, folder: Path) -> Path:
    """The engine of a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (member for member in opened.namelist() if member.endswith(f"/scripts/{ENGINE}"))
        engine = Path(opened.extract(name, folder / "unpacked"))
    engine.chmod(0o755)
    return engine


def exports(engine: Path) -> None:
    """Raises Wrong if it lacks Lua's functions."""
    names = dynamic_symbols(engine.read_bytes())
    missing = [name for name in FOR_SCRIPTS if name not in names]
    if missing:
        raise Wrong(f"{ENGINE} does not export {' and '.join(missing)}: scripts cannot load C modules")


def dynamic_symbols(program: bytes) -> set[str]:
    """Names exported by a 64-bit little-endian ELF program (man 5 elf)."""
    if program[:6] != b"\x7fELF\x02\x01":
        raise Wrong(f"{ENGINE} is not a 64-bit ELF program")
    (table,) = struct.unpack_from("<Q", program, 40)
    size, count = struct.unpack_from("<HH", program, 58)
    sections = [SECTION.unpack_from(program, table + at * size) for at in range(count)]
    symbols: set[str] = set()
    for section in sections:
        if section[1] != DYNAMIC_SYMBOLS:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], SYMBOL.size):
            name, _, _, where, _, _ = SYMBOL.unpack_from(program, at)
            if where:  # else imported
                begin = names + name
                symbols.add(program[begin : program.index(b"\0", begin)].decode())
    return symbols


def environment(folder: Path) -> tuple[Place, Path]:
    """An empty working folder, and an empty virtual environment."""
    work, venv = folder / "work", folder / "venv"
    work.mkdir()
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, timeout=600)
    return Place(work, venv / "bin"), venv


def installed(wheel: Path, folder: Path) -> list[str]:
    """As by hand: pip, a load, the version, the catalogue and a build of one server."""
    place, venv = environment(folder)
    begun_s = time.monotonic()
    place.run(venv / "bin" / "pip", "install", "--quiet", wheel.resolve())
    heavy = (venv / "lib").glob("python*/site-packages")
    present = {entry.name.lower() for folder in heavy for entry in folder.iterdir()}
    if unwanted := sorted(set(NOT_IN_CORE) & present):
        raise Wrong(f"{wheel.name} installs {', '.join(unwanted)}, which belong to other packages")
    pip_s = time.monotonic() - begun_s
    prony = venv / "bin" / "prony"
    with served(venv / "bin" / ENGINE, place) as url:
        result = json.loads(place.run(prony, "load", url, *LOAD, "--json", codes=(MEASURED, NO_FIGURE)))
    took_s = time.monotonic() - begun_s
    (trial,) = trials(result)
    if not trial["counters"]["requests"]:
        raise Wrong("a load was run, but nothing was measured")
    output = place.run(prony, "--version", "--verbose")
    missing = [word for word in ("SHA-256", "io_uring", "epoll", "LuaJIT", "rustls") if word not in output]
    if missing:
        raise Wrong(f"prony --version --verbose does not mention {' and '.join(missing)}")
    shared = sorted(path for path in (venv / "share").rglob("*"))
    if SERVER not in place.run(prony, "servers"):
        raise Wrong(f"prony servers does not know {SERVER}")
    place.run(prony, "servers", "build", SERVER)
    built = list((place.folder / ".cache" / "prony" / "builds").glob(f"{SERVER}-*"))
    if not built or sorted((venv / "share").rglob("*")) != shared:
        raise Wrong(f"prony servers build {SERVER} did not build into the user's cache, or not only there")
    return [
        f"pip install {pip_s:.0f} s, with a first load of 3 s {took_s:.0f} s"
        + ("" if took_s <= WITHIN_S else f" (aim: {WITHIN_S:.0f} s)"),
        f"{trial['counters']['requests']:,} requests, conforms: {trial['conforms']}",
        f"{SERVER} built into {built[0].relative_to(place.folder)}",
    ]


def trials(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Trials of a result in the JSON of `--json`."""
    return [trial for part in told["parts"] for cell in part["cells"] for trial in cell["trials"]]


@contextmanager
def served(engine: Path, place: Place) -> Iterator[str]:
    """The URL of a reference server, which ends with its standard input."""
    words = [str(engine), "serve", "--listen", "127.0.0.1:0", "--stdin-guard"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=place.folder, env=place.env(), **pipes) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            line = server.stdout.readline()
            if not line:
                raise Wrong(f"{ENGINE} serve ended at once")
            yield f"http://{json.loads(line)['address']}/"
            server.stdin.close()
            server.wait(60)
        finally:
            server.kill()


def emulated(folder: Path, machine: str, native: Path | None) -> list[str]:
    """The engine of another architecture under the native wheel's laboratory: everything works, and nothing
    conforms.
    """
    (real,) = (folder / "unpacked").rglob(ENGINE)
    qemu = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
    root = Path(os.environ.get("QEMU_LD_PREFIX") or SYSROOTS.get(machine, Path("/nowhere")))
    if qemu is None or not list(root.glob("lib*/ld-linux-*")):
        raise Missing(f"an engine for {machine} needs {PACKAGES}")
    if native is None:
        raise Missing(f"an engine for {machine} is tested with the wheel for {platform.machine()}; name both")
    usual, venv = environment(folder)
    prony = venv / "bin" / "prony"
    usual.run(venv / "bin" / "pip", "install", "--quiet", native.resolve())
    engine = folder / "bin" / ENGINE
    engine.parent.mkdir()
    engine.write_text(f'#!/bin/sh\nexec {qemu} -L {root} {real} "$@"\n', encoding="utf-8")
    engine.chmod(0o755)
    place = Place(usual.folder, engine.parent, engine)
    version = place.run(engine, "--version").strip()
    probe = json.loads(place.run(engine, "probe"))
    if not probe["emulated"]:
        raise Wrong(f"{ENGINE} does not detect its emulation")
    checks = json.loads(place.run(prony, "doctor", "--json"))["checks"]
    if not any(check["name"] == "emulation" and check["status"] == "bad" for check in checks):
        raise Wrong("prony doctor does not report the emulated engine")
    works = [driver["driver"] for driver in probe["drivers"] if driver["works"]]
    if "epoll" not in works:
        raise Wrong(f"epoll does not work under {qemu}: {probe['drivers']}")
    sentences = [f"{version}: {probe['emulated']}; working drivers: {', '.join(works)}"]
    for driver in works:
        with served(engine, place) as url:
            words = (*LOAD, "--driver", driver, "--json")
            result = json.loads(place.run(prony, "load", url, *words, codes=(NO_FIGURE,)))
        (trial,) = trials(result)
        findings = {reason["code"].partition(".")[0] for reason in trial["not_conforming"]}
        if "emulation" not in findings:
            raise Wrong(f"an emulated trial by {driver} conforms")
        if not trial["counters"]["requests"]:
            raise Wrong(f"nothing was measured by {driver}")
        sentences.append(
            f"{driver}: {trial['counters']['requests']:,} requests, without a figure as required"
        )
    return sentences


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="fail if a wheel cannot be tested")
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    options = parser.parse_args(argv)
    code = 0
    for wheel in options.wheels:
        try:
            for sentence in try_wheel(wheel, options.wheels):
                print(f"{wheel.name}: {sentence}", flush=True)
        except Missing as lack:
            print(f"{wheel.name}: not tested: {lack}", flush=True)
            code = max(code, int(options.all))
        except (Wrong, OSError, subprocess.SubprocessError) as fault:
            print(f"{wheel.name}: {fault}", file=sys.stderr, flush=True)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
