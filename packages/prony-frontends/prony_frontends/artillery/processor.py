"""The JavaScript that a script names as config.processor: what of it can be known before it runs."""

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
"""Modules that the engine's JavaScript has itself, all or in part."""
NODES = frozenset({
    "assert/strict", "async_hooks", "child_process", "cluster", "console", "constants", "dgram",
    "diagnostics_channel", "dns", "dns/promises", "domain", "http", "http2", "https", "inspector",
    "inspector/promises", "module", "net", "path/win32", "process", "punycode", "readline",
    "readline/promises", "repl", "stream", "stream/consumers", "stream/promises", "stream/web",
    "string_decoder", "sys", "timers", "timers/promises", "tls", "trace_events", "tty", "util/types", "v8",
    "vm", "wasi", "worker_threads", "zlib",
})  # fmt: skip
"""Others of Node's library."""
ENDINGS = (".js", ".cjs", ".mjs")
FOLDERS = (".", "..")
"""Names of folders."""
MOST_FILES = 100
NAMED = re.compile(
    r"""\bvars\s*(?:\?\.|\.)\s*([A-Za-z_$][\w$]*)|\bvars\s*(?:\?\.)?\[\s*['"]([^'"]+)['"]\s*\]"""
)
"""A variable that the source names."""
WHOLE = re.compile(r"""\bvars\b(?!\s*(?:\?\.|\.)\s*[A-Za-z_$])(?!\s*(?:\?\.)?\[\s*['"])""")
"""The variables as a whole, or one by a name that is made up while it runs."""
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
    "Prony's JavaScript has not this part of Node's library; what a function asks a server for write into "
    "the flow, or into before"
)
NO_TIMERS = "a function cannot wait in Prony; write the pause into the flow, as a think"
ASKING = frozenset({
    "amqplib", "aws-sdk", "axios", "cross-fetch", "got", "ioredis", "isomorphic-fetch", "ky", "mongodb",
    "mongoose", "mysql", "mysql2", "needle", "node-fetch", "pg", "redis", "request", "request-promise",
    "socket.io-client", "superagent", "undici", "ws",
})  # fmt: skip
"""Packages that ask servers, and so need of Node's library what is not here: to install them is no help."""
LAST_WHOLE = {"faker": "faker@5.5.3"}
"""Packages whose last release is empty."""
NO_ASKING = (
    "it asks servers, which a function cannot do in Prony, installed or not; write its requests into the "
    "flow, or into before"
)
TYPESCRIPT = (
    "compile it: npx esbuild FILE.ts --bundle --platform=node --outfile=FILE.js, which is what Artillery does"
)


@dataclass(frozen=True)
class Processor:
    """A processor and the files that it loads."""

    file: Path
    source: str
    """Of all files beside it, one after the other; packages are not looked into."""

    @cached_property
    def names(self) -> frozenset[str]:
        """Variables that it names, which its functions may read and set."""
        return frozenset(one or other for one, other in NAMED.findall(self._code))

    @cached_property
    def names_any(self) -> bool:
        """Its functions may read and set variables whose names it does not say."""
        return WHOLE.search(self._code) is not None

    @cached_property
    def environment(self) -> frozenset[str]:
        """Environment variables that it names."""
        return frozenset(one or other for one, other in ENVIRONMENT.findall(self._code))

    def has_function(self, name: str) -> bool:
        """Whether it seems to define a function of this name."""
        word = re.escape(name)
        made = r"(?:async\s*)?(?:function\b|\([^()]*\)\s*=>|\w+\s*=>)"
        found = (
            rf"\bfunction\s+{word}\b|\b{word}\s*[:=]\s*{made}|\b{word}\s*\([^()]*\)\s*\{{|\bexports\.{word}\b"
        )
        return re.search(found, self._code) is not None

    @cached_property
    def _code(self) -> str:
        return _without_comments(self.source)


NONE = Processor(Path(__file__).with_name("without_processor.js"), "")
"""Of a script that names none: every function that it calls is one that is not there."""


def processor(node: ScriptNode, folders: tuple[Path, ...]) -> Processor:
    """The processor, in the first of the folders that has it. Raises Refused and UsageError for what cannot
    be run.
    """
    name = node.text("a JavaScript file")
    if name.endswith(".ts"):
        raise node.refused("a processor in TypeScript", TYPESCRIPT)
    if not name.endswith(ENDINGS):
        raise node.refused("a processor that is not JavaScript", f"compile it to one of {', '.join(ENDINGS)}")
    found = [folder / name for folder in folders if (folder / name).is_file()]
    if not found:
        raise node.wrong(f"a JavaScript file beside the script ({folders[0] / name} is not there)")
    file = found[0].resolve()
    return Processor(file, "\n".join(_sources(file, {}, node)))


def _sources(file: Path, seen: dict[Path, str], node: ScriptNode) -> Iterator[str]:
    """The source of a file and of those beside it that it loads."""
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
        loaded = next((one for one in (*candidates, beside / "index.js") if one.is_file()), None)
        if loaded is not None and loaded.suffix != ".json":
            yield from _sources(loaded.resolve(), seen, node)
        elif loaded is None and not _is_late(code, match.start()) and not (beside / "package.json").is_file():
            raise Refused(
                f"require('{name}') in config.processor", str(file), at, match[0].strip(),
                "that file is not there",
            )  # fmt: skip


def _is_path(name: str) -> bool:
    """Whether it names a file or a folder, and no package."""
    return name in FOLDERS or name.startswith(("./", "../", "/"))


def _missing(name: str, file: Path) -> str | None:
    """What could be done about a module of Node or a package that is not there; None where it is, or is a
    file.
    """
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
    return (
        f"install it where the script is (npm install {whole}), or write what is needed of it into the file"
    )


def _is_late(code: str, at: int) -> bool:
    """Whether this stands within a function or a block, which may never be reached."""
    line = code[code.rfind("\n", 0, at) + 1 : at]
    return line[:1] in (" ", "\t")


def _without_comments(source: str) -> str:
    """The source with blanks in place of comments; lines stay where they are. A `//` within a text, as in a
    URL, is none.
    """

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0]) if match[0].startswith("/") else match[0]

    return TEXT_OR_COMMENT.sub(blank, source)
