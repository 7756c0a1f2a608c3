"""What Prony is made of: the crates that the engine is linked from and the packages that the laboratory
imports, with versions, licences and, of crates, hashes.

`tools/sbom.py` prints a bill of materials (CycloneDX 1.6, JSON). `tools/sbom.py --audit` checks the licences,
lists what is there in several versions, and says what it did not check. Read from `cargo metadata` and from
the packages that are installed beside this Python.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
ENGINE = "prony-engine"
OWN = "prony"
PLATFORM = "x86_64-unknown-linux-gnu"
"""No crate is for one of the two architectures alone."""
ALLOWED = frozenset(
    {
        "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0",
        "CC0-1.0", "CDLA-Permissive-2.0", "ISC", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0",
        "Python-2.0", "Unicode-3.0", "Unlicense", "Zlib",
    }
)  # fmt: skip
"""None of them says how the whole may be licensed; MPL-2.0 does of its own files, which are unchanged."""
LIKEWISE_ALLOWED = {
    "psycopg": "LGPL-3.0-only",
    "psycopg-binary": "LGPL-3.0-only",
    "asyncssh": "EPL-2.0 OR GPL-2.0-or-later",
}
"""Of optional extras, which nobody gets who does not ask for them."""
SPELT = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""How packages without an SPDX expression say it."""
EXPRESSION = re.compile(r"[\w.+()-]+( (AND|OR|WITH) [\w.+()-]+)*")


class Unclear(Exception):
    """What Prony is made of cannot be told; `str()` says why in a sentence."""


@dataclass(frozen=True, order=True, slots=True)
class Component:
    """A package in one version."""

    kind: str
    """`cargo` or `pypi`, as in its package URL."""
    name: str
    version: str
    licence: str
    """An SPDX expression; empty where it says none."""
    sha256: str = ""

    @property
    def url(self) -> str:
        return f"pkg:{self.kind}/{self.name}@{self.version}"


