"""Prony's components: the crates linked into the engine and the packages imported by the laboratory, with
versions, licences and, for crates, hashes.

`tools/sbom.py` prints a bill of materials (CycloneDX 1.6, JSON). `tools/sbom.py --audit` checks licences,
lists components in several versions, and says what is not checked. Reads `cargo metadata` and the packages
installed for this Python.
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
"""No crate is specific to one of the two architectures."""
ALLOWED = frozenset(
    {
        "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0",
        "CC0-1.0", "CDLA-Permissive-2.0", "ISC", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0",
        "Python-2.0", "Unicode-3.0", "Unlicense", "Zlib",
    }
)  # fmt: skip
"""None restricts the licence of the whole; MPL-2.0 covers its own files only, which are unchanged."""
LIKEWISE_ALLOWED = {
    "psycopg": "LGPL-3.0-only",
    "psycopg-binary": "LGPL-3.0-only",
    "asyncssh": "EPL-2.0 OR GPL-2.0-or-later",
}
"""In optional extras only."""
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
"""Licence names of packages without an SPDX expression."""
EXPRESSION = re.compile(r"[\w.+()-]+( (AND|OR|WITH) [\w.+()-]+)*")


class Unclear(Exception):
    """The components cannot be determined; `str()` says why."""


@dataclass(frozen=True, order=True, slots=True)
class Component:
    """A package in one version."""

    kind: str
    """`cargo` or `pypi`, as in package URLs."""
    name: str
    version: str
    licence: str
    """An SPDX expression; empty if unknown."""
    sha256: str = ""

    @property
    def url(self) -> str:
        return f"pkg:{self.kind}/{self.name}@{self.version}"


def crates(root: Path) -> list[Component]:
    """All crates that the engine is linked from or built by, except its own."""
    words = ("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", PLATFORM)
    manifest = root / "engine" / "Cargo.toml"
    try:
        done = subprocess.run(
            [*words, "--manifest-path", str(manifest)], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as fault:
        output = getattr(fault, "stderr", None) or str(fault)
        raise Unclear(f"cargo metadata failed: {str(output).strip().splitlines()[-1]}") from fault
    lock = tomllib.loads((root / "engine" / "Cargo.lock").read_text(encoding="utf-8"))
    return linked(json.loads(done.stdout), lock)


def linked(told: dict[str, Any], lock: dict[str, Any]) -> list[Component]:
    """Crates in cargo's metadata, without dev dependencies."""
    packages = {package["id"]: package for package in told["packages"]}
    needs = {
        node["id"]: [
            dep["pkg"] for dep in node["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])
        ]
        for node in told["resolve"]["nodes"]
    }
    begin = next(key for key, package in packages.items() if package["name"] == ENGINE)
    hashes = {(entry["name"], entry["version"]): entry.get("checksum", "") for entry in lock["package"]}
    needed = (packages[key] for key in reached(begin, needs))
    return sorted(
        Component(
            "cargo",
            crate["name"],
            crate["version"],
            spelt(crate["license"] or ""),
            hashes.get((crate["name"], crate["version"]), ""),
        )
        for crate in needed
        if crate["source"] is not None
    )


def reached(begin: str, needs: dict[str, list[str]]) -> set[str]:
    """The transitive closure."""
    closure: set[str] = set()
    left = [begin]
    while left:
        key = left.pop()
        if key not in closure:
            closure.add(key)
            left += needs.get(key, [])
    return closure


def packages(root: Path) -> list[Component]:
    """All installed packages that the laboratory imports, extras included."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {}).values()
    texts = (*project["dependencies"], *(text for extra in extras for text in extra))
    left = [Requirement(text) for text in texts]
    components: dict[str, Component] = {}
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
                raise Unclear(f"{wanted.name} is not installed for {sys.executable}: make setup") from None
            if name.partition("-")[0] != OWN:
                components[name] = Component("pypi", name, installed.version, licence_of(installed.metadata))
            needed = map(Requirement, installed.requires or ())
            left += [need for need in needed if need.marker is None or need.marker.evaluate({"extra": extra})]
    return sorted(components.values())


def licence_of(told: Any) -> str:
    """Licence in a package's metadata: the expression, else the text, else the classifiers."""
    expression = told.get("License-Expression")
    if expression:
        return str(expression)
    words = spelt(str(told.get("License") or "").strip())
    if EXPRESSION.fullmatch(words):
        return words
    classes = (
        classifier for classifier in told.get_all("Classifier") or () if classifier.startswith("License :: ")
    )
    return " AND ".join(sorted({spelt(classifier.rpartition(" :: ")[2]) for classifier in classes}))


def spelt(licence: str) -> str:
    """The licence as an SPDX expression."""
    licence = SPELT.get(licence, licence)
    return re.sub(r"\s*/\s*", " OR ", licence)


def known(licence: str) -> bool:
    """Whether an SPDX expression is allowed."""
    words = re.findall(r"[()]|[^\s()]+(?: WITH [^\s()]+)?", licence)
    allowed, rest = _either(words)
    return allowed and not rest


def _either(words: Sequence[str]) -> tuple[bool, Sequence[str]]:
    allowed, rest = _both(words)
    while rest and rest[0] == "OR":
        more, rest = _both(rest[1:])
        allowed = allowed or more
    return allowed, rest


def _both(words: Sequence[str]) -> tuple[bool, Sequence[str]]:
    allowed, rest = _one(words)
    while rest and rest[0] == "AND":
        more, rest = _one(rest[1:])
        allowed = allowed and more
    return allowed, rest


def _one(words: Sequence[str]) -> tuple[bool, Sequence[str]]:
    if words and words[0] == "(":
        allowed, rest = _either(words[1:])
        return allowed, rest[1:] if rest and rest[0] == ")" else ["?"]
    return bool(words) and words[0] in ALLOWED, words[1:]


def document(root: Path = ROOT) -> dict[str, Any]:
    """The bill of materials of the sources in this folder; deterministic."""
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
        "components": [_as_json(component) for component in components],
    }


def _as_json(one: Component) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": "library",
        "bom-ref": one.url,
        "name": one.name,
        "version": one.version,
        "purl": one.url,
    }
    if one.licence:
        entry["licenses"] = [{"expression": one.licence}]
    if one.sha256:
        entry["hashes"] = [{"alg": "SHA-256", "content": one.sha256}]
    return entry


def refused(components: Iterable[Component]) -> list[str]:
    """Components whose licence is not allowed, as sentences."""
    return [
        f"{component.name} {component.version}: {component.licence or 'no licence'}"
        for component in components
        if not known(component.licence) and LIKEWISE_ALLOWED.get(component.name) != component.licence
    ]


def several(components: Iterable[Component]) -> list[str]:
    """Components with more than one version."""
    versions: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for component in components:
        versions[component.kind, component.name].append(component.version)
    return [f"{name} {', '.join(every)}" for (_, name), every in versions.items() if len(every) > 1]


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
    print("not checked: known vulnerabilities (no package registry has their database)")
    for sentence in wrong:
        print(f"licence not in the list of tools/sbom.py: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
