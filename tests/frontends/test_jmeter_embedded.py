"""prony jmeter: embedded resources, held against JMeter itself: what is asked for, in which order and with
which headers, and the rows of pages.
"""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from prony.plan.step import Block, Step
from prony_frontends import jmeter
from prony_frontends.jmeter.resources import DEEPEST
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import explained, quick_desk
from tests.frontends.jmx_text import (
    document,
    element,
    flag,
    load_of,
    posted,
    prop,
    repeated,
    sampler,
    translated_of,
)
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.site import Response, Site, site

PAGE = """<!DOCTYPE html><html><head><link rel="stylesheet" href="css/main.css"><link rel=next href=/no>
<script src="/app.js?v=1&amp;w=2">document.write("<img src='/no'>")</script>
<link rel="Shortcut Icon" href="favicon.ico"></head>
<body background="back.png"><!-- <img src="/no"> --><img src=a.png><IMG SRC = 'a.png'>
<img src="../b%20c.png#x">
<noscript><img src="/no"></noscript><input type="image" src="/button.png"><input type=text src=/no>
<iframe src="/frame/"></iframe><p style="background: url('p.png')"><a href="/no">no</a>
<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><object data="film.mp4"></object>
<embed src='e d.swf'><table background=t.gif></table></body></html>"""
RESPONSES = {
    "/shop/": Response(PAGE),
    "/shop/css/main.css": Response("@import 'more.css';\np { background: url(never.png) }", "text/css"),
    "/shop/css/more.css": Response("p { color: red }", "text/css"),
    "/app.js": Response("1", "application/javascript"),
    "/frame/": Response("<base href='/based/'><img src=inside.png>"),
    **{
        path: Response("x", "image/png")
        for path in (
            "/shop/favicon.ico", "/shop/back.png", "/shop/a.png", "/b%20c.png", "/button.png",
            "/based/inside.png", "/shop/p.png", "/shop/film.mp4", "/shop/e%20d.swf", "/shop/t.gif",
        )
    },
    "/plain": Response("<p>no pictures</p>"),
    "/broken": Response("<img src=/app.js><img src=/missing.png><img src=/gone.png>"),
    "/posted": Response("<img src=/button.png>"),
    "/old": Response("", status=302, location="/moved"),
    "/moved": Response("<img src=button.png>"),
    "/error": Response("<img src=/no>", status=500),
}  # fmt: skip
SENT = ["/shop/?x=1", "/shop/css/main.css", "/shop/css/more.css", "/app.js?v=1&w=2", "/shop/favicon.ico",
        "/shop/back.png", "/shop/a.png", "/b%20c.png", "/button.png", "/frame/", "/based/inside.png",
        "/shop/p.png", "/shop/film.mp4", "/shop/e%20d.swf", "/shop/t.gif", "/plain",
        "/broken", "/app.js", "/missing.png", "/gone.png", "/error",
        "/posted", "/button.png", "/old", "/moved", "/button.png"]  # fmt: skip
ONE = prop("ThreadGroup.num_threads", 1)
EMBEDDING = flag("HTTPSampler.image_parser", True)


def with_embedded(path: str, port: int = 80, more: str = "", below: str = "") -> str:
    return sampler(path, prop("HTTPSampler.port", port) + EMBEDDING + more, below, name=path.strip("/"))


def embedding(walk: str) -> str:
    """The sampler with its resources."""
    return walk.replace("<boolProp", EMBEDDING + "<boolProp", 1)


def plan(port: int) -> bytes:
    headers = element(
        "HeaderManager",
        '<collectionProp name="HeaderManager.headers"><elementProp name="" elementType="Header">'
        f"{prop('Header.name', 'X-Test')}{prop('Header.value', 'yes')}</elementProp></collectionProp>",
    )
    pages = "".join(with_embedded(path, port) for path in ("/shop/?x=1", "/plain", "/broken", "/error"))
    where = element("ConfigTestElement", prop("HTTPSampler.port", port))
    old = with_embedded("/old", port, flag("HTTPSampler.follow_redirects", True))
    inside = where + headers + pages + embedding(posted("/posted", "text")) + old
    return document(inside, group=ONE + repeated(2))


