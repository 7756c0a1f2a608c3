"""Static analysis of a script's JavaScript (config.processor)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from prony_frontends.artillery.script import ScriptNode
from prony_frontends.base import Refused

THERE = frozenset({
    "assert", "buffer", "crypto", "events", "form-data", "fs", "fs/promises", "os", "path", "path/posix",
    "perf_hooks", "querystring", "url", "util", "uuid", "uuid/v1", "uuid/v3",
    "uuid/v4", "uuid/v5",
})  # fmt: skip
"""Node modules that the engine's JavaScript provides, at least in part."""
NODES = frozenset({
    "assert/strict", "async_hooks", "child_process", "cluster", "console", "constants", "dgram",
    "diagnostics_channel", "dns", "dns/promises", "domain", "http", "http2", "https", "inspector",
    "inspector/promises", "module", "net", "path/win32", "process", "punycode", "readline",
    "readline/promises", "repl", "stream", "stream/consumers", "stream/promises", "stream/web",
    "string_decoder", "sys", "timers", "timers/promises", "tls", "trace_events", "tty", "util/types", "v8",
    "vm", "wasi", "worker_threads", "zlib",
})  # fmt: skip
"""Other modules of Node."""
ENDINGS = (".js", ".cjs", ".mjs")
FOLDERS = (".", "..")
"""Names of folders."""
MOST_FILES = 100
NAMED = re.compile(
    r"""\bvars\s*(?:\?\.|\.)\s*([A-Za-z_$][\w$]*)|\bvars\s*(?:\?\.)?\[\s*['"]([^'"]+)['"]\s*\]"""
)
"""A variable named in the source."""
WHOLE = re.compile(r"""\bvars\b(?!\s*(?:\?\.|\.)\s*[A-Za-z_$])(?!\s*(?:\?\.)?\[\s*['"])""")
"""All variables, or one with a computed name."""
IMPORTED = re.compile(
    r"""\brequire\s*\(\s*['"]([^'"]+)['"]\s*\)|\bimport\s*\(\s*['"]([^'"]+)['"]"""
    r"""|^\s*import\s*['"]([^'"]+)['"]|^\s*(?:import|export)\b[^'"();=]*\bfrom\s*['"]([^'"]+)['"]""",
    re.MULTILINE,
)
TEXT_OR_COMMENT = re.compile(
    r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|//[^\n]*|/\*.*?\*/""", re.DOTALL
)
ENVIRONMENT = re.compile(r"""\benv\s*(?:\?\.|\.)\s*(\w+)|\benv\s*\[\s*['"](\w+)['"]\s*\]""")
NO_NETWORK = (
    "Prony's JavaScript lacks this part of Node; write requests to a server into the flow or into before"
)
NO_TIMERS = "functions cannot wait in Prony; add a think to the flow"
ASKING = frozenset({
    "amqplib", "aws-sdk", "axios", "cross-fetch", "got", "ioredis", "isomorphic-fetch", "ky", "mongodb",
    "mongoose", "mysql", "mysql2", "needle", "node-fetch", "pg", "redis", "request", "request-promise",
    "socket.io-client", "superagent", "undici", "ws",
})  # fmt: skip
"""Packages that send requests and need missing parts of Node: installing them does not help."""
LAST_WHOLE = {"faker": "faker@5.5.3"}
"""Packages with an empty last release."""
NO_ASKING = (
    "it sends requests, which functions cannot do in Prony; write its requests into the flow or into before"
)
TYPESCRIPT = (
    "compile it: npx esbuild FILE.ts --bundle --platform=node --outfile=FILE.js, which is what Artillery does"
)


