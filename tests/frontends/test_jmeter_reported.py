"""prony jmeter: plans that people reported, with what JMeter 5.6.3 sends and writes for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.frontends.jmx_text import document, element, flag, found, prop, repeated, sampler, variables
from tests.frontends.real_jmeter import needs_jmeter
from tests.frontends.site import Response
from tests.frontends.test_jmeter_beside import Ran, ran
from tests.frontends.test_jmeter_samples import debug, transaction

BODY = (
    '{"id":3,"token":"t1","none":[],"users":[{"id":1,"name":"a"},{"id":2,"name":"b c"}],"odd":"<x>","b":"{}"}'
)
SITE = {f"/{path}": Response(BODY) for path in ("a", "b", "c", "l", "x", "y", "z", "1", "2", "t1", "b/1,2")}
PAGES = {
    "/bad": Response(status=500),
    "/lines": Response("one:1\r\ntwo"),
    "/page": Response(
        "<html><head><title>T6</title></head><body><p><input name='k' value='n'></p></body></html>"
    ),
    "/xml": Response('<?xml version="1.0"?>\n<order n="1" id="7"><item id="8"/></order>', "application/xml"),
}
MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Case:
    """A plan with what comes of it."""

    inside: Callable[[str], str]
    """The group's elements, for the property that names the port."""
    paths: str
    labels: str = ""
    """Of the rows, with their success; not compared where empty."""
    loops: int = 1
    threads: int = 1
    beside: Callable[[str], str] = field(default=lambda _: "")
    files: Mapping[str, bytes] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    rows: Callable[[list[dict[str, str]]], object] = len
    """What else is read from the rows,"""
    read: object = None
    """and what it is; None: not compared."""


def one(path: str, port: str, below: str = "", name: str = "", more: str = "") -> str:
    return sampler(path, port + more, below, name=name or path.partition("?")[0])


def rows_of(content_columns: str = "v", **more: bool) -> str:
    usual = {"quotedData": False, "recycle": True, "stopThread": False, "ignoreFirstLine": False}
    flags = "".join(flag(*pair) for pair in (usual | more).items())
    return element("CSVDataSet", prop("filename", "d.csv"), prop("variableNames", content_columns),
                   prop("delimiter", ","), prop("shareMode", "shareMode.all"), flags)  # fmt: skip


def json_of(names: str, paths: str, numbers: str = "", defaults: str = "", together: bool = False) -> str:
    return element(
        "JSONPostProcessor", prop("JSONPostProcessor.referenceNames", names),
        prop("JSONPostProcessor.jsonPathExprs", paths), prop("JSONPostProcessor.match_numbers", numbers),
        prop("JSONPostProcessor.defaultValues", defaults),
        flag("JSONPostProcessor.compute_concat", together),
    )  # fmt: skip


def xpath_of(name: str, query: str, tidied: bool) -> str:
    return element(
        "XPathExtractor", prop("XPathExtractor.refname", name), prop("XPathExtractor.xpathQuery", query),
        prop("XPathExtractor.default", "none"), prop("XPathExtractor.matchNumber", "-1"),
        flag("XPathExtractor.tolerant", tidied), flag("XPathExtractor.validate", False),
        flag("XPathExtractor.namespace", False),
    )  # fmt: skip


def json_is(path: str, value: str = "", **more: bool) -> str:
    return element("JSONPathAssertion", prop("JSON_PATH", path), prop("EXPECTED_VALUE", value),
                   flag("JSONVALIDATION", bool(value)), *(flag(*pair) for pair in more.items()))  # fmt: skip


def response_is(text: str, rule: int, field: str = "response_data", ignores: bool = False) -> str:
    """Rule 2 contains, 4 not, 8 equals, 16 substring."""
    escaped = text.replace('"', "&quot;")
    return element(
        "ResponseAssertion",
        f'<collectionProp name="Asserion.test_strings">{prop("1", escaped)}</collectionProp>',
        prop("Assertion.test_field", f"Assertion.{field}"), prop("Assertion.test_type", rule),
        flag("Assertion.assume_success", ignores),
    )  # fmt: skip


def regex_of(name: str, pattern: str, template: str = "$1$", number: int = 1, head: str = "false") -> str:
    return element(
        "RegexExtractor", prop("RegexExtractor.refname", name), prop("RegexExtractor.regex", pattern),
        prop("RegexExtractor.template", template), prop("RegexExtractor.match_number", number),
        prop("RegexExtractor.default", "D"), prop("RegexExtractor.useHeaders", head),
    )  # fmt: skip


def counter(name: str) -> str:
    return element("CounterConfig", prop("CounterConfig.start", 1), prop("CounterConfig.incr", 1),
                   prop("CounterConfig.name", name), flag("CounterConfig.per_user", True))  # fmt: skip


