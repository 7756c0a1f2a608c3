"""Locates data files, and reports all missing files at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from prony.errors import UsageError
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import REMARKS, SIMPLE, JmxNode

DATA_SET = "CSVDataSet"
READ_BY_FUNCTIONS = re.compile(
    r"(?<!\\)\$\{\s*__(?:CSVRead|StringFromFile|FileToString)\s*\(\s*([^*,(){}$\\][^,(){}$\\]*)(?=[,)])"
)
"""A constant file name in a text. A leading * is an alias of `__CSVRead`."""
LONGEST_HEAD = 1 << 16
"""Characters of the first line that may contain column names."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file named by the plan."""

    name: str
    written: str
    """Name in the plan."""
    at: JmxNode
    undefined: tuple[str, ...] = ()
    """Undefined variables in its name."""

    def words(self, plan: str) -> str:
        """Description for the error; `plan`: the file named at its beginning."""
        place = f"line {self.at.line}" if self.at.file == plan else f"{self.at.file}:{self.at.line}"
        if self.undefined:
            return f"{self.name} ({place}; no value for {', '.join(self.undefined)})"
        written = "" if self.written == self.name else f", written {self.written}"
        return f"{self.name} ({place}{written})"


def located(name: str, values: KnownValues) -> Path:
    """The path of a file: as in the plan, or in the folder of `--csv-dir`."""
    file = values.folder / name
    if values.csv_dir is None or _is_file(file):
        return file
    beside = values.csv_dir / name
    return beside if _is_file(beside) else values.csv_dir / PureWindowsPath(name).name  # splits at / and \


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # name too long
        return False


def check_files(top: JmxNode, values: KnownValues) -> None:
    """Raises UsageError that lists all missing files of data sets and functions."""
    missing: dict[str, NamedFile] = {}
    for file in (*_of_data_sets(top, values), *_of_functions(top)):
        if not _is_file(located(file.name, values)):
            missing.setdefault(file.name, file)
    if not missing:
        return
    absent = list(missing.values())
    first = absent[0].at
    advice = "define the variables, " if any(file.undefined for file in absent) else ""
    raise UsageError(
        f"{first.file}:{first.line}: {len(absent)} data file{'s are' if len(absent) > 1 else ' is'} missing: "
        f"{', '.join(file.words(first.file) for file in absent)}; {advice}put them next to the plan, or name "
        "their folder with --csv-dir"
    )


def _of_data_sets(top: JmxNode, values: KnownValues) -> Iterator[NamedFile]:
    """Files of data sets with names known before the run."""
    nodes = [node for node in top.everything() if node.tag == DATA_SET]
    named = [(node, file) for node in nodes if (file := _named(node, values)) is not None]
    columns = {column for node, file in named for column in _columns(node, located(file.name, values))}
    for _, file in named:
        if columns.isdisjoint(file.undefined):  # otherwise its name changes during the run
            yield file


def _named(node: JmxNode, values: KnownValues) -> NamedFile | None:
    """None without a name, or where it changes during the run."""
    written = node.value("filename").strip()
    scratch_copy = values.scratch_copy()
    try:
        name = (scratch_copy.text(written, node).constant or "").strip()
    except UsageError:  # reported when the element is read
        return None
    return NamedFile(name, written, node, tuple(scratch_copy.undefined)) if name else None


def _columns(node: JmxNode, file: Path) -> list[str]:
    """The variables of a data set: as named, or from the file's first line."""
    listed, delimiter = node.value("variableNames"), ","
    if not listed.strip() and _is_file(file):
        delimiter = node.value("delimiter", ",") or ","
        try:
            with file.open(encoding="utf-8-sig", errors="replace") as stream:
                listed = stream.readline(LONGEST_HEAD)
        except OSError:  # reported when the file is read
            return []
    mark = "\t" if delimiter == "\\t" else delimiter
    return [name.strip().strip('"') for name in listed.split(mark)]


def _of_functions(top: JmxNode) -> Iterator[NamedFile]:
    """Files of functions with constant names."""
    for node in top.everything():
        for text in _texts(node):
            for name in READ_BY_FUNCTIONS.findall(text.text):
                yield NamedFile(name.strip(), name.strip(), text)


def _texts(node: JmxNode) -> Iterator[JmxNode]:
    """All texts in the properties of an element."""
    for child in node.children:
        if child.attributes.get("name") in REMARKS:
            continue
        if child.tag in SIMPLE and "${" in child.text:
            yield child
        yield from _texts(child)
