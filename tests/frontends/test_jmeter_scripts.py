"""prony jmeter: scripts that only set variables, wait and log are translated; JMeter 5.6.3 sends the same."""

from __future__ import annotations

import time
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from prony.plan.step import Block, Entry, Step
from prony_frontends.base import Reason
from prony_frontends.jmeter import statements, translate
from prony_frontends.jmeter.expression_values import Unsupported
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import offered
from tests.frontends.jmx_text import (
    document,
    element,
    found,
    load_of,
    prop,
    repeated,
    sampler,
    translated_of,
    variables,
)
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.site import Response, site

BEFORE, AFTER, ALONE = "JSR223PreProcessor", "JSR223PostProcessor", "JSR223Sampler"


def script(kind: str, text: str, *more: str) -> str:
    return element(kind, prop("script", escape(text)), prop("cacheKey", "true"), *more)


def requests(entries: tuple[Entry, ...]) -> list[Step]:
    return [entry for entry in entries if isinstance(entry, Step)]


def sets(entries: tuple[Entry, ...]) -> list[dict[str, str]]:
    return [entry.set for entry in entries if isinstance(entry, Block) and entry.set]


STATEMENTS = {
    "import java.util.*;\nvars.put('a', 'x')  // done": 1,
    'String url = "http://h/"; /* no; */ vars.put("a", url + "b;c")': 2,
    "def a = 1 +\n 2\ndef b = a\n  .toString()\nlog.info(b)\nreturn": 2,
    "int i = 0; i++; i += 2; Thread.sleep(5)": 4,
    'log.info "token is ${vars.get("token")}"': 0,
    "final Map<String> m = x\nString[] w = y": 2,
    'if (prev.getResponseCode() != "200") { log.error("x") } else { log.info("y") }': 0,
    "if (a) {\n vars.put('a', 'b')\n}\nelse\n{ vars.put('a', 'c') }\nvars.put('d', 'e')": 2,
    "if (a)\n{\n vars.put('a', 'b') }\nlog.info(b)": 1,
    "if (a) vars.put('a', 'b'); else if (c) { vars.put('a', 'c') } else vars.put('a', 'd')": 1,
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements_of_a_script(text: str) -> None:
    assert len(statements.of(text)) == STATEMENTS[text]


@pytest.mark.parametrize(
    "text",
    ["if (a) { b = 1", "if (a) { b = 1 } f(2)",
     "for (i in x) y = i", "sampler.setPath('/x')", "log.info(vars.put('a', 'b'))",
     "vars.put(name, 'x')", "vars.put('a', 'x'", "log.info(i++)", "return 5", "try { x = 1 } catch (e) { }",
     "prev.setSuccessful(false)", "f(1)", "vars['a'] = 'b'", "vars.a = 'b'", "vars.putObject('a', b)"],
)  # fmt: skip
def test_other_statements_are_none_of_them(text: str) -> None:
    with pytest.raises(Unsupported):
        statements.of(text)


VALUES = {
    "vars.put('v', 'a' + 1 + \"b\")": "a1b",
    "def a = 'x'; vars.put('v', \"${a}-$a-${n}\")": "x-x-5",
    "vars.put('v', UUID.randomUUID().toString())": "${uuid}",
    "vars.put('v', UUID.randomUUID().toString().substring(0, 8))": "${random string 8 0123456789abcdef}",
    "def r = new Random(); vars.put('v', (r.nextInt(9) + 1).toString())": "${random int 1 9}",
    "import java.util.concurrent.*; vars.put('v', '' + ThreadLocalRandom.current().nextInt(5, 8))": (
        "${random int 5 7}"
    ),
    "vars.put('v', System.currentTimeMillis() + '')": "${time}",
    "vars.put('v', (vars.get('n').toInteger() + 1) as String)": "6",
    "vars.put('v', '' + System.currentTimeMillis().intdiv(1000))": "${time s}",
    "def w = ['a', 'b']; vars.put('v', w[new Random().nextInt(w.size())])": "${random choice a b}",
    "vars.put('v', String.format('%04d', new Random().nextInt(100)))": "${random int 0 99 | digits 4}",
    "int i = Integer.parseInt(vars.get('n')) + 2\nvars.put('v', i.toString())": "7",
    "vars.put('v', vars.get('none') + '')": "null",
    "vars.put('v', '${n}')": "5",
}


@pytest.mark.parametrize("text", VALUES)
def test_what_a_script_sets(text: str) -> None:
    made = load_of(variables(n="5") + script(BEFORE, text) + sampler("/${v}")).workload
    (value,) = [one["v"] for one in sets(made.steps) if "v" in one]
    assert value == VALUES[text]
    (step,) = requests(made.steps)
    assert step.path == "/${v | segments}"


def test_a_value_that_is_used_twice_is_drawn_once() -> None:
    text = "def id = UUID.randomUUID().toString()\nvars.put('a', id)\nvars.put('b', 'x' + id)"
    made = load_of(script(BEFORE, text) + sampler("/${a}/${b}")).workload
    assert sets(made.steps) == [{"text1": "${uuid}"}, {"a": "${text1}"}, {"b": "x${text1}"}]


def test_a_counter_of_a_script_goes_on() -> None:
    text = "int i = Integer.parseInt(vars.get('i')); i++; vars.put('i', i.toString());"
    made = load_of(variables(i="0") + sampler("/${i}", below=script("BeanShellPostProcessor", text))).workload
    assert isinstance(made.steps[0], Step)
    assert made.variables["i"] == "0"
    first, second, last = sets(made.steps)
    assert [*first.values(), *second.values(), *last.values()] == ["${i}", "${text1 | plus 1}", "${text2}"]


def test_a_script_takes_places_of_the_response() -> None:
    text = (
        "import groovy.json.JsonSlurper\n"
        "def body = new JsonSlurper().parseText(prev.getResponseDataAsString())\n"
        "vars.put('id', body.data[0].id)\nvars.put('auth', \"Bearer ${body?.token}\")"
    )
    made = translated_of(sampler("/in", below=script(AFTER, text)) + sampler("/${id}/${auth}"))
    first, _ = requests(made.trial.workload.steps)
    assert {name: taken.json_pointer for name, taken in first.capture.items()} == {
        "id": "/data/0/id",
        "text1": "/token",
    }
    assert sets(made.trial.workload.steps) == [{"auth": "Bearer ${text1}"}]
    assert noted(made.notes, "json_reader")


def test_a_sampler_that_is_a_script_has_its_row() -> None:
    made = load_of(script(ALONE, "vars.put('a', 'b')") + sampler("/${a}")).workload
    assert [entry.note for entry in made.steps if isinstance(entry, Block)] == [None, "=it"]


def test_a_group_that_only_sets_properties_is_left_out() -> None:
    beside = element(
        "SetupThreadGroup",
        prop("ThreadGroup.num_threads", 1),
        repeated(1),
        below=script(ALONE, "props.put('host', '127.0.0.1')"),
    )
    made = translated_of(sampler("/${__P(host)}"), beside, prop("ThreadGroup.num_threads", 1) + repeated(1))
    (step,) = requests(made.trial.workload.steps)
    assert step.path == "/127.0.0.1"
    assert made.trial.before is None
    assert noted(made.notes, "left_out", "SetupThreadGroup")


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("vars.put('a', 5)", "unsupported", "a non-text"),
        ("vars.put('a', foo.bar())", "unsupported", "bar"),
        ("vars.put('a', '${b}')", "unsupported", "compiled"),
        ("props.put('a', vars.get('b'))", "varies", "'a'"),
    ],
)
def test_what_a_script_may_not_do(text: str, code: Reason, named: str) -> None:
    with refuses(code, named):
        load_of(sampler("/x", below=found("b", "(.)") + script(AFTER, text)) + sampler("/${a}"))


