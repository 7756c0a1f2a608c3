"""CSS selectors and XPath queries that name an attribute of one kind of tag, as regular expressions.

Must not know who captures it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CSS = re.compile(
    r"""\s*(?P<tag>[\w-]*|\*)(?:\#(?P<id>[\w-]+)|\.(?P<word>[\w-]+)
    |\[\s*(?P<name>[\w:-]+)\s*(?P<op>[~^$*]?=)\s*(?P<quote>["']?)(?P<value>[^"'\]]*)(?P=quote)\s*\])?\s*""",
    re.VERBOSE,
)
"""`input[name=token]`, `a[href^="/p/"]`, `.next`, `#token`, `form`."""
XPATH = re.compile(
    r"""\s*//(?P<tag>[\w-]+|\*)
    (?:\[\s*@(?P<name>[\w:-]+)\s*=\s*(?P<quote>["'])(?P<value>[^"']*)(?P=quote)\s*\])?
    /@(?P<attribute>[\w:-]+)\s*""",
    re.VERBOSE,
)
"""`//input[@name='token']/@value`."""
TEST = re.compile(
    r"""\s*//(?P<tag>[\w-]+)
    (?:\[\s*(?:@(?P<name>[\w:-]+)\s*=|text\(\)\s*=|(?P<part>contains\(\s*text\(\)\s*,))
    \s*(?P<quote>["'])(?P<value>[^"'<>&]*)(?P=quote)\s*(?(part)\))\s*\])?\s*""",
    re.VERBOSE,
)
"""`//form`, `//input[@name='x']`, `//h1[text()='x']`, `//p[contains(text(),'x')]`."""
IMPLIED = frozenset({"html", "head", "title", "body"})
"""Tags that a page has in any case, once it is tidied up."""
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
    op: str = "="
    """How the value of `name` is compared: as CSS has it, `=`, `^=`, `$=`, `*=` or `~=`."""

    @property
    def regex(self) -> str:
        """What finds it, wherever in the tag it stands; its groups are those of `template`."""
        begins = rf"<(?i:{re.escape(self.tag) or '[a-z][a-z0-9-]*'})\s(?:{BETWEEN})?"
        wanted = rf"(?i:{re.escape(self.attribute)}){QUOTED}"
        if self.name is None:
            return begins + wanted
        name, value = rf"(?i:{re.escape(self.name)})\s*=\s*", re.escape(self.value)
        double, single = self._held('"'), self._held("'")
        if self.name.lower() == self.attribute.lower():
            return rf"""{begins}{name}(?:"({double})"|'({single})')"""
        bare, at_end = (rf"|{value}\s", rf"|{value}[\s/>]") if self.op == "=" else ("", "")
        before = rf"""{begins}{name}(?:"{double}"|'{single}'{bare})(?:{BETWEEN})?{wanted}"""
        after = rf"""{begins}{wanted}{BETWEEN}{name}(?:"{double}"|'{single}'{at_end})"""
        return f"{before}|{after}"

    def _held(self, quote: str) -> str:
        """What may stand between such quotes."""
        value, any_ = re.escape(self.value), f"[^{quote}]*"
        match self.op:
            case "^=":
                return f"{value}{any_}"
            case "$=":
                return f"{any_}{value}"
            case "*=":
                return f"{any_}{value}{any_}"
            case "~=":
                return rf"(?:{any_}\s)?{value}(?:\s{any_})?"
        return value

    @property
    def template(self) -> str:
        """The group that took part; the others are empty."""
        once = self.name is None or self.name.lower() == self.attribute.lower()
        return "".join(f"${number}$" for number in range(1, 3 if once else 5))


def css(selector: str, attribute: str) -> AttributeOf | None:
    """None for any other selector, and for the text of a tag."""
    match = CSS.fullmatch(selector)
    if match is None or not attribute.strip() or not selector.strip():
        return None
    tag = "" if match["tag"] == "*" else match["tag"]
    if match["id"] is not None:
        return AttributeOf(tag, attribute.strip(), "id", match["id"])
    if match["word"] is not None:
        return AttributeOf(tag, attribute.strip(), "class", match["word"], "~=")
    if match["op"] not in (None, "=") and not match["value"]:  # which CSS finds nowhere
        return None
    return AttributeOf(tag, attribute.strip(), match["name"], match["value"] or "", match["op"] or "=")


def xpath(query: str) -> AttributeOf | None:
    """None for any other query."""
    match = XPATH.fullmatch(query)
    if match is None:
        return None
    tag = "" if match["tag"] == "*" else match["tag"]
    return AttributeOf(tag, match["attribute"], match["name"], match["value"] or "")


def xpath_test(query: str) -> str | None:
    """The regular expression that is found where the query finds something; None for any other query."""
    of = xpath(query)
    if of is not None:
        return of.regex
    match = TEST.fullmatch(query)
    if match is None or (match["tag"].lower() in IMPLIED and match["value"] is None):
        return None
    begins, value = rf"<(?i:{re.escape(match['tag'])})", re.escape(match["value"] or "")
    if match["value"] is None:
        return rf"{begins}[\s/>]"
    if match["name"] is not None:
        name = re.escape(match["name"])
        return rf"""{begins}\s(?:{BETWEEN})?(?i:{name})\s*=\s*(?:"{value}"|'{value}'|{value}[\s/>])"""
    inside = rf"[^<]*{value}" if match["part"] else rf"\s*{value}\s*<"
    return rf"{begins}(?:\s[^>]*)?>{inside}"
