"""The one request of `prony load`, said as one says it to curl."""

from pathlib import Path

import pytest

from prony.cli.load_options import request, resolved
from prony.errors import UsageError
from tests.entries import requests


def test_a_bare_url_is_a_get() -> None:
    (step,) = requests(request("/a", None, [], None, None).steps)
    assert (step.method, step.path, step.headers, step.body) == ("GET", "/a", {}, None)
    (step,) = requests(request("/\udcff\u00e4 %", None, [], None, None).steps)
    assert step.path == "/%FF%C3%A4%20%"


def test_a_body_makes_a_post_unless_a_method_is_named(tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    file.write_text("{}")
    (step,) = requests(request("/", None, ["Content-Type: application/json"], "x=1", None).steps)
    assert (step.method, step.body, step.headers) == ("POST", "x=1", {"Content-Type": "application/json"})
    for text, named in ((f"@{file}", None), (None, file)):
        (step,) = requests(request("/", "put", [], text, named).steps)
        assert (step.method, step.body, step.body_file) == ("PUT", None, str(file))


def test_headers_are_sent_in_their_order_repeated_ones_too() -> None:
    (step,) = requests(request("/", None, ["X-T: one", "Y: 1", "X-T: two", "x-t:three"], None, None).steps)
    assert step.headers == {"X-T": ("one", "two"), "Y": "1", "x-t": "three"}


@pytest.mark.parametrize(
    ("given", "host", "found"),
    [
        (["h:127.0.0.1", "h:81:127.0.0.2"], "h", ["127.0.0.1:81", "127.0.0.2:81"]),
        (["H:::1", "h:81:[::1]", "h:[::2]"], "h", ["[::1]:81", "[::1]:81", "[::2]:81"]),
    ],
)
def test_a_host_is_resolved_as_given(given: list[str], host: str, found: list[str]) -> None:
    assert resolved(given, host, 81) == found


@pytest.mark.parametrize(
    "given", ["h", "h:x", "other:127.0.0.1", "h:82:127.0.0.1", "h:81:name", ":127.0.0.1"]
)
def test_what_resolves_no_host_of_the_url_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="--resolve is"):
        resolved([given], "h", 81)


@pytest.mark.parametrize(
    ("method", "headers", "body", "file", "part"),
    [
        ("FETCH", [], None, None, "--method is 'FETCH'"),
        (None, ["Accept"], None, None, "a colon"),
        (None, ["A: b\r\nC: d"], None, None, "a colon"),
        (None, [], "@nowhere.bin", None, "is not there"),
        (None, [], "x", Path("y"), "--body-file"),
        (None, ["X: \udcff"], None, None, "--header holds bytes"),
        (None, [], "\udcff", None, "--body holds bytes"),
    ],
)
def test_what_cannot_be_sent_is_refused(
    method: str | None, headers: list[str], body: str | None, file: Path | None, part: str
) -> None:
    with pytest.raises(UsageError, match=part):
        request("/", method, headers, body, file)
