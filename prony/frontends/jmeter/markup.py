"""CSS selectors and XPath queries that name an attribute of one kind of tag, as regular expressions.

Must not know extractors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CSS = re.compile(
    r"""\s*(?P<tag>[\w-]*)(?:\#(?P<id>[\w-]+)
    |\[\s*(?P<name>[\w:-]+)\s*=\s*(?P<quote>["']?)(?P<value>[^"'\]]*)(?P=quote)\s*\])?\s*""",
    re.VERBOSE,
)
"""`input[name=token]`, `#token`, `form`."""
XPATH = re.compile(
    r"""\s*//(?P<tag>[\w-]+|\*)
    (?:\[\s*@(?P<name>[\w:-]+)\s*=\s*(?P<quote>["'])(?P<value>[^"']*)(?P=quote)\s*\])?
    /@(?P<attribute>[\w:-]+)\s*""",
    re.VERBOSE,
)
"""`//input[@name='token']/@value`."""
QUOTED = r"""\s*=\s*(?:"([^"]*)"|'([^']*)')"""
BETWEEN = r"[^>]*?\s"


@dataclass(frozen=True, slots=True)
class AttributeOf:
    """An attribute of the tags of a kind, perhaps only of those with a certain value of another."""

    tag: str
    """Empty: any."""
    attribute: str
    name: str | None = None
    value: str = ""

    @property
    def regex(self) -> str:
        """What finds it, wherever in the tag it stands; its groups are those of `template`."""
        begins = rf"<(?i:{re.escape(self.tag) or '[a-z][a-z0-9-]*'})\s(?:{BETWEEN})?"
        wanted = rf"(?i:{re.escape(self.attribute)}){QUOTED}"
        if self.name is None:
            return begins + wanted
        name, value = rf"(?i:{re.escape(self.name)})\s*=\s*", re.escape(self.value)
        before = rf"""{begins}{name}(?:"{value}"|'{value}'|{value}\s)(?:{BETWEEN})?{wanted}"""
        after = rf"""{begins}{wanted}{BETWEEN}{name}(?:"{value}"|'{value}'|{value}[\s/>])"""
        return f"{before}|{after}"

    @property
    def template(self) -> str:
        """The group that took part; the others are empty."""
        return "".join(f"${number}$" for number in range(1, 3 if self.name is None else 5))


def css(selector: str, attribute: str) -> AttributeOf | None:
    """None for any other selector, and for the text of a tag."""
    match = CSS.fullmatch(selector)
    if match is None or not attribute.strip() or not selector.strip():
        return None
    if match["id"] is not None:
        return AttributeOf(match["tag"], attribute.strip(), "id", match["id"])
    return AttributeOf(match["tag"], attribute.strip(), match["name"], match["value"] or "")


def xpath(query: str) -> AttributeOf | None:
    """None for any other query."""
    match = XPATH.fullmatch(query)
    if match is None:
        return None
    tag = "" if match["tag"] == "*" else match["tag"]
    return AttributeOf(tag, match["attribute"], match["name"], match["value"] or "")
