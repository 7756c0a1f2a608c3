"""prony jmeter: functions of constants, with the values of JMeter 5.6.3; assertions that ask for nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from prony.errors import UsageError
from prony.frontends.base import Refused
from tests.entries import requests
from tests.frontends.conftest import Served
from tests.frontends.jmx_text import PLANS, document, element, load_of, prop, repeated, sampler, variables
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
}
KNOWN = variables(u="7", w="${u}")


@pytest.mark.parametrize("call", VALUES)
def test_what_a_function_of_constants_is(call: str) -> None:
    (step,) = requests(load_of(KNOWN + sampler("/" + call)).workload.steps)
    assert step.path == "/" + VALUES[call]


def test_the_text_of_a_file() -> None:
    text = (PLANS / "people.csv").read_text().replace("\n", "")
    body = prop("HTTPSampler.method", "GET")
    (step,) = requests(load_of(sampler("/x", body, name="${__FileToString(people.csv)}")).workload.steps)
    assert step.name.replace("\n", "") == text
    with pytest.raises(UsageError, match="a file that can be read in __FileToString"):
        load_of(sampler("/${__FileToString(nowhere)}"))


@pytest.mark.parametrize("call", ["${__changeCase(a,WAVE)}", "${__digest(MD2,a)}", "${__char(x)}"])
def test_what_cannot_be_done_is_said(call: str) -> None:
    with pytest.raises((Refused, UsageError), match="__"):
        load_of(sampler("/" + call))


def assertion(scope: str, *texts: str) -> str:
    held = "".join(prop(str(at), text) for at, text in enumerate(texts))
    return element(
        "ResponseAssertion", f'<collectionProp name="Asserion.test_strings">{held}</collectionProp>',
        prop("Assertion.test_field", "Assertion.response_data"), prop("Assertion.test_type", 16),
        prop("Assertion.scope", scope),
    )  # fmt: skip


def test_assertions_of_sub_samples_and_without_a_pattern() -> None:
    plain = load_of(sampler())
    assert load_of(sampler(below=assertion("children", "x"))) == plain
    assert load_of(sampler(below=assertion(""))) == plain
    (step,) = requests(load_of(sampler(below=assertion("all", "x"))).workload.steps)
    assert step.expect is not None
    assert step.expect.body_contains == ("x",)
    with pytest.raises(Refused, match="it applies to a variable"):
        load_of(sampler(below=assertion("variable", "x")))


@needs_jmeter
def test_jmeter_itself_finds_the_same_values(serve: Callable[..., Served], tmp_path: Path) -> None:
    served, file = serve(), tmp_path / "p.jmx"
    known = KNOWN.replace('guiclass="G"', 'guiclass="ArgumentsPanel"')
    pages = "".join(sampler("/" + call, prop("HTTPSampler.port", served.port)) for call in VALUES)
    file.write_bytes(document(known + pages, group=prop("ThreadGroup.num_threads", 1) + repeated(1)))
    run_jmeter(["-n", "-t", str(file), "-l", str(tmp_path / "out.jtl")], tmp_path, cwd=tmp_path)
    served.ended()
    heads = [line for line in served.recorded().decode().splitlines() if line.startswith("GET ")]
    assert [urlsplit(line.split()[1]).path for line in heads] == ["/" + value for value in VALUES.values()]
