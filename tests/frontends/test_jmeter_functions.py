"""prony jmeter: functions of constants, with the values of JMeter 5.6.3; assertions that ask for nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from prony.errors import UsageError
from prony_frontends.base import Reason, Refused
from prony_frontends.jmeter import translate
from tests.entries import requests
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import Served, offered
from tests.frontends.jmx_text import (
    PLANS,
    document,
    element,
    load_of,
    prop,
    repeated,
    sampler,
    translated_of,
    variables,
)
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter

VALUES = {
    "${__urlencode(a b/c)}": "a+b%2Fc",
    "${__urldecode(a%2Bb)}": "a+b",
    "${__eval(x${u})}": "x7",
    "${__eval(${w})}": "7",
    "${__changeCase(abC,UPPER)}": "ABC",
    "${__changeCase(abC,LOWER)}": "abc",
    "${__changeCase(abC,CAPITALIZE)}": "AbC",
    "${__changeCase(abC)}": "ABC",
    "${__char(65,0x42)}": "AB",
    "${__log(hi)}": "hi",
    "${__digest(MD5,abc)}": "900150983cd24fb0d6963f7d28e17f72",
    "${__digest(SHA-1,abc,,true)}": "A9993E364706816ABA3E25717850C26C9CD0D89D",
    "${__digest(SHA-256,b,a)}": "970f519c2cadbcefb1e81694f904bc6229dd2a8300e98c6d0d4fc4bfca584140",
    "${__evalVar(w)}": "7",
    "${__isVarDefined(u)}": "true",
    "${__isPropDefined(nothing.here)}": "false",
    "${__RandomDate(yyyy-MM-dd,2024-02-28,2024-02-29,,)}": "2024-02-28",
    "${__groovy(1+2*3)}": "7",
    "${__groovy(vars.get('u') + 'x')}": "7x",
    "${__groovy('ab'.toUpperCase())}": "AB",
    "${__groovy('abcd'.substring(1\\,3))}": "bc",
    "${__groovy((vars.get('u') as int) + 1)}": "8",
    "${__groovy((int) 7 % 4)}": "3",
    "${__groovy('me:p'.bytes.encodeBase64().toString())}": "bWU6cA==",
    "${__groovy(vars.get('none') == null ? 'no' : 'yes')}": "no",
    "${__groovy(!true || 2 >= 2)}": "true",
    "${__javaScript(1+2)}": "3",
    "${__javaScript('a' + 1)}": "a1",
    "${__jexl3(1+2)}": "3",
    "${__jexl3(${u} > 5 ? 'big' : 'small')}": "big",
    "${__jexl2('a'+'b')}": "ab",
    "${__BeanShell(2+3)}": "5",
}
KNOWN = variables(u="7", w="${u}")


@pytest.mark.parametrize("call", VALUES)
def test_what_a_function_of_constants_is(call: str) -> None:
    (step,) = requests(load_of(KNOWN + sampler("/" + call)).workload.steps)
    assert step.path == "/" + VALUES[call]


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_TEST_HOST", "here")
    call = "${__BeanShell( System.getenv(&quot;PRONY_TEST_HOST&quot;) )}"
    (step,) = requests(load_of(sampler("/" + call)).workload.steps)
    assert step.path == "/here"
    (step,) = requests(load_of(sampler("/x${__groovy(System.getenv('PRONY_TEST_NOTHING'))}")).workload.steps)
    assert step.path == "/x"


def numbers(low: object, high: object, form: str) -> str:
    return element(
        "RandomVariableConfig", prop("variableName", "r"), prop("minimumValue", low),
        prop("maximumValue", high), prop("outputFormat", form), prop("randomSeed", 7),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("variable", "drawn"),
    [
        (numbers("0008", 10, "U-000"), "U-${random int 8 10 | digits 3}"),
        (numbers(1, 99999, "#00000"), "${random int 1 99999 | digits 5}"),
        (numbers(-1, 5, "00"), "${random int -1 5 | digits 2}"),
        (numbers(1000, 9999, "0000"), "${random int 1000 9999 | digits 4}"),
        (numbers(0, 99999, "n0"), "n${random int 0 99999}"),
        (numbers(-5, 5, ""), "${random int -5 5}"),
    ],
)
def test_a_random_variable_has_its_digits(variable: str, drawn: str) -> None:
    made = translated_of(variable + sampler("/${r}"))
    text = "".join(step.model_dump_json() for step in made.trial.workload.steps)
    assert drawn in text
    assert noted(made.notes, "seed")


@needs_jmeter
def test_jmeter_itself_writes_these_digits(serve: Callable[..., Served], tmp_path: Path) -> None:
    server, one = serve(), prop("ThreadGroup.num_threads", 1)
    inside = numbers(8, 10, "U-000") + sampler("/${r}", prop("HTTPSampler.port", server.port))
    (tmp_path / "plan.jmx").write_bytes(document(inside, group=one + repeated(4)))
    run_jmeter(["-n", "-t", str(tmp_path / "plan.jmx")], tmp_path)
    asked = [line.split()[1].decode() for line in server.recorded().splitlines() if line.startswith(b"GET")]
    assert len(asked) == 4
    assert set(asked) <= {"/U-008", "/U-009", "/U-010"}


@pytest.mark.parametrize(
    "variable", [numbers(1, 5, "0.00"), numbers(-1, 5, "n00"), numbers(1, 5, "#,##0"), numbers(1, 5, "0E0")]
)
def test_number_formats_that_cannot_be_drawn(variable: str) -> None:
    with refuses("unsupported", "RandomVariableConfig"):
        load_of(variable + sampler("/${r}"))


def test_letters_that_are_not_named() -> None:
    made = translated_of(sampler("/${__RandomString(6)}"))
    (step,) = requests(made.trial.workload.steps)
    assert step.path == "/${random string 6}"
    assert noted(made.notes, "letters_and_digits", "__RandomString")


def test_the_text_of_a_file() -> None:
    text = (PLANS / "people.csv").read_text().replace("\n", "")
    body = prop("HTTPSampler.method", "GET")
    (step,) = requests(load_of(sampler("/x", body, name="${__FileToString(people.csv)}")).workload.steps)
    assert step.name.replace("\n", "") == text
    with pytest.raises(UsageError, match=r"1 data file is missing: nowhere \(line 5\)"):
        load_of(sampler("/${__FileToString(nowhere)}"))


OF_PLUGINS = {
    "${__strLen(abc)}": "3",
    "${__substring(abcd,1,3)}": "bc",
    "${__strReplace(a-b,-,_)}": "a_b",
    "${__uppercase(a)}${__lowercase(B)}": "Ab",
    "${__base64Encode(me:p)}": "bWU6cA==",
    "${__base64Decode(bWU6cA==)}": "me:p",
    "${__MD5(abc)}": "900150983cd24fb0d6963f7d28e17f72",
    "${__isDefined(u)}": "true",
    "${__unescape(a\\\\u0062)}": "ab",
    "${__unescapeHtml(a&amp;eacute;)}": "a%C3%A9",
    "${__escapeHtml(é)}": "&eacute;",
    "${__escapeXml('a')}": "&apos;a&apos;",
}
"""Of functions that JMeter has only with a plug-in, or whose value no path of JMeter's may hold."""


