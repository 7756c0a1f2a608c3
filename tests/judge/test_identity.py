"""identity: the server that was started is the one that answered, and no proxy before it."""

from __future__ import annotations

from prony.evidence.trial import Evidence
from prony.judge.checks.identity import identity
from prony.judge.finding import Status
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

LIMITS = CheckLimits()


class TestIdentity:
    def status(self, evidence: Evidence) -> Status:
        finding = identity(evidence, LIMITS)
        assert finding is not None
        return finding.status

    def test_quiet(self) -> None:
        assert self.status(f.healthy()) is Status.VALID

    def test_of_a_foreign_server_that_cannot_be_read_nothing_is_known(self) -> None:
        finding = identity(f.by_url(), LIMITS)
        assert finding is not None
        assert finding.status is Status.UNKNOWN
        assert "was not watched" in finding.reason
        assert not identity.essential(f.by_url())

    def test_listeners_of_a_foreign_server_that_come_or_go_are_suspect(self) -> None:
        watched = f.part(f.by_url(), "server", owns_port_at_end=True, listeners=4, listeners_gone=0)
        assert self.status(watched) is Status.VALID
        joined = identity(
            f.part(watched, "server", owns_port_at_end=False, other_listener="PID 7 (x)"), LIMITS
        )
        assert joined is not None
        assert joined.status is Status.SUSPECT
        assert joined.reason.endswith("listened on port 8080 under load: PID 7 (x)")
        left = identity(f.part(watched, "server", listeners_gone=1), LIMITS)
        assert left is not None
        assert left.status is Status.SUSPECT
        assert left.reason == "1 of 4 listening sockets were closed under load"

    def test_a_worker_of_our_own_that_left_is_suspect(self) -> None:
        assert self.status(f.part(f.healthy(), "server", listeners=4, listeners_gone=2)) is Status.SUSPECT

    def test_another_process_on_the_port(self) -> None:
        assert self.status(f.part(f.healthy(), "server", owns_port=False)) is Status.INVALID

    def test_death_in_the_window(self) -> None:
        assert self.status(f.part(f.healthy(), "server_window", died="signal 9")) is Status.INVALID

    def test_not_readable(self) -> None:
        assert self.status(f.part(f.healthy(), "server", owns_port=None)) is Status.UNKNOWN

    def test_still_there_after_the_stop(self) -> None:
        assert self.status(f.healthy().model_copy(update={"clean_stop": False})) is Status.SUSPECT


class TestProxy:
    """A proxy says so by Via; another program under load by its Server header."""

    def reason(self, *, via: str | None = None, head: str | None = None, owned: bool = True) -> str | None:
        probe = f.healthy().probes[0].model_copy(update={"via": via, "server_header": "Jetty"})
        base = f.totals(f.part(f.healthy(), "server", owned=owned), first_head=head)
        found = identity(base.model_copy(update={"probes": (probe,)}), LIMITS)
        return found.reason if found is not None and found.status is Status.SUSPECT else None

    def test_it_names_itself(self) -> None:
        assert "Via: 1.1 nginx" in str(self.reason(via="1.1 nginx"))
        assert "Via: 1.1 nginx" in str(self.reason(via="1.1 nginx", owned=False))
        assert "Via: 2 edge" in str(self.reason(head="HTTP/1.1 200 OK\r\nVia: 2 edge\r\n\r\n"))

    def test_a_declared_proxy_is_what_is_measured(self) -> None:
        probe = f.healthy().probes[0].model_copy(update={"via": "1.1 varnish"})
        proxy = f.healthy().model_copy(update={"probes": (probe,)})
        found = identity(proxy, LIMITS)
        assert found is not None
        assert found.status is Status.SUSPECT
        assert "`forwards: true`" in found.advice
        declared = identity(f.part(proxy, "server", forwards=True), LIMITS)
        assert declared is not None
        assert declared.status is Status.VALID
        other = identity(f.part(proxy, "server", forwards=True, owns_port_at_end=False), LIMITS)
        assert other is not None
        assert other.status is Status.INVALID

    def test_another_program_responds_under_load(self) -> None:
        assert "Server: nginx" in str(self.reason(head="HTTP/1.1 200 OK\r\nServer: nginx\r\n\r\n"))

    def test_the_same_program_is_left_alone(self) -> None:
        assert self.reason(head="HTTP/1.1 200 OK\r\nserver: Jetty\r\n\r\n") is None
        assert self.reason() is None
