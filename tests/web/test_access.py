"""Who may see and do what: host names, origins, tokens, proxies, and how often a wrong token may be tried."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.store import Store
from prony_serve.web.access import COOKIE, Access, Rules, read_token
from prony_serve.web.app import create
from prony_serve.web.limiting import PER_ADDRESS, WINDOW_S, FailureLimit
from prony_serve.web.site import Site

from .client import Client
from .conftest import reader

TOKEN = "correct-horse-battery-staple"
FORM = {"content_type": "application/x-www-form-urlencoded"}
ORIGIN = {"origin": "http://127.0.0.1:8321"}


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8321", "localhost", "LocalHost:1", "[::1]:8321", "10.1.2.3", "prony.example"]
)
def test_its_own_names_and_any_address_are_right(empty: Store, host: str) -> None:
    client = Client(create(Site(empty), ("prony.example",)), host=host)
    assert client.get("/").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example:8321", "", "a@localhost", "x:y:z", "h/p"]
)
def test_another_name_is_refused(empty: Store, host: str) -> None:
    """Whoever owns a name may point it here: so would a page elsewhere read a server on loopback."""
    reply = Client(create(Site(empty)), host=host).get("/")
    assert reply.status == 421
    assert "--allow-host" in reply.text


def test_every_response_says_what_a_browser_may_do_with_it(empty: Store) -> None:
    client = reader(empty)
    for path in ("/", "/api/results", "/no/such/page", "/changes.atom"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path", ["/", "/api/results", "/results/latest", "/trends", "/changes.atom", "/hosts"]
)
def test_with_a_token_nothing_is_shown_without_it(empty: Store, path: str) -> None:
    client = reader(empty, Rules(token=TOKEN))
    refused = client.get(path, accept="application/json")
    assert refused.status == 401
    assert refused.json() == {
        "error": "a token is required: log in at /login, or send 'Authorization: Bearer TOKEN'"
    }
    assert client.get(path, authorization=f"Bearer {TOKEN}", accept="application/json").status in (200, 404)


def test_a_person_logs_in_and_comes_back_to_where_they_were(empty: Store) -> None:
    client = reader(empty, Rules(token=TOKEN))
    form = client.get("/hosts?x=1")
    assert form.status == 401
    (back,) = [one for one in form.page.all("input") if one.attributes.get("name") == "next"]
    assert back.attributes["value"] == "/hosts?x=1"
    inside = client.post("/login", f"token={TOKEN}&next=%2Fhosts".encode(), **FORM, **ORIGIN)
    assert (inside.status, inside.headers["location"]) == (303, "/hosts")
    assert "HttpOnly" in inside.headers["set-cookie"]
    assert "SameSite=lax" in inside.headers["set-cookie"]
    assert client.get("/hosts").status == 200
    assert client.post("/logout", b"", **ORIGIN).status == 303
    client.cookie = inside.headers["set-cookie"].partition(";")[0]  # kept by somebody
    assert client.get("/hosts").status == 401


@pytest.mark.parametrize("to", ["//evil.example/", "https://evil.example/", "/\\evil.example", "x", "/a\nb"])
def test_log_in_leads_nowhere_else(empty: Store, to: str) -> None:
    client = reader(empty, Rules(token=TOKEN))
    from urllib.parse import urlencode

    body = urlencode({"token": TOKEN, "next": to}).encode()
    assert client.post("/login", body, **FORM, **ORIGIN).headers["location"] == "/"


def test_a_form_of_another_page_is_refused(empty: Store) -> None:
    client = reader(empty, Rules(token=TOKEN))
    body = f"token={TOKEN}".encode()
    assert client.post("/login", body, **FORM, origin="http://evil.example").status == 403
    assert client.post("/login", body, **FORM, origin="null").status == 403
    assert client.post("/login", body, **FORM, sec_fetch_site="cross-site").status == 403
    client.post("/login", body, **FORM, **ORIGIN)
    assert COOKIE in client.cookie
    assert client.post("/logout").status == 403  # a cookie alone, from nobody knows where
    assert client.get("/").status == 200


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [(b"{}", "application/json", 415), (b"token=" + b"x" * 20_000, "application/x-www-form-urlencoded", 413)],
)
def test_what_is_no_form_is_refused(empty: Store, body: bytes, kind: str, status: int) -> None:
    reply = reader(empty, Rules(token=TOKEN)).post("/login", body, content_type=kind, **ORIGIN)
    assert reply.status == status


def test_wrong_tokens_are_slowed_down(empty: Store) -> None:
    client = reader(empty, Rules(token=TOKEN))
    for _ in range(PER_ADDRESS):
        wrong = client.get("/api/results", authorization="Bearer not-the-right-token")
        assert wrong.status == 401
        assert "--token-file" in wrong.json()["error"]
    slowed = client.get("/api/results", authorization=f"Bearer {TOKEN}")
    assert slowed.status == 429
    assert 0 < int(slowed.headers["retry-after"]) <= WINDOW_S + 1
    assert slowed.json()["error"]
    by_form = client.post("/login", f"token={TOKEN}".encode(), **FORM, **ORIGIN)
    assert by_form.status == 429
    client.address = "127.0.0.2"
    assert client.get("/api/results", authorization=f"Bearer {TOKEN}").status == 200


def test_the_limit_counts_per_address_and_locks_no_other_one_out() -> None:
    now = [0.0]
    limit = FailureLimit(lambda: now[0])
    for k in range(PER_ADDRESS):
        assert limit.wait_s("2001:db8::1") == 0
        limit.failed(f"2001:db8::{k}")  # one host has a whole /64
    assert limit.wait_s("2001:db8::ffff") == WINDOW_S
    assert limit.wait_s("2001:db8:0:1::1") == 0
    now[0] = WINDOW_S
    assert limit.wait_s("2001:db8::1") == 0
    for k in range(2000):
        limit.failed(f"10.0.{k // 250}.{k % 250}")
    assert limit.wait_s("192.0.2.1") == 0


def test_behind_a_proxy_its_header_is_believed_and_no_other(empty: Store) -> None:
    rules = Rules(trusted_header="X-Remote-User", trusted_proxies=(ipaddress.ip_network("10.0.0.0/8"),))
    client = reader(empty, rules)
    client.address = "10.1.2.3"
    assert client.get("/api/results", x_remote_user="ann").status == 200
    assert client.get("/api/results").json() == {
        "error": "the proxy set no header X-Remote-User; log in at the proxy"
    }
    assert client.get("/api/results", x_remote_user=" ").status == 401
    client.address = "192.0.2.7"
    refused = client.get("/api/results", x_remote_user="ann")
    assert refused.status == 401
    assert "--trusted-proxy" in refused.json()["error"]
    client.address = "::ffff:10.1.2.3"
    assert client.get("/api/results", x_remote_user="ann").status == 200


def test_a_token_that_a_proxy_hands_on_is_its_own(empty: Store) -> None:
    """Proxies that log people in pass what they got as a bearer token; only --token-file makes it ours."""
    rules = Rules(trusted_header="X-Remote-User", trusted_proxies=(ipaddress.ip_network("10.0.0.0/8"),))
    client = reader(empty, rules)
    client.address = "10.1.2.3"
    handed_on = {"authorization": "Bearer eyJhbGciOiJSUzI1NiJ9.e30.x"}
    for _ in range(PER_ADDRESS + 1):
        assert client.get("/api/results", x_remote_user="ann", **handed_on).status == 200
    assert client.get("/api/results", **handed_on).status == 401, "and is no way around the header"
    upload = client.post("/api/results", b"x", x_remote_user="ann", **handed_on)
    assert upload.status == 401
    assert "--token-file" in upload.json()["error"]


def test_a_session_ends() -> None:
    now = [0.0]
    access = Access(Rules(token=TOKEN), lambda: now[0])
    cookie = access.begin_session()
    assert access._has_session(cookie)
    assert not access._has_session(cookie[:-1])
    now[0] = 13 * 3600.0
    assert not access._has_session(cookie)


@pytest.mark.parametrize(
    "text", ["", "short", "with a space in the middle of it", "x" * 5000, "zwölf-zeichen-und-mehr"]
)
def test_a_file_without_a_good_token_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="--token-file"):
        read_token(path)


def test_a_token_is_the_line_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    assert read_token(path) == TOKEN
    with pytest.raises(UsageError, match="--token-file"):
        read_token(tmp_path / "none")
