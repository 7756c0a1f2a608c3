"""HTTPS through the laboratory's hand on the real engine, against the real reference server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import ValidationError

from prony.errors import UsageError
from prony.load.contract import EngineLoad, engine_plan
from prony.load.engine import EngineRun, find_engine
from prony.plan.load import ClosedLoad
from prony.plan.planfile import UrlKeys
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.target import TlsOptions, Url
from prony.plan.workload import Workload
from prony.targets.external import ExternalServer

HELLO = Workload(name="hello", steps=(Step(path="/", expect=Expectation(status=(200,))),))

needs_openssl = pytest.mark.needs("openssl")
pytestmark = pytest.mark.everyday


@dataclass(frozen=True, slots=True)
class Secure:
    """A reference server that speaks TLS with a certificate of its own making."""

    url: str
    certificate: Path


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Secure]:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(
        ["openssl", *made.split(), *names, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    server = subprocess.Popen(
        [find_engine(), "serve", "--stdin-guard", "--tls", "--cert", certificate, "--key", key],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    address = json.loads(server.stdout.readline())["address"]
    yield Secure(f"https://{address}", certificate)
    server.communicate(timeout=60)  # closes its stdin, which ends it


def offered(url: str, tls: TlsOptions) -> EngineLoad:
    return EngineLoad(
        url=url,
        tls=tls,
        workload=HELLO,
        load=ClosedLoad(users=4),
        cpus=(),
        total_requests=100,
        window="all",
        after_s=30.0,
    )


@needs_openssl
@pytest.mark.parametrize("insecure", [False, True])
def test_handshakes_and_who_was_trusted_come_back(secure: Secure, insecure: bool) -> None:
    tls = TlsOptions(insecure=True) if insecure else TlsOptions(ca=secure.certificate)
    report = EngineRun(offered(secure.url, tls)).run_to_end(30.0)
    assert (report.totals.completed, report.totals.failed) == (100, 0)
    assert report.totals.tls_handshakes == report.totals.connections_opened == 4
    assert report.totals.tls_agreed[0].alpn == "http/1.1"
    assert report.totals.tls_time is not None
    assert report.totals.tls_time.count == 4
    assert report.ready.tls is not None
    assert report.ready.tls.insecure is insecure


@needs_openssl
def test_a_certificate_that_nobody_vouches_for_is_an_error_with_its_reason(
    secure: Secure, tmp_path: Path
) -> None:
    # The server's certificate is its own; another one of the same kind does not vouch for it.
    other = tmp_path / "other.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=other"
    subprocess.run(
        ["openssl", *made.split(), "-keyout", tmp_path / "k.pem", "-out", other],
        check=True,
        capture_output=True,
    )
    load = offered(secure.url, TlsOptions(ca=other)).model_copy(update={"after_s": 2.0})
    totals = EngineRun(load).run_to_end(30.0).totals
    assert totals.completed == 0
    assert totals.errors["tls"] == totals.failed > 0
    assert "certificate" in totals.error_reasons["tls"]


def test_plain_urls_ask_for_no_tls() -> None:
    assert engine_plan(offered("http://127.0.0.1:1", TlsOptions()))["target"] == {"url": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    "keys",
    [
        {"url": "http://h", "insecure": True},
        {"url": "https://h", "insecure": True, "ca": "x.pem"},
        {"url": "https://h", "client_cert": "x.pem"},
    ],
    ids=lambda keys: " ".join(keys),
)
def test_options_that_cannot_be_followed(keys: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        UrlKeys.model_validate(keys)


def test_a_file_that_is_not_there_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(UsageError, match=r"not-there\.pem"):
        ExternalServer(Url(url="https://h", tls=TlsOptions(ca=Path("not-there.pem"))))