@pytest.mark.parametrize("call", OF_PLUGINS)
def test_functions_of_plug_ins(call: str) -> None:
    (step,) = requests(load_of(KNOWN + sampler("/" + call)).workload.steps)
    assert step.path == "/" + OF_PLUGINS[call]


ENGINES = {
    "${__RandomDate(,2024-02-28,2024-03-02,,)}": "${random choice 2024-02-28 2024-02-29 2024-03-01}",
    "${__RandomString(3,abc)}": "${random string 3 abc}",
    "${__RandomFromMultipleVars(u|v)}": "${random choice 7 8}",
    "${__iterationNum}": "${iteration}",
    "${__groovy(new Random().nextInt(10) + 1)}": "${random int 1 10}",
    "${__groovy((int)(Math.random()*5) + 1)}": "${random int 1 5}",
    "${__javaScript(Math.floor(Math.random()*100))}": "${random int 0 99}",
    "${__groovy(org.apache.commons.lang3.RandomStringUtils.randomNumeric(4))}": (
        "${random string 4 0123456789}"
    ),
    "${__groovy(UUID.randomUUID().toString())}": "${uuid}",
    "${__groovy('id-' + System.currentTimeMillis())}": "id-${time}",
    "${__urlencode(a ${__UUID})}": "a+${uuid | form}",
    "${__changeCase(a${__UUID},UPPER)}": "A${uuid | upper}",
    "${__groovy('${__UUID}'.toUpperCase())}": "${uuid | upper}",
    "${__base64Encode(${__UUID})}": "${uuid | base64}",
    "${__digest(SHA-256,${__UUID},,,)}": "${uuid | sha256}",
    "${__digest(MD5,${__UUID},,true,)}": "${uuid | md5 | upper}",
    "${__intSum(${__iterationNum},10,-3)}": "${iteration | plus 7}",
    "${__V(n_${__Random(1,3)})}": "${random choice a b c}",
}


