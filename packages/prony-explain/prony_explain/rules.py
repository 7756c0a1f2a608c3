"""Maps the frames of a stack to parts of a server, by rules from YAML files.

A frame takes its first matching rule, a stack the part of its innermost frame that has one. A server's rules
(`servers/*/explain.yaml`) precede those of its runtime (`defaults/`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import translate
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

from pydantic import model_validator

from prony.evidence.base import Record
from prony.evidence.profile import Sampling
from prony.plan.yamlfile import read_mapping, validate

EXPLAIN_FILE = "explain.yaml"
DEFAULTS_FILE = "defaults.yaml"
JAVA = frozenset("ji01")
"""Frame kinds of Java methods (`prony.evidence.profile.Stack`)."""
SCRIPT, KERNEL = "s", "k"
_FRAME = re.compile(r"^(?:(?P<place>[^`]*)`)?(?P<name>.*?)(?:_\[(?P<kind>[jik01s])\])?$", re.DOTALL)
PACKAGE = "{package}"
"""A rule's name that stands for the first segments of the matched package."""


class Part(StrEnum):
    """Categories of CPU time, in the order of printing."""

    APPLICATION = "application"
    FRAMEWORK = "framework"
    CONTAINER = "container"
    RUNTIME = "runtime"
    LIBRARY = "C library and TLS"
    NETWORK = "kernel network"
    SCHEDULING = "kernel scheduling and locks"
    KERNEL = "other kernel"
    UNATTRIBUTED = "not attributed"
    PROFILER = "profiler"
    """Excluded from budgets: the profiler's own work, and waits that it counts as work."""


class Rule(Record):
    """Frames of one part. Patterns may use `*` and `?`."""

    part: Part | None = None
    """None: the work is the caller's."""
    name: str = ""
    """Package or subsystem within the part; `{package}` takes it from the frame."""
    holds: bool = False
    """Whether all callees up to the kernel count as this part, too."""
    java: tuple[str, ...] = ()
    """Packages with their subpackages; classes; methods."""
    script: tuple[str, ...] = ()
    """Source files of Python and JavaScript, or `file:function`."""
    kernel: tuple[str, ...] = ()
    """Functions of the kernel."""
    native: tuple[str, ...] = ()
    """Functions of native code."""
    library: tuple[str, ...] = ()
    """File names of native libraries."""
    thread: tuple[str, ...] = ()
    """Thread names: all their work outside the kernel, as with `holds`."""

    @model_validator(mode="after")
    def _matches_something(self) -> Rule:
        if not (self.java or self.script or self.kernel or self.native or self.library or self.thread):
            raise ValueError("expected one of java, script, kernel, native, library, thread")
        return self


class Otherwise(Record):
    """The place of stacks without a matching frame."""

    part: Part
    name: str = ""


class RuleFile(Record):
    """Contents of an `explain.yaml`."""

    rules: tuple[Rule, ...] = ()
    """The first match counts."""
    otherwise: Otherwise | None = None


class Place(NamedTuple):
    """A part, and a package or subsystem in it."""

    part: Part
    name: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """A parsed frame."""

    place: str
    name: str
    kind: str

    @classmethod
    def of(cls, text: str) -> Frame:
        """Parses `[place`]name[_[kind]]`."""
        match = _FRAME.match(text)
        if match is None:
            return cls("", text, "")
        return cls(match["place"] or "", match["name"], match["kind"] or "")

    @property
    def dotted(self) -> str:
        """A Java method as in source code: package.Class.method."""
        return self.name.replace("/", ".")


class _Step(NamedTuple):
    """State of a stack at one of its frames."""

    place: Place | None
    holds: bool
    kernel: bool


