"""Tries wheels as somebody would who has nothing but pip: installs one in an empty folder and measures with
it; one for another architecture runs its engine under qemu-user, with the laboratory of the wheel for this
one.

`tools/smoke_wheel.py [--all] WHEEL…`. What could not be tried here is said, and with `--all` it is a failure.
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
"""From `pip install` in an empty folder to the figures of a load, with pip's cache warm."""
NOT_IN_CORE = ("distributed", "starlette", "altair", "asyncssh", "vl_convert", "pyarrow")
SERVER = "sanic"
"""Of the catalogue, one that is built with what pip needs anyway."""
FOR_SCRIPTS = ("lua_pushinteger", "luaL_newstate")
"""Lua's functions, which modules in C that a script loads find in the engine."""
MEASURED, NO_FIGURE = 0, 3
LOAD = ("-c", "2", "-d", "2s", "--warmup", "1s")
SYSROOTS = {"aarch64": Path("/usr/aarch64-linux-gnu"), "x86_64": Path("/usr/x86_64-linux-gnu")}
"""Where Debian's packages put the C library of another architecture."""
PACKAGES = "qemu-user-static and libc6-arm64-cross (Debian)"
SYMBOL, SECTION = struct.Struct("<IBBHQQ"), struct.Struct("<IIQQQQIIQQ")
DYNAMIC_SYMBOLS = 11


class Wrong(Exception):
    """A wheel does not do what it is for; `str()` says what."""


class Missing(Exception):
    """This machine lacks what it takes to try; `str()` says what."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with nothing in it, and an environment that points to nothing outside."""

    folder: Path
    programs: Path
    """Before the PATH of the system."""
    engine: Path | None = None

    def run(self, *words: str | Path, codes: Sequence[int] = (0,)) -> str:
        """Standard output of a command that ends with one of these codes."""
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
        # pip's own cache may serve: that a network is fast is nobody's claim.
        env["PIP_CACHE_DIR"] = os.environ.get("PIP_CACHE_DIR") or str(Path.home() / ".cache" / "pip")
        return env if self.engine is None else env | {"PRONY_ENGINE": str(self.engine)}


def machine_of(wheel: Path) -> str:
    """The architecture that it is for."""
    return wheel.stem.rpartition("manylinux_2_28_")[2]


def try_wheel(wheel: Path, beside: Sequence[Path] = ()) -> list[str]:
    """Sentences on what it did. `beside`: wheels of the same build. Raises Wrong and Missing."""
    machine = machine_of(wheel)
    with tempfile.TemporaryDirectory(prefix="prony-smoke-") as name:
        folder = Path(name)
        exports(unpacked(wheel, folder))
        if machine == platform.machine():
            return installed(wheel, folder)
        native = next((one for one in beside if machine_of(one) == platform.machine()), None)
        return emulated(folder, machine, native)


def unpacked(wheel: Path, folder: Path) -> Path:
    """The engine of a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (one for one in opened.namelist() if one.endswith(f"/scripts/{ENGINE}"))
        engine = Path(opened.extract(name, folder / "unpacked"))
    engine.chmod(0o755)
    return engine


def exports(engine: Path) -> None:
    """Raises Wrong where Lua's functions are not to be found in it."""
    names = dynamic_symbols(engine.read_bytes())
    missing = [name for name in FOR_SCRIPTS if name not in names]
    if missing:
        raise Wrong(f"{ENGINE} does not export {' and '.join(missing)}: no script can load a module in C")


def dynamic_symbols(program: bytes) -> set[str]:
    """The names that a 64-bit little-endian ELF program defines for others (man 5 elf)."""
    if program[:6] != b"\x7fELF\x02\x01":
        raise Wrong(f"{ENGINE} is not a 64-bit ELF program")
    (table,) = struct.unpack_from("<Q", program, 40)
    size, count = struct.unpack_from("<HH", program, 58)
    sections = [SECTION.unpack_from(program, table + at * size) for at in range(count)]
    found: set[str] = set()
    for section in sections:
        if section[1] != DYNAMIC_SYMBOLS:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], SYMBOL.size):
            name, _, _, where, _, _ = SYMBOL.unpack_from(program, at)
            if where:  # else it is wanted and not defined
                begin = names + name
                found.add(program[begin : program.index(b"\0", begin)].decode())
    return found


def environment(folder: Path) -> tuple[Place, Path]:
    """An empty folder to work in, and the virtual environment beside it, empty too."""
    work, venv = folder / "work", folder / "venv"
    work.mkdir()
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, timeout=600)
    return Place(work, venv / "bin"), venv


