"""The finding `setup`: what differs between compared servers other than their programs."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.counts import TlsAgreed
from prony.evidence.server import ServiceUse
from prony.evidence.trial import Evidence
from prony.judge.finding import Finding, Kind
from prony.judge.setup import setup, written_per_request
from tests.judge import factory as f

RATE_BYTES = f.RATE * f.WINDOW_S
RESPONSES = f.counters(int(RATE_BYTES))["bytes_received"]


def found(**servers: Evidence) -> Finding:
    return f.present(setup({server: [evidence] for server, evidence in servers.items()}))


def secured(cipher: str = "TLS13_AES_256_GCM_SHA384", handshakes: int = 10, resumed: int = 0) -> Evidence:
    agreed = (TlsAgreed(version="1.3", cipher_suite=cipher, count=handshakes),)
    counted = {"tls_handshakes": handshakes, "tls_resumptions": resumed, "tls_agreed": agreed}
    return f.part(f.totals(f.healthy(), **counted), "load", tls=True)


def at(*addresses: str) -> Evidence:
    evidence = f.healthy()
    assert evidence.engine is not None
    return f.engine(evidence, ready=evidence.engine.ready.model_copy(update={"addresses": addresses}))


def started(*command: str, heap_mib: int = 1024, jdk: str = "21.0.2") -> Evidence:
    evidence = f.part(f.healthy(), "server", command=command, versions={"jdk": jdk})
    assert evidence.server_window is not None
    assert evidence.server_window.jvm_close is not None
    heap = {"heap_max_bytes": heap_mib * f.MIB}
    jvm = evidence.server_window.jvm_close.model_copy(update=heap)
    return f.part(evidence, "server_window", jvm_close=jvm)


def writing(calls: float, disk: float = 0.0, **server: Any) -> Evidence:
    """Bytes per request by write calls, and to disks."""
    requests = f.RATE * f.WINDOW_S
    written = {"written_bytes": int(calls * requests), "disk_bytes": int(disk * requests)}
    return f.part(f.part(f.healthy(), "server_window", **written), "server", **server)


def test_equal_servers_differ_in_nothing_and_a_single_one_has_no_finding() -> None:
    assert f.kind_code(found(a=f.healthy(), b=f.healthy())) == (Kind.FINE, "ok")
    assert setup({"a": [f.healthy(), f.healthy()]}) is None


def test_a_weaker_cipher_and_missing_tls_are_named() -> None:
    weak = found(a=secured(), b=secured("TLS13_AES_128_GCM_SHA256"))
    assert f.kind_code(weak) == (Kind.PROVIDED, "protocols")
    assert "HTTP/1.1, TLS 1.3, TLS13_AES_128_GCM_SHA256 (b)" in weak.reason
    assert found(a=secured(), b=f.healthy()).code == "protocols"
    assert found(a=f.healthy(), b=f.part(f.healthy(), "load", http_version="2")).code == "protocols"
    assert found(a=secured(), b=secured()).code == "ok"


def test_handshakes_are_compared_where_requests_have_some() -> None:
    many, few = 100_000, 10
    assert found(a=secured(handshakes=many), b=secured(handshakes=many, resumed=90_000)).code == "resumption"
    assert found(a=secured(handshakes=many), b=secured(handshakes=many, resumed=4_000)).code == "ok"
    assert found(a=secured(handshakes=few), b=secured(handshakes=few, resumed=9)).code == "ok"


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (("127.0.0.1:2",), False),
        (("[::1]:2",), True),
        (("127.0.0.1:2", "127.0.0.2:2"), True),
        ((), False),
    ],
)
def test_addresses_of_another_family_or_number_are_named(other: tuple[str, ...], named: bool) -> None:
    assert (found(a=at("127.0.0.1:1"), b=at(*other)).code == "addresses") is named


JAR = ("-jar", "app.jar", "--threads=5")


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (started("java", "-Djava.io.tmpdir=/tmp/y", *JAR), ""),
        (started("java", "-XX:ErrorFile=/x.crash", "-javaagent:/p/prony.jar=/tmp/agent.sock", *JAR), ""),
        (started("java", "-XX:+UseSerialGC", *JAR), "-XX:+UseSerialGC (b)"),
        (started("java", "-javaagent:/apm.jar", *JAR), "-javaagent:/apm.jar (b)"),
        (started("java", "-Djdk.virtualThreadScheduler.maxPoolSize=1", *JAR), "maxPoolSize=1 (b)"),
        (started("java", *JAR, heap_mib=256), "heap 1,024 MiB (a), heap 256 MiB (b)"),
        (started("java", *JAR, jdk="17"), "JDK 21.0.2 (a), JDK 17 (b)"),
        (started("node", "--jitless", "server.js"), ""),
        (started(), ""),
    ],
)
def test_flags_of_the_same_runtime_are_compared(other: Evidence, named: str) -> None:
    finding = found(a=started("java", "-Djava.io.tmpdir=/tmp/x", *JAR), b=other)
    assert f.kind_code(finding) == ((Kind.PROVIDED, "flags") if named else (Kind.FINE, "ok"))
    assert named in finding.reason


def test_what_varies_between_a_servers_own_trials_is_no_difference() -> None:
    mine = [started("node", f"--title={n}", "s.js") for n in range(2)]
    other = [started("node", "--jitless", f"--title={n}", "s.js") for n in range(2)]
    finding = f.present(setup({"a": mine, "b": other, "c": other}))
    assert finding.reason == "flags: none (a), --jitless (b, c)"


def test_a_log_is_what_is_written_beside_the_responses() -> None:
    response = RESPONSES / RATE_BYTES
    assert written_per_request(writing(0.0, 120.0)) == 120
    assert written_per_request(writing(1.05 * response + 200)) == pytest.approx(200, abs=0.01)
    assert written_per_request(writing(response)) == 0
    assert written_per_request(f.healthy()) is None
    logs = found(a=writing(response), b=writing(1.05 * response + 200))
    assert f.kind_code(logs) == (Kind.PROVIDED, "writes")
    assert found(a=writing(0.0), b=writing(1.05 * response + 30)).code == "ok"


def test_writes_to_services_and_of_a_proxy_are_no_log() -> None:
    large = 10 * RESPONSES / RATE_BYTES
    assert written_per_request(writing(large, forwards=True)) == 0
    service = ServiceUse(name="postgres")
    assert written_per_request(writing(large).model_copy(update={"services": (service,)})) == 0


def test_several_differences_are_one_condition() -> None:
    finding = found(a=at("127.0.0.1:1"), b=f.part(at("[::1]:2"), "load", http_version="2"))
    assert finding.code == "protocols"
    assert finding.provided == "the difference in protocols and addresses is intended"