def crates(root: Path) -> list[Component]:
    """All that the engine is linked from or built by, itself apart."""
    words = ("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", PLATFORM)
    manifest = root / "engine" / "Cargo.toml"
    try:
        done = subprocess.run(
            [*words, "--manifest-path", str(manifest)], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as fault:
        said = getattr(fault, "stderr", None) or str(fault)
        raise Unclear(f"cargo metadata failed: {str(said).strip().splitlines()[-1]}") from fault
    lock = tomllib.loads((root / "engine" / "Cargo.lock").read_text(encoding="utf-8"))
    return linked(json.loads(done.stdout), lock)


def linked(told: dict[str, Any], lock: dict[str, Any]) -> list[Component]:
    """By what cargo tells, without what only tests need."""
    packages = {package["id"]: package for package in told["packages"]}
    needs = {
        node["id"]: [
            dep["pkg"] for dep in node["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])
        ]
        for node in told["resolve"]["nodes"]
    }
    begin = next(key for key, package in packages.items() if package["name"] == ENGINE)
    hashes = {(one["name"], one["version"]): one.get("checksum", "") for one in lock["package"]}
    found = (packages[key] for key in reached(begin, needs))
    return sorted(
        Component(
            "cargo",
            one["name"],
            one["version"],
            spelt(one["license"] or ""),
            hashes.get((one["name"], one["version"]), ""),
        )
        for one in found
        if one["source"] is not None
    )


def reached(begin: str, needs: dict[str, list[str]]) -> set[str]:
    """Everything that is needed, directly or not."""
    found: set[str] = set()
    left = [begin]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += needs.get(one, [])
    return found


def packages(root: Path) -> list[Component]:
    """All that the laboratory imports, optional extras included, as it is installed here."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {}).values()
    left = [
        Requirement(one) for one in (*project["dependencies"], *(one for extra in extras for one in extra))
    ]
    found: dict[str, Component] = {}
    done: set[tuple[str, str]] = set()
    while left:
        wanted = left.pop()
        name = canonicalize_name(wanted.name)
        for extra in ("", *wanted.extras):
            if (name, extra) in done:
                continue
            done.add((name, extra))
            try:
                installed = metadata.distribution(wanted.name)
            except metadata.PackageNotFoundError:
                raise Unclear(f"{wanted.name} is not installed beside {sys.executable}: make setup") from None
            if name.partition("-")[0] != OWN:
                found[name] = Component("pypi", name, installed.version, licence_of(installed.metadata))
            needed = map(Requirement, installed.requires or ())
            left += [one for one in needed if one.marker is None or one.marker.evaluate({"extra": extra})]
    return sorted(found.values())


def licence_of(told: Any) -> str:
    """By a package's metadata: the expression, else its words, else its classifiers."""
    expression = told.get("License-Expression")
    if expression:
        return str(expression)
    words = spelt(str(told.get("License") or "").strip())
    if EXPRESSION.fullmatch(words):
        return words
    classes = (one for one in told.get_all("Classifier") or () if one.startswith("License :: "))
    return " AND ".join(sorted({spelt(one.rpartition(" :: ")[2]) for one in classes}))


def spelt(licence: str) -> str:
    """As SPDX writes it."""
    licence = SPELT.get(licence, licence)
    return re.sub(r"\s*/\s*", " OR ", licence)


def known(licence: str) -> bool:
    """Whether an SPDX expression allows what Prony does with it."""
    words = re.findall(r"[()]|[^\s()]+(?: WITH [^\s()]+)?", licence)
    allowed, rest = _either(words)
    return allowed and not rest


def _either(words: Sequence[str]) -> tuple[bool, Sequence[str]]:
    found, rest = _both(words)
    while rest and rest[0] == "OR":
        more, rest = _both(rest[1:])
        found = found or more
    return found, rest


def _both(words: Sequence[str]) -> tuple[bool, Sequence[str]]:
    found, rest = _one(words)
    while rest and rest[0] == "AND":
        more, rest = _one(rest[1:])
        found = found and more
    return found, rest


def _one(words: Sequence[str]) -> tuple[bool, Sequence[str]]:
    if words and words[0] == "(":
        found, rest = _either(words[1:])
        return found, rest[1:] if rest and rest[0] == ")" else ["?"]
    return bool(words) and words[0] in ALLOWED, words[1:]


def document(root: Path = ROOT) -> dict[str, Any]:
    """The bill of materials of the sources in this folder. The same sources give the same document."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return bill(project["name"], project["version"], project["license"], [*crates(root), *packages(root)])


def bill(name: str, version: str, licence: str, components: Iterable[Component]) -> dict[str, Any]:
    """CycloneDX 1.6 (cyclonedx.org/docs/1.6/json)."""
    own = f"pkg:pypi/{name}@{version}"
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": name,
                "version": version,
                "licenses": [{"expression": licence}],
                "purl": own,
            }
        },
        "components": [_as_json(one) for one in components],
    }


def _as_json(one: Component) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": one.url,
        "name": one.name,
        "version": one.version,
        "purl": one.url,
    }
    if one.licence:
        made["licenses"] = [{"expression": one.licence}]
    if one.sha256:
        made["hashes"] = [{"alg": "SHA-256", "content": one.sha256}]
    return made


def refused(components: Iterable[Component]) -> list[str]:
    """Sentences on those whose licence nobody has looked at."""
    return [
        f"{one.name} {one.version}: {one.licence or 'no licence'}"
        for one in components
        if not known(one.licence) and LIKEWISE_ALLOWED.get(one.name) != one.licence
    ]


def several(components: Iterable[Component]) -> list[str]:
    """What is there in more than one version."""
    versions: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for one in components:
        versions[one.kind, one.name].append(one.version)
    return [f"{name} {', '.join(found)}" for (_, name), found in versions.items() if len(found) > 1]


def main(words: Sequence[str]) -> int:
    try:
        if list(words) != ["--audit"]:
            print(json.dumps(document(), indent=1))
            return 0
        components = [*crates(ROOT), *packages(ROOT)]
    except Unclear as fault:
        print(f"tools/sbom.py: {fault}", file=sys.stderr)
        return 1
    wrong, twice = refused(components), several(components)
    print(f"{len(components)} packages; in several versions: {'; '.join(twice) or 'none'}")
    print("not checked: known vulnerabilities, whose databases are not a package registry's")
    for sentence in wrong:
        print(f"its licence is none that tools/sbom.py allows: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