def installed(wheel: Path, folder: Path) -> list[str]:
    """As by hand: pip, a load, the version, the catalogue and one build of it."""
    place, venv = environment(folder)
    begun_s = time.monotonic()
    place.run(venv / "bin" / "pip", "install", "--quiet", wheel.resolve())
    heavy = (venv / "lib").glob("python*/site-packages")
    present = {one.name.lower() for folder in heavy for one in folder.iterdir()}
    if found := sorted(set(NOT_IN_CORE) & present):
        raise Wrong(f"{wheel.name} installs {', '.join(found)}, which belong to other packages")
    pip_s = time.monotonic() - begun_s
    prony = venv / "bin" / "prony"
    with served(venv / "bin" / ENGINE, place) as url:
        told = json.loads(place.run(prony, "load", url, *LOAD, "--json", codes=(MEASURED, NO_FIGURE)))
    took_s = time.monotonic() - begun_s
    (trial,) = trials(told)
    if not trial["counters"]["requests"]:
        raise Wrong("a load was offered, and nothing was measured")
    said = place.run(prony, "--version", "--verbose")
    missing = [word for word in ("SHA-256", "io_uring", "epoll", "LuaJIT", "rustls") if word not in said]
    if missing:
        raise Wrong(f"prony --version --verbose says nothing of {' and '.join(missing)}")
    shared = sorted(path for path in (venv / "share").rglob("*"))
    if SERVER not in place.run(prony, "servers"):
        raise Wrong(f"prony servers does not know {SERVER}")
    place.run(prony, "servers", "build", SERVER)
    built = list((place.folder / ".cache" / "prony" / "builds").glob(f"{SERVER}-*"))
    if not built or sorted((venv / "share").rglob("*")) != shared:
        raise Wrong(
            f"prony servers build {SERVER} did not build into the cache of the user, or not only there"
        )
    return [
        f"pip install {pip_s:.0f} s, with a first load of 3 s {took_s:.0f} s"
        + ("" if took_s <= WITHIN_S else f" (aim: {WITHIN_S:.0f} s)"),
        f"{trial['counters']['requests']:,} requests, conforms: {trial['conforms']}",
        f"{SERVER} built into {built[0].relative_to(place.folder)}",
    ]


def trials(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of a result as `--json` prints it."""
    return [trial for part in told["parts"] for cell in part["cells"] for trial in cell["trials"]]


@contextmanager
def served(engine: Path, place: Place) -> Iterator[str]:
    """The URL of a reference server; it ends with its standard input."""
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
    """The engine of another architecture under the laboratory of the wheel for this one: all works, and
    nothing that it measures conforms.
    """
    (real,) = (folder / "unpacked").rglob(ENGINE)
    qemu = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
    root = Path(os.environ.get("QEMU_LD_PREFIX") or SYSROOTS.get(machine, Path("/nowhere")))
    if qemu is None or not list(root.glob("lib*/ld-linux-*")):
        raise Missing(f"an engine for {machine} runs here under {PACKAGES} only")
    if native is None:
        raise Missing(f"an engine for {machine} is tried with the wheel for {platform.machine()}: name both")
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
        raise Wrong(f"{ENGINE} does not see that it is emulated")
    checks = json.loads(place.run(prony, "doctor", "--json"))["checks"]
    if not any(one["name"] == "emulation" and one["status"] == "bad" for one in checks):
        raise Wrong("prony doctor does not say that the engine is emulated")
    works = [one["driver"] for one in probe["drivers"] if one["works"]]
    if "epoll" not in works:
        raise Wrong(f"epoll does not work under {qemu}: {probe['drivers']}")
    said = [f"{version}: {probe['emulated']}; drivers that work: {', '.join(works)}"]
    for driver in works:
        with served(engine, place) as url:
            words = (*LOAD, "--driver", driver, "--json")
            told = json.loads(place.run(prony, "load", url, *words, codes=(NO_FIGURE,)))
        (trial,) = trials(told)
        found = {one["code"].partition(".")[0] for one in trial["not_conforming"]}
        if "emulation" not in found:
            raise Wrong(f"an emulated trial by {driver} conforms")
        if not trial["counters"]["requests"]:
            raise Wrong(f"nothing was measured by {driver}")
        said.append(f"{driver}: {trial['counters']['requests']:,} requests, without a figure as they must be")
    return said


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="fail where a wheel cannot be tried")
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    asked = parser.parse_args(argv)
    code = 0
    for wheel in asked.wheels:
        try:
            for sentence in try_wheel(wheel, asked.wheels):
                print(f"{wheel.name}: {sentence}", flush=True)
        except Missing as lack:
            print(f"{wheel.name}: not tried: {lack}", flush=True)
            code = max(code, int(asked.all))
        except (Wrong, OSError, subprocess.SubprocessError) as fault:
            print(f"{wheel.name}: {fault}", file=sys.stderr, flush=True)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
