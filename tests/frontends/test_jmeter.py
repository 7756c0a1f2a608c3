"""prony jmeter: test plans become loads or are refused, and the requests are JMeter's to the byte."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.load import ClosedLoad, OpenLoad, WholeRun
from prony.plan.step import Block
from prony_frontends import jmeter
from prony_frontends.base import Refused, Translated, explain
from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.arguments import OwnSettings, parse
from prony_frontends.jmeter.functions import LONGEST_S, KnownValues
from tests.entries import requests
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import explained
from tests.frontends.jmx_text import PLANS, element, flag, load_of, prop, sampler, translated_of


def translated(name: str, *more: str) -> Translated:
    return jmeter.translate(["-n", "-t", str(PLANS / name), *more])


def test_the_customers_of_experiment_b() -> None:
    made = translated("customers.jmx", "-Jport=9090", "-Jthreads=16", "-J", "loops=7")
    load = made.trial
    assert made.target.url == "http://127.0.0.1:9090"
    assert load.load == ClosedLoad(users=16)
    assert load.measured == WholeRun(iterations_per_user=7)
    assert [(s.name, s.method, s.path) for s in requests(load.workload.steps)] == [
        ("read", "GET", "/customerservice/customers/123?view=short+%26+plain"),
        ("create", "POST", "/customerservice/customers"),
        ("change", "PUT", "/customerservice/customers"),
        ("delete", "DELETE", "/customerservice/customers/123"),
        ("search", "POST", "/customerservice/customers/search"),
    ]
    read, _, change, _, search = requests(load.workload.steps)
    assert read.expect is not None
    assert read.expect.status == (200,)
    assert "Content-Length" not in change.headers
    assert list(change.headers)[change.added_headers_at or 0 :] == ["Host", "User-Agent"]
    assert search.body == "name=J*ck+%28the+1st%29%7E&all=yes+"
    assert search.headers["Connection"] == "close"
    assert load.request_timeout_ms == 20_000
    assert not load.preflight
    assert made.notes[0].code == "redirects"


def test_the_sessions_of_experiment_d() -> None:
    load = translated("sessions.jmx", "-Jrate=5", "-Jseconds=2").trial
    assert isinstance(load.load, OpenLoad)
    assert load.load.session == "user"
    assert load.load.arrivals == "constant"
    assert [(p.duration_s, p.from_per_s, p.to_per_s) for p in load.load.phases] == [(2, 5, 5)]
    (step,) = requests(load.workload.steps)
    assert step.repeat == 50


def test_users_with_rows_cookies_and_captures() -> None:
    load = translated("people.jmx").trial
    assert load.load == ClosedLoad(users=1000, ramp_up_s=5)
    (person,) = load.workload.steps
    assert isinstance(person, Block)
    assert person.transaction == "Person"
    create, read = requests(person.steps)
    assert create.body == '{"name":"${rows1.name} ${uuid}","age":${random int 1 99}}'
    assert create.capture["id"].json_pointer == "/items/0/id"
    assert "Content-Length" not in create.headers
    assert read.path == "/people/${id | segments}?town=${rows1.town}"
    pauses = [step.think_before for step in (create, read)]
    assert [(pause.min_ms, pause.max_ms) for pause in pauses if pause] == [(100, 150), (110, 160)]
    assert load.workload.variables == {"id": "$${id}"}
    assert load.workload.cookies
    assert load.workload.feeders["rows1"].at_end == "recycle"


def test_what_is_explained_can_be_read_again() -> None:

    for name in ("customers.jmx", "sessions.jmx", "people.jmx"):
        made = translated(name)
        text = explain(made)
        assert text.startswith("# ") or not made.notes
        assert explained(made).workload.all_steps == made.trial.workload.all_steps


REFUSED = {
    "script": (
        element("JSR223Sampler", prop("script", "if (x) { y() }")),
        "JSR223Sampler 'it' is not supported",
    ),
    "unknown": (element("kg.apc.Strange"), "kg.apc.Strange 'it'"),
    "groovy": (sampler("/${__groovy(new File('a').text)}"), "the function __groovy"),
    "jexl": (
        element(
            "IfController", prop("IfController.condition", "${__jexl3(a.size() &gt; 1)}"), below=sampler()
        ),
        "the condition 'a.size() > 1'",
    ),
    "trim": (
        element(
            "IfController",
            prop("IfController.condition", "${__groovy(vars.get('a').trim() == 'x')}"),
            below=sampler(),
        ),
        "the condition 'vars.get('a').trim() == 'x''",
    ),
    "variable": (sampler("/${nobody}"), "the variable ${nobody} in the path is undefined"),
    "pattern": (
        sampler(
            below=element(
                "RegexExtractor",
                prop("RegexExtractor.refname", "x"),
                prop("RegexExtractor.regex", "(?&lt;=a)(b)"),
            )
        ),
        "the pattern '(?<=a)(b)' with look-around",
    ),
    "property": (
        sampler(more=prop("HTTPSampler.sample_timeout", "9")),
        "the property HTTPSampler.sample_timeout is '9'",
    ),
    "method": (sampler(more=prop("HTTPSampler.method", "PROPFIND")), "the method PROPFIND"),
    "protocol": (sampler(more=prop("HTTPSampler.protocol", "ftp")), "the protocol ftp"),
    "duration": (
        sampler(
            below=element(
                "DurationAssertion",
                prop("DurationAssertion.duration", 5),
                prop("Assertion.scope", "variable"),
            )
        ),
        "it applies to a variable",
    ),
    "path": (
        sampler(below=element("JSONPathAssertion", prop("JSON_PATH", "$..id"), flag("INVERT", True))),
        "several values at '$..id'",
    ),
    "columns": (
        element("CSVDataSet", prop("filename", "people.csv"), prop("delimiter", "&quot;")) + sampler(),
        "the delimiter '\"'",
    ),
    "bare while": (
        element("WhileController", prop("WhileController.condition", "1 == 1"), below=sampler()),
        "which is not true, false or a comparison",
    ),
    "one of a block": (
        element("RandomController", below=sampler() + element("GenericController", below=sampler())),
        "with one request at a time",
    ),
    "perhaps nothing": (
        element(
            "RandomController",
            '<intProp name="InterleaveControl.style">1</intProp>',
            below=sampler()
            + element("IfController", prop("IfController.condition", "true"), below=sampler()),
        ),
        "a controller that may send nothing",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_prony_does_not_do_is_refused_before_the_first_request(case: str) -> None:
    inside, says = REFUSED[case]
    with pytest.raises(Refused, match=re.escape(says)) as refused:
        load_of(inside)
    assert refused.value.file == "p.jmx"
    assert refused.value.line is not None
    assert refused.value.line >= 4
    assert refused.value.instead


def test_a_disabled_element_is_left_out_as_by_jmeter() -> None:
    off = '<JSR223Sampler testname="x" enabled="false"/><hashTree>' + sampler("/never") + "</hashTree>"
    load = load_of(off + sampler("/always"))
    assert [step.path for step in requests(load.workload.steps)] == ["/always"]


def test_a_group_that_continues_for_ever_runs_until_it_is_ended() -> None:
    inner = '<boolProp name="LoopController.continue_forever">{}</boolProp>' + prop("LoopController.loops", 2)
    main = (
        f'<elementProp name="ThreadGroup.main_controller" elementType="LoopController">{inner}</elementProp>'
    )
    endless = translated_of(sampler(), group=main.format("true"))
    assert endless.trial.measured == WholeRun(duration_s=LONGEST_S)
    assert noted(endless.notes, "no_end")
    ended = translated_of(sampler(), group=main.format("true"), own_settings=OwnSettings(duration_s=5))
    assert ended.trial.measured == WholeRun(duration_s=5)
    measured = load_of(sampler(), group=main.format("false")).measured
    assert isinstance(measured, WholeRun)
    assert measured.iterations_per_user == 2


@pytest.mark.parametrize(
    "head",
    [
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">',
    ],
)
def test_no_document_type_is_read(head: str, tmp_path: Path) -> None:
    file = tmp_path / "x.jmx"
    file.write_text(f"<?xml version='1.0'?>\n{head}\n<jmeterTestPlan>&e;</jmeterTestPlan>")
    with refuses("unsupported", "DOCTYPE", line=2):
        jmeter.translate(["-n", "-t", str(file)])


@pytest.mark.parametrize("content", [b"", b"<", b"<a></b>", b"<a/>", b"\xff\xfe\x00", b"<jmeterTestPlan/>"])
def test_what_is_no_test_plan_is_one_sentence(content: bytes) -> None:
    with pytest.raises(UsageError):
        jmx.parse(content, "p.jmx")


@pytest.mark.parametrize(
    ("raw", "becomes"),
    [
        ("a${b}c", "a1c"),
        ("${__P(x,${b})}", "1"),
        ("${__P(known)}", "yes"),
        ("${__property(known,,no)}", "yes"),
        ("${__V(b)}", "1"),
        ("${__Random(1,6)}", "${random int 1 6}"),
        ("${__RandomString(2,ab)}", "${random string 2 ab}"),
        ("${__UUID}-${__UUID()}", "${uuid}-${uuid}"),
        ("$x {y} $${b}", "$x {y} $1"),
        ("\\${b}", "$${b}"),
    ],
)
def test_functions_and_variables(raw: str, becomes: str) -> None:
    from prony_frontends.jmeter.functions import Text

    values = KnownValues({"known": "yes"}, users=2, variables={"b": Text.of("1")})
    assert values.text(raw, jmx.JmxNode("x", {}, 1, "p.jmx")).engine == becomes


def test_assertions_and_conditions() -> None:
    code = element(
        "ResponseAssertion",
        '<collectionProp name="Asserion.test_strings">' + prop("1", 404) + "</collectionProp>",
        prop("Assertion.test_field", "Assertion.response_code"),
        prop("Assertion.test_type", 8),
        prop("Assertion.assume_success", "true"),
    )
    never = element(
        "IfController", prop("IfController.condition", '"a" == "b"'), below=element("JSR223Sampler")
    )
    (step,) = requests(load_of(never + sampler("/x y#z", below=code)).workload.steps)
    assert step.expect is not None
    assert step.expect.status == (404,)
    assert step.path == "/x%20y"


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["-t", "x.jmx"], "-n is missing"),
        (["-n"], "-t is missing"),
        (["-n", "-t", "nowhere.jmx"], "cannot be read"),
        (["-n", "-t", "x", "-Jx"], "NAME=VALUE"),
        (["-n", "-t", "x", "-R", "host"], "run prony jmeter on each host"),
        (["-n", "-t", "x", "-Jjmeter.save.saveservice.url=false"], "changes what JMeter sends or writes"),
        (["-n", "-t", "x", "--what"], "is not known"),
    ],
)
def test_the_command_line(argv: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        jmeter.translate(argv)


def test_options_that_jmeter_does_not_have(tmp_path: Path) -> None:
    plan = ["-n", "-t", "p.jmx"]
    asked = parse([*plan, "--duration", "7.5", f"--csv-dir={tmp_path}", "--skip-unsupported"]).own_settings
    assert asked == OwnSettings(7.5, tmp_path, True)
    assert parse([*plan, "-Jduration=9"]).own_settings == OwnSettings(9.0)
    assert parse([*plan, "-Jduration=ten minutes", "--duration=3"]).own_settings == OwnSettings(3.0)
    assert parse([*plan, "-Jduration=ten minutes"]).own_settings == OwnSettings()
    for wrong in (["--duration", "0"], ["--duration"], ["--csv-dir", "nowhere"], ["--skip-unsupported=no"]):
        with pytest.raises(UsageError, match=f"jmeter: {wrong[0].partition('=')[0]}"):
            parse([*plan, *wrong])


def test_a_log_format_that_is_the_usual_one() -> None:
    plan = ["-n", "-t", "p.jmx", "-J"]
    assert parse([*plan, "jmeter.save.saveservice.output_format=csv"]).properties
    with refuses("unsupported", "output_format", "'xml'"):
        parse([*plan, "jmeter.save.saveservice.output_format=xml"])


def test_where_the_page_in_place_of_the_dashboard_is_written() -> None:
    plan = ["-n", "-t", "p.jmx", "-l", "o.jtl"]
    assert parse(plan).page is None
    assert parse([*plan, "-e"]).page == Path("report-output", "index.html")
    for more in (["-e", "-o", "rep"], ["-e", "-orep"], ["--reportatendofloadtests", "-o", "rep"]):
        assert parse([*plan, *more]).page == Path("rep", "index.html")


def test_the_longest_connect_timeout_holds_for_all() -> None:
    def one(ms: object) -> str:
        return sampler(more=prop("HTTPSampler.connect_timeout", ms))

    made = translated_of(one(500) + one(900))
    assert made.trial.connect_timeout_ms == 900
    assert noted(made.notes, "connect_timeout", "900 ms")
    made = translated_of(one(500) + one(""))
    assert made.trial.connect_timeout_ms == 20_000
    assert noted(made.notes, "connect_timeout", "20000 ms")
    assert not noted(translated_of(one(500) + one(500)).notes, "connect_timeout")


def test_properties_of_a_file_are_below_those_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "more.properties"
    file.write_text("# remark\nthreads=4\nloops : 2\n")
    load = translated("customers.jmx", "-q", str(file), "-Jloops=9").trial
    assert load.load == ClosedLoad(users=4)
    assert load.measured == WholeRun(iterations_per_user=9)
