"""prony jmeter: a cache manager asks again, or not at all, for what JMeter asks again, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from prony.plan.load import ClosedLoad, WholeRun
from prony.plan.step import Step
from prony.plan.target import Url
from prony.plan.trial import TrialPlan
from prony.plan.workload import Cache, Workload
from prony_frontends import jmeter
from prony_frontends.base import Translated
from tests.frontends.codes import refuses
from tests.frontends.conftest import offered
from tests.frontends.jmx_text import (
    ARGUMENTS,
    document,
    element,
    flag,
    load_of,
    prop,
    repeated,
    sampler,
    translated_of,
)
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.site import serving

ROUNDS = 3
OLD, FUTURE = "Wed, 01 Jan 2025 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
PAGES: dict[str, dict[str, str]] = {
    "/tag": {"ETag": '"a"'},
    "/time": {"Last-Modified": OLD},
    "/both": {"ETag": '"b"', "Last-Modified": OLD},
    "/none": {},
    "/no-cache": {"Cache-Control": "no-cache", "ETag": '"c"'},
    "/no-store": {"Cache-Control": "no-store", "ETag": '"d"'},
    "/age": {"Cache-Control": "public, max-age=1000", "ETag": '"e"'},
    "/no-age": {"Cache-Control": "max-age=0", "ETag": '"f"'},
    "/expires": {"Expires": FUTURE},
    "/expired": {"Expires": OLD, "ETag": '"g"'},
    "/never": {"Expires": "0", "ETag": '"h"'},
    "/no-cache-age": {"Cache-Control": "no-cache, max-age=50", "ETag": '"i"'},
    "/no-cache-expires": {"Cache-Control": "no-cache", "Expires": FUTURE, "ETag": '"j"'},
    "/star": {"Vary": "*", "ETag": '"k"'},
    "/posted": {"ETag": '"l"'},
    "/missing": {"ETag": '"m"'},
    "/changes": {"Cache-Control": "max-age=0"},
}
FRESH = {"/tag", "/time", "/both", "/age", "/expires", "/no-cache-expires", "/posted"}
"""What JMeter asks for but once with 'Use Cache-Control/Expires header'."""

Asked = tuple[str, str, str | None, str | None]


class Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: list[Asked]
    orders: dict[str, list[str]]

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        tag, time = self.headers.get("If-None-Match"), self.headers.get("If-Modified-Since")
        self.asked.append((self.command, self.path, tag, time))
        self.orders[f"{self.command} {self.path}"] = [name for name in self.headers if name != "Connection"]
        known = (tag or time) and self.command == "GET" and self.path != "/changes"
        self.send_response(304 if known else 404 if self.path == "/missing" else 200)
        for name, value in PAGES[self.path].items():
            self.send_header(name, value)
        if self.path == "/changes":
            self.send_header("ETag", f'"{len(self.asked)}"')
        if not known:
            self.send_header("Content-Length", "2")
        self.end_headers()
        if not known:
            self.wfile.write(b"hi")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def pages() -> Iterator[tuple[int, type[Pages]]]:
    verbs = dict.fromkeys(("do_GET", "do_POST"), Pages.answer)
    handler = type("Here", (Pages,), {"asked": [], "orders": {}, **verbs})
    with serving(handler) as port:
        yield port, handler


def manager(fresh: bool, *more: str) -> str:
    made = element("CacheManager", flag("useExpires", fresh), prop("maxSize", 5000), *more)
    return made.replace('guiclass="G"', 'guiclass="CacheManagerGui"')  # by which JMeter knows it


def plan(port: int, fresh: bool) -> bytes:
    header = prop("Header.name", "X-Mine") + prop("Header.value", "1")
    held = f'<elementProp name="" elementType="Header">{header}</elementProp>'
    headers = element(
        "HeaderManager", f'<collectionProp name="HeaderManager.headers">{held}</collectionProp>'
    )
    headers = headers.replace('guiclass="G"', 'guiclass="HeaderPanel"')
    argument = f'<elementProp name="" elementType="HTTPArgument">{prop("Argument.value", "x")}</elementProp>'
    raw = flag("HTTPSampler.postBodyRaw", True) + prop("HTTPSampler.method", "POST")
    inside = element("ConfigTestElement", prop("HTTPSampler.port", port)) + manager(fresh) + headers
    inside += "".join(sampler(path) for path in PAGES)
    inside += sampler("/posted", raw + ARGUMENTS.format(argument))
    return document(inside, group=repeated(ROUNDS) + prop("ThreadGroup.num_threads", 1))


def expected(fresh: bool) -> list[Asked]:
    """What JMeter asks for, in its order."""
    asked: list[Asked] = []
    for turn in range(ROUNDS):
        for path, head in PAGES.items():
            if turn and fresh and path in FRESH:
                continue
            keeps = turn > 0 and path not in ("/star", "/missing") and not (fresh and path == "/no-store")
            tag = head.get("ETag") if keeps else None
            if keeps and path == "/changes":
                tag = f'"{len(PAGES)}"'  # the first one, whatever comes later
            asked.append(("GET", path, tag, head.get("Last-Modified") if keeps else None))
        asked.append(("POST", "/posted", '"l"', None))
    return asked


@pytest.mark.parametrize("fresh", [False, True])
def test_a_cache_asks_what_jmeters_asks(pages: tuple[int, type[Pages]], tmp_path: Path, fresh: bool) -> None:
    port, handler = pages
    (tmp_path / "plan.jmx").write_bytes(plan(port, fresh))
    report = offered(jmeter.translate(["-n", "-t", str(tmp_path / "plan.jmx")]))
    assert handler.asked == expected(fresh)
    assert report.totals.completed == len(handler.asked)
    assert handler.orders["POST /posted"] == [
        "X-Mine", "If-None-Match", "Content-Length", "Content-Type", "Host", "User-Agent",
    ]  # fmt: skip
    if not fresh:
        assert handler.orders["GET /both"] == [
            "X-Mine", "If-Modified-Since", "If-None-Match", "Host", "User-Agent",
        ]  # fmt: skip


@needs_jmeter
@pytest.mark.parametrize("fresh", [False, True])
def test_jmeter_itself_asks_that(pages: tuple[int, type[Pages]], tmp_path: Path, fresh: bool) -> None:
    port, handler = pages
    (tmp_path / "plan.jmx").write_bytes(plan(port, fresh))
    log = tmp_path / "out.jtl"
    run_jmeter(["-n", "-t", str(tmp_path / "plan.jmx"), "-l", str(log)], tmp_path)
    assert handler.asked == expected(fresh)
    assert len(log.read_text().splitlines()) == len(handler.asked) + 1
    assert handler.orders["POST /posted"] == [
        "X-Mine", "If-None-Match", "Content-Length", "Content-Type", "Host", "User-Agent",
    ]  # fmt: skip


def test_a_cache_that_begins_anew(pages: tuple[int, type[Pages]]) -> None:
    port, handler = pages
    inside = element("ConfigTestElement", prop("HTTPSampler.port", port)) + sampler("/tag") * 2
    offered(translated_of(manager(True, flag("clearEachIteration", True)) + inside, group=repeated(2)))
    assert handler.asked == [("GET", "/tag", None, None)] * 2


def test_what_becomes_of_a_cache_manager() -> None:
    (step,) = [load_of(manager(False) + sampler()).workload]
    assert step.cache == Cache(rules="jmeter")
    thread = flag("CacheManager.controlledByThread", True) + flag("clearEachIteration", True)
    assert load_of(manager(True, thread) + sampler()).workload.cache == Cache(fresh=True, rules="jmeter")
    with refuses("unsupported", "CacheManager"):
        load_of(sampler() + element("GenericController", below=manager(True) + sampler()))


def test_a_workload_with_a_cache_goes_by_its_rfc(pages: tuple[int, type[Pages]]) -> None:
    port, handler = pages
    steps = tuple(Step(path=path) for path in ("/changes", "/no-store", "/age", "/tag"))
    trial = TrialPlan(
        workload=Workload(name="c", steps=steps, cache=Cache(fresh=True)),
        load=ClosedLoad(users=1),
        measured=WholeRun(iterations_per_user=3),
        preflight=False,
    )
    offered(Translated("prony", Url(url=f"http://127.0.0.1:{port}"), trial, "cache"))
    assert handler.asked == [
        ("GET", "/changes", None, None), ("GET", "/no-store", None, None), ("GET", "/age", None, None),
        ("GET", "/tag", None, None),
        ("GET", "/changes", '"1"', None), ("GET", "/no-store", None, None), ("GET", "/tag", '"a"', None),
        ("GET", "/changes", '"5"', None), ("GET", "/no-store", None, None), ("GET", "/tag", '"a"', None),
    ]  # fmt: skip
