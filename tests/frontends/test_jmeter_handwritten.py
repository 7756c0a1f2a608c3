"""prony jmeter: plans written by hand, with properties that JMeter does not know, JSON paths that do not
begin at the top, proxies without a host. The bytes are those of JMeter 5.6.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.plan.step import Step
from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.translate import of_tree
from tests.entries import requests
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import Served
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
from tests.frontends.real_jmeter import needs_jmeter, run_by

PARAMETERS = (
    '<elementProp name="HTTPSampler.parameters" elementType="Arguments">'
    '<collectionProp name="Arguments.arguments"><elementProp name="q" elementType="HTTPArgument">'
    f"{prop('Argument.name', 'q')}{prop('Argument.value', 'x')}</elementProp></collectionProp></elementProp>"
)
BODY = '{"token":"abc","items":[{"id":1,"n":"x"},{"id":2,"n":"y","last":true}]}'
PATHS = {
    "a": ("token", "abc"),
    "b": (".id", "1"),
    "c": ("items[1].n", "y"),
    "d": ("$.items.[0].n", "x"),
    "e": ("$.items[?(@.n == 'y')].id", "2"),
    "f": ('$.items[?(@.id &gt;= 1 &amp;&amp; @.n != "x")].n', "y"),
    "g": ("$.items[?(@.last)].id", "2"),
    "h": ("$.items[?(!(@.id == 1) || @['n'] == 'z')]['id']", "2"),
    "i": ("$.items[?(@.last != null)].n", "x"),
}
"""Variable -> its path, and what JMeter 5.6.3 finds in the body."""


def extractor(name: str, path: str) -> str:
    return element(
        "JSONPostProcessor",
        prop("JSONPostProcessor.referenceNames", name),
        prop("JSONPostProcessor.jsonPathExprs", path),
        prop("JSONPostProcessor.match_numbers", 1),
        prop("JSONPostProcessor.defaultValues", "none"),
    )


def plan(port: int) -> str:
    at = prop("HTTPSampler.port", port)
    taken = "".join(extractor(name, path) for name, (path, _) in PATHS.items())
    sent = "/".join(f"${{{name}}}" for name in PATHS)
    return (
        element("ConstantTimer", prop("delay", 60_000), gui="TestBeanGUI")
        + sampler("/one", at + PARAMETERS + prop("HTTPSampler.keepAlive", "no"), below=taken)
        + sampler("/two/" + sent, at + prop("HTTPSampler.proxyPort", 3128))
    )


def test_what_jmeter_does_not_know_it_passes_over() -> None:
    made = translated_of(plan(80))
    assert noted(made.notes, "unknown_property", "ConstantTimer 'it'", "delay and 2 more")
    first, second = requests(made.trial.workload.steps)
    assert (first.path, first.think_before) == ("/one", None)
    assert second.path.startswith("/two/")


def test_of_two_properties_of_one_name_the_last_counts() -> None:
    twice = sampler("/first", prop("HTTPSampler.path", "/last"))
    assert [step.path for step in requests(load_of(twice).workload.steps)] == ["/last"]


def beside(more: str = "") -> bytes:
    """Two groups, the second outside of the TestPlan."""
    group = prop("ThreadGroup.num_threads", 1) + repeated(1)
    inside = variables(place="here") + more
    second = element("ThreadGroup", group, below=sampler("/out/${place}"), name="second")
    whole = document(sampler("/in/${place}"), inside, group).decode()
    return whole.replace("</hashTree></jmeterTestPlan>", f"{second}</hashTree></jmeterTestPlan>").encode()


def test_a_group_beside_the_test_plan_runs_too() -> None:
    made = of_tree(jmx.parse(beside(), "p.jmx"), PLANS / "p.jmx", {}).translated
    steps = [step.path for step in made.trial.workload.all_steps]
    assert steps == ["/in/here", "/out/here"]  # as JMeter 5.6.3 sends them


def test_what_would_hold_for_one_group_alone() -> None:
    with refuses("outside", "ThreadGroup 'second'"):
        jmx.parse(beside(element("HeaderManager")), "p.jmx")


def test_what_jmeter_knows_is_refused_as_before() -> None:
    with refuses("unsupported", "sample_timeout"):
        load_of(sampler("/", prop("HTTPSampler.sample_timeout", 5)))


@pytest.mark.parametrize(
    "path", ["$.a[(@.length-1)]", "$.a[?(@.n =~ /y/)]", "$.a.length()", "$[?(@.n in ['y'])]"]
)
def test_paths_that_only_jmeter_has(path: str) -> None:
    with refuses("unsupported", path):
        load_of(sampler("/", below=extractor("a", path)))


def test_a_filter_by_a_number_has_a_note() -> None:
    made = translated_of(sampler("/", below=extractor("a", "$[?(@.id == 5)].n")))
    assert noted(made.notes, "same_types", "$[?(@.id == 5)].n")


def test_a_protocol_with_its_signs() -> None:
    made = translated_of(sampler("/", prop("HTTPSampler.protocol", "https://")))
    assert made.target.url == "https://127.0.0.1:443"
    assert noted(made.notes, "protocol_name", "https://")


def test_a_name_that_would_store_something() -> None:
    made = translated_of(sampler("/${__Random(1,5,n)}", name="/${__Random(1,5,n)}"))
    (step,) = [entry for entry in made.trial.workload.steps if isinstance(entry, Step)]
    assert step.path == "/${n | segments}"
    assert noted(made.notes, "changing_name")


@needs_jmeter
def test_jmeter_itself_sends_the_same(serve: Callable[..., Served], tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_text(BODY, encoding="utf-8")
    sent = []
    for who in ("theirs", "ours"):
        served = serve("--body-file", str(body))
        file = tmp_path / f"{who}.jmx"
        group = prop("ThreadGroup.num_threads", 1) + repeated(1)
        file.write_bytes(document(plan(served.port), group=group))
        run_by(who, ["-n", "-t", str(file)], tmp_path)
        assert served.ended()["requests"] == 2
        plain = served.recorded().replace(str(served.port).encode(), b"PORT")
        sent.append(re.sub(rb"\(Java/[^)]*\)", b"(Java)", plain))
    assert sent[0] == sent[1]
    assert b"GET /two/" + "/".join(value for _, value in PATHS.values()).encode() in sent[1]