@dataclass(frozen=True)
class Processor:
    """A processor and the files that it loads."""

    file: Path
    source: str
    """Source of the processor and its own files; packages are left out."""

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of variables that its functions may read and set."""
        return frozenset(attribute or subscript for attribute, subscript in NAMED.findall(self.code))

    @cached_property
    def names_any(self) -> bool:
        """Whether it may use variables with computed names."""
        return WHOLE.search(self.code) is not None

    @cached_property
    def environment(self) -> frozenset[str]:
        """Names of environment variables that it reads."""
        return frozenset(attribute or subscript for attribute, subscript in ENVIRONMENT.findall(self.code))

    def has_function(self, name: str) -> bool:
        """Whether it appears to define this function."""
        word = re.escape(name)
        form = r"(?:async\s*)?(?:function\b|\([^()]*\)\s*=>|\w+\s*=>)"
        pattern = (
            rf"\bfunction\s+{word}\b|\b{word}\s*[:=]\s*{form}|\b{word}\s*\([^()]*\)\s*\{{|\bexports\.{word}\b"
        )
        return re.search(pattern, self.code) is not None

    @cached_property
    def code(self) -> str:
        """The source without comments."""
        return _without_comments(self.source)


NONE = Processor(Path(__file__).with_name("without_processor.js"), "")
"""Stands for a script without a processor: none of its functions exist."""


def processor(node: ScriptNode, folders: tuple[Path, ...]) -> Processor:
    """The processor, from the first folder that has it. Raises Refused and UsageError."""
    name = node.text("a JavaScript file")
    if name.endswith(".ts"):
        raise node.refused("a processor in TypeScript", TYPESCRIPT)
    if not name.endswith(ENDINGS):
        raise node.refused("a processor that is not JavaScript", f"compile it to one of {', '.join(ENDINGS)}")
    candidates = [folder / name for folder in folders if (folder / name).is_file()]
    if not candidates:
        raise node.wrong(f"a JavaScript file next to the script ({folders[0] / name} does not exist)")
    file = candidates[0].resolve()
    found = Processor(file, "\n".join(_sources(file, {}, node)))
    if (changed := re.search(r"\b(?:followRedirect|maxRedirects)\b", found.code)) is not None:
        raise node.refused(f"{changed[0]} in a function", "write it into the flow")
    return found


def _sources(file: Path, seen: dict[Path, str], node: ScriptNode) -> Iterator[str]:
    """Source of a file and of the files it loads by path."""
    if file in seen or len(seen) >= MOST_FILES:
        return
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise node.wrong(f"a JavaScript file that can be read; {file}: {fault}") from fault
    seen[file] = text
    yield text
    code = _without_comments(text)
    for match in IMPORTED.finditer(code):
        name = next(group for group in match.groups() if group is not None)
        instead = _missing(name, file)
        at = code.count("\n", 0, match.start()) + 1
        if instead is not None:
            raise Refused(f"require('{name}') in config.processor", str(file), at, match[0].strip(), instead)
        if not _is_path(name):
            continue
        beside = file.parent / name
        candidates = [beside, *(Path(f"{beside}{ending}") for ending in (*ENDINGS, ".json"))]
        if name in FOLDERS:
            candidates = []
        loaded = next((path for path in (*candidates, beside / "index.js") if path.is_file()), None)
        if loaded is not None and loaded.suffix != ".json":
            yield from _sources(loaded.resolve(), seen, node)
        elif loaded is None and not _is_late(code, match.start()) and not (beside / "package.json").is_file():
            raise Refused(
                f"require('{name}') in config.processor", str(file), at, match[0].strip(),
                "that file does not exist", "no_file",
            )  # fmt: skip


def _is_path(name: str) -> bool:
    """Whether it is a path, not a package."""
    return name in FOLDERS or name.startswith(("./", "../", "/"))


def _missing(name: str, file: Path) -> str | None:
    """Remedy for a missing Node module or package; None when it exists or is a path."""
    plain = name.removeprefix("node:")
    if _is_path(name) or plain in THERE:
        return None
    if plain.partition("/")[0] == "timers":
        return NO_TIMERS
    if name.startswith("node:") or name in NODES:
        return NO_NETWORK
    words = name.split("/")
    package = "/".join(words[: 2 if name.startswith("@") else 1])
    if any((folder / "node_modules" / package).is_dir() for folder in file.parents):
        return None
    if package in ASKING or package.startswith("@aws-sdk/"):
        return NO_ASKING
    whole = LAST_WHOLE.get(package, package)
    return f"install it where the script is (npm install {whole}), or copy the needed parts into the file"


def _is_late(code: str, at: int) -> bool:
    """Whether this position is inside a function or block, which may never run."""
    line = code[code.rfind("\n", 0, at) + 1 : at]
    return line[:1] in (" ", "\t")


def _without_comments(source: str) -> str:
    """The source with comments blanked and line numbers kept; a `//` in a text, such as a URL, stays."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0]) if match[0].startswith("/") else match[0]

    return TEXT_OR_COMMENT.sub(blank, source)