def test_extractors_come_first() -> None:
    later = script(AFTER, "vars.put('a', vars.get('b'))") + found("b", "(.)")
    with refuses("used_before", "'b'", "RegexExtractor"):
        load_of(sampler("/x", below=later) + sampler("/${a}"))


def test_a_script_after_a_failed_request_is_said() -> None:
    stops = prop("ThreadGroup.on_sample_error", "startnextloop") + repeated(2)
    made = translated_of(sampler("/x", below=script(AFTER, "vars.put('a', 'b')")), group=stops)
    assert noted(made.notes, "script_after_failure", "JSR223PostProcessor")


def test_other_languages_are_refused() -> None:
    with refuses("unsupported", "JSR223PreProcessor", "Java"):
        load_of(script(BEFORE, "vars.put('a', 'b')", prop("scriptLanguage", "javascript")) + sampler())


PLAIN = """
import java.time.*
def words = ['one', 'one']  // both
vars.put('year', LocalDate.now().plusDays(0).format(java.time.format.DateTimeFormatter.ofPattern('yyyy')))
int n = Integer.parseInt(vars.get('n')) + 1
n++
vars.put('n', n.toString())
vars.put('word', words[new Random().nextInt(words.size())])
vars.put('made', "${vars.get('word')}-$n-" + "4")
log.info("n is ${n}")
"""
FIRST = "vars.put('first', 'f' + vars.get('n'))"
SHELL = 'int m = Integer.parseInt(vars.get("m"));\nvars.put("m", String.valueOf(m + 10)); // ten more'
TOKEN = """
def json = new groovy.json.JsonSlurper().parseText(prev.getResponseDataAsString())
vars.put('token', json.list[1].token)
vars.put('both', 'T-' + json?.list[0].id)
"""


def test_what_is_not_plain_is_named() -> None:
    with refuses("unsupported", "getClass"):
        load_of(script(BEFORE, "vars.put('a', 'b'.getClass() + '')") + sampler("/${a}"))


def scripts_plan(port: int, folder: Path) -> Path:
    where = prop("HTTPSampler.port", port)
    steps = (
        variables(n="1", m="5")
        + sampler(
            "/json",
            where,
            script(BEFORE, FIRST) + script(BEFORE, PLAIN) + script("BeanShellPostProcessor", SHELL),
        )
        + sampler("/${made}/${n}/${m}/${first}/${year}", where)
        + sampler("/json", where, script(AFTER, TOKEN))
        + sampler("/${token}?b=${both}", where)
    )
    path = folder / "scripts.jmx"
    path.write_bytes(document(steps, group=prop("ThreadGroup.num_threads", 1) + repeated(2)))
    return path


ANSWERS = {"/json": Response('{"list": [{"id": 7, "token": "t-1"}, {"id": 8, "token": "t-2"}]}')}
YEAR = time.localtime().tm_year
WAY = ["/json", f"/one-3-4/3/15/f1/{YEAR}", "/json", "/t-2?b=T-7",
       "/json", f"/one-5-4/5/25/f3/{YEAR}", "/json", "/t-2?b=T-7"]  # fmt: skip


def test_scripts_on_the_wire(tmp_path: Path) -> None:
    with site(ANSWERS) as served:
        offered(translate(["-n", "-t", str(scripts_plan(served.port, tmp_path))]))
    assert served.paths == WAY


@needs_jmeter
def test_jmeter_itself_does_the_same(tmp_path: Path) -> None:
    with site(ANSWERS) as served:
        run_jmeter(["-n", "-t", str(scripts_plan(served.port, tmp_path))], tmp_path)
    assert served.paths == WAY