def rows(log: Path) -> list[dict[str, str]]:
    kept = ("label", "responseCode", "responseMessage", "success", "failureMessage", "bytes", "sentBytes",
            "URL")  # fmt: skip
    with log.open(newline="") as file:
        found = [{name: row[name] for name in kept} for row in csv.DictReader(file)]
    for row in found:  # JMeter keeps the fragment, which is not asked for
        row["URL"] = row["URL"].partition("#")[0]
    return found


def check(served: Site, log: Path) -> None:
    assert served.paths == SENT * 2
    assert len(served.connections) == 1
    page, style = served.heads[0][1:], served.heads[1][1:]
    assert page == style  # the same headers, in the same order
    every = rows(log)
    assert [row["label"] for row in every[1:5]] == [
        "shop/?x=1-0",
        "shop/?x=1-1",
        "shop/?x=1-0",
        "shop/?x=1-1",
    ]
    found = [row for row in every if not re.search(r"-\d+$", row["label"])]
    assert [row["label"] for row in found] == ["shop/?x=1", "plain", "broken", "error", "page", "old"] * 2
    shop, plain, broken, error, _, old = found[:6]
    assert (shop["responseCode"], shop["responseMessage"], shop["success"]) == ("200", "OK", "true")
    assert int(shop["sentBytes"]) > 15 * int(plain["sentBytes"]) * 0.9  # of all of them together
    assert (broken["responseCode"], broken["success"], broken["failureMessage"]) == ("200", "false", "")
    base = f"http://127.0.0.1:{served.port}"
    assert broken["responseMessage"] == (
        f"Embedded resource download error:{base}/missing.png code:404 message:Not Found, "
        f"{base}/gone.png code:404 message:Not Found, "
    )
    assert (error["responseCode"], error["success"]) == ("500", "false")
    assert (old["responseCode"], old["URL"], old["success"]) == ("200", f"{base}/moved", "true")