@pytest.mark.parametrize("call", ENGINES)
def test_what_a_function_of_each_request_becomes(call: str) -> None:
    known = variables(u="7", v="8", n_1="a", n_2="b", n_3="c", n_4="two words")
    (step,) = requests(load_of(known + sampler("/" + call)).workload.steps)
    assert step.path == "/" + ENGINES[call]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("${__groovy(new File('x').text)}", r"new File\(…\)"),
        ("${__groovy(vars.put('a'\\, 'b'))}", r"vars.put\(…\)"),
        ("${__groovy(a = 1)}", "="),
        ("${__groovy(1/2)}", "1 / 2"),
        ("${__groovy(${__UUID})}", "outside quotes"),
        ("${__groovy('${__UUID}'.trim())}", r"trim\(…\) of a changing value"),
        ("${__groovy('a'.frobnicate())}", r"frobnicate\(…\)"),
        ("${__groovy(Math.floor(Math.random()*5))}", "the expression"),
        ("${__javaScript('aa'.replace('a'\\, 'b'))}", "the first match only"),
        ("${__jexl3('a' + 1)}", "a text and a number"),
        ("${__groovy(1 2)}", "2"),
        ("${__groovy(" + "(" * 50 + "1" + ")" * 50 + ")}", "too many brackets"),
    ],
)
def test_what_is_no_plain_expression_is_refused_by_its_name(call: str, named: str) -> None:
    with pytest.raises(Refused, match=named):
        load_of(sampler("/" + call))


LINES = {
    "${__StringFromFile(lines.txt)}": "aB+c",
    "${__changeCase(${__StringFromFile(lines.txt)},UPPER)}": "AB+C",
    "${__urlencode(${__StringFromFile(lines.txt)})}": "aB%2Bc",
    "${__split(a:b,s,:)}/${s_2}/${s_n}": "a:b/b/2",
    "${__StringFromFile(lines.txt,line)}${line}": "aB+caB+c",
}
"""Of the first request; each place in a plan reads the file for itself."""


def paths(server: Served) -> list[str]:
    server.ended()
    heads = [line for line in server.recorded().decode().splitlines() if line.startswith("GET ")]
    return [urlsplit(line.split()[1]).path for line in heads]


def lines_plan(port: int, folder: Path) -> Path:
    (folder / "lines.txt").write_text("aB+c\nsecond\n")
    pages = "".join(sampler("/" + call, prop("HTTPSampler.port", port)) for call in LINES)
    (folder / "p.jmx").write_bytes(document(pages, group=prop("ThreadGroup.num_threads", 1) + repeated(3)))
    return folder / "p.jmx"


