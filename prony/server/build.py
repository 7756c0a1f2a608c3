"""Builds servers, each once for the content of its sources. An artifact is in `<cache>/builds/<name>-<key>/`;
the key covers sources, build keys, and what of tool and runtime decides the result. Sources are copied first,
so neither a checkout nor an installed catalogue is written to.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.server import COMMIT
from prony.server import container
from prony.server.cache import cache_dir, prune
from prony.server.catalogue import DEFAULTS_FILE, SERVER_FILE
from prony.server.jdk import Jdk, choose, find_jdks
from prony.server.spec import BuildKeys, JdkRange, ServerSpec, find_services
from prony.server.tool import BuildTool, Pip, find_maven, find_npm

AGENT = "agent"
"""Directory beside the servers, and name of the build."""
ASYNC_PROFILER = "async-profiler"
VERSION = re.compile(r"<async-profiler\.version>([\w.]+)<")
NOT_SOURCES = {
    "target", "build", "node_modules", "__pycache__", ".venv", ".git", ".idea", ".settings", ".vscode",
}  # fmt: skip
NOT_BUILT = {SERVER_FILE, DEFAULTS_FILE}
"""Not hashed: they say how to run a server; the keys that matter are in the build key."""
WHOLE = "app"
"""Artifact that is the whole directory."""
KEPT_PER_NAME = 3

OnLine = Callable[[str, str], None]
"""Server's name, progress line."""


@dataclass(frozen=True, slots=True)
class Built:
    """A server ready to launch; a field is None where the server has no such part."""

    spec: ServerSpec
    artifact: Path | None = None
    key: str | None = None
    jdk: Jdk | None = None
    agent: Path | None = None
    """Jar; None without a JVM."""
    from_cache: bool = True
    seconds: float = 0.0
    programs: Mapping[str, str] = field(default_factory=dict)
    """Placeholders, such as `node`."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the build tool's runtime, and the sources' commit."""


def quiet(name: str, line: str) -> None:
    """No progress output."""


def build(
    specs: Sequence[ServerSpec], *, jdk: str | None = None, on_line: OnLine = quiet
) -> tuple[Built, ...]:
    """Build what is not in the cache, one after the other. `jdk` (a major number or a path) overrides the
    choice of JDK, unless a server asks for one itself. A missing JDK, tool or service is reported before
    anything is built. Raises EnvironmentFault (missing, or a failed build with its last lines) or UsageError.
    """
    compiled = [spec.build is not None and spec.build.tool == "maven" for spec in specs]
    there = find_jdks() if any(compiled) or any(spec.on_jvm for spec in specs) else ()
    for spec in specs:
        for service in find_services(spec.services, spec.name, spec.folder.parent):
            service.find_program()
    prepared = [_prepare(spec, spec.jdk_asked or jdk, there) for spec in specs]
    built = []
    for spec, (own, tool) in zip(specs, prepared, strict=True):
        begun = time.monotonic()
        if spec.image is not None:
            on_line(spec.name, "looking for the image")
            key, port = container.pulled(spec.image)
            at = spec.model_copy(update={"url": f"http://127.0.0.1:{port}"})
            found = {"image": key[:12]}
            built.append(Built(at, key=key[:16], seconds=time.monotonic() - begun, versions=found))
            continue
        agent = _agent(spec, own, there, on_line) if own is not None else None
        commit = _commit(spec)
        if spec.build is None or tool is None:
            took_s = time.monotonic() - begun
            built.append(Built(spec, jdk=own, agent=agent, seconds=took_s, versions=commit))
            continue
        artifact, key, cached = _build_one(spec.base, spec.build, tool, on_line)
        built.append(
            Built(
                spec, artifact, key, own, agent, cached, time.monotonic() - begun,
                tool.programs(artifact), {**tool.versions, **commit},
            )
        )  # fmt: skip
    return tuple(built)


def _commit(spec: ServerSpec) -> dict[str, str]:
    """Commit of the sources now; empty: not known, or named by its server.yaml."""
    sources = spec.folder if spec.build is None else Path(spec.build.dir)
    commit = None if COMMIT in spec.versions else commit_of(sources)
    return {} if commit is None else {COMMIT: commit}


def lacking(spec: ServerSpec) -> str | None:
    """A missing JDK, tool or service, with the remedy; None when nothing. Raises UsageError."""
    compiled = spec.build is not None and spec.build.tool == "maven"
    services = find_services(spec.services, spec.name, spec.folder.parent)
    try:
        if spec.image is not None:
            container.program()
        for service in services:
            service.find_program()
        _prepare(spec, spec.jdk_asked, find_jdks() if compiled or spec.on_jvm else ())
    except (EnvironmentFault, UsageError) as fault:
        return str(fault)
    return None


def _prepare(
    spec: ServerSpec, override: str | None, there: Sequence[Jdk]
) -> tuple[Jdk | None, BuildTool | None]:
    """The server's JDK and build tool, each None when there is none."""
    own = choose(spec.jdk, jdks=there, override=override) if spec.on_jvm else None
    match spec.build.tool if spec.build is not None else None:
        case "maven":
            return own, find_maven(_compiler(own, spec.jdk, there, override))
        case "npm":
            return own, find_npm()
        case "pip":
            return own, Pip()
        case None:
            return own, None


def _agent(spec: ServerSpec, own: Jdk, there: Sequence[Jdk], on_line: OnLine) -> Path:
    """The agent's jar, from the sources of this server's catalogue, else of the default ones."""
    keys = BuildKeys(tool="maven", dir=str(_beside(AGENT, spec.folder.parent)), artifact="target/agent.jar")
    return _build_one(AGENT, keys, find_maven(_compiler(own, JdkRange(min=17), there)), on_line)[0]


