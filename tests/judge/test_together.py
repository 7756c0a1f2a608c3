"""What trials say about each other: clock and responses."""

from __future__ import annotations

from prony.evidence.host import HostRow
from prony.evidence.server import Probe
from prony.evidence.trial import Evidence
from prony.judge.checks.host import HostLimits, host
from prony.judge.finding import Status
from prony.judge.together import JudgedTrial, clock, responses
from tests.judge import factory as f


def with_clock(*mhz: float) -> Evidence:
    """Window rows of a second each with these clocks, full clock at both edges."""
    rows = tuple(
        HostRow(t_ms=f.OPENED_MS + 1000 * (n + 1), duration_ms=1000.0, mhz=value)
        for n, value in enumerate(mhz)
    )
    return f.healthy().model_copy(update={"host_rows": rows})


def with_response(
    status: int = 200, size: int = 64, digest: str = "a", media: str = "text/plain"
) -> Evidence:
    probe = Probe(
        step="hello",
        status=status,
        body_bytes=size,
        content_type=media,
        meets_expectation=True,
        body_digest=digest,
    )
    return f.healthy().model_copy(update={"probes": (probe,)})


def trials(**servers: tuple[Evidence, ...]) -> list[JudgedTrial]:
    return [JudgedTrial(s, block, e) for s, each in servers.items() for block, e in enumerate(each)]


class TestClock:
    def test_a_dip_inside_the_window_is_seen_though_both_edges_are_full(self) -> None:
        found = host(with_clock(2600, 2600, 1800, 1800, 1800, 2600), HostLimits())
        assert found.status is Status.SUSPECT
        assert "down 30.8 % to 1,800 MHz for 3 of 6 s" in found.reason

    def test_one_low_second_is_a_reading_between_requests(self) -> None:
        assert host(with_clock(*[2600] * 9, 1800), HostLimits()).status is Status.VALID

    def test_a_trial_with_a_lower_clock_than_the_others_is_named(self) -> None:
        found = clock(trials(a=(with_clock(2600, 2600), with_clock(2600, 2590)), b=(with_clock(2000, 2000),)))
        assert found is not None
        assert found.status is Status.SUSPECT
        assert "b in block 1 2,000 MHz" in found.reason

    def test_equal_clocks_are_no_finding_and_unread_ones_none(self) -> None:
        level = clock(trials(a=(with_clock(2600),), b=(with_clock(2580),)))
        assert level is not None
        assert level.status is Status.VALID
        assert clock(trials(a=(f.healthy(),), b=(f.healthy(),))) is None


class TestResponses:
    def test_equal_ones_pass_whatever_the_charset(self) -> None:
        found = responses(trials(a=(with_response(),), b=(with_response(media="text/plain;charset=UTF-8"),)))
        assert found is not None
        assert found.status is Status.VALID

    def test_another_status_or_length_is_other_work(self) -> None:
        for other in (with_response(status=404), with_response(size=32)):
            found = responses(trials(a=(with_response(),), b=(other,)))
            assert found is not None
            assert found.status is Status.INVALID

    def test_another_content_of_the_same_length_is_suspect(self) -> None:
        found = responses(trials(a=(with_response(),) * 2, b=(with_response(digest="b"),) * 2))
        assert found is not None
        assert found.status is Status.SUSPECT
        assert "other content" in found.reason

    def test_where_the_question_makes_them_differ_the_reason_is_said_and_the_rest_still_holds(self) -> None:
        why = "each lists its own metrics"
        longer = responses(trials(a=(with_response(),), b=(with_response(size=32, digest="b"),)), why)
        assert longer is not None
        assert longer.status is Status.SUSPECT
        assert "a 64 bytes, b 32 bytes" in longer.reason
        assert longer.reason.endswith(why)
        assert "make the servers send the same" not in longer.advice, "nobody is to change that"
        assert "on a request to which all send the same" in longer.advice
        other = responses(trials(a=(with_response(),), b=(with_response(digest="b"),)), why)
        assert other is not None
        assert other.status is Status.VALID
        refused = responses(trials(a=(with_response(),), b=(with_response(status=404),)), why)
        assert refused is not None
        assert refused.status is Status.INVALID
        assert "make the servers send the same" in refused.advice, "another status is not declared"

    def test_what_one_servers_own_trials_differ_in_is_not_compared(self) -> None:
        dated = (with_response(digest="mon"), with_response(digest="tue"))
        found = responses(trials(a=dated, b=(with_response(digest="wed"), with_response(digest="thu"))))
        assert found is not None
        assert found.status is Status.VALID

    def test_one_server_has_nobody_to_differ_from_and_no_probe_is_unknown(self) -> None:
        assert responses(trials(a=(with_response(),))) is None
        silent = f.healthy().model_copy(update={"probes": ()})
        found = responses(trials(a=(silent,), b=(silent,)))
        assert found is not None
        assert found.status is Status.UNKNOWN
