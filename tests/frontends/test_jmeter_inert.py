"""prony jmeter: elements that change nothing are taken and named; scripts are counted and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony_frontends.jmeter import jmx, scripts
from prony_frontends.jmeter.arguments import USAGE, OwnSettings
from prony_frontends.jmeter.translate import of_tree
from tests.entries import requests
from tests.frontends.codes import noted, refuses
from tests.frontends.jmx_text import PLANS, document, element, flag, load_of, prop, sampler, translated_of

TABLE = element("ResultCollector", prop("filename", ""), name="Table")
HARMLESS = {
    "listener": TABLE,
    "mailer": element("MailerResultCollector", prop("filename", "")),
    "saver": element("ResultSaver", prop("FileSaver.filename", "responses")),
    "backend": element("BackendListener", prop("classname", "org.apache.jmeter.Influx"), name="influx"),
    "recorder": element("ProxyControl", prop("ProxyControlGui.port", 8888), below=sampler("/recorded")),
    "mirror": element("HttpMirrorControl", prop("HttpMirrorControlGui.port", 8081)),
    "debug post-processor": element("DebugPostProcessor", flag("displaySamplerProperties", True)),
    "plug-in": element("kg.apc.jmeter.vizualizers.CorrectedResultCollector", prop("interval_grouping", 500)),
    "perfmon": element("kg.apc.jmeter.perfmon.PerfMonCollector", prop("metricConnections", "x")),
    "metrics": element("com.github.johrstrom.listener.PrometheusListener", prop("prometheus.x", "y")),
    "definitions of metrics": element("com.github.johrstrom.config.PrometheusMetricsConfig"),
    "somebody's listener": element("org.example.load.SlowRequestListener", prop("x", "y")),
    "uploader": element("com.blazemeter.jmeter.reporting.BlazemeterUploader", prop("token", "x")),
    "defaults of another protocol": element(
        "ConfigTestElement", prop("TCPSampler.port", 1), gui="TCPConfigGui"
    ),
    "result action that continues": element("ResultAction", '<intProp name="OnError.action">0</intProp>'),
    "empty script": element("BeanShellPreProcessor", prop("script", " // later\n")),
}


@pytest.mark.parametrize("where", ["beside the groups", "in the group", "below the sampler"])
@pytest.mark.parametrize("case", HARMLESS)
def test_what_changes_no_request_is_taken(case: str, where: str) -> None:
    extra = HARMLESS[case]
    plain = load_of(sampler("/x"))
    made = {
        "beside the groups": lambda: translated_of(sampler("/x"), beside=extra),
        "in the group": lambda: translated_of(extra + sampler("/x")),
        "below the sampler": lambda: translated_of(sampler("/x", below=extra)),
    }[where]()
    assert made.trial == plain


def test_one_note_names_all_of_them() -> None:
    many = TABLE + TABLE + HARMLESS["recorder"] + HARMLESS["plug-in"]
    names = "ResultCollector 'Table' and 1 more, ProxyControl 'it', CorrectedResultCollector 'it'"
    assert noted(translated_of(many + sampler()).notes, "left_out", names)
    assert not noted(translated_of(sampler()).notes, "left_out")


def test_what_ends_a_run_is_no_listener() -> None:
    with refuses("unsupported", "AutoStop"):
        load_of(element("kg.apc.jmeter.reporters.AutoStop") + sampler())


def test_what_graphql_samplers_say_twice() -> None:
    twice = prop("GraphQLHTTPSampler.query", "{a}") + prop("GraphQLHTTPSampler.variables", "{}")
    assert load_of(sampler("/x", twice)) == load_of(sampler("/x"))


def test_json_elements_of_plug_ins_are_those_of_jmeter() -> None:
    plug_in = "com.atlantbh.jmeter.plugins.jsonutils"
    extracts = element(
        f"{plug_in}.jsonpathextractor.JSONPathExtractor", prop("VAR", "id"),
        prop("JSONPATH", "$.items[0].id"), prop("DEFAULT", "none"), prop("SUBJECT", "BODY"),
    )  # fmt: skip
    asserts = element(f"{plug_in}.jsonpathassertion.JSONPathAssertion", prop("JSON_PATH", "$.a"))
    (step,) = requests(load_of(sampler("/x", below=extracts + asserts)).workload.steps)
    assert step.expect is not None
    assert step.expect.json_exists == ("/a",)
    taken = step.capture["id"]
    assert (taken.json_pointer, taken.default) == ("/items/0/id", "none")
    with refuses("unsupported", "JSONPathExtractor"):
        load_of(sampler(below=extracts.replace("$.items[0].id", "$.items[*].id")))


def test_a_group_without_threads_does_nothing() -> None:
    none = element("ThreadGroup", prop("ThreadGroup.num_threads", "${__P(others,0)}"), below=sampler("/no"))
    made = translated_of(sampler("/x"), beside=none)
    assert made.trial == load_of(sampler("/x"))
    assert noted(made.notes, "no_threads", "ThreadGroup 'it'")


def test_the_work_bench_of_old_plans_is_no_part_of_them() -> None:
    bench = element("WorkBench", below=sampler("/never") + element("Unknown"))
    beside_it = document(sampler("/x")).replace(
        b"</hashTree></jmeterTestPlan>", bench.encode() + b"</hashTree></jmeterTestPlan>"
    )
    for content in (beside_it, document(sampler("/x"), bench)):
        made = of_tree(jmx.parse(content, "p.jmx"), PLANS / "p.jmx", {}).translated
        assert [step.path for step in requests(made.trial.workload.steps)] == ["/x"]
        assert noted(made.notes, "left_out", "WorkBench")


def test_a_recording_controller_is_a_plain_one() -> None:
    (step,) = requests(load_of(element("RecordingController", below=sampler("/x"))).workload.steps)
    assert step.path == "/x"


SCRIPTS = {
    "": scripts.NOTHING,
    "/* nothing */": scripts.NOTHING,
    'log.info("x = " + vars.get("x"));': scripts.LOGGING,
    'import java.util.*;\nlog.info("a"); // done\nOUT.println(prev.getResponseCode())': scripts.LOGGING,
    'log.info(vars.put("a", "b"))': "sets variables",
    'x = 1; log.info("a")': "",
    'log.info("${x}"); vars.put("n", "1"); Thread.sleep(5)': "sets variables, waits",
    "sampler.addArgument('a', 'b')": "changes the request",
    "prev.setStopThread(true)": "changes the result, stops threads or the test",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_script_seems_to_do(script: str) -> None:
    escaped = script.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    tree = jmx.parse(document(element("JSR223PreProcessor", prop("script", escaped))), "p.jmx")
    (node,) = [one for one in tree.everything() if one.tag == "JSR223PreProcessor"]
    assert ", ".join(scripts.read(node).does) == SCRIPTS[script]


def test_help_and_page_say_the_same_of_what_may_be_skipped() -> None:
    page = (Path(__file__).parents[2] / "docs" / "frontends.md").read_text(encoding="utf-8")
    words = "kips listeners whose script cannot affect the load, and samplers whose script only logs"
    assert words in " ".join(USAGE.split())
    assert words in " ".join(page.split())


def script(kind: str, text: str, name: str = "it") -> str:
    return element(kind, prop("script", text), name=name)


def test_scripts_are_refused_with_their_number_and_what_they_seem_to_do() -> None:
    both = script("JSR223PreProcessor", 'sampler.addArgument("a", "b")', "first") + script(
        "JSR223Listener", "new URL(x).openConnection()"
    )
    named = "JSR223PreProcessor 'first'", "2 scripts (line 5 ", "--skip-unsupported leaves out 1 "
    with refuses("unsupported", *named):
        load_of(sampler(below=both + script("JSR223PostProcessor", 'log.info("a")')))


def test_what_only_logs_is_left_out() -> None:
    logs = script("JSR223PostProcessor", 'log.info("a")', "logger")
    made = translated_of(sampler(below=logs))
    assert made.trial == load_of(sampler())
    assert noted(made.notes, "script_left_out", "JSR223PostProcessor 'logger'", "(it logs)")


def test_only_what_cannot_change_the_load_may_be_skipped() -> None:
    own_settings = OwnSettings(skip_unsupported=True)
    listens = script("JSR223Listener", "def t = sampleResult.getTime(); println t", "listener")
    tells = script(
        "JSR223Listener", "def c = new URL(u).openConnection(); c.setBody(ctx.threadNum)", "teller"
    )
    made = translated_of(sampler(below=listens + tells), own_settings=own_settings)
    assert made.trial == load_of(sampler())
    assert [note.code for note in made.notes].count("script_left_out") == 2
    assert noted(made.notes, "script_left_out", "'teller'", "--skip-unsupported")
    logs = element("JSR223Sampler", prop("scriptLanguage", "javascript"), prop("script", "log.info('a')"))
    made = translated_of(logs + sampler(), own_settings=own_settings)
    assert made.trial == load_of(sampler())
    assert noted(made.notes, "script_left_out", "JSR223Sampler", "--skip-unsupported")
    with refuses("unsupported", "--skip-unsupported leaves out 1 "):
        load_of(logs + sampler())
    for changes in (
        script("JSR223Listener", 'vars.put("a", "b")'),
        script("JSR223Listener", "prev.setStopTest(true)"),
        script("JSR223Listener", "ctx.getEngine().exit()"),
        script("JSR223PreProcessor", "if (x) { y }"),
    ):
        with refuses("unsupported", "1 script"):
            translated_of(sampler(below=changes), own_settings=own_settings)
    with refuses("unsupported", "2 scripts"):
        load_of(sampler(below=tells + listens))
