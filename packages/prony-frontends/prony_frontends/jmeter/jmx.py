"""Parses a .jmx file into JMeter's elements with line numbers; without DTDs, entities or other files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from prony.errors import UsageError
from prony_frontends.base import Reason, Refused
from prony_frontends.jmeter.known_properties import is_foreign

DEEPEST = 200
"""Limit on the depth of XML; plans typically reach 20."""
LONGEST_BYTES = 64 * 1024 * 1024
SIMPLE = frozenset({"stringProp", "boolProp", "intProp", "longProp", "floatProp", "doubleProp"})
UNSET = frozenset({"", "false"})
"""Values that request nothing."""
REMARKS = frozenset({"TestPlan.comments", "TestElement.enabled", "TestElement.gui_class", "TestElement.name",
                     "TestElement.test_class"})  # fmt: skip


@dataclass(slots=True)
class JmxNode:
    """An XML element."""

    tag: str
    attributes: dict[str, str]
    line: int
    file: str
    text: str = ""
    children: list[JmxNode] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    """Names of the properties read so far."""
    foreign: list[str] = field(default_factory=list)
    """Set properties that JMeter does not have, among those read."""
    below: list[JmxNode] = field(default_factory=list)
    """Test elements: the elements in its hashTree."""
    number: int = 0
    """Unique number in the plan (`prony_frontends.jmeter.marks`)."""
    refusal: tuple[str, str] | None = None
    """Unsupported use and remedy, known from the whole plan."""

    @property
    def label(self) -> str:
        """Name in the plan."""
        return self.attributes.get("testname", "") or self.attributes.get("name", "") or self.tag

    @property
    def enabled(self) -> bool:
        """JMeter ignores a disabled element, with everything below."""
        return self.attributes.get("enabled", "true").lower() != "false"

    @property
    def element(self) -> str:
        """Description for messages."""
        return f"{self.tag} '{self.label}'" if self.label != self.tag else self.tag

    def property(self, name: str) -> JmxNode | None:
        """The property of this name, the last of several as in JMeter; marks it as read."""
        self.read.add(name)
        named = (child for child in reversed(self.children) if child.attributes.get("name") == name)
        return next(named, None)

    def value(self, name: str, default: str = "") -> str:
        """Text of a simple property."""
        holder = self.property(name)
        if holder is None:
            return default
        if holder.tag not in SIMPLE:
            raise holder.wrong(f"the property {name} as a text, not as {holder.tag}")
        return holder.text

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean property."""
        text = self.value(name, str(default)).strip().lower()
        if text not in ("true", "false", ""):
            raise self.wrong(f"{name} to be true or false, found '{text}'")
        return text == "true"

    def members(self, name: str, inner: str = "") -> list[JmxNode]:
        """Entries of a collection; `inner`: name of the elementProp around it."""
        holder = self if not inner else self.property(inner)
        collection = None if holder is None else holder.property(name)
        return [] if collection is None else list(collection.children)

    def ignore(self, *names: str) -> None:
        """Marks properties that affect neither requests nor measurements as read."""
        self.read.update(names)

    def finish(self) -> None:
        """Raises Refused for a set property that was not read, unless JMeter ignores it as unknown."""
        for child in self.children:
            name = child.attributes.get("name", child.tag)
            if name in self.read or name in REMARKS or _unset(child):
                continue
            if "name" in child.attributes and is_foreign(self.tag, name):
                if name not in self.foreign:
                    self.foreign.append(name)
                continue
            shown_value = f"'{child.text.strip()}'" if child.tag in SIMPLE else child.tag
            raise Refused(
                self.element, self.file, child.line, f"the property {name} is {shown_value}",
                "leave it empty, or remove it",
            )  # fmt: skip

    def refused(self, found: str, instead: str, code: Reason = "unsupported") -> Refused:
        """The error for an unsupported use of this element."""
        return Refused(self.element, self.file, self.line, found, instead, code)

    def wrong(self, expected: str) -> UsageError:
        """The error for an element that JMeter would not write."""
        return UsageError(f"{self.file}:{self.line}: {self.element}: expected {expected}; correct the plan")

    def everything(self) -> Iterator[JmxNode]:
        """This element and all enabled elements below."""
        yield self
        for node in self.below:
            if node.enabled:
                yield from node.everything()


def _unset(node: JmxNode) -> bool:
    if node.tag in SIMPLE or not node.children:
        return node.text.strip().lower() in UNSET
    return all(_unset(child) for child in node.children)


