"""The fingerprint of a set of hosts."""

from __future__ import annotations

from prony.evidence.hosts import Link
from prony.host.fingerprint import differences, key_of
from prony_hosts.fingerprint import HostFacts, of_hosts
from prony_serve.host_facts import describe
from tests.report.factory import FINGERPRINT


def test_a_set_of_hosts_has_a_key_of_its_own() -> None:
    one = FINGERPRINT.model_copy(update={"key": key_of(FINGERPRINT)})
    other = one.model_copy(update={"cpus": 64})
    other = other.model_copy(update={"key": key_of(other)})
    link = Link(interface="eth0", speed_bits_per_s=25e9, mtu=9001)
    server = HostFacts("server", "server", one, link=link)
    loads = [HostFacts("load1", "load", other, link=link), HostFacts("load2", "load", other, 2.0, link)]
    both = of_hosts([server, *loads])
    assert both.cpu_model == one.cpu_model
    assert both.key != one.key
    assert both.hosts["load2"] == f"load, weight 2, fingerprint {other.key}, link 25 Gbit/s, MTU 9001"
    assert ("Host load2", both.hosts["load2"]) in describe(both)
    # What a host is called changes nothing; a host less, another weight or link does.
    renamed = [HostFacts("a", "load", other, link=link), HostFacts("b", "load", other, 2.0, link)]
    assert of_hosts([server, *renamed]).key == both.key
    slow = Link(interface="eth0", speed_bits_per_s=1e9, mtu=9001)
    for less in (
        loads[:1],
        [loads[0], HostFacts("load2", "load", other, 1.0, link)],
        [loads[0], HostFacts("load2", "load", other, 2.0, slow)],
        [loads[0], HostFacts("load2", "load", one, 2.0, link)],
    ):
        assert of_hosts([server, *less]).key != both.key
    assert ("hosts.load2", both.hosts["load2"], "absent") in differences(both, of_hosts([server, loads[0]]))
    # With load hosts alone (a URL) the first of them stands for the set.
    assert of_hosts(loads).cpus == 64
