"""TCP's counters and the packets of soft interrupts, from files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

from prony.host.net_counters import between, packets_by_cpu, rise, tcp_counts

SNMP = "Ip: Forwarding\nIp: 1\nTcp: MaxConn InSegs OutSegs RetransSegs\nTcp: -1 9 {out} {again}\n"
NETSTAT = (
    "TcpExt: SyncookiesSent DelayedACKs ListenOverflows ListenDrops TCPSynRetrans\n"
    "TcpExt: 0 7 {full} {full} {syn}\n"
)


def host(root: Path, *, out: int, again: int, full: int, syn: int) -> Path:
    net = root / "proc/net"
    net.mkdir(parents=True, exist_ok=True)
    (net / "snmp").write_text(SNMP.format(out=out, again=again))
    (net / "netstat").write_text(NETSTAT.format(full=full, syn=syn))
    return root


def test_what_was_counted_between_two_readings(tmp_path: Path) -> None:
    first = tcp_counts(host(tmp_path, out=1000, again=3, full=1, syn=1))
    last = tcp_counts(host(tmp_path, out=1500, again=8, full=5, syn=2))
    counted = between(first, last)
    assert counted is not None
    assert (counted.segments_out, counted.retransmitted, counted.listen_overflows) == (500, 5, 4)
    assert (counted.syn_retransmitted, counted.delayed_acks) == (1, 0)


def test_a_counter_that_is_missing_is_unknown_and_not_zero(tmp_path: Path) -> None:
    host(tmp_path, out=1, again=0, full=0, syn=0)
    (tmp_path / "proc/net/netstat").write_text("TcpExt: SyncookiesSent\nTcpExt: 0\n")
    assert tcp_counts(tmp_path) is None
    assert tcp_counts(tmp_path / "nowhere") is None
    assert between(None, tcp_counts()) is None


def test_this_machine_has_them() -> None:
    assert tcp_counts() is not None
    assert packets_by_cpu()


def test_packets_by_cpu_wrap_and_know_their_cpu(tmp_path: Path) -> None:
    file = tmp_path / "proc/net/softnet_stat"
    file.parent.mkdir(parents=True)
    rest = " ".join(["00000000"] * 11)
    file.write_text(f"fffffffe {rest} 00000003\n00000010 {rest} 00000001\n")
    before = packets_by_cpu(tmp_path)
    assert before == {3: 0xFFFFFFFE, 1: 16}
    assert rise(before, {3: 4, 1: 20}, 3) == 6
    assert rise(before, {3: 4}, 1) is None
    assert packets_by_cpu(tmp_path / "nowhere") is None
