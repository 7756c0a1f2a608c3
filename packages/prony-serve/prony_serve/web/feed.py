"""Change points as an Atom feed (RFC 4287)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree

from prony.report.wording import printable
from prony_serve.trends.series import TrendView
from prony_serve.web.change_points import LevelChange

ATOM = "http://www.w3.org/2005/Atom"
KIND = "application/atom+xml; charset=utf-8"
_NOT_XML = dict.fromkeys((65534, 65535), "�")


def feed(newest_first: Sequence[LevelChange], base: str, store_name: str) -> bytes:
    """The feed; `base` is the site's address for the reader, without a trailing slash."""
    ElementTree.register_namespace("", ATOM)
    root = ElementTree.Element(f"{{{ATOM}}}feed")
    newest = max((change.trial.started for change in newest_first), default=datetime(1970, 1, 1, tzinfo=UTC))
    _child(root, "id", f"urn:uuid:{uuid5(NAMESPACE_URL, f'prony changes of {store_name}')}")
    _child(root, "title", "Prony: change points")
    _child(root, "updated", _time(newest))
    _child(_child(root, "author"), "name", "Prony")
    _link(root, f"{base}/changes.atom", "self")
    _link(root, f"{base}/changes", "alternate")
    for change in newest_first:
        entry = _child(root, "entry")
        view = change.trend
        _child(entry, "id", f"urn:uuid:{change.id}")
        _child(entry, "title", f"{view.server}, {view.workload}, {view.load}: {change.words}")
        _child(entry, "updated", _time(change.trial.started))
        _link(entry, base + trend_address(view), "alternate")
        _child(entry, "summary", _summary(change))
    whole: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return whole


def trend_address(view: TrendView) -> str:
    """The address of a trend on this site."""
    words = {"server": view.server, "workload": view.workload, "load": view.load, "figure": view.figure}
    return f"/trend?{urlencode(words)}"


def _summary(change: LevelChange) -> str:
    changed = "; ".join(f"{what}: {before} → {after}" for what, before, after in change.differences)
    first = f"First trial of the new level: {change.trial.id}."
    return f"{first} What changed: {changed or 'nothing that Prony records'}."


def _child(parent: ElementTree.Element, name: str, text: str | None = None) -> ElementTree.Element:
    child = ElementTree.SubElement(parent, f"{{{ATOM}}}{name}")
    if text is not None:
        child.text = printable(text).translate(_NOT_XML)
    return child


def _link(parent: ElementTree.Element, address: str, relation: str) -> None:
    _child(parent, "link").attrib.update({"href": address, "rel": relation})


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