@dataclass(slots=True)
class Rules:
    """A server's rules, in order."""

    rules: tuple[Rule, ...]
    top: Place
    """The place of stacks without a matching frame."""
    _made: dict[str, list[tuple[re.Pattern[str], int]]] = field(default_factory=dict)
    _known: dict[str, tuple[Rule | None, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for at, rule in enumerate(self.rules):
            for kind in ("java", "script", "kernel", "native", "library", "thread"):
                for text in getattr(rule, kind):
                    below = r"(?=[.$:]|\Z)" if kind == "java" and not text.endswith("*") else ""
                    pattern = translate(text).removesuffix(r"\Z").removesuffix(r"\z")
                    end = below or r"\Z"
                    self._made.setdefault(kind, []).append((re.compile(pattern + end), at))

    def places(self, sampling: Sampling) -> list[Place]:
        """The place of the stack ending at each node of the samples' tree."""
        steps: list[_Step] = []
        for parent, name in zip(sampling.parents, sampling.names, strict=True):
            steps.append(self._step(steps[parent] if parent >= 0 else None, sampling.frames[name]))
        return [step.place or self.top for step in steps]

    def place(self, stack: Sequence[str]) -> Place:
        """The place of a stack, outermost frame first."""
        step: _Step | None = None
        for frame in stack:
            step = self._step(step, frame)
        return self.top if step is None or step.place is None else step.place

    def _step(self, above: _Step | None, text: str) -> _Step:
        frame = Frame.of(text)
        rule, name = self._rule(text, frame, root=above is None)
        here = Place(rule.part, name) if rule is not None and rule.part is not None else None
        inherited = above.place if above is not None else None
        if frame.kind == KERNEL:
            entered = above is None or not above.kernel
            return _Step(here or (Place(Part.KERNEL) if entered else inherited), False, True)
        if above is not None and above.holds and (here is None or here.part is not Part.PROFILER):
            return _Step(inherited, True, False)
        if rule is None or here is None:
            return _Step(inherited, False, False)
        return _Step(here, rule.holds or (above is None and bool(rule.thread)), False)

    def _rule(self, text: str, frame: Frame, *, root: bool) -> tuple[Rule | None, str]:
        """The first matching rule, and the name within its part."""
        key = f"{root}{text}"
        if key not in self._known:
            self._known[key] = self._match(frame, root)
        return self._known[key]

    def _match(self, frame: Frame, root: bool) -> tuple[Rule | None, str]:
        if frame.kind in JAVA:
            candidates = [("java", frame.dotted)]
        elif frame.kind == SCRIPT:
            candidates = [("script", frame.place), ("script", f"{frame.place}:{frame.name}")]
        elif frame.kind == KERNEL:
            # without compiler suffixes: `.isra.0`, `.part.0`, `.constprop.0`
            candidates = [("kernel", re.split(r"\.(?:isra|part|constprop|cold)\b", frame.name)[0])]
        else:
            candidates = [("native", frame.name), ("library", frame.place)]
            if root and frame.name.startswith("["):
                # `[GC Thread#0 tid=12]` -> `GC Thread#0`
                candidates.append(("thread", re.sub(r"\s+tid=\d+$", "", frame.name.strip("[]"))))
        matches: list[int] = []
        for kind, value in candidates:
            hits = (at for pattern, at in self._made.get(kind, ()) if value and pattern.match(value))
            matches += [at for at in (next(hits, None),) if at is not None]
        if not matches:
            return None, ""
        first = self.rules[min(matches)]
        return first, _package(frame) if first.name == PACKAGE else first.name


def _package(frame: Frame) -> str:
    """The library of a function, by its usual name."""
    if frame.kind in JAVA:
        packages = frame.name.split("/")[:-1]
        long = packages[:1] and packages[0] in ("com", "org", "net", "io", "de", "ch", "jakarta", "javax")
        return ".".join(packages[: 3 if long else 2])
    _, inside, path = frame.place.replace("site-packages/", "node_modules/").rpartition("node_modules/")
    segments = (path if inside else frame.place).split("/")
    return "/".join(segments[: 2 if segments[0].startswith("@") else 1]).removesuffix(".py")


def read(path: Path) -> RuleFile:
    """Reads a file of rules. Raises UsageError naming file, line and key."""
    data, lines = read_mapping(path)
    return validate(RuleFile, data, path, lines)


@cache
def defaults(runtime: str) -> tuple[RuleFile, ...]:
    """Rules of a runtime (jvm, python, node, native), of native code and of the kernel."""
    rules: list[RuleFile] = []
    for name in dict.fromkeys((runtime, "native", "kernel")):
        with as_file(files("prony_explain").joinpath("defaults", f"{name}.yaml")) as path:
            if path.is_file():
                rules.append(read(path))
    return tuple(rules)


def rules_for(runtime: str, server: str = "", roots: Iterable[Path] = ()) -> Rules:
    """Rules of a server (and variant), its runtimes, and the defaults of `runtime`."""
    own = [read(path) for path in _own(server.partition(":")[0], tuple(roots))]
    every = [*own, *defaults(runtime)]
    top = next((file.otherwise for file in every if file.otherwise is not None), None)
    return Rules(
        tuple(rule for file in every for rule in file.rules),
        Place(top.part, top.name) if top is not None else Place(Part.APPLICATION),
    )


def _own(server: str, roots: Sequence[Path]) -> list[Path]:
    """Existing rule files of the server and of the runtimes that it inherits."""
    files: list[Path] = []
    seen: set[str] = set()
    name, file = server, "server.yaml"
    while name and name not in seen and "/" not in name:
        seen.add(name)
        folder = next((root / name for root in roots if (root / name / file).is_file()), None)
        if folder is None:
            break
        if (folder / EXPLAIN_FILE).is_file():
            files.append(folder / EXPLAIN_FILE)
        keys: Mapping[str, object] = read_mapping(folder / file)[0]
        name, file = str(keys.get("runtime") or ""), DEFAULTS_FILE
    return files
