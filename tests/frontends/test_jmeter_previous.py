"""prony jmeter: the previous response in scripts and conditions; empty segments of paths; beside JMeter."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from prony.errors import UsageError
from prony_frontends.base import Refused
from tests.frontends.jmx_text import document, element, flag, found, load_of, prop, repeated, sampler
from tests.frontends.real_jmeter import BOTH, run_by
from tests.frontends.site import Response, site
from tests.frontends.test_jmeter_blocks import condition
from tests.frontends.test_jmeter_looks import CONTAINS, response
from tests.frontends.test_jmeter_wire import headers

ONE = prop("ThreadGroup.num_threads", 1) + repeated(1)
JSON = Response('{"data": {"name": "x", "n": 9}, "ids": [1, 2]}', "application/json")
PAGES = {
    "/ok": Response("fine"),
    "/made": Response("m", status=201),
    "/links": Response('<a href="/to/here">', status=200),
    "/json": JSON,
}


def asks(who: str, folder: Path, inside: str) -> list[str]:
    """The paths that JMeter or Prony requests of this thread group."""
    with site(PAGES) as served:
        text = document(inside, group=ONE).replace(
            b'<stringProp name="HTTPSampler.path">',
            b'<stringProp name="HTTPSampler.port">%d</stringProp><stringProp name="HTTPSampler.path">'
            % served.port,
        )
        (folder / "p.jmx").write_bytes(text)
        run_by(who, ["-n", "-t", str(folder / "p.jmx")], folder)
    return served.paths


def when(script: str, path: str) -> str:
    return condition(f"${{__groovy({escape(script, {chr(34): '&quot;'})})}}", sampler(path))


def after(script: str) -> str:
    return element("JSR223PostProcessor", prop("script", escape(script)), prop("scriptLanguage", "groovy"),
                   prop("cacheKey", "true"))  # fmt: skip


@BOTH
def test_a_condition_after_a_sampler_that_cannot_be_sent(who: str, tmp_path: Path) -> None:
    inside = sampler("/w/${nobody}") + condition('${__jexl3("a" == "a",)}', sampler("/a"))
    assert asks(who, tmp_path, inside) == ["/a"]


@BOTH
def test_conditions_read_the_previous_code(who: str, tmp_path: Path) -> None:
    inside = (
        sampler("/made") + when('prev.getResponseCode() == "201"', "/a") + sampler("/gone")
        + when('prev.getResponseCode().equals("404") && !prev.isSuccessful()', "/b")
        + sampler("/gone") + when("prev.responseCode.toInteger() >= 500", "/no")
        + when("prev.isSuccessful()", "/no") + sampler("/ok") + when("prev.isResponseCodeOK()", "/c")
        + sampler("/made") + when("prev.isResponseCodeOK()", "/no")
        + when("prev.isSuccessful() == true", "/d")
        + sampler("/ok", below=response("response_data", CONTAINS, "nothing"))
        + when("prev.isSuccessful()", "/no")
    )  # fmt: skip
    sent = asks(who, tmp_path, inside)
    assert [path for path in sent if len(path) == 2] == ["/a", "/b", "/c", "/d"]
    assert "/no" not in sent


@BOTH
def test_a_script_reads_the_code_before_assertions(who: str, tmp_path: Path) -> None:
    script = """def code = prev.getResponseCode()
