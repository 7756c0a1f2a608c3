"""identity: the server that was started is the one that answered, and no proxy before it."""

from __future__ import annotations

import pytest

from prony.evidence.trial import Evidence
from prony.judge.checks.identity import identity
from prony.judge.finding import Finding, Kind
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

LIMITS = CheckLimits()


def found(evidence: Evidence) -> Finding:
    finding = identity(evidence, LIMITS)
    assert finding is not None
    assert finding.bias == {}
    assert bool(finding.provided) == (finding.kind is Kind.PROVIDED)
    assert bool(finding.advice) == (finding.code not in {"ok", "unread"}) or finding.code == "unread"
    return finding


def kind_code(evidence: Evidence) -> tuple[Kind, str]:
    return found(evidence).kind, found(evidence).code


WATCHED = f.part(f.by_url(), "server", owns_port_at_end=True, listeners=4, listeners_gone=0)


@pytest.mark.parametrize("evidence", [f.healthy(), WATCHED])
def test_quiet(evidence: Evidence) -> None:
    assert kind_code(evidence) == (Kind.FINE, "ok")


@pytest.mark.parametrize(
    ("evidence", "code"),
    [
        (f.part(f.healthy(), "server", owns_port=False), "other_listener"),
        (f.part(f.healthy(), "server", owns_port_at_end=False), "other_listener"),
        (f.part(f.healthy(), "server_window", died="signal 9"), "died"),
    ],
)
def test_another_server_or_none_does_not_conform(evidence: Evidence, code: str) -> None:
    assert kind_code(evidence) == (Kind.NOT_CONFORMING, code)


@pytest.mark.parametrize(
    ("evidence", "code"),
    [
        (f.by_url(), "unread"),
        (f.part(f.healthy(), "server", owns_port=None), "unread"),
        (f.part(WATCHED, "server", owns_port_at_end=False, other_listener="PID 7 (x)"), "new_listener"),
        (f.part(WATCHED, "server", listeners_gone=1), "listeners_gone"),
        (f.part(f.healthy(), "server", listeners=4, listeners_gone=2), "listeners_gone"),
        (f.healthy().model_copy(update={"clean_stop": False}), "still_running"),
    ],
)
def test_what_nothing_bounds_is_a_condition(evidence: Evidence, code: str) -> None:
    assert kind_code(evidence) == (Kind.PROVIDED, code)


def test_who_came_is_named() -> None:
    joined = f.part(WATCHED, "server", owns_port_at_end=False, other_listener="PID 7 (x)")
    assert "PID 7 (x)" in found(joined).reason


class TestProxy:
    """A proxy says so by Via; another program under load by its Server header."""

    def kind_code(
        self, *, via: str | None = None, head: str | None = None, **server: bool
    ) -> tuple[Kind, str]:
        probe = f.healthy().probes[0].model_copy(update={"via": via, "server_header": "Jetty"})
        base = f.totals(f.part(f.healthy(), "server", **server), first_head=head)
        return kind_code(base.model_copy(update={"probes": (probe,)}))

    def test_it_names_itself(self) -> None:
        between = (Kind.PROVIDED, "proxy")
        assert self.kind_code(via="1.1 nginx") == between
        assert self.kind_code(via="1.1 nginx", owned=False) == between
        assert self.kind_code(head="HTTP/1.1 200 OK\r\nVia: 2 edge\r\n\r\n") == between

    def test_a_declared_proxy_is_what_is_measured(self) -> None:
        assert self.kind_code(via="1.1 varnish", forwards=True) == (Kind.FINE, "ok")
        other = self.kind_code(via="1.1 varnish", forwards=True, owns_port_at_end=False)
        assert other == (Kind.NOT_CONFORMING, "other_listener")

    def test_another_program_responds_under_load(self) -> None:
        head = "HTTP/1.1 200 OK\r\nServer: nginx\r\n\r\n"
        assert self.kind_code(head=head) == (Kind.PROVIDED, "other_program")

    def test_the_same_program_is_left_alone(self) -> None:
        assert self.kind_code(head="HTTP/1.1 200 OK\r\nserver: Jetty\r\n\r\n") == (Kind.FINE, "ok")
        assert self.kind_code() == (Kind.FINE, "ok")
