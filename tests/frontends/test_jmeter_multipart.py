"""prony jmeter: parts of a form and groups of a template are what JMeter makes of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony_frontends import jmeter
from tests.frontends.conftest import Served, offered
from tests.frontends.jmx_text import (
    ARGUMENTS,
    document,
    element,
    flag,
    found,
    load_of,
    posted,
    prop,
    repeated,
    sampler,
    variables,
)
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter


def argument(name: str, value: str, kind: str = "") -> str:
    held = prop("Argument.name", name) + prop("Argument.metadata", "=") + prop("Argument.value", value)
    held += flag("HTTPArgument.use_equals", True) + flag("HTTPArgument.always_encode", True)
    held += prop("HTTPArgument.content_type", kind) if kind else ""
    return f'<elementProp name="{name}" elementType="HTTPArgument">{held}</elementProp>'


def file(path: str, name: str, kind: str) -> str:
    held = prop("File.path", path) + prop("File.paramname", name) + prop("File.mimetype", kind)
    return f'<elementProp name="{path}" elementType="HTTPFileArg">{held}</elementProp>'


def form(path: str, arguments: list[str], files: list[str], *more: str, method: str = "POST") -> str:
    held = f'<collectionProp name="HTTPFileArgs.files">{"".join(files)}</collectionProp>'
    inside = (
        f'<elementProp name="HTTPsampler.Files" elementType="HTTPFileArgs">{held}</elementProp>'
        if files
        else ""
    )
    inside += prop("HTTPSampler.method", method) + flag("HTTPSampler.use_keepalive", True) + "".join(more)
    return sampler(path, inside + ARGUMENTS.format("".join(arguments)))


def plan(port: int, folder: Path) -> bytes:
    (folder / "a.txt").write_text("hello ${v}\n")
    (folder / "b.bin").write_bytes(b"\x00\xff\r\n--x\r\n")
    parts = flag("HTTPSampler.DO_MULTIPART_POST", True)
    text, both = file("a.txt", "up", "text/plain"), file("b.bin", "two", "application/octet-stream")
    wanted = found("both", "(\\d)-(\\d)").replace(">$1$<", ">&lt;$2$.$1$&gt;$<")
    inside = [
        element("ConfigTestElement", prop("HTTPSampler.port", port)),
        form("/1", [argument("x", "v é a&amp;b"), argument("y", "${v}")], [text, both], parts),
        form("/2", [argument("x", "1", "application/json")], [], parts),
        form("/3", [argument("x", "1")], [text]),
        form(
            "/4", [argument("x", "1")], [text], parts, flag("HTTPSampler.BROWSER_COMPATIBLE_MULTIPART", True)
        ),
        form("/5", [], [both], parts, method="PUT"),
        form("/6", [argument("x", "1")], [], parts, method="GET"),
        posted("/echo", "1-2", wanted),
        form("/7", [argument("t", "${both}"), argument("g", "${both_g2}${both_g0}")], [], parts),
    ]
    group = repeated(1) + prop("ThreadGroup.num_threads", 1)
    return document("".join(inside), variables(v="value"), group)


def plain(server: Served) -> bytes:
    """What came, without what differs from run to run: the port, the boundaries and the lengths with them."""
    server.ended()
    text = server.recorded().replace(str(server.port).encode(), b"PORT")
    for boundary in set(re.findall(rb"boundary=([^;\r]+)", text)):
        text = text.replace(boundary, b"B")
    return re.sub(rb"Content-Length: \d+\r\n|\(Java/[^)]*\)", b"", text)


def ours(serve: Callable[..., Served], folder: Path) -> Served:
    server = serve()
    (folder / "plan.jmx").write_bytes(plan(server.port, folder))
    report = offered(jmeter.translate(["-n", "-t", str(folder / "plan.jmx")]))
    assert not report.totals.errors
    return server


def test_a_form_is_a_body_from_parts(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = ours(serve, tmp_path)
    text = plain(server)
    assert text.count(b"Content-Type: multipart/form-data; boundary=B; charset=UTF-8\r\n") == 6
    assert b'filename="b.bin"\r\nContent-Type: application/octet-stream\r\n' in text
    assert b"\r\n\r\n\x00\xff\r\n--x\r\n\r\n--B--\r\n" in text
    assert b"hello ${v}\n\r\n--B" in text
    assert b"\r\n\r\nvalue\r\n--B" in text
    assert b"\r\n\r\n<2.1>$\r\n--B" in text
    assert b"\r\n\r\n21-2\r\n--B" in text
    assert all(body.endswith(b"--\r\n") for body in bodies(server.recorded()))


def bodies(text: bytes) -> list[bytes]:
    """Those of the forms, as long as they were said to be."""
    seen: list[bytes] = []
    while text:
        head, _, text = text.partition(b"\r\n\r\n")
        length = int((re.findall(rb"Content-Length: (\d+)", head) or [b"0"])[0])
        if b"multipart" in head:
            seen.append(text[:length])
        text = text[length:]
    assert len(seen) == 6
    return seen


@needs_jmeter
def test_jmeter_itself_sends_the_same_bytes(serve: Callable[..., Served], tmp_path: Path) -> None:
    own, server = ours(serve, tmp_path), serve()
    (tmp_path / "plan.jmx").write_bytes(plan(server.port, tmp_path))
    run_jmeter(["-n", "-t", str(tmp_path / "plan.jmx")], tmp_path)
    assert plain(server) == plain(own)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (file("people.csv", "x", ""), "a MIME type"),
        (file("nowhere", "x", "text/plain"), "does not exist"),
        (file("people.csv", "x", "a/b") + file("people.csv", "", "a/b"), "without a parameter name"),
        (file("people.csv", "ä", "a/b"), "the parameter name 'ä'"),
    ],
)
def test_parts_that_cannot_be_written_are_refused(more: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_of(form("/", [], [more]))


def test_where_the_plan_says_nothing_the_connection_is_closed() -> None:
    """As JMeter 5.6.3 does with a sampler whose property is missing."""
    says = sampler().replace(flag("HTTPSampler.use_keepalive", True), "")
    (step,) = load_of(says).workload.all_steps
    assert step.headers["Connection"] == "close"
