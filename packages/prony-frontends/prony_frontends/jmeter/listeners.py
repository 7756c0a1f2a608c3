"""Listeners with a file name: rows and columns. Read before inert elements are removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prony.errors import UsageError
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode

WRITING = frozenset({"ResultCollector", "kg.apc.jmeter.vizualizers.CorrectedResultCollector"})
"""Listeners that store samples; files of others have different contents."""
FIELDS = {
    "timestamp": ("timeStamp",), "time": ("elapsed",), "label": ("label",), "code": ("responseCode",),
    "message": ("responseMessage",), "threadName": ("threadName",), "dataType": ("dataType",),
    "success": ("success",), "saveAssertionResultsFailureMessage": ("failureMessage",), "bytes": ("bytes",),
    "sentBytes": ("sentBytes",), "threadCounts": ("grpThreads", "allThreads"), "url": ("URL",),
    "fileName": ("Filename",), "latency": ("Latency",), "encoding": ("Encoding",),
    "sampleCount": ("SampleCount", "ErrorCount"), "hostname": ("Hostname",), "idleTime": ("IdleTime",),
    "connectTime": ("Connect",),
}  # fmt: skip
"""Settings of a listener -> columns, in the order of a CSV file."""
USUAL = frozenset(FIELDS) - {"fileName", "encoding", "sampleCount", "hostname"}
"""Columns kept by default."""
UNKNOWN = {"responseData": "response data", "responseDataOnError": "response data of errors",
           "samplerData": "request data", "requestHeaders": "request headers",
           "responseHeaders": "response headers", "assertions": "assertion results"}  # fmt: skip
"""Settings of an XML file that the request log has no data for."""


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Filter of a listener's rows."""

    success: bool | None = None
    """Successful samples only, or failed ones only."""
    group: int | None = None
    """Only the thread group with this number (`prony_frontends.jmeter.marks`),"""
    elements: frozenset[int] | None = None
    """and only these samplers and transactions."""

    def __contains__(self, row: tuple[int, int, bool]) -> bool:
        """Whether a row passes, by numbers of thread group and element, and success."""
        group, element, success = row
        return (
            self.success in (None, success)
            and self.group in (None, group)
            and (self.elements is None or element in self.elements)
        )


EVERY = RowFilter()
COLUMNS = tuple(name for field in FIELDS if field in USUAL for name in FIELDS[field])
"""Columns of -l, and of listeners without settings."""
Writing = tuple[JmxNode, list[JmxNode]]
"""A listener with its ancestors."""


@dataclass(frozen=True, slots=True)
class RowsFile:
    """A file of rows, written by one or more listeners."""

    path: Path
    columns: tuple[str, ...] = COLUMNS
    titles: bool = True
    """Whether CSV starts with column names."""
    xml: bool = False
    sub_samples: bool = True
    """Whether rows of redirects and embedded resources are included."""
    wanted: tuple[RowFilter, ...] = (EVERY,)


def writing(top: JmxNode) -> list[Writing]:
    """Listeners with a file, each with its ancestors, innermost last."""
    return list(_writing(top, []))


def files(found: Sequence[Writing], groups: frozenset[str], values: KnownValues) -> tuple[RowsFile, ...]:
    """The files of these listeners, without duplicates. `groups`: tags of thread groups."""
    by_path: dict[Path, RowsFile] = {}
    for node, above in found:
        name = _name(node, values)
        if not name:
            continue
        path = values.folder / name[2:] if name.startswith("~/") else Path(name)
        file = _file(node, path, _wanted(node, above, groups))
        existing = by_path.get(path)
        by_path[path] = (
            file if existing is None else replace(existing, wanted=(*existing.wanted, *file.wanted))
        )
        if file.xml:
            _note_unknown(node, values)
    if by_path:
        names = ", ".join(map(str, by_path))
        values.note("rows_written", f"rows of listeners are written to {names} after the run")
    return tuple(by_path.values())


def _writing(node: JmxNode, above: list[JmxNode]) -> Iterator[Writing]:
    for child in node.below:
        if child.enabled and child.tag in WRITING and child.value("filename").strip():
            yield child, [*above, node]
        elif child.enabled:
            yield from _writing(child, [*above, node])


def _name(node: JmxNode, values: KnownValues) -> str:
    """The file name at the start of the run; empty where unknown."""
    undefined = dict(values.undefined)
    try:
        name = values.text(node.value("filename"), node, once=True).constant
    except UsageError:
        name = None
    values.undefined = undefined
    if name is None or "${" in name:
        values.note("rows_not_written", "its file name is not known before the run; it is not written", node)
        return ""
    return name.strip()


def _wanted(node: JmxNode, above: Sequence[JmxNode], groups: frozenset[str]) -> RowFilter:
    errors, successes = (
        node.flag("ResultCollector.error_logging"), node.flag("ResultCollector.success_only_logging")
    )  # fmt: skip
    success = None if errors == successes else successes
    group = next((node_above for node_above in above if node_above.tag in groups), None)
    if group is None:
        return RowFilter(success)
    if above[-1] is group:
        return RowFilter(success, group.number)
    return RowFilter(success, group.number, frozenset(inner.number for inner in above[-1].everything()))


def _file(node: JmxNode, path: Path, wanted: RowFilter) -> RowsFile:
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
    """Its SampleSaveConfiguration; a column not listed is left out."""
    for child in node.children:
        inside = {setting.tag: setting for setting in child.children}
        if child.tag == "objProp" and inside.keys() == {"name", "value"}:
            return {field.tag: field.text for field in inside["value"].children}
    return None


def _note_unknown(node: JmxNode, values: KnownValues) -> None:
    config = _config(node) or {}
    missing = [words for name, words in UNKNOWN.items() if config.get(name, "").strip() == "true"]
    if missing:
        values.note("rows_lack", f"its file lacks {', '.join(missing)}, which Prony does not record", node)