if (code == "404" || code.equals("410")) { vars.put("r", "gone") } else { vars.put("r", "there") }
if (prev.isSuccessful()) { vars.put("s", "right") } else { vars.put("s", "wrong") }
vars.put("c", prev.getResponseCode())"""
    held = response("response_data", CONTAINS, "nothing")
    sent = asks(who, tmp_path, "".join(
        sampler(path, below=held + after(script)) + sampler("/${r}/${s}/${c}") for path in ("/made", "/gone")
    ))  # fmt: skip
    assert sent[1::2] == ["/there/right/201", "/gone/wrong/404"]


@BOTH
def test_no_response_has_a_code_of_its_own(who: str, tmp_path: Path) -> None:
    inside = sampler("/ok") + sampler("/{}") + when('prev.getResponseCode() == "200"', "/no")
    inside += when('prev.getResponseCode().startsWith("Non HTTP")', "/yes")
    assert asks(who, tmp_path, inside) == ["/ok", "/yes"]


@BOTH
def test_a_failed_json_assertion_is_no_success(who: str, tmp_path: Path) -> None:
    def holds(path: str, expected: str = "") -> str:
        return element("JSONPathAssertion", prop("JSON_PATH", path), prop("EXPECTED_VALUE", expected),
                       flag("JSONVALIDATION", bool(expected)), flag("ISREGEX", True))  # fmt: skip

    sent = asks(who, tmp_path, "".join(
        sampler("/json", below=held) + condition("${JMeterThread.last_sample_ok}", sampler(f"/{place}"))
        for place, held in enumerate((holds("$.data.name", "y"), holds("$.none"), holds("$.ids[*]", "2"),
                                      holds("$.ids[*]", "7"), holds("$.data.name", "x")))
    ))  # fmt: skip
    assert [path for path in sent if path != "/json"] == ["/2", "/4"]


@BOTH
def test_empty_segments_of_a_path_are_left_out(who: str, tmp_path: Path) -> None:
    link = found("l", 'href="([^"]+)"')
    empty = found("e", "(zz)").replace(prop("RegexExtractor.default", "none"),
                                       flag("RegexExtractor.default_empty_value", True))  # fmt: skip
    inside = sampler("/links", below=link + empty) + "".join(
        sampler(path)
        for path in (
            "${l}",
            "/${e}/${l}/${e}/q/${e}",
            "/${l}",
            "/a/${l}/b?x=${l}",
            "/k/${e}/l",
            "/${e}",
            "/${e}/p",
            "/r/${e}?z=//",
        )
    )
    assert asks(who, tmp_path, inside)[1:] == [
        "/to/here", "/to/here/q/", "/to/here", "/a/to/here/b?x=/to/here", "/k/l", "/", "/p", "/r/?z=//",
    ]  # fmt: skip


@BOTH
def test_plain_jmespaths_are_json_paths(who: str, tmp_path: Path) -> None:
    def jmespath(path: str, expected: str = "") -> str:
        return element("JMESPathAssertion", prop("JMES_PATH", path), prop("EXPECTED_VALUE", expected),
                       flag("JSONVALIDATION", bool(expected)), flag("EXPECT_NULL", False),
                       flag("INVERT", False), flag("ISREGEX", True))  # fmt: skip

    def taken(name: str, path: str) -> str:
        return element("JMESPathExtractor", prop("JMESExtractor.referenceName", name),
                       prop("JMESExtractor.jmesPathExpr", path), prop("JMESExtractor.matchNumber", "1"),
                       prop("JMESExtractor.defaultValue", "none"))  # fmt: skip

    held = (jmespath("data.name", "x|y"), jmespath("data.none"), jmespath("ids[1]", "2"))
    inside = "".join(
        sampler("/json", below=one) + condition("${JMeterThread.last_sample_ok}", sampler(f"/{place}"))
        for place, one in enumerate(held)
    )
    inside += sampler("/json", below=taken("a", "ids[1]") + taken("b", "data.none") + taken("c", "data.name"))
    inside += sampler("/${a}/${b}/${c}")
    sent = [path for path in asks(who, tmp_path, inside) if path != "/json"]
    assert sent == ["/0", "/2", "/2/none/x"]


@BOTH
def test_functions_of_headers_and_parameters_run_for_each_request(who: str, tmp_path: Path) -> None:
    counter = element("CounterConfig", prop("CounterConfig.start", 1), prop("CounterConfig.incr", 1),
                      prop("CounterConfig.name", "i"), flag("CounterConfig.per_user", True))  # fmt: skip
    names = element("Arguments", '<collectionProp name="Arguments.arguments">' + "".join(
        f'<elementProp name="p_{n}" elementType="Argument">{prop("Argument.name", f"p_{n}")}'
        f'{prop("Argument.value", word)}</elementProp>' for n, word in ((1, "x"), (2, "y"))
    ) + "</collectionProp>")  # fmt: skip
    given = element("UserParameters", f'<collectionProp name="UserParameters.names">{prop("1", "u")}'
                    '</collectionProp><collectionProp name="UserParameters.thread_values">'
                    f'<collectionProp name="1">{prop("1", "${__V(p_${i})}")}</collectionProp>'
                    "</collectionProp>",
                    flag("UserParameters.per_iteration", False))  # fmt: skip
    inside = (
        names + counter + given + headers(X_V="${__V(p_${i})}", X_N="n${__groovy(ctx.getThreadNum() % 3)}")
    )
    with site(PAGES) as served:
        text = document(inside + sampler("/ok?u=${u}", prop("HTTPSampler.port", served.port)),
                        group=prop("ThreadGroup.num_threads", 1) + repeated(3))  # fmt: skip
        (tmp_path / "p.jmx").write_bytes(text)
        run_by(who, ["-n", "-t", str(tmp_path / "p.jmx")], tmp_path)
    sent = [[line[5:] for line in head if line.startswith(("X-V: ", "X-N: "))] for head in served.heads]
    assert sent == [["x", "n0"], ["y", "n0"], ["p_3", "n0"]]
    assert served.paths == ["/ok?u=x", "/ok?u=y", "/ok?u=p_3"]


@BOTH
def test_a_bare_condition_on_the_threads_number(who: str, tmp_path: Path) -> None:
    def bare(script: str, path: str) -> str:
        return element("IfController", prop("IfController.condition", script),
                       flag("IfController.useExpression", False), below=sampler(path))  # fmt: skip

    sent = asks(
        who, tmp_path, bare("${__threadNum} % 2 == 1", "/odd") + bare("${__threadNum} % 2 == 0", "/even")
    )
    assert sent == ["/odd"]


@pytest.mark.parametrize(
    "more", [prop("JMES_PATH", "ids[?@ > `1`]"), prop("JMES_PATH", "a") + flag("INVERT", True)]
)
def test_other_jmespaths_are_refused(more: str) -> None:
    with pytest.raises(Refused) as refusal:
        load_of(sampler(below=element("JMESPathAssertion", more)))
    assert (refusal.value.code, refusal.value.element) == ("unsupported", "JMESPathAssertion 'it'")


def test_a_disabled_module_without_a_target_ends_the_plan() -> None:
    module = element("ModuleController", '<collectionProp name="ModuleController.node_path">'
                     '<stringProp name="1">Test Plan</stringProp><stringProp name="2">T</stringProp>'
                     '<stringProp name="3">gone</stringProp></collectionProp>')  # fmt: skip
    disabled = module.replace('testname="it"', 'testname="it" enabled="false"')
    with pytest.raises(UsageError, match="gone"):
        load_of(sampler() + disabled)