def test_a_page_is_fetched_with_what_it_embeds(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        (tmp_path / "p.jmx").write_bytes(plan(served.port))
        desk, _, _ = quick_desk()
        jmeter.run(["-n", "-t", str(tmp_path / "p.jmx"), "-l", str(tmp_path / "out.jtl")], desk)
        check(served, tmp_path / "out.jtl")


@needs_jmeter
@pytest.mark.usefixtures("same_java")
def test_jmeter_itself_asks_for_the_same(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        (tmp_path / "p.jmx").write_bytes(plan(served.port))
        run_jmeter(["-n", "-t", str(tmp_path / "p.jmx"), "-l", str(tmp_path / "real.jtl")], tmp_path)
        check(served, tmp_path / "real.jtl")
        real, heads = rows(tmp_path / "real.jtl"), list(served.heads)
        served.heads.clear()
        desk, _, _ = quick_desk()
        jmeter.run(["-n", "-t", str(tmp_path / "p.jmx"), "-l", str(tmp_path / "out.jtl")], desk)
        assert served.heads == heads
        assert rows(tmp_path / "out.jtl") == real


POOLED = flag("HTTPSampler.concurrentDwn", True) + prop("HTTPSampler.concurrentPool", 3)
SLOW = {path: replace(one, delay_s=0.05) for path, one in RESPONSES.items()}


def pooled(served: Site, log: Path) -> tuple[list[tuple[str, ...]], list[dict[str, str]]]:
    """What was asked for and the rows, the same for every run."""
    assert served.most_at_once == 3
    assert len(served.connections) == 3
    heads, every = sorted(served.heads), rows(log)
    served.heads.clear()
    served.connections.clear()
    served.most_at_once = 0
    return heads, every


@needs_jmeter
@pytest.mark.usefixtures("same_java")
def test_a_pool_fetches_resources_side_by_side_as_jmeters_does(tmp_path: Path) -> None:
    with site(SLOW) as served:
        old = with_embedded("/old", served.port, POOLED + flag("HTTPSampler.follow_redirects", True))
        pages = (with_embedded(path, served.port, POOLED) for path in ("/shop/?x=1", "/plain", "/broken"))
        (tmp_path / "p.jmx").write_bytes(document("".join(pages) + old, group=ONE + repeated(2)))
        run_jmeter(["-n", "-t", str(tmp_path / "p.jmx"), "-l", str(tmp_path / "real.jtl")], tmp_path)
        real = pooled(served, tmp_path / "real.jtl")
        jmeter.run(["-n", "-t", str(tmp_path / "p.jmx"), "-l", str(tmp_path / "out.jtl")], quick_desk()[0])
        assert pooled(served, tmp_path / "out.jtl") == real


PATTERNS = prop("HTTPSampler.embedded_url_re", r"http://127[.]0[.]0[.]1:\d+/.*\.(?:css|png)") + prop(
    "HTTPSampler.embedded_url_exclude_re", ".*/[ab][^/]*png"
)


@needs_jmeter
def test_patterns_hold_for_the_whole_url(tmp_path: Path) -> None:
    with site(RESPONSES) as served:
        walk = with_embedded("/shop/", served.port, PATTERNS)
        (tmp_path / "p.jmx").write_bytes(document(walk, group=ONE + repeated(1)))
        run_jmeter(["-n", "-t", str(tmp_path / "p.jmx")], tmp_path)
        real = list(served.paths)
        served.paths.clear()
        jmeter.run(["-n", "-t", str(tmp_path / "p.jmx")], quick_desk()[0])
        assert served.paths == real
        assert "/shop/css/main.css" in real
        assert not {"/app.js?v=1&w=2", "/shop/a.png", "/b%20c.png"} & set(real)


@pytest.mark.parametrize("at_once", [1, 6])
def test_the_plan_has_a_block_for_each_level(at_once: int) -> None:
    made = translated_of(with_embedded("/a", more=flag("HTTPSampler.concurrentDwn", at_once > 1)))
    page, walked = made.trial.workload.steps
    assert isinstance(page, Step)
    assert page.resources is not None
    assert isinstance(walked, Block)
    assert walked.each == page.resources.into
    assert made.trial.workload.requests_at_once == at_once
    all_steps = made.trial.workload.all_steps
    assert len(all_steps) == 1 + DEEPEST
    assert all_steps[-1].resources is None
    assert explained(made).workload == made.trial.workload
    words = "sequentially" if at_once == 1 else "6 at a time"
    assert noted(made.notes, "embedded_resources", words)


def test_defaults_ask_for_resources_and_a_sampler_may_say_no() -> None:
    defaults = element("ConfigTestElement", EMBEDDING)
    assert len(load_of(defaults + sampler()).workload.all_steps) == 1 + DEEPEST
    no = flag("HTTPSampler.image_parser", False)
    assert len(load_of(defaults + sampler(more=no)).workload.all_steps) == 1


def test_resources_of_a_post_are_asked_for_by_get() -> None:
    page, one, *_ = load_of(embedding(posted("/a", "text"))).workload.all_steps
    assert page.resources is not None
    assert (page.method, one.method, one.path) == ("POST", "GET", f"/${{{page.resources.into}_it}}")
    assert one.body == "text"  # as JMeter has it


def asserted(scope: str, text: str = "x") -> str:
    """`scope`: "main" as JMeter's window says it, which is none."""
    return element(
        "ResponseAssertion", "" if scope == "main" else prop("Assertion.scope", scope),
        f'<collectionProp name="Asserion.test_strings">{prop("1", text)}</collectionProp>',
        prop("Assertion.test_field", "Assertion.response_data"), prop("Assertion.test_type", 16),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "page_has", "resource_has"),
    [
        ("main", True, False),
        ("parent", True, False),
        ("all", True, True),
        ("children", True, True),
        ("", False, False),
    ],
)
def test_assertions_look_at_sub_samples(scope: str, page_has: bool, resource_has: bool) -> None:
    page, one, *_ = load_of(with_embedded("/a", below=asserted(scope))).workload.all_steps
    assert page.expect is not None
    assert one.expect is not None
    assert (bool(page.expect.body_contains), bool(one.expect.body_contains)) == (page_has, resource_has)


TOKENS = {
    "/both": Response("token <img src=/has.png>"),
    "/page": Response("token <img src=/lacks.png>"),
    "/picture": Response("<img src=/has.png>"),
    "/none": Response("<img src=/lacks.png><img src=/missing.png>"),
    "/old": Response("", status=302, location="/moved"),
    "/moved": Response("gone"),
    "/has.png": Response("token", "image/png"),
    "/lacks.png": Response("none", "image/png"),
}
"""A page and its picture: which of them have the word that is looked for."""


WITHIN = (
    "both+ both-0+ both-1+ page- page-0+ page-1- picture- picture-0- picture-1+ none- none-0- none-1- none-2-"
)
HELD = {
    "main": "both+ both-0+ both-1+ page+ page-0+ page-1+ picture- picture-0+ picture-1+ none- none-0+ "
    "none-1+ none-2- old- old-0+ old-1+",
    "all": WITHIN,
    "children": WITHIN,
    "": "both+ both-0+ both-1+ page+ page-0+ page-1+ picture+ picture-0+ picture-1+ none- none-0+ none-1+ "
    "none-2-",
}
"""Scope of an assertion -> which samples are right."""


def held(port: int, scope: str) -> bytes:
    """Pages of which a word is asked for. Redirects on the way are looked at there, and not here: they stand
    where sub-samples are not asked for.
    """
    looks = asserted(scope, "token")
    pages = [with_embedded(path, port, below=looks) for path in ("/both", "/page", "/picture", "/none")]
    follows = flag("HTTPSampler.follow_redirects", True)
    old = with_embedded("/old", port, follows, looks) if scope == "main" else ""
    return document("".join(pages) + old, group=ONE + repeated(1))


def outcomes(log: Path) -> list[tuple[str, str, str, str]]:
    """Rows, those of sub-samples too: label, code, message, and whether it is right."""
    with log.open(newline="") as file:
        return [
            (
                row["label"],
                row["responseCode"],
                re.sub(":[0-9]+/", "/", row["responseMessage"]),
                row["success"],
            )
            for row in csv.DictReader(file)
        ]


def signs(rows: list[tuple[str, str, str, str]]) -> str:
    return " ".join(label + ("+" if success == "true" else "-") for label, _, _, success in rows)


@pytest.mark.parametrize("scope", HELD)
def test_an_assertion_holds_for_the_samples_of_its_scope(tmp_path: Path, scope: str) -> None:
    with site(TOKENS) as served:
        (tmp_path / "p.jmx").write_bytes(held(served.port, scope))
        argv = ["-n", "-t", str(tmp_path / "p.jmx"), "-l", str(tmp_path / "out.jtl")]
        jmeter.run(argv, quick_desk()[0])
    assert signs(outcomes(tmp_path / "out.jtl")) == HELD[scope]


@needs_jmeter
@pytest.mark.parametrize("scope", HELD)
def test_and_for_those_of_jmeter_itself(tmp_path: Path, scope: str) -> None:
    with site(TOKENS) as served:
        (tmp_path / "p.jmx").write_bytes(held(served.port, scope))
        argv = ["-n", "-t", str(tmp_path / "p.jmx"), "-l"]
        run_jmeter([*argv, str(tmp_path / "real.jtl")], tmp_path)
        jmeter.run([*argv, str(tmp_path / "out.jtl")], quick_desk()[0])
    real = outcomes(tmp_path / "real.jtl")
    assert signs(real) == HELD[scope]
    assert outcomes(tmp_path / "out.jtl") == real


def test_a_pattern_with_look_around_is_refused() -> None:
    with refuses("unsupported", "embedded"):
        load_of(with_embedded("/a", more=prop("HTTPSampler.embedded_url_re", "(?!x).*")))
