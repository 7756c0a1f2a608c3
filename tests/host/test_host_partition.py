"""Who gets which CPU, on hosts of many shapes."""

from __future__ import annotations

import os
from typing import Any

import pytest

from prony.errors import UsageError
from prony.evidence.host import CpuPartition
from prony.host import affinity
from prony.host.partition import beside, partition
from prony.host.topology import Core, Topology, allowed_cpus, siblings, topology
from tests.host.conftest import Grow


def host(cores: int, threads: int = 1, nodes: int = 1) -> Topology:
    """CPU numbers as Linux gives them: first all first threads, then all second threads."""
    per_node = cores // nodes
    return Topology(
        tuple(
            Core(tuple(core + thread * cores for thread in range(threads)), package=0, node=core // per_node)
            for core in range(cores)
        )
    )


def divide(shape: Topology, **named: Any) -> CpuPartition:
    return partition(topology=shape, allowed=shape.cpus, **named)


def test_two_cpus_are_one_each() -> None:
    result = divide(host(2))
    assert (result.server, result.client, result.shared, result.note) == ((0,), (1,), False, "")


@pytest.mark.parametrize(
    ("sides", "separate"),
    [
        (CpuPartition(server=(0,), client=(1,)), True),
        (CpuPartition(server=(0,), client=(0,), shared=True), False),
        (CpuPartition(server=(0, 1), client=(1,)), False),
        (CpuPartition(server=(0,), client=(1, 2), services=(2,)), False),
        (CpuPartition(server=(0, 1), client=(0, 1), apart=True), True),
        (CpuPartition(server=(0,), client=(0,), services=(0,), apart=True), True),
    ],
)
def test_sides_are_separate_where_nothing_of_the_server_runs_beside_the_client(
    sides: CpuPartition, separate: bool
) -> None:
    assert sides.separate is separate


def test_one_cpu_is_shared_and_says_so() -> None:
    result = divide(host(1))
    assert result.server == result.client == (0,)
    assert result.shared
    assert "(0)" in result.note


def test_one_core_with_two_threads_is_shared_although_the_cpus_differ() -> None:
    result = divide(host(1, threads=2))
    assert (result.server, result.client) == ((0,), (1,))
    assert result.shared
    assert "0-1" in result.note


@pytest.mark.parametrize("cores", range(2, 65))
@pytest.mark.parametrize("threads", [1, 2])
def test_sets_are_disjoint_whole_cores_and_the_client_has_about_a_quarter(cores: int, threads: int) -> None:
    shape = host(cores, threads)
    result = divide(shape)
    server, client = set(result.server), set(result.client)
    assert not server & client
    assert server | client == set(shape.cpus)
    assert not result.shared
    for core in shape.cores:
        assert set(core.cpus) <= server or set(core.cpus) <= client
    client_cores = len(client) // threads
    assert client_cores >= 1
    assert abs(client_cores - cores / 4) <= max(0.5, 1 - cores / 4)


def test_a_large_node_holds_both_sides_and_the_note_says_what_is_left_out() -> None:
    result = divide(host(16, threads=2, nodes=2))
    used = set(result.server) | set(result.client)
    assert used == {*range(8), *range(16, 24)}
    assert "NUMA" in result.note


def test_small_nodes_are_all_used() -> None:
    result = divide(host(4, nodes=2))
    assert set(result.server) | set(result.client) == {0, 1, 2, 3}
    assert "NUMA" in result.note


def test_only_what_is_allowed_is_used() -> None:
    shape = host(8, threads=2)
    result = partition(topology=shape, allowed=(2, 3, 10, 11))
    assert (result.server, result.client) == ((2, 10), (3, 11))
    with pytest.raises(UsageError, match="cpuset"):
        partition(topology=shape, allowed=())


def test_one_named_set_leaves_whole_cores_to_the_other() -> None:
    shape = host(4, threads=2)
    assert divide(shape, client=(3,)).server == (0, 1, 2, 4, 5, 6)
    assert divide(shape, server=(0, 4)).client == (1, 2, 3, 5, 6, 7)


def test_named_sets_that_split_a_core_are_taken_and_told() -> None:
    result = divide(host(2, threads=2), server=(0, 1), client=(2, 3))
    assert result.shared
    assert "0,2; 1,3" in result.note


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"server": (0, 9)}, "CPU 9"),
        ({"client": ()}, "client"),
        ({"server": (0, 1), "client": (1, 2)}, "CPU 1 "),
        ({"server": (0, 1, 2, 3)}, "0-3"),
    ],
)
def test_named_sets_that_cannot_be_are_one_sentence(named: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        divide(host(4), **named)
    assert message in str(caught.value)


def test_a_cpu_outside_of_the_cpuset_is_named_as_such() -> None:
    with pytest.raises(UsageError, match="CPU 3"):
        partition(topology=host(4), allowed=(0, 1), client=(3,))


def with_services(shape: Topology, **named: Any) -> CpuPartition:
    return partition(topology=shape, allowed=shape.cpus, services=True, **named)


@pytest.mark.parametrize("cores", [1, 2])
def test_without_a_core_to_spare_services_share_the_servers(cores: int) -> None:
    assert with_services(host(cores)) == divide(host(cores))


@pytest.mark.parametrize(("cores", "threads"), [(3, 1), (4, 2), (16, 2)])
def test_services_have_a_whole_core_of_their_own(cores: int, threads: int) -> None:
    plain, result = divide(host(cores, threads)), with_services(host(cores, threads))
    assert len(result.services) == threads
    assert set(result.server) | set(result.services) == set(plain.server)
    assert not set(result.services) & {*result.server, *result.client}
    assert result.client == plain.client
    assert result.services in [core.cpus for core in host(cores, threads).cores]


def test_services_take_an_idle_core_first_and_none_from_a_set_that_was_named() -> None:
    both = with_services(host(4), server=(0, 1), client=(2,))
    assert (both.server, both.client, both.services) == ((0, 1), (2,), (3,))
    server = with_services(host(4), server=(0, 1))
    assert (server.server, server.services) == ((0, 1), ())
    client = with_services(host(4), client=(3,))
    assert (client.server, client.services) == ((0, 1), (2,))


def test_topology_reads_siblings_packages_and_nodes(tree: Grow) -> None:
    files = {
        "sys/devices/system/cpu/online": "0-2,4-5\n",
        "sys/devices/system/node/online": "0-1\n",
        "sys/devices/system/node/node0/cpulist": "0-1,4\n",
        "sys/devices/system/node/node1/cpulist": "2,5\n",
    }
    for cpu, threads in {0: "0,4", 4: "0,4", 1: "1,3", 2: "2,5", 5: "2,5"}.items():
        base = f"sys/devices/system/cpu/cpu{cpu}/topology"
        files[f"{base}/thread_siblings_list"] = threads
        files[f"{base}/physical_package_id"] = "1" if cpu in (2, 5) else "0"
    found = topology(tree(files))
    assert found.cores == (Core((0, 4), 0, 0), Core((1,), 0, 0), Core((2, 5), 1, 1))  # CPU 3 is offline
    assert found.smt
    assert found.complete
    assert found.cpus == (0, 1, 2, 4, 5)
    assert siblings({0, 1}, tree(files)) == {4}
    assert siblings({2, 5}, tree(files)) == frozenset()


def test_without_sysfs_every_cpu_is_a_core_and_that_is_known(tree: Grow) -> None:
    found = topology(tree({"proc/cpuinfo": "processor\t: 0\nx : y\n\nprocessor\t: 1\n"}))
    assert found.cores == (Core((0,)), Core((1,)))
    assert not found.complete


def test_the_mask_of_a_process_is_read(tree: Grow) -> None:
    root = tree({"proc/self/status": "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t2-3,7\n"})
    assert allowed_cpus(root) == (2, 3, 7)


def test_this_machine_can_be_divided() -> None:
    result = partition()
    assert result.server
    assert result.client
    assert set(result.server) | set(result.client) <= set(affinity.granted_cpus())
    assert result.shared or not set(result.server) & set(result.client)


def test_pinning_this_process_is_remembered_and_can_be_undone() -> None:
    before = os.sched_getaffinity(0)
    granted = affinity.granted_cpus()
    try:
        assert affinity.pin_self({min(before)}).done
        assert os.sched_getaffinity(0) == {min(before)}
        assert affinity.granted_cpus() == granted
        assert allowed_cpus() == (min(before),)
    finally:
        assert affinity.pin_process(os.getpid(), before).done
    assert os.sched_getaffinity(0) == before


def test_a_refused_pin_is_told_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not affinity.pin_process(2**22 + 1, {0}).done
    assert not affinity.pin_thread({4095}).done
    assert not affinity.pin_thread(set()).done

    def refuse(_thread: int, _cpus: set[int]) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    result = affinity.pin_process(os.getpid(), {0})
    assert not result.done
    assert result.note


@pytest.mark.parametrize(
    ("shape", "allowed", "where", "client", "shared"),
    [
        (host(2), {0, 1}, {0}, (1,), False),
        (host(2), {0, 1}, {1}, (0,), False),
        (host(2), {0, 1}, {0, 1}, (1,), False),  # it roams: as if nothing were known of it
        (host(2), {0, 1}, (), (1,), False),
        (host(2), {0}, {1}, (0,), False),  # the CPU that Prony may not use is the server's
        (host(2), {0}, {0}, (0,), True),
        (host(1), {0}, {0}, (0,), True),
        (host(8), set(range(8)), {0, 1}, (6, 7), False),  # what it would be anyway
        (host(8), set(range(8)), {6, 7}, (4, 5), False),
        (host(8), set(range(8)), {7}, (5, 6), False),
        (host(8), set(range(8)), set(range(1, 8)), (0,), False),  # less than usual, and its own
        (host(8), {0, 1, 2, 3}, {3, 4, 5}, (2,), False),
        (host(4, threads=2), set(range(8)), {3}, (2, 6), False),  # 7 is the other thread of its core
        (host(4, threads=2), set(range(8)), {0, 1, 2, 3}, (4, 5, 6, 7), True),
        (host(1, threads=2), {0, 1}, {1}, (0,), True),
        (host(8, nodes=2), set(range(8)), {7}, (6,), False),
        (host(8, nodes=2), set(range(8)), {4, 5, 6, 7}, (3,), False),
    ],
)
def test_beside_a_server_that_runs_already_the_client_takes_cores_that_it_may_not_use(
    shape: Topology, allowed: set[int], where: set[int], client: tuple[int, ...], shared: bool
) -> None:
    found = beside(where, topology=shape, allowed=allowed)
    assert (found.client, found.shared) == (client, shared)
    if where:
        assert found.server == tuple(sorted(where))


def test_all_servers_of_a_plan_meet_one_client_where_there_is_a_cpu_for_it() -> None:
    four, two = host(4), host(2)
    each = [beside({cpu}, {0, 3}, topology=four, allowed=four.cpus).client for cpu in (0, 3)]
    assert each == [(2,), (2,)]
    each = [beside({cpu}, {0, 1}, topology=two, allowed=two.cpus).client for cpu in (0, 1)]
    assert each == [(1,), (0,)]
