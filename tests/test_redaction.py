"""What counts as a credential, in which forms it is found, and what is left alone."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony import credentials, redaction
from prony.server import certificates

HIDDEN = {
    # URLs
    "http://user:pw@host/x": "http://REDACTED@host/x",
    "see http://user:p@ss@host:99999/x?e=a@b now": "see http://REDACTED@host:99999/x?e=a@b now",
    "http://user:pa/ss@host/x": "http://REDACTED@host/x",
    "http://u:1234@h/": "http://REDACTED@h/",
    "http://:pw@h": "http://REDACTED@h",
    "https://ghp_0123456789abcdefghijABCDEF@code.example/x": "https://REDACTED@code.example/x",
    "postgresql://me:pw@db:5432/x": "postgresql://REDACTED@db:5432/x",
    "GET /x?access_token=abc&page=2": "GET /x?access_token=REDACTED&page=2",
    "/x?api_key=1&b=2&password=a%20b": "/x?api_key=REDACTED&b=2&password=REDACTED",
    "/x?key=1&sig=2&X-Amz-Signature=3": "/x?key=REDACTED&sig=REDACTED&X-Amz-Signature=REDACTED",
    "/x;jsessionid=A1B2?p=1": "/x;jsessionid=REDACTED",
    "jdbc:mysql://db:3306/x?user=a&password=b": "jdbc:mysql://db:3306/x?user=a&password=REDACTED",
    # headers
    "Authorization: Bearer abc": "Authorization: Bearer REDACTED",
    "authorization:abc": "authorization:REDACTED",
    "Proxy-Authorization: Basic dTpw": "Proxy-Authorization: Basic REDACTED",
    "X-Api-Key: k\r\nHost: a\r\n": "X-Api-Key: REDACTED\r\nHost: a\r\n",
    "Cookie: s=1; theme=dark": "Cookie: s=REDACTED; theme=REDACTED",
    "Set-Cookie: id=5; Path=/; HttpOnly": "Set-Cookie: id=REDACTED; Path=/; HttpOnly",
    "the header Authorization: Bearer abc": "the header Authorization: Bearer REDACTED",
    "curl -H 'Authorization: Bearer x' -H \"X-Auth-Token: y\" http://h/":
        "curl -H 'Authorization: Bearer REDACTED' -H \"X-Auth-Token: REDACTED\" http://h/",
    "header Set-Cookie is 's=abc', expected": "header Set-Cookie is 'REDACTED', expected",
    # bodies
    "user=a&password=b": "user=a&password=REDACTED",
    "u=a&pw=b": "u=a&pw=REDACTED",
    '{"user":"u","password":"hunter2","pin":1234}': '{"user":"u","password":"REDACTED","pin":REDACTED}',
    r'{"d":"{\"client_secret\":\"x y\",\"a\":1}"}': r'{"d":"{\"client_secret\":\"REDACTED\",\"a\":1}"}',
    "{'accessToken': 'abc'}": "{'accessToken': 'REDACTED'}",
    "<w:Password Type='x'>pp</w:Password><a>b</a>": "<w:Password Type='x'>REDACTED</w:Password><a>b</a>",
    'name="password"\r\n\r\nhunter2\r\n--b': 'name="password"\r\n\r\nREDACTED\r\n--b',
    'wrk.headers["Authorization"] = "Bearer abc"': 'wrk.headers["Authorization"] = "Bearer REDACTED"',
    # command lines and others
    "--db-password=x --password y -Da.b.password=z DB_PASS=q":
        "--db-password=REDACTED --password REDACTED -Da.b.password=REDACTED DB_PASS=REDACTED",
    "ab -n 1 -A me:pw -P 'me:pw' http://h:80/": "ab -n 1 -A me:REDACTED -P 'me:REDACTED' http://h:80/",
    "sent Basic dXNlcjpwYXNzd29yZA==": "sent Basic REDACTED",
    '{"x":"xoxb-1234-abcdefghijkl"}': '{"x":"REDACTED"}',
    "sk_live_51HabcdefGHIJ": "REDACTED",
    "a ghp_0123456789abcdefghijABCDEF b": "a REDACTED b",
    "AKIAIOSFODNN7EXAMPLE": "REDACTED",
    "key AIzaSyD-0123456789abcdefghijklm.": "key REDACTED.",
    r"-----BEGIN RSA PRIVATE KEY-----\nMIIab+/=\n-----END RSA PRIVATE KEY-----":
        "-----BEGIN RSA PRIVATE KEY-----REDACTED-----END RSA PRIVATE KEY-----",
    "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def": "got REDACTED",
}  # fmt: skip
LEFT = [
    "http://host:8080/a@b", "http://[::1]:8080/x@y", "postgresql://user@host/results", "ada@example.org",
    "mailto:ada@example.org", "Bearer ${token}", '"Authorization": "Bearer ${token}"', '{"token":"${t}"}',
    "/x?access_token=${login.token | url}", "Vary: Cookie",
    "Access-Control-Allow-Headers: Authorization, X-Key",
    "Access-Control-Allow-Credentials: true", "wrong token; send the token from the --token-file",
    "net.ipv4.tcp_syncookies=1", '"max_tokens":100', "password must be set", "Authorization required",
    "Basic HTTP/1.1", "--token-file /a/b", "token_url=http://h/", "secretary=Ada", "-A http://h", "passed=3",
    "/login?api_key={{ apiKey }}", "Bearer {{ $env.TOKEN }}",
    "Token",
    "--keystore-password=for-this-run", "key: F minor", "",
]  # fmt: skip


@pytest.mark.parametrize(("text", "public"), HIDDEN.items())
def test_a_credential_is_found_by_its_name_or_its_form(text: str, public: str) -> None:
    assert redaction.text(text) == public
    assert redaction.text(public) == public
    assert redaction.text(f"{'x' * 3000} {text}").endswith(public), "in a long text too"


@pytest.mark.parametrize("text", LEFT)
def test_what_is_none_is_left_alone(text: str) -> None:
    assert redaction.text(text) == text


def test_a_name_keeps_its_words_and_loses_what_is_in_its_url() -> None:
    assert redaction.name("Token: refresh") == "Token: refresh"
    assert redaction.name("POST /login?token=abc") == "POST /login?token=REDACTED"
    assert redaction.name("http://u:p@h/x") == "http://REDACTED@h/x"
    assert redaction.url("user:pw@127.0.0.1:8080/") == "REDACTED@127.0.0.1:8080/"
    assert redaction.url("127.0.0.1:8080/x") == "127.0.0.1:8080/x"


def test_values_are_found_where_a_plan_has_them() -> None:
    plan: dict[str, Any] = {
        "headers": {"Authorization": "Bearer abc", "X-Key": "1", "Accept": "*/*", "Cookie": "a=${b}; c=d"},
        "auth": {"basic": {"user": "me", "password": "p"}},
        "bearer": "t",
        "cookies": {"given": [{"name": "a", "value": "b", "path": "/"}]},
        "feeders": {"people": {"columns": ["name", "password"], "rows": [["Ada", "x"], ["Bo", "y"]]}},
        "variables": {"api_token": "abc", "page": "1"},
        "settings": {"db.password": "x", "pin": 1234, "pool": 5},
        "loop": {"over": ["t1", "t2"], "as": "token"},
        "error_reasons": {"capture": "no match in token=abc"},
        "command": ["java", "-u", "me:x", "--password", "y", "-HCookie: a=b", "-Dx.password=z", "a.jar"],
        "capture": {"token": {"regex": "token=(.*)"}},
        "expect": {"body_contains": ["token=1"]},
        "cell": "main/Token: refresh/x",
    }
    hidden = "REDACTED"
    assert redaction.plain(plan) == {
        "headers": {
            "Authorization": f"Bearer {hidden}", "X-Key": hidden, "Accept": "*/*",
            "Cookie": f"a=${{b}}; c={hidden}",
        },
        "auth": {"basic": {"user": "me", "password": hidden}},
        "bearer": hidden,
        "cookies": {"given": [{"name": "a", "value": hidden, "path": "/"}]},
        "feeders": {"people": {"columns": ["name", "password"], "rows": [["Ada", hidden], ["Bo", hidden]]}},
        "variables": {"api_token": hidden, "page": "1"},
        "settings": {"db.password": hidden, "pin": hidden, "pool": 5},
        "loop": {"over": [hidden, hidden], "as": "token"},
        "error_reasons": {"capture": f"no match in token={hidden}"},
        "command": ["java", "-u", f"me:{hidden}", "--password", hidden, f"-HCookie: a={hidden}",
                    f"-Dx.password={hidden}", "a.jar"],
        "capture": {"token": {"regex": "token=(.*)"}},
        "expect": {"body_contains": ["token=1"]},
        "cell": "main/Token: refresh/x",
    }  # fmt: skip
    written = json.dumps(plan)
    assert json.loads(redaction.as_json(written)) == redaction.plain(plan)
    assert redaction.redacted_in(plan) == ()
    assert redaction.redacted_in(redaction.plain(plan))[:3] == ("Authorization", "X-Key", "Cookie")
    assert redaction.filled(redaction.plain(plan), plan) == plan
    assert redaction.filled(redaction.plain(plan), {**plan, "bearer": ""})["bearer"] == hidden


def test_values_are_found_where_a_script_of_a_front_end_has_them() -> None:
    given = {
        "variables": {"sid": ["abc", "def"], "page": "1", "note": "${x}"}, "cookies": {"s": "abc", "n": 5},
        "headers": {"X-Key": "1"}, "env": {"DEPLOY": "xyz", "HOME": "/root"},
        "rows": {"people": [{"user": "ada", "pw": "x"}]},
    }  # fmt: skip
    params = {
        "url": "/x", "cookie": {"s": "abc", "t": "{{ sid }}"}, "auth": {"user": "me", "pass": "p"},
        "qs": {"key": "abc", "page": 1}, "json": {"user": "me", "password": "p"},
        "headers": {"Authorization": "Bearer {{ $env.DEPLOY }}"},
    }  # fmt: skip
    plan: dict[str, Any] = {
        "script": {"file": "s.js", "args": [json.dumps(given)]},
        "steps": [
            {"call": {"task": {"params": params}, "give": {"vars.sid": '"abc"', "vars.page": "1"}}},
            {"set": {"mine": "abc", "chained": "${mine}", "name": "Ada"}},
            {"loop": {"over": ["a", "b"], "as": "turn"}},
            {"set_cookies": "s=abc; Path=/\nt=${people.code}", "name": "${name}",
             "headers": {"Cookie": "u=${name}", "X-Auth-Token": "${chained} ${turn | url}"}},
        ],
        "feeders": {"people": {"columns": ["user", "code"], "rows": [["ada", "abc"]]}},
        "variables": {"sid": "abc", "user": "ada"},
    }  # fmt: skip
    hidden = "REDACTED"
    found = redaction.plain(plan)
    assert json.loads(found["script"]["args"][0]) == {
        "variables": {"sid": [hidden, hidden], "page": "1", "note": "${x}"},
        "cookies": {"s": hidden, "n": hidden}, "headers": {"X-Key": hidden},
        "env": {"DEPLOY": hidden, "HOME": "/root"}, "rows": {"people": [{"user": "ada", "pw": hidden}]},
    }  # fmt: skip
    (call, values, loop, step) = found["steps"]
    assert call["call"]["give"] == {"vars.sid": hidden, "vars.page": "1"}
    assert call["call"]["task"]["params"] == {
        "url": "/x", "cookie": {"s": hidden, "t": "{{ sid }}"}, "auth": {"user": "me", "pass": hidden},
        "qs": {"key": hidden, "page": 1}, "json": {"user": "me", "password": hidden},
        "headers": {"Authorization": "Bearer {{ $env.DEPLOY }}"},
    }  # fmt: skip
    assert values["set"] == {"mine": hidden, "chained": "${mine}", "name": hidden}
    assert loop["loop"]["over"] == [hidden, hidden]
    assert (step["set_cookies"], step["name"]) == (f"s={hidden}; Path=/\nt=${{people.code}}", "${name}")
    assert found["feeders"]["people"]["rows"] == [["ada", hidden]]
    assert found["variables"] == {"sid": hidden, "user": "ada"}
    assert redaction.plain(found) == found
    assert {"abc123"} <= redaction.secrets_of({"set": {"token": '"abc123"'}}), "as JSON"


def test_the_length_of_a_head_stays() -> None:
    head = "HTTP/1.1 200 OK\r\nSet-Cookie: id=abcdefghijkl; Path=/\r\nX-Token: ab\r\n\r\n"
    made = redaction.plain({"first_head": head})["first_head"]
    assert len(made) == len(head)
    assert "abcdefghijkl" not in made
    assert redaction.plain({"first_head": made})["first_head"] == made


def test_a_known_credential_is_found_wherever_others_say_it() -> None:
    sent = {"headers": {"Authorization": "Basic dXNlcjpwYXNzd29yZDE=", "Cookie": "s=abcdef12"},
            "path": "/?token=abc%2Bdef1", "body": "pin=12"}  # fmt: skip
    secrets = redaction.secrets_of(sent)
    assert {"password1", "abcdef12", "abc+def1", "abc%2Bdef1", "dXNlcjpwYXNzd29yZDE="} <= secrets
    assert "12" not in secrets, "it would be found in every number"
    said = {"why_not": "password1 is wrong (abcdef12)", "sent": 7, "load": {"model": "abcdef12"}}
    assert redaction.without(said, secrets) == {
        "why_not": "REDACTED is wrong (REDACTED)", "sent": 7, "load": {"model": "abcdef12"},
    }  # fmt: skip
    assert redaction.without("xabcdef12", secrets) == "xabcdef12", "part of another word"


def test_what_should_have_been_a_header_is_not_shown() -> None:
    assert redaction.beginning("Authorization Bearer abc") == "Authorization …"
    assert redaction.beginning("X Token: abc") == "X Token: REDACTED"
    assert redaction.beginning("A b: c") == "A b: c"


def test_the_password_of_our_own_keystores_is_public() -> None:
    assert certificates.PASSWORD in credentials.PUBLIC


@given(st.text(max_size=200))
def test_what_is_public_stays_so(text: str) -> None:
    once = redaction.text(text)
    assert redaction.text(once) == once


SAID = [
    "${a}",
    '{"a":"b"}',
    '{"env":{"a":"b"}}',
    "9f86d081884c7d659a2feaa0c55ad015",
    "pin_code=1",
    "a=b; c=d",
]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(SAID),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([
                "headers", "password", "name", "given", "value", "command", "a", "set_cookies", "variables",
                "pin_code", "params", "cookie", "qs", "key", "X-Plain",
            ]),
            inner,
        )
    ),
    max_leaves=10,
)  # fmt: skip


@given(_JSON)
def test_any_value_has_the_same_shape_afterwards(value: Any) -> None:
    made = redaction.plain(value)
    assert type(made) is type(value)
    assert redaction.plain(made) == made
    assert redaction.filled(made, value) == value
    assert json.loads(redaction.as_json(json.dumps(value))) == made, "no form of it is left out"


@pytest.mark.parametrize(
    "piece",
    ["a", "http://a:", 'a="', "a=a=", "name=x ", '"', "<a ", "\\", "--a ", "://", "a:b@", "token=", "Bearer ",
     '"token":"', "aA0", "a is ", "<password>", "-a", "\r\n", 'name="token"\r\n\r\n', '\\"', "Cookie: ",
     "eyJaaaaaaaa.", "x-a", "x-token: "],
)  # fmt: skip
def test_no_text_of_a_server_takes_long(piece: str) -> None:
    begun_s = time.process_time()
    redaction.text(piece * (60_000 // len(piece)) + " token @://")
    assert time.process_time() - begun_s < 5.0, "it grows with the square of the text"


@pytest.mark.parametrize(
    ("header", "value", "shown"),
    [
        ("X-Plain", "9f86d081884c7d659a2feaa0c55ad015", "REDACTED"),
        ("X-Plain", "abcdefgh.ijklmnop_qrstuvwx-1", "REDACTED"),
        ("X-Plain", "550e8400-e29b-41d4-a716-446655440000", None),
        ("X-Plain", "a sentence with 1 number in it", None),
        ("X-Plain", "${token}", None),
        ("X-Plain", "short1", None),
        ("Accept", "application/vnd.company.thing.v2+json", None),
        ("User-Agent", "Mozilla/5.0-like-nothing-else-here", None),
        ("If-None-Match", "33a64df551425fcc55e4d42a148795d9f25f89d4", None),
    ],
)
def test_a_header_whose_value_looks_like_a_token_is_one(header: str, value: str, shown: str | None) -> None:
    for headers in ({header: value}, [[header, value]]):
        assert redaction.plain({"headers": headers})["headers"] == (
            {header: shown or value} if isinstance(headers, dict) else [[header, shown or value]]
        )
