"""prony jmeter: what parameters, bodies, paths and headers are on the wire, as JMeter 5.6.3 sends them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony_frontends import jmeter
from tests.entries import requests
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import Served, quick_desk
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
    variables,
)
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter

RAW = flag("HTTPSampler.postBodyRaw", True)


def argument(name: str, value: str, encode: bool = True, sign: str = "=") -> str:
    return (
        f'<elementProp name="{name}" elementType="HTTPArgument">{flag("HTTPArgument.always_encode", encode)}'
        f"{prop('Argument.value', value)}{prop('Argument.metadata', sign)}"
        f"{flag('HTTPArgument.use_equals', True)}{prop('Argument.name', name)}</elementProp>"
    )


def asked(
    path: str, *arguments: str, method: str = "GET", more: str = "", below: str = "", port: object = 80
) -> str:
    where = prop("HTTPSampler.port", port) + prop("HTTPSampler.method", method)
    return sampler(path, where + more + ARGUMENTS.format("".join(arguments)), below)


def headers(**known: str) -> str:
    entries = "".join(
        f'<elementProp name="" elementType="Header">{prop("Header.name", name.replace("_", "-"))}'
        f"{prop('Header.value', value)}</elementProp>"
        for name, value in known.items()
    )
    return element(
        "HeaderManager", f'<collectionProp name="HeaderManager.headers">{entries}</collectionProp>'
    )


def encoding(name: str) -> str:
    return prop("HTTPSampler.contentEncoding", name)


PARTS = flag("HTTPSampler.DO_MULTIPART_POST", True)
NO_FILE = (
    '<elementProp name="HTTPsampler.Files" elementType="HTTPFileArgs">'
    '<collectionProp name="HTTPFileArgs.files">'
    f'<elementProp name="" elementType="HTTPFileArg">{prop("File.path", "")}{prop("File.paramname", "up")}'
    f"{prop('File.mimetype', 'text/plain')}</elementProp></collectionProp></elementProp>"
)
JSON = '{"a": 1, "u": "${nobody}"}'


def every(port: int) -> dict[str, str]:
    """Path -> the sampler."""

    def one(path: str, *arguments: str, method: str = "GET", more: str = "", below: str = "") -> str:
        return asked(path, *arguments, method=method, more=more, below=below, port=port)

    inside = headers(X_A="own", X_C="3").partition("</HeaderManager>")[0].partition(">")[2]
    held = (
        f'<elementProp name="HTTPSampler.header_manager" elementType="HeaderManager">{inside}</elementProp>'
    )
    form = headers(Content_Type="application/x-www-form-urlencoded", Accept="*/*")
    as_json = headers(Content_Type="application/json", X_U="${nobody}")
    return {
        "raw query": one("/q", argument("v", "a+b[1]%20", encode=False), argument("w", "", encode=False)),
        "without sign": one("/q", argument("n", "", sign=""), argument("m", "5", sign="")),
        "no name": one("/q?z=1", argument("", "x"), argument("m", "5")),
        "form": one("/p", argument("n", "", sign=""), argument("", "x"), argument("m", "1 2"), method="POST"),
        "decoded form": one("/p", argument("m", "a+b%20c", encode=False), method="POST"),
        "form with type": one("/p", argument("n", "1"), method="POST", below=form),
        "json": one("/p", argument("", JSON, encode=False), method="POST", more=RAW, below=as_json),
        "no parameters": one("/p", method="PUT"),
        "body of GET": one("/b", argument("", JSON, encode=False), more=RAW),
        "body of DELETE": one("/b", argument("", JSON, encode=False), method="DELETE", more=RAW),
        "parameters of DELETE": one("/b", argument("m", "1 2"), method="DELETE"),
        "parameters of HEAD": one("/b", argument("m", "1"), method="HEAD"),
        "parameters of OPTIONS": one("/b", argument("m", "1"), method="OPTIONS"),
        "own host": one("/h", below=headers(Host="example.org", User_Agent="me")),
        "own host with port": one("/h", below=headers(Host="example.org:81", Content_Length="5")),
        "no slash": one("no/slash"),
        "only a query": one("?a=1"),
        "blanks": one("/a b/ü?x=ü y"),
        "signs": one("/colon;v=1/@x/$y?b=a+b&amp;c=[1]"),
        "latin query": one("/e", argument("n", "ü"), more=encoding("ISO-8859-1")),
        "latin form": one("/e", argument("n", "ü"), method="POST", more=encoding("ISO-8859-1")),
        "unicode": one("/e", argument("", "ü", encode=False), method="POST", more=RAW + encoding("UTF-8")),
        "nameless": one(
            "/b", argument("", "a", encode=False), argument("", "é", encode=False), method="POST"
        ),
        "nameless and encoded": one("/b", argument("", "a b&amp;c"), method="POST"),
        "nameless in a GET": one("/b?c", argument("", JSON, encode=False)),
        "nameless in a HEAD": one("/b", argument("", "x"), method="HEAD"),
        "two slashes": one("//a//b%2fc/~%7e/;x=%3B/d//?q=//"),
        "slash at the end": one("/a//"),
        "whole URL": one(f"http://127.0.0.1:{port}/w?x=1", argument("m", "5")),
        "whole URL of a POST": one(f"http://127.0.0.1:{port}/w?x=1", argument("m", "5"), method="POST"),
        "parts with a type": one("/p", argument("n", "1"), method="POST", more=PARTS, below=form),
        "no file": one("/f", argument("n", "1"), method="POST", more=NO_FILE),
        "length after the body": one(
            "/l", argument("", "${__counter(FALSE)}", encode=False), method="POST", more=RAW, below=as_json
        ),
        "headers within": one("/w", more=held),
        "headers within and below": one("/w", more=held, below=headers(X_A="outer", X_B="2")),
        "old client": one("/i", more=prop("HTTPSampler.implementation", "HttpClient3.1")),
        "managers side by side": one("/m", below=headers(X_A="1", X_B="1") + headers(X_A="2", X_C="2")),
    }


FIRST_LINES = {
    "raw query": "GET /q?v=a+b[1]%20&w=", "without sign": "GET /q?n&m5", "no name": "GET /q?z=1&m=5",
    "parameters of DELETE": "DELETE /b?m=1+2", "parameters of HEAD": "HEAD /b", "only a query": "GET /?a=1",
    "parameters of OPTIONS": "OPTIONS /b?m=1", "no slash": "GET /no/slash",
    "blanks": "GET /a%20b/%C3%BC?x=%C3%BC%20y", "signs": "GET /colon;v=1/@x/$y?b=a+b&c=[1]",
    "latin query": "GET /e?n=%FC", "two slashes": "GET /a/b%2Fc/~~/;x=;/d/?q=//",
    "slash at the end": "GET /a/", "whole URL": "GET /w?x=1", "nameless in a GET": "GET /b?c",
}  # fmt: skip
"""As JMeter 5.6.3 has sent them."""
BODIES = {"form": "n=&m=1+2", "decoded form": "m=a+b+c", "body of GET": JSON, "parameters of DELETE": "m=1+2",
          "latin form": "n=%FC", "nameless": "aé", "nameless and encoded": "a+b%26c",
          "nameless in a GET": JSON,
          "whole URL of a POST": "m=5", "no file": "n=1"}  # fmt: skip


@pytest.mark.parametrize("case", FIRST_LINES)
def test_the_first_line(case: str) -> None:
    (step,) = requests(load_of(every(80)[case]).workload.steps)
    assert f"{step.method} {step.path.replace('$${', '${')}" == FIRST_LINES[case]


@pytest.mark.parametrize("case", BODIES)
def test_the_body(case: str) -> None:
    (step,) = requests(load_of(every(80)[case]).workload.steps)
    assert step.body is not None
    assert step.body.replace("$${", "${") == BODIES[case]


def test_the_host_has_the_port_of_the_url() -> None:
    for case, host in (("own host", "example.org:8080"), ("own host with port", "example.org:81")):
        (step,) = requests(load_of(every(8080)[case]).workload.steps)
        assert step.headers["Host"] == host


def test_a_blank_that_no_query_may_hold_is_no_request() -> None:
    with pytest.raises(UsageError, match="index 22"):
        load_of(asked("/q", argument("v", "a b", encode=False)))


@needs_jmeter
def test_jmeter_itself_sends_the_same_bytes(serve: Callable[..., Served], tmp_path: Path) -> None:
    sent = []
    for who in ("theirs", "ours"):
        served = serve()
        file = tmp_path / f"{who}.jmx"
        group = prop("ThreadGroup.num_threads", 1) + repeated(1)
        file.write_bytes(document("".join(every(served.port).values()), group=group))
        argv = ["-n", "-t", str(file)]
        if who == "theirs":
            run_jmeter([*argv, "-l", str(tmp_path / "theirs.jtl")], tmp_path, cwd=tmp_path)
        else:
            assert jmeter.run(argv, quick_desk()[0]) == 0
        counted = served.ended()["requests"]
        assert counted == len(every(0))
        plain = served.recorded().replace(str(served.port).encode(), b"PORT")
        sent.append(re.sub(rb"\(Java/[^)]*\)", b"(Java)", plain).split(b"\r\n"))
    theirs, ours = ([_with_boundary(line) for line in lines] for lines in sent)
    assert theirs == ours


def _with_boundary(line: bytes) -> bytes:
    """JMeter draws the boundary of a form anew each time, of 30 to 40 letters; a form of parts is longer
    than all other bodies here.
    """
    if re.fullmatch(rb"Content-Length: \d{3}", line):
        return b"Content-Length: OF PARTS"
    if line.startswith(b"--"):
        return b"--B" + b"--" * line.endswith(b"--")
    return re.sub(rb"boundary=[^;]+", b"boundary=B", line)


def cookies(*names: str) -> str:
    held = "".join(
        f'<elementProp name="{name}" elementType="Cookie" testname="{name}">{prop("Cookie.value", "1")}'
        f"{prop('Cookie.domain', '127.0.0.1')}</elementProp>"
        for name in names
    )
    return element("CookieManager", f'<collectionProp name="CookieManager.cookies">{held}</collectionProp>')


def test_a_cookie_manager_of_some_requests_is_said() -> None:
    made = translated_of(sampler("/a", below=cookies()) + sampler("/b"))
    assert noted(made.notes, "one_cookie_store")
    for same in (cookies() + sampler("/a") + sampler("/b"), sampler("/a", below=cookies("a"))):
        assert not noted(translated_of(same).notes, "one_cookie_store")


def test_cookies_of_some_requests_are_refused() -> None:
    with refuses("unsupported", "CookieManager"):
        load_of(sampler("/a", below=cookies("a")) + sampler("/b", below=cookies("b")))


def test_what_only_looks_like_a_function_is_a_variable() -> None:
    made = load_of(variables(a="${__P{a,1)}", b="${__P(b,2)}") + sampler("/${b}"))
    (step,) = requests(made.workload.steps)
    assert step.path == "/2"
