"""setup: what differs between compared servers other than their programs: TLS, addresses, flags, writes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import takewhile
from pathlib import PurePath
from statistics import median_low
from typing import Any

from prony.evidence.trial import Evidence
from prony.judge.finding import Finding
from prony.judge.window import measured
from prony.numbers import number

CHECK = "setup"
RESUMED_APART = 5.0
"""Difference in resumed TLS handshakes, in points, ..."""
HANDSHAKES = 0.01
"""... named from this number of handshakes per request."""
WRITTEN_APART = 32.0
"""Difference of bytes written per request besides the responses: a line of a log is longer ..."""
WRITTEN_PER_S = 16_384.0
"""... at this rate; what a runtime writes for itself is slower."""
HEADERS = 1.05
"""Written ÷ received bytes of a server that writes responses only, at most."""
JAVA_FLAG = re.compile(
    r"-X(?!X:ErrorFile)|-javaagent:(?!.*agent\.sock$)|-agent(lib|path):|-D.*(pool|thread|parallel|worker)",
    re.I,
)
"""Flags of a JVM that change its speed, but for those that Prony gives each trial."""
PATHS = frozenset({"-cp", "-classpath", "--class-path", "-p", "--module-path"})
"""Options of a JVM whose value is the next word, and no difference."""
PROGRAM_NEXT = frozenset({"-jar", "-m", "--module"})

By = Mapping[str, Sequence[Evidence]]


def setup(by_server: By) -> Finding | None:
    """What differs is a condition. None below two servers."""
    if len(by_server) < 2:
        return None
    differences = {
        code: each for code, (differing, _) in DIFFERENCES.items() if (each := differing(by_server))
    }
    return Finding(
        check=CHECK,
        code=next(iter(differences), "ok"),
        value=", ".join(differences),
        provided=condition(differences),
        reason="; ".join(map(_words, differences, differences.values()))
        or f"alike: {', '.join(DIFFERENCES)}",
        advice="; ".join(DIFFERENCES[code][1] for code in differences),
        limit="compared servers differ in their programs only",
    )


def condition(codes: Collection[str]) -> str:
    """That all that differs is meant to; empty where nothing does."""
    *first, last = codes or ("",)
    named = f"{', '.join(first)} and {last}" if first else last
    return f"the difference in {named} is intended" if last else ""


def _words(code: str, by_server: Mapping[str, str]) -> str:
    """flags: none (a, b), -Xint (c)."""
    groups: dict[str, str] = {}
    for server, text in by_server.items():
        groups[text] = f"{groups[text]}, {server}" if text in groups else server
    return f"{code}: {', '.join(f'{text} ({servers})' for text, servers in groups.items())}"


def _unequal(
    of: Callable[[Evidence], Any], by_server: By, least: float = 0.0, unit: str = ""
) -> dict[str, str]:
    """The median of each server's trials, where servers differ; numbers have a unit, and by `least`."""
    read = {
        server: [value for t in trials if (value := of(t)) is not None]
        for server, trials in by_server.items()
    }
    usual = {server: median_low(values) for server, values in read.items() if values}
    known = sorted(set(usual.values()))
    if len(known) < 2 or (unit and known[-1] - known[0] <= least):
        return {}
    return {server: f"{number(value)} {unit}" if unit else value for server, value in usual.items()}


def _protocols(evidence: Evidence) -> str | None:
    http = f"HTTP/{evidence.load.http_version}"
    if not evidence.load.tls:
        return f"{http} without TLS"
    agreed = evidence.engine.totals.tls_agreed if evidence.engine is not None else ()
    usual = max(agreed, key=lambda kind: kind.count, default=None)
    return None if usual is None else f"{http}, TLS {usual.version}, {usual.cipher_suite}"


def _resumed(evidence: Evidence) -> float | None:
    totals = None if evidence.engine is None else evidence.engine.totals
    if totals is None or not totals.tls_handshakes or totals.tls_resumptions is None:
        return None
    many = totals.tls_handshakes >= HANDSHAKES * totals.sent
    return 100 * totals.tls_resumptions / totals.tls_handshakes if many else None


def _addresses(evidence: Evidence) -> str | None:
    ready = None if evidence.engine is None else evidence.engine.ready
    if ready is None or ready.transport == "unix":
        return None if ready is None else "a Unix socket"
    families = Counter("IPv6" if address.startswith("[") else "IPv4" for address in ready.addresses)
    return " and ".join(name if n == 1 else f"{n} × {name}" for name, n in sorted(families.items())) or None


def _program(evidence: Evidence) -> str:
    return PurePath(evidence.server.command[0]).name


def _own_flags(evidence: Evidence) -> frozenset[str]:
    """Flags of the runtime: before the program that it runs; of a JVM also its heap, collectors and JDK."""
    java, port = _program(evidence) == "java", str(evidence.server.port)
    words = [*evidence.server.command[1:]]
    if java:
        words = [word for before, word in zip(["", *words], words, strict=False) if before not in PATHS]
    flags = takewhile(lambda word: word.startswith("-") and word not in PROGRAM_NEXT, words)
    given = [
        word for word in flags if (JAVA_FLAG.match(word) if java else port not in re.findall(r"\d+", word))
    ]
    jvm = None if evidence.server_window is None else evidence.server_window.jvm_close
    if jvm is not None:
        given += [f"heap {number(jvm.heap_max_bytes / 2**20)} MiB", *jvm.gc_names]
    if "jdk" in evidence.server.versions:
        given.append(f"JDK {evidence.server.versions['jdk']}")
    return frozenset(given)


def _flags(by_server: By) -> dict[str, str]:
    """Flags in all trials of a server that not all servers of its runtime have."""
    by_program: dict[str, dict[str, frozenset[str]]] = {}
    for server, trials in by_server.items():
        if all(trial.server.command for trial in trials):
            own = frozenset.intersection(*map(_own_flags, trials))
            by_program.setdefault(_program(trials[0]), {})[server] = own
    declared: dict[str, str] = {}
    for flags in by_program.values():
        common = frozenset.intersection(*flags.values())
        if any(own - common for own in flags.values()):
            declared |= {server: ", ".join(sorted(own - common)) or "none" for server, own in flags.items()}
    return declared


def written_per_request(evidence: Evidence) -> float | None:
    """Bytes to disks, or by write calls beyond the responses (without services). None: not read."""
    window, server = measured(evidence), evidence.server_window
    if window is None or server is None or server.disk_bytes is None or not window.completed:
        return None
    written = float(server.disk_bytes)
    plain = not (evidence.services or evidence.server.forwards or evidence.load.tls)
    if plain and server.written_bytes is not None and window.bytes_received is not None:
        written = max(written, server.written_bytes - HEADERS * window.bytes_received)
    return written / window.completed if written >= WRITTEN_PER_S * window.duration_s else 0.0


DIFFERENCES: Mapping[str, tuple[Callable[[By], dict[str, str]], str]] = {
    "protocols": (
        partial(_unequal, _protocols),
        "offer the same versions of HTTP and TLS, and the same cipher suites",
    ),
    "resumption": (
        partial(_unequal, _resumed, least=RESUMED_APART, unit="% of TLS handshakes resumed"),
        "switch session resumption on for all servers, or off",
    ),
    "addresses": (
        partial(_unequal, _addresses),
        "give each server as an address of the same family",
    ),
    "flags": (_flags, "start the servers with the same flags, heap, collector and agents"),
    "writes": (
        partial(_unequal, written_per_request, least=WRITTEN_APART, unit="bytes per request"),
        "give all servers the same log level",
    ),
}
"""Code -> (server -> its own, in words, where servers differ; advice)."""
