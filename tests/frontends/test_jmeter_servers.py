"""prony jmeter: plans with several servers, and the cookies of a thread: connections, headers and rows, held
against JMeter itself.
"""

from __future__ import annotations

import csv
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from prony.judge.checks.connections import expected_connections
from prony.load.contract import engine_plan
from prony.load.facts import load_facts
from prony.plan.workload import Cookies, GivenCookie
from prony_frontends import jmeter
from tests.entries import requests
from tests.frontends.codes import refuses
from tests.frontends.conftest import as_asked, explained, quick_desk
from tests.frontends.jmx_text import document, element, flag, load_of, prop, repeated, sampler, translated_of
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter


class Asked(BaseHTTPRequestHandler):
    """Notes what it is asked, and on which connection; `/set` sets a cookie."""

    protocol_version = "HTTP/1.1"
    notes: list[tuple[int, int, str, str]]

    def do_GET(self) -> None:
        connections = self.server.connections  # type: ignore[attr-defined]
        number = connections.setdefault(self.client_address[1], len(connections))
        self.notes.append((self.server.place, number, self.path, self.headers.get("Cookie", "")))  # type: ignore[attr-defined]
        self.send_response(200)
        if self.path == "/set":
            self.send_header("Set-Cookie", f"s{self.server.place}=1; Path=/")  # type: ignore[attr-defined]
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def two() -> Iterator[tuple[list[tuple[int, int, str, str]], list[int]]]:
    """Two servers on ports of their own; what they were asked, and the ports."""
    notes: list[tuple[int, int, str, str]] = []
    handler = type("Noting", (Asked,), {"notes": notes})
    servers = [ThreadingHTTPServer((f"127.0.0.{place}", 0), handler) for place in (1, 2)]
    for place, server in enumerate(servers):
        server.place, server.connections = place, {}  # type: ignore[attr-defined]
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield notes, [server.server_address[1] for server in servers]
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def cookie(name: str, value: str, domain: str, path: str = "/", secure: bool = False) -> str:
    return (
        f'<elementProp name="{name}" elementType="Cookie" testname="{name}">{prop("Cookie.value", value)}'
        f"{prop('Cookie.domain', domain)}{prop('Cookie.path', path)}{flag('Cookie.secure', secure)}"
        f'<longProp name="Cookie.expires">0</longProp>{flag("Cookie.path_specified", True)}'
        f"{flag('Cookie.domain_specified', True)}</elementProp>"
    )


def manager(*cookies: str, clears: bool = False, by_group: bool = False) -> str:
    return element(
        "CookieManager", f'<collectionProp name="CookieManager.cookies">{"".join(cookies)}</collectionProp>',
        flag("CookieManager.clearEachIteration", clears),
        flag("CookieManager.controlledByThreadGroup", by_group),
    )  # fmt: skip


def at(host: str, port: int, path: str, name: str) -> str:
    return sampler(f"http://{host}:{port}{path}", name=name)


OWN = (
    cookie("g", "0", "127.0.0.1"),
    cookie("deep", "d", "127.0.0.1", "/deep"),
    cookie("x", "9", "other.org"),
    cookie("h", "2", "127.0.0.2"),
    cookie("tls", "1", "127.0.0.1", secure=True),
)


def walk(ports: list[int], cookies: str = "") -> str:
    """There, back and there again; the second server has another address."""
    return (
        cookies + at("127.0.0.1", ports[0], "/set", "set") + at("127.0.0.2", ports[1], "/b", "b")
        + at("127.0.0.2", ports[1], "/set", "set b") + at("127.0.0.1", ports[0], "/deep", "deep")
    )  # fmt: skip


def test_each_request_goes_to_its_server() -> None:
    made = translated_of(walk([81, 82]))
    assert made.target.url == "http://127.0.0.1:81"
    servers = [step.server for step in requests(made.trial.workload.steps)]
    assert servers == [None, "http://127.0.0.2:82", "http://127.0.0.2:82", None]
    plan = engine_plan(as_asked(made))
    assert plan["other_targets"] == [{"url": "http://127.0.0.2:82"}]
    assert [step.get("target", 0) for step in plan["scenarios"][0]["steps"]] == [0, 1, 1, 0]
    assert explained(made).workload == made.trial.workload


