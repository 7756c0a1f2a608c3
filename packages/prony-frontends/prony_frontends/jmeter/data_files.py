"""Where data files lie, and the one sentence about all that are missing."""

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
"""The constant name of a file in a text. What begins with * is an alias of `__CSVRead`."""
LONGEST_HEAD = 1 << 16
"""Characters of a first line that may hold the names of columns."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that the plan names."""

    name: str
    written: str
    """As it stands in the plan."""
    at: JmxNode
    undefined: tuple[str, ...] = ()
    """Variables in its name that have no value."""

    def words(self, plan: str) -> str:
        """For the sentence that it is missing; `plan`: the file that the sentence begins with."""
        place = f"line {self.at.line}" if self.at.file == plan else f"{self.at.file}:{self.at.line}"
        if self.undefined:
            return f"{self.name} ({place}; no value for {', '.join(self.undefined)})"
        written = "" if self.written == self.name else f", written {self.written}"
        return f"{self.name} ({place}{written})"


def located(name: str, values: KnownValues) -> Path:
    """The file of this name: where the plan says, or else in the folder of `--csv-dir`."""
    file = values.folder / name
    if values.csv_dir is None or _is_there(file):
        return file
    beside = values.csv_dir / name
    return beside if _is_there(beside) else values.csv_dir / PureWindowsPath(name).name  # knows / and \


def _is_there(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # a name that is too long
        return False


def check_files(top: JmxNode, values: KnownValues) -> None:
    """Raises UsageError where files of data sets and of functions are not there, for all of them at once."""
    missing: dict[str, NamedFile] = {}
    for file in (*_of_data_sets(top, values), *_of_functions(top)):
        if not _is_there(located(file.name, values)):
            missing.setdefault(file.name, file)
    if not missing:
        return
    found = list(missing.values())
    first = found[0].at
    advice = "define the variables, " if any(file.undefined for file in found) else ""
    raise UsageError(
        f"{first.file}:{first.line}: {len(found)} data file{'s are' if len(found) > 1 else ' is'} not there: "
        f"{', '.join(file.words(first.file) for file in found)}; {advice}put them beside the plan, or name "
        "their folder with --csv-dir"
    )


def _of_data_sets(top: JmxNode, values: KnownValues) -> Iterator[NamedFile]:
    """As far as their names are known before the run."""
    nodes = [node for node in top.everything() if node.tag == DATA_SET]
    named = [(node, file) for node in nodes if (file := _named(node, values)) is not None]
    columns = {column for node, file in named for column in _columns(node, located(file.name, values))}
    for _, file in named:
        if columns.isdisjoint(file.undefined):  # else its name changes during the run
            yield file


def _named(node: JmxNode, values: KnownValues) -> NamedFile | None:
    """None where the name changes during the run, or where there is none."""
    written = node.value("filename").strip()
    aside = values.aside()
    try:
        name = (aside.text(written, node).constant or "").strip()
    except UsageError:  # which is said where the element is read
        return None
    return NamedFile(name, written, node, tuple(aside.undefined)) if name else None


def _columns(node: JmxNode, file: Path) -> list[str]:
    """The variables of a data set: those that it names, or the first line of its file."""
    listed, delimiter = node.value("variableNames"), ","
    if not listed.strip() and _is_there(file):
        delimiter = node.value("delimiter", ",") or ","
        try:
            with file.open(encoding="utf-8-sig", errors="replace") as stream:
                listed = stream.readline(LONGEST_HEAD)
        except OSError:  # which is said where the file is read
            return []
    mark = "\t" if delimiter == "\\t" else delimiter
    return [name.strip().strip('"') for name in listed.split(mark)]


def _of_functions(top: JmxNode) -> Iterator[NamedFile]:
    """Of functions whose file is a constant."""
    for node in top.everything():
        for text in _texts(node):
            for name in READ_BY_FUNCTIONS.findall(text.text):
                yield NamedFile(name.strip(), name.strip(), text)


def _texts(node: JmxNode) -> Iterator[JmxNode]:
    """All texts among the properties of an element."""
    for child in node.children:
        if child.attributes.get("name") in REMARKS:
            continue
        if child.tag in SIMPLE and "${" in child.text:
            yield child
        yield from _texts(child)
