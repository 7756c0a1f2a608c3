"""The variants over HTTP/2 for real: built, started and asked by the conformance suite, over HTTP/2 and over
the HTTP/1.1 that they still answer. Every variant under every workload: `prony servers check --all`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.evidence.conformance import CheckStatus
from prony.plan.workload import load
from prony.server.build import build
from prony.server.catalogue import Catalogue
from prony_conformance import suite
from prony_conformance.suite import check_fresh

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("hasty_jvm")]

CATALOGUE = Catalogue.load([Path(__file__).resolve().parents[2] / "servers"])
RAISED = "1000 streams at once"
ASKED = {
    "tomcat:h2": ("json", RAISED),
    "tomcat:h2c": ("large-body", RAISED),
    "jetty:h2": ("json", RAISED),
    "jetty:h2c": ("large-body", RAISED),
    "undertow:h2": ("json", "no limit of streams"),
    "undertow:h2c": ("large-body", "no limit of streams"),
    "vertx:h2": ("json", RAISED),
    "vertx:h2c": ("large-body", RAISED),
    "glassfish:h2": ("ping", RAISED),
    "spring-jetty:h2": ("actuator-metrics", "128 streams at once"),
}
"""Address -> a workload, and the limit that the server announces (docs/servers.md)."""
CHECKS = ("answers", "head", "keep-alive", "streams", "close", "settings")


@pytest.mark.parametrize("address", ASKED)
def test_it_conforms_over_http_2_and_still_answers_http_1(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    name, announced = ASKED[address]
    spec = CATALOGUE.resolve(address)
    assert spec.http_version == "2"
    assert spec.tls is address.endswith(":h2")
    # A hundred bodies of 1 MiB at once may take a busy host longer than a request may.
    only = [one for one in CHECKS if (one, name) != ("streams", "large-body")]
    monkeypatch.setattr(suite, "WRONG_PATIENCE_S", 120.0)
    found = check_fresh(build([spec])[0], load(name), only=only, start_timeout_s=180)
    results = {one.check: one for one in found.results}
    assert [f"{one.check}: {one.found}" for one in found.failed] == []
    assert set(results) == {"start", *only, "stop"}
    assert announced in results["settings"].found
    declared = {check for check, one in results.items() if one.status is CheckStatus.DECLARED}
    assert declared == {key.rpartition("/")[2] for key in spec.deviates if key in ("head", f"{name}/head")}


@pytest.mark.everyday
def test_what_speaks_http_2_has_both_variants() -> None:
    specs, _ = CATALOGUE.specs()
    spoken = {spec.name: spec.tls for spec in specs if spec.http_version == "2"}
    names = {name.partition(":")[0] for name in spoken}
    assert names >= {"tomcat", "jetty", "undertow", "vertx", "glassfish",
                     "spring-tomcat", "spring-jetty", "spring-undertow"}  # fmt: skip
    for name in names:
        assert (spoken[f"{name}:h2"], spoken[f"{name}:h2c"]) == (True, False)
