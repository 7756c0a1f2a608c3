"""The reference server over HTTP/2, by the cases of h2spec."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

from prony.load.reference import Certificate, reference_server
from prony.server import certificates
from tests.programs import program

NOT_OUR_PREFACE = "Sends invalid connection preface"
"""Without ALPN these bytes are a request of HTTP/1.1, which is answered 400."""


@pytest.mark.needs("h2spec")
@pytest.mark.parametrize("tls", [False, True])
def test_cases_of_h2spec(tls: bool, tmp_path: Path) -> None:
    made = certificates.make(tmp_path / "tls") if tls else None
    certificate = None if made is None else Certificate(ca=made.ca, cert=made.cert, key=made.key)
    report = tmp_path / "cases.xml"
    with reference_server(["--http2"], (), certificate) as url:
        command = [program("h2spec"), "--strict", "--port", str(urlsplit(url).port), "--timeout", "10"]
        command += ["--junit-report", str(report), *(["--tls", "--insecure"] if tls else [])]
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=300, check=False)
    cases = ElementTree.parse(report).getroot().findall(".//testcase")
    assert len(cases) > 140
    failed = {case.get("classname") for case in cases if case.findall("failure") + case.findall("error")}
    assert failed == (set() if tls else {NOT_OUR_PREFACE})
