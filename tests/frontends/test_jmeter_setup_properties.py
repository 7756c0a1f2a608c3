"""prony jmeter: properties that a setUp group sets to values of the run, and what later groups read."""

from __future__ import annotations

from xml.sax.saxutils import escape

import pytest

from prony.plan.blocks import Condition
from prony.plan.step import Block, Step
from prony_frontends.base import Translated
from prony_frontends.jmeter.setup_properties import NOT_SET
from tests.frontends.codes import refuses
from tests.frontends.jmx_text import element, found, prop, repeated, sampler, translated_of

ONE = prop("ThreadGroup.num_threads", 1) + repeated(1)
PUT = 'props.put("tok", vars.get("t"))'


def script(text: str, tag: str = "JSR223PostProcessor") -> str:
    return element(tag, prop("script", escape(text)), prop("cacheKey", "true"))


def set_up(text: str = PUT, tag: str = "JSR223PostProcessor", more: str = "") -> str:
    below = sampler("/login", below=found("t", "(.)") + script(text, tag)) + more
    return element("SetupThreadGroup", ONE, below=below)


def made(inside: str, beside: str, **properties: str) -> Translated:
    return translated_of(inside, beside, ONE, None, **properties)


def given(translated: Translated) -> tuple[list[str], list[dict[str, str]]]:
    """The initial values of what setUp gives, and what it sets."""
    stage = translated.trial.before
    assert stage is not None
    (walk,) = stage.workload.scenarios
    sets = [entry.set for entry in walk.steps if isinstance(entry, Block) and entry.set]
    return [walk.variables[name] for name in stage.gives], sets


def test_each_read_has_its_own_default_where_the_property_was_not_set() -> None:
    """JMeter: props.put is not reached, or its value is null; it sent /c/1/d, Prony once sent /c//."""
    found_here = made(sampler("/c/${__P(tok)}/${__P(tok,d)}/${__property(tok,,e)}"), set_up())
    assert given(found_here) == ([NOT_SET], [{"property_tok": "${t}"}])
    steps = found_here.trial.workload.walks[0].steps
    (step,) = [entry for entry in steps if isinstance(entry, Step)]
    sets = [entry.set for entry in steps if isinstance(entry, Block) and entry.set]
    names = [next(iter(one)) for one in sets]
    assert [next(iter(one.values())) for one in sets] == ["1", "d", "e"]
    assert step.path == "/c/{}{}{}".format(
        *(f"${{{name} | segments{end}}}" for name, end in zip(names, (" /", " /", ""), strict=True))
    )
    known = [entry for entry in steps if isinstance(entry, Block) and entry.condition is not None]
    assert [entry.steps[0] for entry in known] == [Block(set={name: "${property_tok}"}) for name in names]
    right = {entry.condition.right for entry in known if isinstance(entry.condition, Condition)}
    assert right == {NOT_SET}


def test_a_property_of_the_command_line_is_its_value_until_then() -> None:
    found_here = made(sampler("/c/${__P(tok,d)}"), set_up(), tok="x")
    assert given(found_here)[0] == ["x"]
    (step,) = [entry for entry in found_here.trial.workload.walks[0].steps if isinstance(entry, Step)]
    assert step.path == "/c/${property_tok | segments}"


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("${__setProperty(tok,${t})}", "BeanShellPostProcessor"),
        ("${__setProperty(tok, ${t},)};", "JSR223PostProcessor"),
        ('log.info("x");\n${__setProperty(tok,${t})};', "JSR223PostProcessor"),
    ],
)
def test_a_script_of_the_function_alone_sets_it(text: str, tag: str) -> None:
    assert given(made(sampler("/${__P(tok)}"), set_up(text, tag)))[1] == [{"property_tok": "${t}"}]


@pytest.mark.parametrize(
    ("beside", "named"),
    [
        (set_up() + set_up(PUT.replace("tok", "other")), "SetupThreadGroup"),
        (set_up(more=sampler("/${__P(tok)}")), "'tok'"),
    ],
)
def test_what_only_probably_is_the_same_is_refused(beside: str, named: str) -> None:
    with refuses("varies", named):
        made(sampler("/${__P(tok)}"), beside)


UNKNOWN = {
    "vars.put('a', FileServer.getFileServer().getBaseDir())": "org.apache.jmeter.services.FileServer",
    "vars.put('a', RandomStringUtils.randomNumeric(3))": "org.apache.commons.lang3.RandomStringUtils",
    "import java.util.*\nvars.put('a', LocalDate.now().toString())": "java.time.LocalDate",
}
KNOWN = [
    "import org.apache.jmeter.services.FileServer\nvars.put('a', FileServer.getFileServer().getBaseDir())",
    "vars.put('a', org.apache.jmeter.services.FileServer.getFileServer().getBaseDir())",
    "import org.apache.commons.lang3.*; vars.put('a', RandomStringUtils.randomNumeric(3))",
    "vars.put('a', 'FileServer')",
]


@pytest.mark.parametrize(("text", "name"), UNKNOWN.items())
def test_a_class_that_is_not_imported_fails_in_jmeter_and_is_refused(text: str, name: str) -> None:
    with refuses("unsupported", name):
        made(script(text, "JSR223PreProcessor") + sampler("/${a}"), "")


@pytest.mark.parametrize("text", KNOWN)
def test_a_class_that_is_imported_or_named_in_full_is_known(text: str) -> None:
    assert made(script(text, "JSR223PreProcessor") + sampler("/x${a}"), "").trial.workload.steps


CONDITIONS = {
    "def t = vars.get('t')\nif (t == 'ok' || t.isEmpty()) { vars.put('a', 't == x') }": [
        'vars.get("t")',
        "ok",
    ],
    "def n = 5; if (n > 3) { vars.put('a', 'y') } else { vars.put('a', 'n') }": None,
    "if (props.get('env') == 'prod') { vars.put('a', 'y') } else { vars.put('a', 'n') }": None,
    "if (props.get('other') == null) { vars.put('a', 'y') }": None,
}


@pytest.mark.parametrize(("text", "changes"), CONDITIONS.items())
def test_a_condition_may_name_values_of_the_script_and_properties(
    text: str, changes: list[str] | None
) -> None:
    scripted = sampler("/${a}", below=script(text, "JSR223PreProcessor"))
    inside = sampler("/f", below=found("t", "(.)")) + scripted
    steps = made(inside, "", env="prod").trial.workload.walks[0].steps
    assigned = [entry.set for entry in steps if isinstance(entry, Block) and entry.set and "a" in entry.set]
    held = [entry for entry in steps if isinstance(entry, Block) and entry.condition is not None]
    if changes is None:
        assert (assigned, held) == ([{"a": "y"}], [])
    else:
        assert [entry.steps for entry in held] == [(Block(set={"a": "t == x"}),)]


@pytest.mark.parametrize(
    "text",
    ["def t = vars.get('t')\nif (t) { vars.put('a', 'b') }", "def t = 1\nif (5 == t) { vars.put('a', 'b') }"],
)
def test_a_name_alone_is_no_condition(text: str) -> None:
    """Groovy's truth of a text is another than JMeter's."""
    with refuses("unsupported", "JSR223"):
        made(
            sampler("/f", below=found("t", "(.)")) + script(text, "JSR223PreProcessor") + sampler("/${a}"), ""
        )
