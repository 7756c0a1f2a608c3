"""Listeners with a file name: which rows they write into it, and how. They are read before they are taken out
of the tree (`prony_frontends.jmeter.inert`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prony.errors import UsageError
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode

WRITING = frozenset({"ResultCollector", "kg.apc.jmeter.vizualizers.CorrectedResultCollector"})
"""Listeners that keep rows of samples; the files of others hold something else."""
FIELDS = {
    "timestamp": ("timeStamp",), "time": ("elapsed",), "label": ("label",), "code": ("responseCode",),
    "message": ("responseMessage",), "threadName": ("threadName",), "dataType": ("dataType",),
    "success": ("success",), "saveAssertionResultsFailureMessage": ("failureMessage",), "bytes": ("bytes",),
    "sentBytes": ("sentBytes",), "threadCounts": ("grpThreads", "allThreads"), "url": ("URL",),
    "fileName": ("Filename",), "latency": ("Latency",), "encoding": ("Encoding",),
    "sampleCount": ("SampleCount", "ErrorCount"), "hostname": ("Hostname",), "idleTime": ("IdleTime",),
    "connectTime": ("Connect",),
}  # fmt: skip
"""What a listener may be told to keep -> columns, in the order of a CSV file."""
USUAL = frozenset(FIELDS) - {"fileName", "encoding", "sampleCount", "hostname"}
"""Kept where it is told nothing."""
UNKNOWN = {"responseData": "response data", "responseDataOnError": "response data of errors",
           "samplerData": "request data", "requestHeaders": "request headers",
           "responseHeaders": "response headers", "assertions": "assertion results"}  # fmt: skip
"""What an XML file may be told to keep and the log of requests does not have."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows of a listener's scope."""

    success: bool | None = None
    """Only those that succeeded, or only the others."""
    group: int | None = None
    """Only those of the thread group of this number (`prony_frontends.jmeter.marks`),"""
    elements: frozenset[int] | None = None
    """and only those of these samplers and transactions."""

    def __contains__(self, row: tuple[int, int, bool]) -> bool:
        """Whether it wants a row, by the numbers of thread group and element, and success."""
        group, element, success = row
        return (
            self.success in (None, success)
            and self.group in (None, group)
            and (self.elements is None or element in self.elements)
        )


EVERY = Wanted()
COLUMNS = tuple(name for field in FIELDS if field in USUAL for name in FIELDS[field])
"""Those of -l, and of listeners that are told nothing."""
Writing = tuple[JmxNode, list[JmxNode]]
"""A listener, and what it stands in."""


@dataclass(frozen=True, slots=True)
class RowsFile:
    """A file of rows, as one listener or several describe it."""

    path: Path
    columns: tuple[str, ...] = COLUMNS
    titles: bool = True
    """CSV begins with the names of the columns."""
    xml: bool = False
    sub_samples: bool = True
    """Rows of redirects on the way and of embedded resources too."""
    wanted: tuple[Wanted, ...] = (EVERY,)


def writing(top: JmxNode) -> list[Writing]:
    """Listeners with a file, each with what it stands in, the innermost last."""
    return list(_writing(top, []))


def files(found: Sequence[Writing], groups: frozenset[str], values: KnownValues) -> tuple[RowsFile, ...]:
    """Of these listeners, each file once. `groups`: tags of thread groups."""
    made: dict[Path, RowsFile] = {}
    for node, above in found:
        name = _name(node, values)
        if not name:
            continue
        path = values.folder / name[2:] if name.startswith("~/") else Path(name)
        file = _file(node, path, _wanted(node, above, groups))
        known = made.get(path)
        made[path] = file if known is None else replace(known, wanted=(*known.wanted, *file.wanted))
        if file.xml:
            _note_unknown(node, values)
    if made:
        names = ", ".join(map(str, made))
        values.note(f"rows of listeners are written to {names}, when the run has ended")
    return tuple(made.values())


def _writing(node: JmxNode, above: list[JmxNode]) -> Iterator[Writing]:
    for child in node.below:
        if child.enabled and child.tag in WRITING and child.value("filename").strip():
            yield child, [*above, node]
        elif child.enabled:
            yield from _writing(child, [*above, node])


def _name(node: JmxNode, values: KnownValues) -> str:
    """Of the file, as it is when the run starts; empty where that is not known."""
    undefined = dict(values.undefined)
    try:
        found = values.text(node.value("filename"), node, once=True).constant
    except UsageError:
        found = None
    values.undefined = undefined
    if found is None or "${" in found:
        values.note(f"{node.element}: the name of its file is not known before the run; it is not written")
        return ""
    return found.strip()


def _wanted(node: JmxNode, above: Sequence[JmxNode], groups: frozenset[str]) -> Wanted:
    errors, successes = (
        node.flag("ResultCollector.error_logging"), node.flag("ResultCollector.success_only_logging")
    )  # fmt: skip
    success = None if errors == successes else successes
    group = next((one for one in above if one.tag in groups), None)
    if group is None:
        return Wanted(success)
    if above[-1] is group:
        return Wanted(success, group.number)
    return Wanted(success, group.number, frozenset(one.number for one in above[-1].everything()))


def _file(node: JmxNode, path: Path, wanted: Wanted) -> RowsFile:
    config = _config(node)
    if config is None:
        return RowsFile(path, wanted=(wanted,))

    def asks(name: str) -> bool:
        return config.get(name, "").strip() == "true"

    return RowsFile(
        path,
        columns=tuple(name for field, names in FIELDS.items() if asks(field) for name in names),
        titles=asks("fieldNames"),
        xml=asks("xml"),
        sub_samples=asks("subresults"),
        wanted=(wanted,),
    )


def _config(node: JmxNode) -> dict[str, str] | None:
    """Its SampleSaveConfiguration; what is not in it is not kept."""
    for child in node.children:
        inside = {one.tag: one for one in child.children}
        if child.tag == "objProp" and inside.keys() == {"name", "value"}:
            return {field.tag: field.text for field in inside["value"].children}
    return None


def _note_unknown(node: JmxNode, values: KnownValues) -> None:
    config = _config(node) or {}
    missing = [words for name, words in UNKNOWN.items() if config.get(name, "").strip() == "true"]
    if missing:
        values.note(f"{node.element}: its file is without {', '.join(missing)}, which Prony does not keep")
