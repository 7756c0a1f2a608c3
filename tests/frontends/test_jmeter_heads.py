"""prony jmeter: the order of headers, whoever adds them, HTTP Request Defaults of every property, and server
names that hold more than a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony_frontends import jmeter
from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.translate import of_tree
from tests.entries import requests
from tests.frontends.codes import noted
from tests.frontends.conftest import Served, quick_desk
from tests.frontends.jmx_text import (
    ARGUMENTS,
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
from tests.frontends.real_jmeter import needs_jmeter, run_by
from tests.frontends.test_jmeter_wire import argument, headers

COOKIE = (
    '<elementProp name="c" elementType="Cookie" testname="c">'
    f"{prop('Cookie.value', '1')}{prop('Cookie.domain', '127.0.0.1')}{prop('Cookie.path', '/')}"
    f'{flag("Cookie.secure", False)}<longProp name="Cookie.expires">0</longProp>'
    f"{flag('Cookie.path_specified', True)}{flag('Cookie.domain_specified', True)}</elementProp>"
)
COOKIES = element("CookieManager", f'<collectionProp name="CookieManager.cookies">{COOKIE}</collectionProp>',
                  flag("CookieManager.clearEachIteration", False))  # fmt: skip
LOGIN = (
    '<elementProp name="" elementType="Authorization">'
    f"{prop('Authorization.url', '')}{prop('Authorization.username', 'me')}"
    f"{prop('Authorization.password', 'p')}"
    f"{prop('Authorization.mechanism', 'BASIC')}</elementProp>"
)
CREDENTIALS = element("AuthManager", f'<collectionProp name="AuthManager.auth_list">{LOGIN}</collectionProp>')


def form(path: str, *arguments: str, more: str = "", method: str = "POST") -> str:
    return sampler(path, more + prop("HTTPSampler.method", method) + ARGUMENTS.format("".join(arguments)))


def everything(port: int) -> str:
    """Cookies, credentials, a header of the plan, and bodies of a length that is known or not."""
    return "".join(
        (
            element("ConfigTestElement", prop("HTTPSampler.port", port)), COOKIES, CREDENTIALS,
            headers(X_Mine="1"), sampler("/plain"), form("/form", argument("n", "1 2")),
            posted("/raw", "text"), posted("/drawn", "number ${__counter(FALSE)}"),
            form("/parts", argument("n", "1"), more=flag("HTTPSampler.DO_MULTIPART_POST", True)),
            form("/deleted", argument("n", "1"), method="DELETE"),
        )
    )  # fmt: skip


def names(head: str) -> list[str]:
    return [line.partition(":")[0] for line in head.split("\r\n")[1:]]


def heads(recorded: bytes) -> dict[str, list[str]]:
    """Path -> the names of its headers, in their order."""
    found = re.findall(r"[A-Z]+ (/\w+)\S* HTTP/1.1(\r\n.*?)\r\n\r\n", recorded.decode(), re.DOTALL)
    return {path: names(path + head) for path, head in found}


def test_cookies_stand_before_the_length_and_credentials_last(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served, file = serve(), tmp_path / "p.jmx"
    file.write_bytes(
        document(everything(served.port), group=prop("ThreadGroup.num_threads", 1) + repeated(1))
    )
    assert jmeter.run(["-n", "-t", str(file)], quick_desk()[0]) == 0
    served.ended()
    first, last = ["Connection", "X-Mine", "Cookie"], ["Host", "User-Agent", "Authorization"]
    with_body = [*first, "Content-Length", "Content-Type", *last]
    assert heads(served.recorded()) == {
        "/plain": [*first, *last],
        **dict.fromkeys(("/form", "/raw", "/drawn", "/parts", "/deleted"), with_body),
    }


def test_the_type_of_a_file_that_is_the_body_stands_before_its_length(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    """JMeter sets it itself, so before the length; its own of texts come with the entity, so after."""
    (tmp_path / "a.csv").write_text("a,b\n")
    sent = (
        f'<elementProp name="a.csv" elementType="HTTPFileArg">{prop("File.path", "a.csv")}'
        f"{prop('File.mimetype', 'text/csv')}</elementProp>"
    )
    files = (
        '<elementProp name="HTTPsampler.Files" elementType="HTTPFileArgs">'
        f'<collectionProp name="HTTPFileArgs.files">{sent}</collectionProp></elementProp>'
    )
    served, file = serve(), tmp_path / "p.jmx"
    plan = element("ConfigTestElement", prop("HTTPSampler.port", served.port))
    plan += sampler("/file", files + prop("HTTPSampler.method", "PUT"))
    file.write_bytes(document(plan, group=prop("ThreadGroup.num_threads", 1) + repeated(1)))
    assert jmeter.run(["-n", "-t", str(file)], quick_desk()[0]) == 0
    served.ended()
    assert heads(served.recorded()) == {
        "/file": ["Connection", "Content-Type", "Content-Length", "Host", "User-Agent"]
    }


@needs_jmeter
def test_jmeter_itself_writes_them_so(serve: Callable[..., Served], tmp_path: Path) -> None:
    sent = []
    for who in ("theirs", "ours"):
        served, file = serve(), tmp_path / f"{who}.jmx"
        group = prop("ThreadGroup.num_threads", 1) + repeated(2)
        file.write_bytes(document(everything(served.port), group=group))
        argv = ["-n", "-t", str(file)]
        run_by(who, argv, tmp_path)
        served.ended()
        sent.append(heads(served.recorded()))
    assert sent[0] == sent[1]


def behind(port: int) -> str:
    """What an HTTP Request Defaults may say, and samplers that say it themselves or do not."""
    defaults = element(
        "ConfigTestElement", prop("HTTPSampler.port", port), prop("HTTPSampler.path", "/by/default"),
        prop("HTTPSampler.method", "PUT"), prop("HTTPSampler.contentEncoding", "UTF-8"),
        prop("HTTPSampler.connect_timeout", 5000), prop("HTTPSampler.response_timeout", 6000),
        prop("HTTPSampler.protocol", "http"), flag("HTTPSampler.follow_redirects", False),
        ARGUMENTS.format(argument("d", "1") + argument("e", "2")),
    )  # fmt: skip
    own = prop("HTTPSampler.method", "POST") + ARGUMENTS.format(argument("o", "3"))
    bare = element(
        "HTTPSamplerProxy", prop("HTTPSampler.domain", "127.0.0.1"), flag("HTTPSampler.use_keepalive", True),
        prop("HTTPSampler.path", ""), prop("HTTPSampler.method", ""), ARGUMENTS.format(""),
    )  # fmt: skip
    return defaults + sampler("/own", own) + bare


def test_defaults_stand_behind_a_sampler() -> None:
    trial = load_of(behind(81))
    own, bare = requests(trial.workload.steps)
    assert (own.method, own.path, own.body) == ("POST", "/own", "o=3&d=1&e=2")
    assert (bare.method, bare.path, bare.body) == ("PUT", "/by/default", "d=1&e=2")
    assert (trial.connect_timeout_ms, trial.request_timeout_ms) == (5000, 6000)


def by_name_and_value(port: int) -> str:
    """A Config Test Element, as old plans have it: names of properties, and values that are all texts. It
    stands before HTTP Request Defaults, and counts before them.
    """
    old = element(
        "ConfigTestElement", prop("HTTPSampler.domain", "127.0.0.1"), prop("HTTPSampler.port", port),
        prop("HTTPSampler.path", "/by/name"), prop("HTTPSampler.method", "POST"), prop("my.own", "1"),
        prop("HTTPSampler.use_keepalive", "false"), ARGUMENTS.format(argument("a", "1")),
        gui="org.apache.jmeter.config.gui.SimpleConfigGui",
    )  # fmt: skip
    defaults = element(
        "ConfigTestElement", prop("HTTPSampler.path", "/by/default"), prop("HTTPSampler.domain", "nowhere"),
        prop("HTTPSampler.contentEncoding", "UTF-8"), ARGUMENTS.format(argument("b", "ü")),
    )  # fmt: skip
    empty = prop("HTTPSampler.domain", "") + prop("HTTPSampler.path", "") + prop("HTTPSampler.method", "")
    bare = element("HTTPSamplerProxy", empty, ARGUMENTS.format(""))
    own = element("HTTPSamplerProxy", prop("HTTPSampler.path", "/own"), ARGUMENTS.format(argument("o", "3")))
    return old + defaults + bare + own


def test_a_config_test_element_of_old_plans_holds_defaults() -> None:
    made = translated_of(by_name_and_value(81))
    bare, own = requests(made.trial.workload.steps)
    assert made.target.url == "http://127.0.0.1:81"
    assert (bare.method, bare.path, bare.body) == ("POST", "/by/name", "a=1&b=%C3%BC")
    assert (own.path, own.body) == ("/own", "o=3&a=1&b=%C3%BC")
    assert bare.headers["Connection"] == "close"
    assert noted(made.notes, "unknown_property", "my.own")


def test_a_flag_of_a_sampler_comes_before_the_defaults() -> None:
    raw = element("ConfigTestElement", flag("HTTPSampler.postBodyRaw", True))
    said = prop("HTTPSampler.method", "POST") + ARGUMENTS.format(argument("", "a=b", encode=False))
    (step,) = requests(load_of(raw + sampler("/", said)).workload.steps)
    assert str(step.headers["Content-Type"]).startswith("text/plain")
    named = prop("HTTPSampler.method", "POST") + ARGUMENTS.format(argument("n", "1"))
    (step,) = requests(
        load_of(raw + sampler("/", named + flag("HTTPSampler.postBodyRaw", False))).workload.steps
    )
    assert step.body == "n=1"


@needs_jmeter
@pytest.mark.parametrize("made", [behind, by_name_and_value], ids=lambda made: made.__name__)
def test_jmeter_itself_merges_them_so(
    serve: Callable[..., Served], tmp_path: Path, made: Callable[[int], str]
) -> None:
    sent = []
    for who in ("theirs", "ours"):
        served, file = serve(), tmp_path / f"{who}.jmx"
        file.write_bytes(document(made(served.port), group=prop("ThreadGroup.num_threads", 1) + repeated(1)))
        argv = ["-n", "-t", str(file)]
        run_by(who, argv, tmp_path)
        served.ended()
        plain = served.recorded().replace(str(served.port).encode(), b"PORT")
        sent.append(re.sub(rb"\(Java/[^)]*\)", b"(Java)", plain).split(b"\r\n"))
    assert sent[0] == sent[1]


PLACES = {
    ("127.0.0.1/app", ""): ("http://127.0.0.1:80", "/app/x", "server_name"),
    ("127.0.0.1/app", "8080"): ("http://127.0.0.1:8080", "/app/x", "server_name"),
    ("127.0.0.1/", "80"): ("http://127.0.0.1:80", "/x", "server_name"),
    ("http://127.0.0.1", "81"): ("http://127.0.0.1:81", "/x", "server_name"),
    ("https://h/", ""): ("https://h:443", "/x", "server_name"),
    ("http://h:82/app/", ""): ("http://h:82", "/app/x", "server_name"),
    ("h:82", "82"): ("http://h:82", "/x", "server_name"),
    ("[::1]", "82"): ("http://[::1]:82", "/x", ""),
    ("::1", ""): ("http://[::1]:80", "/x", ""),
    ("h", "${nothing}"): ("http://h:80", "/x", "port"),
}
"""Server name and port -> where the request goes, its path, and the code of the note."""


@pytest.mark.parametrize("given", PLACES)
def test_a_server_name_may_hold_more_than_a_name(given: tuple[str, str]) -> None:
    domain, port = given
    base, path, code = PLACES[given]
    made = translated_of(sampler("/x", prop("HTTPSampler.port", port), domain=domain))
    (step,) = requests(made.trial.workload.steps)
    assert (made.target.url, step.path) == (base, path)
    assert not code or noted(made.notes, code, domain if code == "server_name" else port)


@pytest.mark.parametrize("domain", ["a b", "h?x", "me@h", "h:82", "${nobody}"])
def test_what_is_no_server_name_is_said(domain: str) -> None:
    with pytest.raises(UsageError, match=r"expected (a server name|one port)"):
        load_of(sampler("/x", prop("HTTPSampler.port", "81"), domain=domain))


def test_what_only_listeners_or_java_would_use_is_noted() -> None:
    tree = document(sampler()).replace(
        b'<TestPlan guiclass="G" testclass="TestPlan" testname="T"/>',
        (
            '<TestPlan guiclass="G" testclass="TestPlan" testname="T">'
            f"{flag('TestPlan.functional_mode', True)}{prop('TestPlan.user_define_classpath', 'my.jar')}"
            "</TestPlan>"
        ).encode(),
    )
    notes = of_tree(jmx.parse(tree, "p.jmx"), Path("p.jmx"), {}).translated.notes
    assert noted(notes, "functional_mode")
    assert noted(notes, "class_path")