def drawn(name: str, only: int) -> str:
    return element("RandomVariableConfig", prop("minimumValue", only), prop("maximumValue", only),
                   prop("variableName", name))  # fmt: skip


def loop(times: str, below: str) -> str:
    return element("LoopController", prop("LoopController.loops", times), below=below, name=f"L{times}")


def when(condition: str, below: str) -> str:
    escaped = condition.replace('"', "&quot;").replace("<", "&lt;")
    return element("IfController", prop("IfController.condition", escaped),
                   flag("IfController.useExpression", True), below=below)  # fmt: skip


def script(text: str, kind: str = "JSR223PostProcessor") -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    return element(kind, prop("scriptLanguage", "groovy"), prop("cacheKey", "true"), prop("script", escaped))


def columns(*names: str) -> Callable[[list[dict[str, str]]], object]:
    return lambda rows: [tuple(row[name] for name in names) for row in rows]


def of_parent(row: dict[str, str]) -> tuple[str, str, str]:
    return row["responseCode"], row["responseMessage"].partition(" : ")[2], row["success"]


def parents(rows: list[dict[str, str]]) -> object:
    return [of_parent(row) for row in rows if row["responseMessage"].startswith("Number of")]


def counts(samples: int, failing: int) -> str:
    return f"{samples}, number of failing samples : {failing}"