def test_lines_of_a_file_in_turn(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    offered(translate(["-n", "-t", str(lines_plan(server.port, tmp_path))]))
    sent = paths(server)
    assert sent[: len(LINES)] == ["/" + value for value in LINES.values()]
    assert sent[:: len(LINES)] == ["/aB+c", "/second", "/aB+c"]


@needs_jmeter
def test_jmeter_itself_takes_the_same_lines(serve: Callable[..., Served], tmp_path: Path) -> None:
    theirs, ours = serve(), serve()
    run_jmeter(["-n", "-t", str(lines_plan(theirs.port, tmp_path))], tmp_path, cwd=tmp_path)
    offered(translate(["-n", "-t", str(lines_plan(ours.port, tmp_path))]))
    assert paths(theirs) == paths(ours)


def test_a_property_that_the_plan_sets() -> None:
    calls = "a${__setProperty(p,5)}${__P(p)}", "${__setProperty(p,6,true)}${__setProperty(p,6,true)}"
    steps = requests(load_of(sampler("/" + calls[0])).workload.steps)
    assert steps[0].path == "/a5"
    steps = requests(load_of(sampler("/" + calls[1]), p="1").workload.steps)
    assert steps[0].path == "/16"


@pytest.mark.parametrize(
    ("call", "code", "named"),
    [
        ("${__P(p)}${__setProperty(p,5)}", "varies", "'p'"),
        ("${__setProperty(p,${__UUID})}", "varies", "'p'"),
        ("${__regexFunction(a(.),$1$)}", "unsupported", "__regexFunction"),
        ("${__intSum(${__Random(1,2)},${__iterationNum})}", "varies", "2 changing numbers"),
        ("${__digest(SHA-224,${__UUID})}", "varies", "SHA-224"),
    ],
)
def test_what_functions_of_the_run_cannot_do(call: str, code: Reason, named: str) -> None:
    with refuses(code, named):
        load_of(variables(n_3="c", n_4="two words") + sampler("/" + call))


@pytest.mark.parametrize("call", ["${__changeCase(a,WAVE)}", "${__digest(MD2,a)}", "${__char(x)}"])
def test_what_cannot_be_done_is_said(call: str) -> None:
    with pytest.raises((Refused, UsageError), match="__"):
        load_of(sampler("/" + call))


def assertion(scope: str, *texts: str) -> str:
    held = "".join(prop(str(at), text) for at, text in enumerate(texts))
    return element(
        "ResponseAssertion", f'<collectionProp name="Asserion.test_strings">{held}</collectionProp>',
        prop("Assertion.test_field", "Assertion.response_data"), prop("Assertion.test_type", 16),
        prop("Assertion.scope", scope) if scope else "",
    )  # fmt: skip


def test_assertions_of_sub_samples_and_without_a_pattern() -> None:
    plain = load_of(sampler())
    assert load_of(sampler(below=assertion("children", "x"))) == plain
    assert load_of(sampler(below=assertion(""))) == plain
    (step,) = requests(load_of(sampler(below=assertion("all", "x"))).workload.steps)
    assert step.expect is not None
    assert step.expect.body_contains == ("x",)
    with refuses("unsupported", "ResponseAssertion"):
        load_of(sampler(below=assertion("variable", "x")))


@needs_jmeter
def test_jmeter_itself_finds_the_same_values(serve: Callable[..., Served], tmp_path: Path) -> None:
    served, file = serve(), tmp_path / "p.jmx"
    known = KNOWN.replace('guiclass="G"', 'guiclass="ArgumentsPanel"')
    pages = "".join(sampler("/" + call, prop("HTTPSampler.port", served.port)) for call in VALUES)
    file.write_bytes(document(known + pages, group=prop("ThreadGroup.num_threads", 1) + repeated(1)))
    run_jmeter(["-n", "-t", str(file), "-l", str(tmp_path / "out.jtl")], tmp_path, cwd=tmp_path)
    assert paths(served) == ["/" + value for value in VALUES.values()]
