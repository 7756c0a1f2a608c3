"""URLs of running servers as targets, paths and credentials."""

from __future__ import annotations

import pytest

from prony.errors import UsageError
from prony.plan.load import Connections
from prony.plan.step import Auth, Basic, Step
from prony.plan.target import parse_url
from prony.plan.workload import Workload


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("http://h/x?", "/x?"),
        ("http://h/x?#top", "/x?"),
        ("http://h?", "/?"),
        ("http://h/x?a=?", "/x?a=?"),
        ("http://h/x#top?", "/x"),
        ("http://h", "/"),
    ],
)
def test_an_empty_query_stays(text: str, path: str) -> None:
    assert parse_url(text).path == path


@pytest.mark.parametrize("text", ["http://h:0/", "https://h:00/", "h:0", "http://h:65536/", "http://h:-1/"])
def test_a_port_outside_1_to_65535_is_no_default_port(text: str) -> None:
    with pytest.raises(UsageError, match="1 to 65535"):
        parse_url(text)


def test_credentials_go_to_every_request_without_its_own() -> None:
    target, _, auth = parse_url("http://jo:a%3Ab%40@h:81/x")
    assert (target.url, auth) == ("http://h:81", Auth(basic=Basic(user="jo", password="a:b@")))
    own = Step(path="/own", headers={"authorization": "x"})
    bearer = Step(path="/bearer", auth=Auth(bearer="t"))
    elsewhere = Step(path="/", server="http://other:1")
    workload = Workload(steps=(Step(path="/"), own, bearer, elsewhere)).with_auth(auth)
    assert [step.auth for step in workload.all_steps] == [auth, None, bearer.auth, None]
    assert parse_url("http://h/").auth is None


def test_a_zone_is_where_connections_go() -> None:
    for text in ("http://[fe80::1%25eth0]:81/x", "http://[fe80::1%eth0]:81/x"):
        target, path, _ = parse_url(text)
        assert (target.url, target.addresses, path) == ("http://[fe80::1]:81", ("[fe80::1%eth0]:81",), "/x")


def test_a_repeated_header_is_a_line_each() -> None:
    step = Step(path="/${a}", headers={"X": ("1", "${b}"), "Y": "2"})
    assert step.header_pairs == [("X", "1"), ("X", "${b}"), ("Y", "2")]
    assert step.with_header_values(str.upper) == {"X": ("1", "${B}"), "Y": "2"}
    assert "${b}" in step.used
    assert Step.model_validate_json(step.model_dump_json()) == step


@pytest.mark.parametrize(("before", "sessions"), [(True, "shared"), (False, "none")])
def test_results_say_whose_tls_sessions_were_resumed_before_that_was_a_choice(
    before: bool, sessions: str
) -> None:
    assert Connections.model_validate({"tls_resumption": before}).tls_sessions == sessions
    assert Connections().tls_sessions == "user"
