"""prony artillery: captures with a CSS selector, beside Artillery 2.0.21."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony_frontends import markup
from prony_frontends.artillery import run
from prony_frontends.artillery.translate import translate
from prony_frontends.base import Refused
from tests.frontends.conftest import quick_desk
from tests.frontends.site import Response, site
from tests.programs import program

PAGE = """<html><body>
<form id="login" action="/in"><input type="hidden" name="token" value="t-1">
<input name='q' value='two'></form>
<a class="productLink big" href="/p/1">one</a> <A HREF="/p/2" CLASS="productLink">two</A>
<a href="/about.html" rel="help" class="other">three</a><div class="x productLinks" data-id="9">four</div>
</body></html>"""
FOUND = {
    ("a[class^=productLink]", "href"): ["/p/1", "/p/2"],
    (".productLink", "href"): ["/p/1", "/p/2"],
    ("a.other", "href"): ["/about.html"],
    ("a[href$='.html']", "rel"): ["help"],
    ("a[href^='/p/']", "href"): ["/p/1", "/p/2"],
    ('a[href*="p/2"]', "class"): ["productLink"],
    ("input[name=token]", "value"): ["t-1"],
    ("input[name=q]", "value"): ["two"],
    ("#login", "action"): ["/in"],
    ("div[class~=productLinks]", "data-id"): ["9"],
    ("*[rel=help]", "href"): ["/about.html"],
    (".product", "href"): [],
}
"""Selector and attribute -> what the page holds."""


@pytest.mark.parametrize(("selector", "attribute"), FOUND)
def test_a_selector_finds_what_it_names(selector: str, attribute: str) -> None:
    of = markup.css(selector, attribute)
    assert of is not None
    groups = len(re.findall(r"\$\d\$", of.template))
    found = [
        "".join(match[number] or "" for number in range(1, groups + 1))
        for match in re.finditer(of.regex, PAGE)
    ]
    assert found == FOUND[(selector, attribute)]


def script(port: int, folder: Path) -> str:
    """A request for what each selector finds at the first place, and one for the second."""
    wanted = [(one, attribute) for (one, attribute), values in FOUND.items() if values]
    captures = [
        f"          - {{selector: {selector!r}, attr: {attribute}, as: v{place}}}"
        for place, (selector, attribute) in enumerate(wanted)
    ]
    captures.append("          - {selector: .productLink, attr: href, index: 1, as: second}")
    captures.append("          - {selector: .nowhere, attr: href, as: none, strict: false}")
    asks = [f"      - get: {{url: '/got', qs: {{v: '{{{{ v{place} }}}}'}}}}" for place in range(len(wanted))]
    lines = [
        f"config: {{target: 'http://127.0.0.1:{port}', phases: [{{duration: 1, arrivalCount: 1}}]}}",
        "scenarios:", "  - flow:", "      - get:", "          url: /page", "          capture:",
        *(f"  {line}" for line in captures), *asks, "      - get: {url: '/second{{ second }}'}",
    ]  # fmt: skip
    (folder / "s.yml").write_text("\n".join(lines))
    return str(folder / "s.yml")


RESPONSES = {"/page": Response(PAGE), "/got": Response("x")}
ASKED = [
    "/page",
    *(f"/got?v={values[0].replace('/', '%2F')}" for values in FOUND.values() if values),
    "/second/p/2",
]


def test_what_is_captured_is_sent(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        assert run(["run", script(served.port, tmp_path)], quick_desk()[0]) == 0
    assert served.paths == ASKED


@pytest.mark.needs("artillery")
def test_the_real_artillery_captures_the_same(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        subprocess.run(
            [program("artillery"), "run", script(served.port, tmp_path)],
            capture_output=True, timeout=240, check=True,
            env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
        )  # fmt: skip
    assert served.paths == ASKED


@pytest.mark.parametrize(
    ("capture", "says"),
    [
        ("{selector: a, as: x}", "without an attribute of one tag"),
        ("{selector: 'div > a', attr: href, as: x}", "without an attribute of one tag"),
        ("{selector: a, attr: href, index: last, as: x}", "expected 0 and more, or random"),
        ("{selector: a, attr: href, index: 1.5, as: x}", "expected 0 and more, or random"),
        ("{xpath: //a, as: x}", "capture with json, regexp, header or selector"),
    ],
)
def test_what_a_selector_cannot_be(tmp_path: Path, capture: str, says: str) -> None:
    phases = "phases: [{duration: 1, arrivalCount: 1}]"
    flow = f"[{{get: {{url: /, capture: {capture}}}}}]"
    text = f"config: {{target: 'http://h:80', {phases}}}\nscenarios: [{{flow: {flow}}}]\n"
    (tmp_path / "s.yml").write_text(text)
    with pytest.raises((Refused, UsageError), match=says):
        translate(["run", str(tmp_path / "s.yml")])


def test_any_of_them(tmp_path: Path) -> None:
    text = script(80, tmp_path).replace("s.yml", "r.yml")
    Path(text).write_text((tmp_path / "s.yml").read_text().replace("index: 1", "index: random"))
    step = translate(["run", text]).trial.workload.all_steps[0]
    assert step.capture["second"].match == 0