def async_profiler(on_line: OnLine) -> tuple[Path, str]:
    """Folder of its libraries, by machine, and its version. Raises EnvironmentFault."""
    source = _beside(ASYNC_PROFILER)
    version = VERSION.search((source / "pom.xml").read_text(encoding="utf-8"))
    keys = BuildKeys(tool="maven", dir=str(source), artifact="target/libraries")
    tool = find_maven(_compiler(None, JdkRange(min=17), find_jdks()))
    return _build_one(ASYNC_PROFILER, keys, tool, on_line)[0], "" if version is None else version[1]


def _beside(name: str, *first: Path) -> Path:
    """Folder of sources that are not a server, from the first catalogue that has it."""
    from prony.plan.catalogue_roots import roots

    places = [root / name for root in (*first, *roots("servers"))]
    source = next((place for place in places if (place / "pom.xml").is_file()), None)
    if source is None:
        raise EnvironmentFault(f"no sources of {name} in {', '.join(map(str, places))}; reinstall Prony")
    return source


def _compiler(own: Jdk | None, wanted: JdkRange, there: Sequence[Jdk], override: str | None = None) -> Jdk:
    """The JDK it runs on when that has a compiler, else an older one that has."""
    if own is None:
        return choose(wanted, jdks=there, compiler=True, override=override)
    if own.has_compiler:
        return own
    not_newer = [jdk for jdk in there if jdk.major <= own.major]
    return choose(wanted, jdks=not_newer, compiler=True, override="")


def _build_one(name: str, keys: BuildKeys, tool: BuildTool, on_line: OnLine) -> tuple[Path, str, bool]:
    """Artifact, key, and whether it was cached."""
    source = Path(keys.dir)
    if not source.is_dir():
        raise EnvironmentFault(f"no directory {source} with the sources of {name}; correct build.dir")
    key = source_key(source, keys, tool.key)
    builds = cache_dir("builds")
    artifact = builds / f"{name}-{key}" / (Path(keys.artifact).name or WHOLE)
    if artifact.exists():
        return artifact, key, True
    with _alone(
        builds / f".{name}.lock",
        lambda: on_line(name, "waiting for another prony process that builds the same server"),
    ):
        if artifact.exists():
            return artifact, key, True
        _clear(builds.glob(f".{name}-*.work"))
        work = builds / f".{name}-{key}.work"
        try:
            made = _make(name, keys, source, tool, work, on_line)
            _keep(made, artifact, {"key": key, "tool": str(tool), "args": list(keys.args)})
        finally:
            shutil.rmtree(work, ignore_errors=True)
        _clear(prune(builds, f"{name}-{'[0-9a-f]' * len(key)}", KEPT_PER_NAME))
    return artifact, key, False


def source_key(source: Path, keys: BuildKeys, tool_key: Sequence[str]) -> str:
    """Hash (16 hex digits) over paths and contents of the sources, keys, tool."""
    digest = hashlib.sha256()
    for part in (keys.tool, *keys.args, keys.artifact, *tool_key):
        digest.update(part.encode() + b"\0")
    for path in _sources(source):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(source)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _sources(source: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(set(folders) - NOT_SOURCES)
        top = Path(folder) == source
        yield from (Path(folder, file) for file in sorted(files) if not (top and file in NOT_BUILT))


def _make(name: str, keys: BuildKeys, source: Path, tool: BuildTool, work: Path, on_line: OnLine) -> Path:
    """Runs the tool in a copy of the sources."""
    log = cache_dir("logs") / f"build-{name}.log"
    for path in _sources(source):
        copy = work / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    on_line(name, f"building with {tool}")
    begun = time.monotonic()
    log.write_text("", encoding="utf-8")
    tool.make(name, work, keys.args, log, lambda line: on_line(name, line))
    made = work / keys.artifact
    if not made.exists():
        raise EnvironmentFault(
            f"the build of {name} ended well but left no {keys.artifact}; correct build.artifact (log: {log})"
        )
    on_line(name, f"built in {time.monotonic() - begun:.0f} s")
    return made


def _keep(made: Path, artifact: Path, facts: dict[str, object]) -> None:
    """Atomic."""
    folder = artifact.parent
    half = folder.with_name(f".{folder.name}.work-done")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir()
    try:
        made.rename(half / artifact.name)
        (half / "build.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        half.rename(folder)
    except OSError as fault:
        shutil.rmtree(half, ignore_errors=True)
        raise EnvironmentFault(
            f"the build could not be stored in {folder}: {fault.strerror}; free space or set PRONY_CACHE"
        ) from fault


def _clear(paths: Iterator[Path] | Sequence[Path]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _alone(lock: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """The kernel releases the lock when this process ends."""
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


COMMIT_DIGITS = 12
DIRTY = "-dirty"
GIT_TIMEOUT_S = 10.0
"""Time limit, for a huge work tree or a network file system; beyond it the commit is not known."""
_GIT_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Set within a git hook: they would name another repository."""


def commit_of(folder: Path) -> str | None:
    """12 digits of the commit, with `-dirty` where a tracked file below the folder has changed. None without
    git and for a folder that the commit does not have.
    """
    named = _git(folder, "rev-parse", "HEAD", "HEAD:./")
    state = (
        None if named is None else _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    )
    if not named or state is None:
        return None
    return named.split()[0][:COMMIT_DIGITS] + (DIRTY if state.strip() else "")


def _git(folder: Path, *words: str) -> str | None:
    """Git's output; None when it failed."""
    env = {name: value for name, value in os.environ.items() if name not in _GIT_ELSEWHERE}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=GIT_TIMEOUT_S,
            check=False,
            env=env | {"GIT_OPTIONAL_LOCKS": "0"},  # only reads: takes no lock of the repository
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
