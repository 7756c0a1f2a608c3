"""Regular expressions for simple CSS selectors and XPath queries of an attribute or a text."""

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
ELEMENT = re.compile(
    r"""\s*//(?:(?P<tag>[\w-]+)|\*\[\s*local-name\(\)\s*=\s*(?P<mark>["'])(?P<local>[\w.-]+)(?P=mark)\s*\])
    (?:\[\s*@(?P<name>[\w:-]+)\s*=\s*(?P<quote>["'])(?P<value>[^"'<>&]*)(?P=quote)\s*\])?
    (?P<text>/text\(\))?\s*""",
    re.VERBOSE,
)
"""`//total/text()`, `//item[@id='7']`, `//*[local-name()='total']`."""
OF_PAGE = re.compile(
    r"\s*(?:/html/head/+(?=(?:title|meta|link|base)\b)|/html(?:/body)?//(?!(?:title|meta|link|base|script|style)\b))"
)
"""The beginning of an absolute path to what is nowhere else on a page."""
ROOT = re.compile(r"\s*/(?P<tag>[\w.-]+)/(?:@(?P<attribute>[\w:-]+)|text\(\))\s*")
"""`/order/@id`, `/status/text()`."""
BEFORE_ROOT = r"^(?:\s|<\?[^>]*\?>|<!--(?:[^-]|-[^-])*-->|<![A-Za-z][^>]*>)*"
IMPLIED = frozenset({"html", "head", "title", "body"})
"""Tags that every page has after tidying."""
QUOTED = r"""\s*=\s*(?:"([^"]*)"|'([^']*)')"""
BETWEEN = r"[^>]*?\s"


@dataclass(frozen=True, slots=True)
class AttributeOf:
    """An attribute of a kind of tag, optionally filtered by another attribute's value."""

    tag: str
    """Empty: any."""
    attribute: str
    name: str | None = None
    value: str = ""
    op: str = "="
    """CSS operator that compares the value of `name`: `=`, `^=`, `$=`, `*=` or `~=`."""

    @property
    def regex(self) -> str:
        """Matches the attribute at any position in the tag; `template` names its groups."""
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
        """Pattern for the text between these quotes."""
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
        """All groups, of which only the matching group is not empty."""
        once = self.name is None or self.name.lower() == self.attribute.lower()
        return "".join(f"${number}$" for number in range(1, 3 if once else 5))


@dataclass(frozen=True, slots=True)
class TextOf:
    """The text of an element up to the next tag."""

    regex: str
    template: str


def css(selector: str, attribute: str) -> AttributeOf | None:
    """None for unsupported selectors, and for the text of a tag."""
    match = CSS.fullmatch(selector)
    if match is None or not attribute.strip() or not selector.strip():
        return None
    tag = "" if match["tag"] == "*" else match["tag"]
    if match["id"] is not None:
        return AttributeOf(tag, attribute.strip(), "id", match["id"])
    if match["word"] is not None:
        return AttributeOf(tag, attribute.strip(), "class", match["word"], "~=")
    if match["op"] not in (None, "=") and not match["value"]:  # which matches nothing in CSS
        return None
    return AttributeOf(tag, attribute.strip(), match["name"], match["value"] or "", match["op"] or "=")


def xpath(query: str) -> AttributeOf | None:
    """None for unsupported queries."""
    match = XPATH.fullmatch(OF_PAGE.sub("//", query, count=1))
    if match is None:
        return None
    tag = "" if match["tag"] == "*" else match["tag"]
    return AttributeOf(tag, match["attribute"], match["name"], match["value"] or "")


def xpath_text(query: str, tidied: bool, whole: bool = False) -> TextOf | None:
    """None for unsupported queries. `tidied`: the page is put in order by Tidy, and is not XML; `whole`:
    without `text()` the query selects all text of an element, matched here for elements without children.
    """
    root = ROOT.fullmatch(query)
    if root is not None and not tidied:
        return _of_root(root)
    match = ELEMENT.fullmatch(OF_PAGE.sub("//", query, count=1))
    if match is None:
        return None
    begins = _opening(match, tidied)
    if tidied:
        return TextOf(rf"{begins}\s*(?:([^<\s][^<]*?)\s*</|([^<\s][^<]*)<[^/])", "$1$$2$")
    if not whole or match["text"]:
        return TextOf(rf"{begins}([^<]+)<", "$1$")
    return TextOf(rf"{begins}([^<]*)</|{_opening(match, tidied, '/>')}", "$1$")


def _of_root(match: re.Match[str]) -> TextOf:
    """An attribute, or the first text, of a document's root element."""
    begins = rf"{BEFORE_ROOT}<{re.escape(match['tag'])}"
    if match["attribute"] is None:
        return TextOf(rf"{begins}(?:\s[^>]*[^>/]|)>([^<]+)<", "$1$")
    return TextOf(rf"{begins}\s(?:{BETWEEN})?{re.escape(match['attribute'])}{QUOTED}", "$1$$2$")


def _opening(match: re.Match[str], tidied: bool, closing: str = ">") -> str:
    """Pattern of the opening tag; `closing`: `/>` for an empty element."""
    tag = rf"(?:[\w.-]+:)?{re.escape(match['local'])}" if match["local"] else re.escape(match["tag"])
    begins, ends = f"<(?i:{tag})" if tidied else f"<{tag}", rf"(?:\s(?:[^>]*[^>/])?)?{closing}"
    if match["name"] is None:
        return begins + ends
    name, value = re.escape(match["name"]), re.escape(match["value"])
    name = f"(?i:{name})" if tidied else name
    return rf"""{begins}\s(?:{BETWEEN})?{name}\s*=\s*(?:"{value}"|'{value}'){ends}"""


def xpath_test(query: str, tidied: bool = True) -> str | None:
    """A regular expression that matches where the query selects something; None for unsupported queries.
    `tidied`: the page is put in order by Tidy, and is not XML.
    """
    of = xpath(query)
    if of is not None:
        return of.regex
    query = OF_PAGE.sub("//", query, count=1)
    match = ELEMENT.fullmatch(query)
    if match is not None and match["local"] and match["name"] is None and not match["text"]:
        return rf"<(?:[\w.-]+:)?{re.escape(match['local'])}[\s/>]"
    match = TEST.fullmatch(query)
    if match is None or (tidied and match["tag"].lower() in IMPLIED and match["value"] is None):
        return None
    begins, value = re.escape(match["tag"]), re.escape(match["value"] or "")
    begins, space = (rf"<(?i:{begins})", r"\s*") if tidied else (f"<{begins}", "")
    if match["value"] is None:
        return rf"{begins}[\s/>]"
    if match["name"] is not None:
        name = re.escape(match["name"])
        return rf"""{begins}\s(?:{BETWEEN})?(?i:{name})\s*=\s*(?:"{value}"|'{value}'|{value}[\s/>])"""
    inside = rf"[^<]*{value}" if match["part"] else rf"{space}{value}{space}<"
    return rf"{begins}(?:\s[^>]*)?>{inside}"
