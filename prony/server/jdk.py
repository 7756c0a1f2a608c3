"""Finds the installed JDKs and picks the one that a server supports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.errors import EnvironmentFault, UsageError
from prony.server.spec import JdkRange

FOLDERS_OF_JDKS = (
    "/usr/lib/jvm", "/usr/java", "/opt", "/opt/java", "~/.sdkman/candidates/java", "~/.jdks",
    "~/.asdf/installs/java", "~/.local/share/mise/installs/java", "~/.jenv/versions", "~/.jabba/jdk",
)  # fmt: skip
"""Distributions, SDKMAN, IntelliJ, asdf, mise, jEnv, jabba."""
HOW_TO_GET = (
    "install one, e.g. `apt-get install openjdk-{major}-jdk-headless` or `sdk install java {major}`, "
    "or set JAVA_HOME or PRONY_JDK to where one is"
)


@dataclass(frozen=True, slots=True)
class Jdk:
    home: Path
    major: int
    version: str
    vendor: str
    has_compiler: bool

    @property
    def java(self) -> Path:
        return self.home / "bin" / "java"

    def __str__(self) -> str:
        kind = "" if self.has_compiler else ", without a compiler"
        return f"{self.version} ({self.vendor or 'unknown vendor'}{kind}) at {self.home}"


def is_lts(major: int) -> bool:
    """8, 11, 17, and every fourth from there on."""
    return major in (8, 11) or (major >= 17 and major % 4 == 1)


def find_jdks(places: Sequence[Path] | None = None) -> tuple[Jdk, ...]:
    """In `places` (homes), by default on this host; each once, newest first."""
    by_home: dict[Path, Jdk] = {}
    for home in _candidates() if places is None else places:
        try:
            real = home.resolve()
        except (OSError, RuntimeError):
            continue
        if real not in by_home and os.access(real / "bin" / "java", os.X_OK):
            jdk = _identify(real)
            if jdk is not None:
                by_home[real] = jdk
    return tuple(sorted(by_home.values(), key=lambda jdk: (-jdk.major, not jdk.has_compiler, str(jdk.home))))


def choose(
    wanted: JdkRange,
    *,
    jdks: Sequence[Jdk] | None = None,
    compiler: bool = False,
    override: str | None = None,
) -> Jdk:
    """The preferred one, else the newest LTS in range, else the newest. `override` (None: `$PRONY_JDK`; "":
    none): a major number or a path. Raises UsageError or EnvironmentFault.
    """
    there = find_jdks() if jdks is None else tuple(jdks)
    forced = os.environ.get("PRONY_JDK") if override is None else override
    if forced:
        return _forced(forced, there, wanted)
    fitting = [jdk for jdk in there if wanted.holds(jdk.major) and (jdk.has_compiler or not compiler)]
    if not fitting:
        listed = "; ".join(str(jdk) for jdk in there) or "none"
        needed = "JDK with a compiler (javac)" if compiler else "JDK"
        major = wanted.prefer or wanted.min
        raise EnvironmentFault(
            f"no {needed} {wanted} (installed: {listed}); {HOW_TO_GET.format(major=major)}"
        )
    return max(
        fitting, key=lambda jdk: (jdk.major == wanted.prefer, is_lts(jdk.major), jdk.major, jdk.has_compiler)
    )


def _forced(forced: str, there: Sequence[Jdk], wanted: JdkRange) -> Jdk:
    if forced.isdigit():
        chosen = next((jdk for jdk in there if jdk.major == int(forced)), None)
        if chosen is None:
            listed = "; ".join(str(jdk) for jdk in there) or "none"
            raise UsageError(
                f"JDK {forced} is not installed (installed: {listed}); {HOW_TO_GET.format(major=forced)}"
            )
    else:
        named = find_jdks((Path(forced).expanduser(),))
        if not named:
            raise UsageError(f"the JDK '{forced}' has no bin/java; expected a major number or a JDK's folder")
        chosen = named[0]
    if not wanted.holds(chosen.major):
        raise UsageError(f"JDK {chosen.major} is requested, but the server supports {wanted}")
    return chosen


def _candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for name in FOLDERS_OF_JDKS:
        folder = Path(name).expanduser()
        try:
            yield from sorted(entry for entry in folder.iterdir() if entry.is_dir())
        except OSError:
            continue


def _identify(home: Path) -> Jdk | None:
    version, vendor = _from_release_file(home)
    if version is None:
        version, vendor = _from_asking(home)
    major = re.match(r"(?:1\.)?(\d+)", version or "")
    if version is None or major is None:
        return None
    return Jdk(home, int(major[1]), version, vendor, os.access(home / "bin" / "javac", os.X_OK))


def _from_release_file(home: Path) -> tuple[str | None, str]:
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None, ""
    keys = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    return keys.get("JAVA_VERSION"), keys.get("IMPLEMENTOR", "")


def _from_asking(home: Path) -> tuple[str | None, str]:
    try:
        done = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, ""
    named = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    return (named[1] if named else None), ""
