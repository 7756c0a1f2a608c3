"""Builds a release from the checked-out commit: wheels for x86-64 and arm64 (glibc 2.28 or newer), source
distribution, bill of materials, and checksums.

`tools/wheels.py [--to DIR] [--only x86-64|arm64|sdist]… [--twice]`. Needs the packages of
requirements/lock.txt, Rust with the standard library of each target, and zig from tools/fetch.py. `--twice`
repeats the build from scratch in another folder, and fails if a byte differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import fetch
import sbom

ROOT = Path(__file__).resolve().parents[1]
TARGETS = {"x86-64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu"}
SDIST = "sdist"
PLATFORM = "manylinux_2_28"
CHECKSUMS = "SHA256SUMS"
HOOK = "import sys, prony_build; print(getattr(prony_build, sys.argv[1])(sys.argv[2]))"


class Failed(Exception):
    """The release cannot be built; `str()` says why."""


def run(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Runs a command; its output. Raises Failed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{words[0]} failed with {done.returncode} in {cwd}; see above")
    return done.stdout


def check_targets(names: Sequence[str]) -> None:
    """Raises Failed if Rust lacks a target."""
    libraries = Path(run("rustc", "--print", "sysroot", cwd=ROOT).strip()) / "lib" / "rustlib"
    missing = [TARGETS[name] for name in names if not (libraries / TARGETS[name] / "lib").is_dir()]
    if missing:
        raise Failed(
            f"Rust has no standard library for {' and '.join(missing)}: rustup target add {' '.join(missing)}"
        )


def exported(folder: Path) -> Path:
    """A clean clone of the checked-out commit."""
    source = folder / "prony"
    run("git", "clone", "--quiet", "--no-hardlinks", ROOT, source, cwd=folder)
    return source


def environment(source: Path, built: Path) -> dict[str, str]:
    """Environment of a reproducible build: the result contains neither paths nor times."""
    cargo_home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    places = {source: "/prony", built: "/target", cargo_home: "/cargo"}
    config = tomllib.loads((source / ".cargo" / "config.toml").read_text(encoding="utf-8"))
    in_rust = [f"--remap-path-prefix={place}={name}" for place, name in places.items()]
    in_c = [config["env"]["CFLAGS"], *(f"-ffile-prefix-map={place}={name}" for place, name in places.items())]
    return os.environ | {
        "CARGO_TARGET_DIR": str(built),
        "CARGO_INCREMENTAL": "0",
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(in_rust),
        "CFLAGS": " ".join(in_c),
        # For LuaJIT's Makefile: zig links no unwinder by default; the program next to the library is
        # discarded, so it needs no strip.
        "TARGET_LIBS": "-lunwind",
        "TARGET_STRIP": "true",
        "CARGO_ZIGBUILD_ZIG_PATH": str(fetch.home("ziglang") / "bin" / "zig"),
        "SOURCE_DATE_EPOCH": run("git", "log", "-1", "--format=%ct", cwd=source).strip(),
        "PYTHONPATH": str(source / "packaging"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


def hook(name: str, to: Path, source: Path, env: Mapping[str, str]) -> Path:
    """Runs a function of the build backend; the file that it writes."""
    output = run(sys.executable, "-c", HOOK, name, to, cwd=source, env=env)
    return to / output.strip().splitlines()[-1]


def build(names: Sequence[str], to: Path, source: Path, built: Path) -> list[Path]:
    """These parts of a release, as files in a folder."""
    to.mkdir(parents=True, exist_ok=True)
    env = environment(source, built)
    files: list[Path] = []
    for name in names:
        if name == SDIST:
            files.append(hook("build_sdist", to, source, env))
            continue
        words = f"--zig --target {TARGETS[name]} --compatibility {PLATFORM}"
        files.append(hook("build_wheel", to, source, env | {"MATURIN_PEP517_ARGS": words}))
    for package in sorted((source / "packages").iterdir()):
        options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", to, package)
        run(sys.executable, "-m", "pip", "wheel", *options, cwd=source)
        files += to.glob(f"{package.name.replace('-', '_')}-*.whl")
    version = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    bill = to / f"prony-{version}.cdx.json"
    bill.write_text(json.dumps(sbom.document(source), indent=1) + "\n", encoding="utf-8")
    return [*files, bill]


def digests(files: Sequence[Path]) -> dict[str, str]:
    """Name -> SHA-256."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(files)}


def differing(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Names that differ between the two."""
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def release(names: Sequence[str], to: Path, *, twice: bool) -> dict[str, str]:
    """The release in its folder, with checksums. Raises Failed."""
    check_targets([name for name in names if name in TARGETS])
    if run("git", "status", "--porcelain", "--untracked-files=no", cwd=ROOT).strip():
        print("uncommitted changes are not included", file=sys.stderr)
    fetch.provide("ziglang")
    # Always the same folder, as its name is in the compiler's flags: unchanged parts are not rebuilt.
    kept = ROOT / "engine" / "target" / "wheels"
    shutil.rmtree(kept / "prony", ignore_errors=True)
    kept.mkdir(parents=True, exist_ok=True)
    first = digests(build(names, to, exported(kept), kept / "target"))
    if twice:
        with tempfile.TemporaryDirectory(prefix="prony-release-again-") as folder:
            place = Path(folder)
            again = digests(build(names, place / "dist", exported(place), place / "target"))
        if differs := differing(first, again):
            raise Failed(f"not reproducible: {', '.join(differs)}")
    lines = "".join(f"{digest}  {name}\n" for name, digest in first.items())
    (to / CHECKSUMS).write_text(lines, encoding="utf-8")
    return first


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--to", type=Path, default=ROOT / "dist", metavar="DIR")
    parser.add_argument("--only", action="append", choices=(*TARGETS, SDIST), metavar="PART")
    parser.add_argument("--twice", action="store_true")
    options = parser.parse_args(argv)
    try:
        release_digests = release(
            options.only or (*TARGETS, SDIST), options.to.resolve(), twice=options.twice
        )
    except (Failed, fetch.Failed, sbom.Unclear) as fault:
        print(f"tools/wheels.py: {fault}", file=sys.stderr)
        return 1
    for name, digest in release_digests.items():
        print(f"{digest[:16]}  {name}")
    if options.twice:
        print("two builds, byte for byte the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
