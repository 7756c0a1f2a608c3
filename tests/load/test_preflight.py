"""Preflight: sent and read as the load is, with the reason for a missing response."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.judge.checks.identity import identity
from prony.judge.finding import Kind
from prony.judge.limits import CheckLimits
from prony.load.preflight import Responses, request_once
from prony.load.short import short_load
from prony.plan.response import Capture, Expectation
from prony.plan.step import Step
from prony.plan.target import TlsOptions
from prony.plan.workload import Feeder, Workload, from_url
from prony.server import certificates
from tests.entries import requests
from tests.judge import factory as f
from tests.ports import refusing
from tests.responses import answers

OK = b"HTTP/1.1 200 OK\r\n%sContent-Length: 2\r\n\r\nok"
HEADS = {
    "UTF-8": ("Server: Bücher/1.0".encode(), "Bücher/1.0"),
    "UTF-8 with a byte that is a line end in Latin-1": ("Server: Åre".encode(), "Åre"),
    "UTF-8, other blanks and line ends": ("Server: a\u2028b\u00a0".encode(), "a\u2028b\u00a0"),
    "Latin-1": ("Server: Bücher/1.0".encode("latin-1"), "B\N{REPLACEMENT CHARACTER}cher/1.0"),
    "UTF-8 cut off": (b"Server: a\xe2\x82", "a\N{REPLACEMENT CHARACTER}"),
    "blanks around": (b"Server: \t nginx \t ", "nginx"),
    "twice": (b"Server: a\r\nServer: b", "a, b"),
    "folded": (b"Server: a\r\n\t b", "a b"),
    "empty": (b"Server:", ""),
}


class Peer:
    """Answers each request on any connection with what `answer` gives for its head; empty: closes."""

    def __init__(self, answer: Callable[[bytes], bytes], tls: ssl.SSLContext | None) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.heads: list[bytes] = []
        self._answer, self._tls = answer, tls
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                received = b""
                while piece := connection.recv(65_536):
                    received += piece
                    while b"\r\n\r\n" in received:
                        head, _, received = received.partition(b"\r\n\r\n")
                        self.heads.append(head)
                        if not (response := self._answer(head)):
                            return
                        connection.sendall(response)
        except OSError:
            return


@contextmanager
def peer(answer: Callable[[bytes], bytes], tls: ssl.SSLContext | None = None) -> Iterator[Peer]:
    running = Peer(answer, tls)
    yield running
    running.listener.close()


def responses(url: str, *steps: Step, tls: TlsOptions | None = None, timeout_ms: int = 10_000) -> Responses:
    load = short_load(url, Workload(name="preflight", steps=steps or (Step(path="/"),)), tls=tls)
    return request_once(load.model_copy(update={"request_timeout_ms": timeout_ms}))


def only(result: Responses) -> tuple[int, str | None]:
    """Status and what is wrong, of the one response."""
    assert result.no_response is None
    (probe,) = result.probes
    return probe.status, probe.why_not


@pytest.mark.parametrize("name", HEADS)
def test_one_server_is_one_server_whatever_bytes_its_name_has(name: str) -> None:
    line, expected = HEADS[name]
    with peer(lambda _: OK % (line + b"\r\n")) as server:
        (probe,) = responses(f"http://127.0.0.1:{server.port}").probes
    assert probe.server_header == expected
    head = (OK % (line + b"\r\n")).partition(b"ok")[0].decode("utf-8", "replace")
    evidence = f.totals(f.healthy(), first_head=head)
    before = f.healthy().probes[0].model_copy(update={"server_header": expected})
    judged = identity(evidence.model_copy(update={"probes": (before,)}), CheckLimits())
    assert judged is not None
    assert judged.kind is Kind.FINE, judged.reason


def test_urls_and_headers_outside_ascii_are_sent_as_the_load_sends_them() -> None:
    with peer(lambda _: OK % b"") as server:
        (step,) = requests(from_url("/münchen%20b?q=€&r=[1]", headers={"X-Name": "Zoë €"}).steps)
        assert only(responses(f"http://127.0.0.1:{server.port}", step)) == (200, None)
    assert server.heads[0].startswith(b"GET /m%C3%BCnchen%20b?q=%E2%82%AC&r=[1] HTTP/1.1\r\n")
    assert "\r\nX-Name: Zoë €\r\n".encode() in server.heads[0] + b"\r\n"


def test_a_slow_server_gets_one_request() -> None:
    def slowly(_: bytes) -> bytes:
        time.sleep(2.5)
        return OK % b""

    with peer(slowly) as server:
        result = responses(f"http://127.0.0.1:{server.port}")
        assert only(result) == (200, None)
        assert result.probes[0].elapsed_ms is not None
        assert result.probes[0].elapsed_ms >= 2500
        assert len(server.heads) == 1
        late = responses(f"http://127.0.0.1:{server.port}", timeout_ms=200)
    assert (late.probes, late.no_response, late.timed_out) == ((), "no response in time", True)


@pytest.mark.parametrize("lines", [110, 2_000])
def test_only_bytes_limit_a_head(lines: int) -> None:
    with peer(lambda _: OK % b"".join(b"Set-Cookie: c%d=%d\r\n" % (n, n) for n in range(lines))) as server:
        assert only(responses(f"http://127.0.0.1:{server.port}")) == (200, None)


def test_a_body_may_be_of_any_length() -> None:
    body = bytes(70 << 20)
    with peer(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)) as server:
        (probe,) = responses(f"http://127.0.0.1:{server.port}").probes
    assert (probe.body_bytes, probe.why_not, probe.body_digest) == (70 << 20, None, None)


def test_a_client_certificate_and_a_server_name_are_given(tmp_path: Path) -> None:
    made = certificates.make(tmp_path / "tls")
    authority = certificates.Authority("clients", 1)
    key, cert = authority.issue("client", (), client=True)
    for name, what in (("ca", authority.cert), ("cert", cert), ("key", key)):
        (tmp_path / name).write_bytes(certificates.pem_of(what))
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.cert, made.key)
    context.load_verify_locations(tmp_path / "ca")
    context.verify_mode = ssl.CERT_REQUIRED
    context.sni_callback = lambda _, name, __: names.append(name)
    given = TlsOptions(
        insecure=True, client_cert=tmp_path / "cert", client_key=tmp_path / "key", sni="shop.test"
    )
    with peer(lambda _: OK % b"", context) as server:
        url = f"https://127.0.0.1:{server.port}"
        assert only(responses(url, tls=given)) == (200, None)
        refused = responses(url, tls=TlsOptions(insecure=True))
    assert names[0] == "shop.test"
    assert refused.no_response is not None


def test_why_there_is_no_response() -> None:
    with refusing() as port:
        assert responses(f"http://127.0.0.1:{port}").no_response == "connection refused"
    alert = bytes((21, 3, 3, 0, 2, 2, 10))
    for response, words in (
        (alert, "a response that is not HTTP: the response is a TLS alert"),
        (b"SSH-2.0-OpenSSH\r\n", "a response that is not HTTP"),
        (b"", "connection closed before a response"),
    ):
        with peer(lambda _, response=response: response) as server:  # type: ignore[misc]
            result = responses(f"http://127.0.0.1:{server.port}")
        assert result.no_response is not None
        assert result.no_response.startswith(words)
        assert not result.timed_out


def test_one_listening_address_is_enough() -> None:
    workload = Workload(name="preflight", steps=(Step(path="/"),))
    with refusing() as closed, peer(lambda _: OK % b"") as server:
        load = short_load(f"http://127.0.0.1:{closed}", workload)
        addresses = (f"127.0.0.1:{closed}", f"127.0.0.1:{server.port}")
        assert only(request_once(load.model_copy(update={"addresses": addresses}))) == (200, None)


def test_a_preflight_ends_with_the_first_wrong_response() -> None:
    def answer(head: bytes) -> bytes:
        return OK % b"" if head.startswith(b"GET /right") else b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"

    declared = Expectation(body_equals="other")
    with peer(answer) as server:
        url = f"http://127.0.0.1:{server.port}"
        right, gone = Step(name="right", path="/right"), Step(name="gone", path="/gone")
        result = responses(url, right, gone, right)
        assert [(probe.step, probe.why_not) for probe in result.probes] == [
            ("right", None), ("gone", "status 404")
        ]  # fmt: skip
        assert result.wrong == "status 404"
        missing = responses(url, Step(path="/gone", expect=Expectation()))
        assert missing.wrong == "status 404, expected 200"
        other = responses(url, right.model_copy(update={"expect": declared}))
        assert other.wrong == "the body (2 bytes) differs from the declared body"
        nothing = responses(url, right.model_copy(update={"capture": {"id": Capture(header="X-Id")}}), right)
        assert nothing.wrong == "nothing to capture"
        digest = Expectation(body_bytes=2, body_sha256="0" * 64)
        assert "SHA-256" in (responses(url, right.model_copy(update={"expect": digest})).wrong or "")
        # A new server is slow.
        timed = right.model_copy(update={"expect": Expectation(max_ms=0.000_001)})
        assert responses(url, timed).wrong is None


def test_numbers_are_those_before_the_first_and_captured_values_are_known() -> None:
    with peer(lambda _: OK % b"X-Id: a b\r\n") as server:
        steps = (
            Step(path="/${sequence start=10 step=2}", repeat=3, capture={"id": Capture(header="X-Id")}),
            Step(path="/${id}/${p.name}/${known}"),
        )
        feeder = Feeder(columns=("name",), rows=(("Ada",),), order="sequence", at_end="recycle")
        workload = Workload(name="w", steps=steps, feeders={"p": feeder})
        result = request_once(short_load(f"http://127.0.0.1:{server.port}", workload), {"known": "${x}"})
        assert result.wrong is None
        lines = [head.split(b" HTTP")[0] for head in server.heads]
        assert lines == [b"GET /8", b"GET /a%20b/Ada/${x}"]
        with pytest.raises(UsageError, match="idd"):
            responses(f"http://127.0.0.1:{server.port}", Step(path="/${idd}"))


def test_whether_the_connection_stays_is_as_the_server_says() -> None:
    with peer(lambda head: OK % (b"Connection: close\r\n" if b"/close" in head else b"")) as server:
        steps = (Step(path="/"), Step(path="/close"))
        result = answers(f"http://127.0.0.1:{server.port}", Workload(name="w", steps=steps))
    assert [probe.keeps_alive for probe in result] == [True, False]