def test_the_plan_of_one_server_says_nothing_of_others() -> None:
    made = translated_of(sampler() + sampler("/b"))
    assert "other_targets" not in engine_plan(as_asked(made))


def test_tls_is_spoken_where_a_second_server_asks_for_it() -> None:
    secure = sampler("https://127.0.0.1:443/b")
    made = translated_of(sampler() + secure)
    assert made.target.tls.insecure
    assert engine_plan(as_asked(made))["target"]["tls"]["insecure"]


def test_a_user_may_have_a_connection_to_each_server() -> None:
    made = translated_of(walk([81, 82]), group=repeated(50) + prop("ThreadGroup.num_threads", 4))
    trial = made.trial
    facts = load_facts(trial.load, trial.workload, trial.connections)
    assert facts.servers == 2
    totals: object = None
    assert expected_connections(facts, 800, totals) == (4.0, 8.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cookies", "loops", "kept"),
    [
        (manager(), 5, True),
        (manager(clears=True), 1, True),
        (manager(clears=True), 5, Cookies(each_iteration=True)),
        (manager(clears=True, by_group=True), 5, True),
        (
            manager(*OWN, clears=True),
            5,
            Cookies(
                each_iteration=True,
                given=(
                    GivenCookie(name="g", value="0"),
                    GivenCookie(name="deep", value="d", path="/deep"),
                    GivenCookie(name="h", value="2", server="http://127.0.0.2:82"),
                ),
            ),
        ),
    ],
)
def test_when_cookies_are_cleared_and_which_a_thread_begins_with(
    cookies: str, loops: int, kept: bool | Cookies
) -> None:
    assert load_of(walk([81, 82], cookies), group=repeated(loops)).workload.cookies == kept


def test_cookies_are_cleared_with_each_user_where_the_manager_goes_by_the_group() -> None:
    group = repeated(5) + flag("ThreadGroup.same_user_on_next_iteration", False)
    trial = load_of(manager(by_group=True) + sampler(), group=group)
    assert trial.workload.cookies == Cookies(each_iteration=True)


def test_a_policy_that_sends_no_cookies() -> None:
    none = element("CookieManager", prop("CookieManager.policy", "ignoreCookies"))
    assert load_of(none + sampler()).workload.cookies is False


def test_a_new_user_for_every_iteration_and_several_servers() -> None:
    group = repeated(5) + flag("ThreadGroup.same_user_on_next_iteration", False)
    with refuses("unsupported", "ThreadGroup", "several servers"):
        load_of(walk([81, 82]), group=group)


def told(folder: Path, ours: bool, cookies: str, loops: int) -> tuple[list[object], list[list[str]]]:
    """What the servers were asked, with cookies in any order, and labels, codes and URLs of the rows."""
    folder.mkdir()
    plan, log = folder / "p.jmx", folder / "out.jtl"
    with two() as (notes, ports):
        group = prop("ThreadGroup.num_threads", 1) + repeated(loops)
        plan.write_bytes(document(walk(ports, cookies), group=group))
        argv = ["-n", "-t", str(plan), "-l", str(log)]
        if ours:
            assert jmeter.run(argv, quick_desk()[0]) == 0
        else:
            run_jmeter(argv, folder, cwd=folder)
        places = {str(port): str(place) for place, port in enumerate(ports)}
        shown = [
            [row["label"], row["responseCode"], re.sub(r"\d{4,5}", lambda at: places[at[0]], row["URL"])]
            for row in csv.DictReader(log.open(newline=""))
        ]
        asked = [(place, number, path, sorted(cookie.split("; "))) for place, number, path, cookie in notes]
    return [one for one in asked if one[2] != "/"], shown


@needs_jmeter
@pytest.mark.parametrize("clears", [True, False])
def test_jmeter_itself_sends_the_same_to_each_server(clears: bool, tmp_path: Path) -> None:
    theirs, ours = (
        told(tmp_path / who, who == "ours", manager(*OWN, clears=clears), 3) for who in ("theirs", "ours")
    )
    assert theirs == ours
    assert len(ours[0]) == 12