def _simple(node: JmxNode) -> None:
    """Converts numbers that JMeter writes as elements with name and value."""
    inside = {child.tag: child.text for child in node.children}
    if any(child.children for child in node.children):
        return
    if "name" not in node.attributes and {"name", "value"} <= inside.keys() <= {
        "name",
        "value",
        "savedValue",
    }:
        node.tag, node.text, node.children = "doubleProp", inside["value"], []
        node.attributes["name"] = inside["name"]


def read(path: Path) -> JmxNode:
    """Reads the test plan. Raises UsageError for a missing file, invalid XML, or a DTD."""
    try:
        if path.stat().st_size > LONGEST_BYTES:
            raise UsageError(f"{path} has more than {LONGEST_BYTES >> 20} MiB; a test plan is shorter")
        content = path.read_bytes()
    except OSError as fault:
        raise UsageError(f"the test plan {path} cannot be read: {fault.strerror or fault}") from fault
    return parse(content, str(path))


def parse(content: bytes, file: str) -> JmxNode:
    """The test plan in these bytes; its children are the elements at TestPlan's place in the tree."""
    root = _xml(content, file)
    if root.tag != "jmeterTestPlan":
        raise root.wrong("jmeterTestPlan, as JMeter saves a test plan")
    tops = _elements(root)
    plans = [top for top in tops if top.tag == "TestPlan"]
    benches = [top for top in tops if top.tag == "WorkBench"]  # JMeter 2 and 3, next to the plan
    outside = [top for top in tops if _is_group(top)]  # JMeter runs them as well
    if len(plans) != 1 or len(tops) != 1 + len(benches) + len(outside):
        raise root.wrong(f"one TestPlan, found {len(tops)} elements, {len(plans)} of them a TestPlan")
    if outside and any(node.enabled and not _holds_anywhere(node) for node in plans[0].below):
        raise outside[0].refused(
            "it is outside of the TestPlan and ignored by JMeter", "move it in", "outside"
        )
    plans[0].below += outside + benches
    return plans[0]


def _is_group(node: JmxNode) -> bool:
    return node.tag.endswith("ThreadGroup")


def _holds_anywhere(node: JmxNode) -> bool:
    """Whether it means the same for a group outside of the TestPlan as for a group inside."""
    listens = node.tag == "ResultCollector" and not node.value("filename")
    return _is_group(node) or node.tag == "Arguments" or listens


def _elements(holder: JmxNode) -> list[JmxNode]:
    """Elements of the hashTrees below, each followed by the hashTree of its children."""
    elements: list[JmxNode] = []
    for tree in holder.children:
        if tree.tag != "hashTree":
            raise tree.wrong("a hashTree here")
        elements += _pairs(tree)
    return elements


def _pairs(tree: JmxNode) -> list[JmxNode]:
    elements: list[JmxNode] = []
    for child in tree.children:
        if child.tag == "hashTree":
            if not elements:
                raise child.wrong("an element before its hashTree")
            elements[-1].below += _pairs(child)
        else:
            elements.append(child)
    return elements


def _xml(content: bytes, file: str) -> JmxNode:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    open_nodes: list[JmxNode] = []
    roots: list[JmxNode] = []

    def begin(tag: str, attributes: dict[str, str]) -> None:
        node = JmxNode(tag, attributes, parser.CurrentLineNumber, file)
        if len(open_nodes) >= DEEPEST:
            raise UsageError(f"{file}:{node.line}: {tag} is nested {DEEPEST} levels deep; expected fewer")
        (open_nodes[-1].children if open_nodes else roots).append(node)
        open_nodes.append(node)

    def end(_tag: str) -> None:
        _simple(open_nodes.pop())

    def text(data: str) -> None:
        if open_nodes:
            open_nodes[-1].text += data

    def doctype(name: str, *_rest: object) -> None:
        raise Refused(
            "DOCTYPE", file, parser.CurrentLineNumber, f"a document type ({name}) can open other files",
            "remove the DOCTYPE and write the text of its entities out",
        )  # fmt: skip

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(content, True)
    except expat.ExpatError as fault:
        raise UsageError(
            f"{file}:{fault.lineno}: invalid XML: {expat.ErrorString(fault.code)}; "
            "save the plan with JMeter again"
        ) from fault
    except (ValueError, LookupError) as fault:
        raise UsageError(f"{file}: invalid XML or unknown encoding: {fault}; save it as UTF-8") from fault
    return roots[0]