SERVERS = ("HTTPSampler.domain", "HTTPSampler.port")
LOST = "Non HTTP response code: java.net.URISyntaxException"
CASES = {
    "byte order mark": Case(
        lambda p: rows_of() + one("/${v}", p), "/1 /2", loops=2, files={"d.csv": MARK + b"1\n2\n"}
    ),
    "byte order mark before names": Case(
        lambda p: rows_of("") + one("/${v}", p), "/1 /2", loops=2, files={"d.csv": MARK + b"v\n1\n2\n"}
    ),
    "byte order mark in quotes": Case(
        lambda p: rows_of("", quotedData=True) + one("/${v}", p), "/1 /2 /1", loops=3,
        files={"d.csv": MARK + b'"v"\n"1"\n2\n'},
    ),
    "empty last line": Case(
        lambda p: rows_of() + one("/x?${__urlencode(${v})}", p), "/x?1 /x?%3CEOF%3E /x?1", loops=3,
        files={"d.csv": b"1\n\n"},
    ),
    "empty last line that stops": Case(
        lambda p: rows_of(recycle=False, stopThread=True) + one("/${v}", p), "/1 /2", loops=5,
        files={"d.csv": b"1\n2\n\n"},
    ),
    "labels": Case(
        lambda p: rows_of() + transaction("T ${v}", one("/a", p, name="u ${v}") + debug("d ${v}"))
        + transaction("P${v}", one("/b", p), parent=True)
        + loop("2", counter("k") + one("/c", p, name="k${k}")),
        "/a /b /c /c /a /b /c /c",
        "u 1+ d 1+ T 1+ P1+ /b+ k1+ k2+ u 2+ d 2+ T 2+ P2+ /b+ k3+ k4+", loops=2, files={"d.csv": b"1\n2\n"},
    ),
    "below a sampler": Case(
        lambda p: loop("2", one("/x?${i}${r}", p, counter("i") + drawn("r", 4)) + one("/y?${i}", p)),
        "/x?14 /y?1 /x?24 /y?2",
    ),
    "no URI": Case(
        lambda p: one("/a", p, json_of("o;s", "$.odd;$.users[1].name", ";", "0;0"))
        + one("/b/${o}", p, name="o") + one("/x?${s}", p, name="s") + one("/i[1]", p, name="i")
        + one("/y?[1]", p, name="j") + one("/z", p),
        "/a /x?b%20c /y?[1] /z", "/a+ o- s+ i- j+ /z+",
        rows=lambda rows: [(row["responseCode"], row["URL"][21:], row["responseMessage"][27:62])
                           for row in rows if row["responseCode"].startswith("Non")],
        read=[(LOST, "/b/<x>", "Illegal character in path at index "),
              (LOST, "/i[1]", "Illegal character in path at index ")],
    ),
    "transactions": Case(
        lambda p: transaction("P", one("/a", p) + one("/bad", p) + one("/gone", p), parent=True)
        + transaction("N", one("/bad", p)) + transaction("V", one("/a", p), parent=True),
        "/a /bad /gone /bad /a", "P- /a+ /bad- /gone- /bad- N- V+ /a+",
        rows=parents,
        read=[("500", counts(3, 2), "false"), ("", counts(1, 1), "false"), ("200", counts(1, 0), "true")],
    ),
    "transactions in transactions": Case(
        lambda p: transaction("P", transaction("Q", one("/a", p) + one("/bad", p), parent=True)
                              + one("/b", p), parent=True)
        + transaction("R", one("/a", p) + transaction("N", one("/bad", p)), parent=True)
        + transaction("M", transaction("S", one("/a", p) + one("/b", p), parent=True) + one("/c", p)),
        "/a /bad /b /a /bad /a /b /c", "P- Q- /a+ /bad- /b+ N+ R- /a+ /bad- S+ /a+ /b+ /c+ M+",
        rows=parents,
        read=[("500", counts(2, 1), "false"), ("500", counts(2, 1), "false"), ("200", counts(1, 0), "true"),
              ("500", counts(2, 1), "false"), ("200", counts(2, 0), "true"), ("200", counts(5, 0), "true")],
    ),
    "properties": Case(
        lambda p: one("/x?${__P(a)}${__P(b)}${__P(c)}${__P(d e)}${__P(f,none)}", p), "/x?1234none",
        files={"q.properties": b" a = 1\n!b=0\nb:2\nc   \\\n  \\u0033\nd\\ e 4\nf=5\n"},
        options=("-q", "q.properties", "-Jf="),
    ),
    "properties in their order": Case(
        lambda p: one("/x?${__P(a)}", p), "/x?2", files={"q.properties": b"a=2"},
        options=("-Ja=1", "-q", "q.properties"),
    ),
    "trailing comma": Case(
        lambda p: when('${__jexl3("${v}" == "1",)}', one("/a", p))
        + when('${__groovy(vars.get("v") == "2" , )}', one("/b", p))
        + one("/${__groovy(vars.get('v'),)}", p),
        "/a /1", beside=lambda _: variables(v="1"),
    ),
    "variables by number": Case(
        lambda p: counter("i") + one("/x?${__V(p_${i})}", p) + one("/y?${__V(p_${i},none)}", p),
        "/x?u /y?u /x?v /y?v /x?p_3 /y?none", loops=3, beside=lambda _: variables(p_1="u", p_2="v"),
    ),
    "matches by number": Case(
        lambda p: one("/a", p, json_of("n", "$.users[*].id", "-1", "0")) + counter("i")
        + one("/${__V(n_${i})}", p), "/a /1 /a /2", loops=2,
    ),
    "JSON of several": Case(
        lambda p: "".join(
            one("/a", p, json_is(*given), name=name) for name, given in {
                "some": ("$.users[*].id",), "none": ("$.users[*].no",), "empty": ("$.none[*]",),
                "one": ("$.users[*].id", "2"), "no": ("$.users[*].id", "9"), "deep": ("$..name", "b.*"),
            }.items()
        ), "/a /a /a /a /a /a", "some+ none- empty- one+ no- deep+",
    ),
    "ends of lines": Case(
        lambda p: one("/lines", p, regex_of("a", "one(.)") + regex_of("h", "Type: (.+)", head="true")
                      + regex_of("n", r"Type: text/(.+)\n", head="true"))
        + one("/x?${a}.${h}.${n}", p), "/lines /x?:.text/html.html",
    ),
    "no template": Case(lambda p: one("/a", p, regex_of("v", "id", "")) + one("/x?[${v}]", p), "/a /x?[]"),
    "matches that are not there": Case(
        lambda p: one("/a", p, regex_of("v", '"id":(.)', number=-1) + regex_of("w", "no(.)", number=-1))
        + one("/x?${v_9}.${w}", p, name="v") + one("/y?${v}.${w}", p),
        "/a /y?D.D", "/a+ v- /y+",
    ),
    "compared with values of the run": Case(
        lambda p: rows_of("c,w") + counter("i") + one("/a", p, json_of("t", "$.token", "", "0"))
        + one("/a", p, response_is('"token":"${t}"', 16), name="t")
        + one("/a", p, json_of("u", "$.id", "", "0") + response_is('"id":${u},', 16), name="u")
        + one("/x?${w}", p, response_is('"name":"${w}"', 2), name="w")
        + one("/a", p, response_is("${w}", 20), name="n")
        + one("/b", p, response_is('"id":${i},', 16), name="i")
        + one("/gone", p, response_is("${c}", 8, "response_code", True), name="c")
        + one("/a", p, response_is("Content-Length: ${c}", 16, "response_headers"), name="h"),
        "/a /a /a /x?a /a /b /gone /a /a /a /a /x?z /a /b /gone /a",
        "/a+ t+ u+ w+ n- i+ c+ h- /a+ t+ u+ w- n+ i+ c- h+", loops=2,
        files={"d.csv": f"404,a\n{len(BODY)},z\n".encode()},
    ),
    "concatenated": Case(
        lambda p: one("/a", p, json_of("n;m;z", "$.users[*].id;$.id;$.no", "-1;-1;-1", "0;0;0",
                                             together=True))
        + one("/b/${n_ALL}", p) + one("/x?${m_ALL}${z_ALL}${n_matchNr}", p), "/a /b/1,2 /x?32",
    ),
    "captured count": Case(
        lambda p: one("/a", p, json_of("n;w", "$.id;$.token", ";", "0;0")) + loop("${n}", one("/l", p))
        + loop("${w}", one("/b", p)) + one("/c", p), "/a /l /l /l /c",
    ),
    "two extractors": Case(
        lambda p: one("/a", p, found("v", '"id":(.)') + found("v", '"token":"(..)"')
                      + json_of("w", "$.id", "", "0") + json_of("w", "$.no", "", "D"))
        + one("/x?${v}${w}", p), "/a /x?t1D",
    ),
    "servers of rows": Case(
        lambda p: rows_of("h,n") + sampler("/x?${h}", p, domain="${h}", name="x"),
        "/x?127.0.0.1 /x?localhost", loops=2, files={"d.csv": b"127.0.0.1,1\nlocalhost,2\n"},
        rows=lambda rows: [row["URL"].partition(":PORT")[0] for row in rows],
        read=["http://127.0.0.1", "http://localhost"],
    ),
    "remainder of the thread": Case(
        lambda p: when("${__jexl3(${__threadNum} % 2 == 0)}", one("/a", p))
        + when("${__groovy(ctx.getThreadNum() % 2 == 0)}", one("/b", p))
        + one("/x?${__jexl3(${__threadNum} % 3)}", p), "/a /b /x?1 /x?2", threads=2,
    ),
    "set before the load": Case(
        lambda p: one("/${__P(tok)}?${__P(two)}${__groovy(props.get('tok'))}", p), "/a /x? /t1?t1t1",
        beside=lambda p: element(
            "SetupThreadGroup", prop("ThreadGroup.num_threads", 1), repeated(1), name="S", below=one(
                "/a", p, json_of("t", "$.token", "", "0") + script('props.put("tok", vars.get("t"))')
            ) + one("/x?${__setProperty(two,${t})}", p),
        ),
    ),
    "folder of the plan": Case(
        lambda p: element("CSVDataSet", prop("filename", "${__groovy(org.apache.jmeter.services.FileServer."
                                             "getFileServer().getBaseDir(),)}/d.csv"),
                          prop("variableNames", "v"), prop("delimiter", ",")) + one("/${v}", p),
        "/2", files={"d.csv": b"2\n"},
    ),
    "absolute paths": Case(
        lambda p: one("/page", p, xpath_of("t", "/html/head/title/text()", True)
                      + xpath_of("c", "/html/body//input[@name='k']/@value", True))
        + one("/xml", p, xpath_of("i", "/order/@id", False)) + one("/x?${t}${c}${i}", p),
        "/page /xml /x?T6n7",
    ),
    "if and else": Case(
        lambda p: one("/a", p, json_of("n", "$.id", "", "0") + script(
            'if (vars.get("n") == "3") {\n vars.put("r", "u")\n}\nelse {\n vars.put("r", "v")\n}\n'
            'if (vars.get("n") == "4") { vars.put("s", "4") } else if (vars.get("n") != "3") '
            '{ vars.put("s", "5") } else vars.put("s", "6");'
        )) + one("/x?${r}${s}", p), "/a /x?u6",
    ),
}  # fmt: skip


def came(who: str, case: Case, folder: Path) -> Ran:
    def plan_of(port: int, into: Path) -> bytes:
        for name, content in case.files.items():
            (into / name).write_bytes(content)
        named = prop("HTTPSampler.port", port)
        group = prop("ThreadGroup.num_threads", case.threads) + repeated(case.loops)
        return document(case.inside(named), case.beside(named), group)

    return ran(who, plan_of, folder, SITE | PAGES, options=tuple(
        str(folder / who / word) if word in case.files else word for word in case.options
    ))  # fmt: skip


def check(case: Case, found: Ran) -> None:
    paths = case.paths.split()
    assert (sorted(found.paths) if case.threads > 1 else found.paths) == paths
    if case.labels:
        assert found.labels == case.labels
    if case.read is not None:
        assert case.rows(found.rows) == case.read


@pytest.mark.parametrize("name", CASES)
def test_reported_plans(name: str, tmp_path: Path) -> None:
    check(CASES[name], came("ours", CASES[name], tmp_path))


@needs_jmeter
@pytest.mark.rarely
@pytest.mark.parametrize("name", CASES)
def test_jmeter_itself_does_so(name: str, tmp_path: Path) -> None:
    check(CASES[name], came("theirs", CASES[name], tmp_path))
