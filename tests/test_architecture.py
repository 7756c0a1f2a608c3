"""The map of the laboratory in docs/architecture.md names every package, and imports only go up it; what can
be left out is imported by nothing that stays.
"""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
START = ("__init__", "__main__")
"""Modules at the top of the package that are no room of the map: they only start the command."""


def order() -> list[str]:
    """The packages as the page lists them."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = page.split("## The laboratory")[1].split("```")[1]
    names = [re.split(r" {2,}(?=[^ ]+ [^ ])", line)[0] for line in drawn.splitlines() if line[:1].strip()]
    return [name for listed in names for name in re.findall(r"\w+", listed)]


def imports() -> Iterator[tuple[str, str, Path]]:
    """Package, the package that it imports, and where; imports within functions as well."""
    for file in sorted((ROOT / "prony").rglob("*.py")):
        package = file.relative_to(ROOT).with_suffix("").parts[1]
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            named: list[str] = []
            if isinstance(node, ast.ImportFrom):
                module = node.module or ""
                named = [f"prony.{one.name}" for one in node.names] if module == "prony" else [module]
            elif isinstance(node, ast.Import):
                named = [one.name for one in node.names]
            for name in named:
                if name.startswith("prony.") and name.split(".")[1] != package:
                    yield package, name.split(".")[1], file


SHARED = ("base", "counted", "_exports", "markup", "patterns", "planfile_write", "request_log")
"""Modules of `prony_frontends` that every front end may import."""
NO_TOOLS = ("command", "importing", "_exports")
"""Of `prony_frontends`, what is no front end."""
ALLOWED = {"prony_selftest": {"prony_explain", "prony_peers"}}
"""Which package beside the laboratory imports which other one."""


def imported_by(file: Path) -> Iterator[str]:
    """Names of modules."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def beside() -> dict[str, Path]:
    """The packages beside the laboratory, by the name by which they are imported."""
    return {file.parent.name: file.parent for file in (ROOT / "packages").glob("*/prony_*/__init__.py")}


def test_what_can_be_left_out_is_imported_by_nothing_that_stays() -> None:
    found = beside()
    assert len(found) == 7
    for name, folder in {"prony": ROOT / "prony", **found}.items():
        allowed = {name, *ALLOWED.get(name, ())}
        wrong = [
            f"{file.relative_to(ROOT)} imports {module}"
            for file in sorted(folder.rglob("*.py"))
            for module in imported_by(file)
            if (root := module.partition(".")[0]) in found and root not in allowed
        ]
        assert wrong == []


def test_no_modules_import_each_other() -> None:
    """In a circle, also where the import is within a function or for types alone."""
    folders = [ROOT / "prony", *beside().values()]
    files = {
        ".".join(file.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): file
        for folder in folders
        for file in folder.rglob("*.py")
    }
    needs = {
        name: {
            there
            for module in imported_by(file)
            if (there := module if module in files else module.rpartition(".")[0]) in files and there != name
        }
        for name, file in files.items()
    }
    graphlib.TopologicalSorter(needs).prepare()  # raises CycleError, which names them


def front_end_imports() -> Iterator[tuple[str, str, Path]]:
    """Front end, the module of `prony_frontends` that it imports, and where."""
    folder = ROOT / "packages" / "prony-frontends" / "prony_frontends"
    for file in sorted(folder.rglob("*.py")):
        package = file.relative_to(folder).with_suffix("").parts[0]
        for module in imported_by(file):
            names = module.split(".")
            if names[0] == "prony_frontends" and len(names) > 1 and package not in NO_TOOLS:
                yield package, names[1], file


def test_a_front_end_imports_no_other() -> None:
    """But what all share, and what a family of tools shares, in a package that begins with `_`."""
    found = list(front_end_imports())
    others = [
        f"{file.relative_to(ROOT)} imports {imported}"
        for package, imported, file in found
        if imported not in (package, *SHARED) and not imported.startswith("_")
    ]
    shared = [
        f"{file.relative_to(ROOT)} imports {imported}"
        for package, imported, file in found
        if package.startswith("_") and imported not in (package, *SHARED)
    ]
    assert others + shared == []
    assert {"base", "_wrk", "jmeter"} <= {imported for _, imported, _ in found}


def test_the_map_names_every_package() -> None:
    present = {path.stem for path in (ROOT / "prony").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert sorted(order()) == sorted(present - {*START, "__pycache__"})


def test_a_package_imports_only_from_those_above_it() -> None:
    drawn = order()
    found = [
        f"{file.relative_to(ROOT)} imports {imported}"
        for package, imported, file in imports()
        if package not in START and imported in drawn and drawn.index(imported) > drawn.index(package)
    ]
    assert found == []
