"""What several hosts are together, and what a plan on them is; no host is reached here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.host import CpuPartition, CpuUse, HostRow, HostWindow, Limits, PortRange
from prony.load.base import HostLost
from prony.load.contract import EngineLoad
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.plan.plan import MAIN, Plan, one_part
from prony.plan.step import Step
from prony.plan.target import Launch, TlsOptions, Url, launched
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Feeder, Workload, from_url
from prony.targets import ExternalServer
from prony_hosts import files
from prony_hosts.file import HostsFile
from prony_hosts.load.clock import ClockEstimate, RoundTrip
from prony_hosts.observed import HostedExternal
from prony_hosts.places import HostedPlaces
from prony_hosts.sampling import merged_rows, merged_window
from prony_hosts.testbed import HostsTestbed, on_machines, refuse, together

GROUPS = HostsFile.model_validate(
    {
        "lab": {"scheduler": "tcp://127.0.0.1:8786"},
        "servers": {"x86": {"connect": "one"}, "arm": {"connect": "two"}},
        "load": [{"connect": "a"}, {"connect": "b", "weight": 2}],
    }
)


def trial(**more: object) -> TrialPlan:
    values = {
        "workload": from_url("/"),
        "load": ClosedLoad(users=4),
        "measured": SteadyWindow(window_s=3.0),
        "warm_up": fixed(1.0),
    }
    return TrialPlan.model_validate(values | more)


def compared(*servers: str, **more: object) -> Plan:
    cells = [cell_of(MAIN, name, launched(name), trial(**more), 3) for name in servers]
    return one_part("compare", "a comparison", cells, seed=1)


def test_each_server_is_measured_on_each_machine_and_the_trials_are_interleaved() -> None:
    plan = on_machines(compared("reference", "node"), GROUPS)
    assert plan.servers == ("reference on x86", "reference on arm", "node on x86", "node on arm")
    assert len({cell.id for cell in plan.cells}) == 4
    machines = [cell.target.machine for cell in plan.cells if isinstance(cell.target, Launch)]
    assert machines == ["x86", "arm", "x86", "arm"]
    for block in range(3):
        assert {one.cell for one in plan.order() if one.block == block} == {cell.id for cell in plan.cells}
    assert [(host.name, host.role, host.weight) for host in plan.hosts][-1] == ("b", "load", 2.0)
    # What is continued has its machines already.
    assert on_machines(plan, GROUPS) == plan
    assert Plan.model_validate(plan.as_stored()) == plan


def test_one_servers_host_leaves_the_servers_their_names() -> None:
    file = HostsFile.model_validate(
        {"lab": {"scheduler": "tcp://127.0.0.1:1"}, "server": {"connect": "s"}, "load": [{"connect": "a"}]}
    )
    plan = on_machines(compared("reference"), file)
    assert plan.servers == ("reference",)
    assert [host.role for host in plan.hosts] == ["server", "load"]


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"log": "rows.csv"}, "--log"),
        ({"source_addresses": ("127.0.0.2",)}, "--source"),
        ({"beside": ("wrk",)}, "cross_check"),
    ],
)
def test_what_several_hosts_cannot_do_is_refused(more: dict[str, object], word: str) -> None:
    refuse(compared("reference"))
    with pytest.raises(UsageError, match=rf"{word}.*--hosts"):
        refuse(compared("reference", **more))


def test_a_unix_socket_has_no_other_hosts() -> None:
    cell = cell_of(MAIN, "unix", Url(url="unix:/run/app.sock"), trial())
    with pytest.raises(UsageError, match="--hosts"):
        refuse(one_part("load", "a load", [cell], seed=1))


def test_the_host_with_the_least_for_its_weight_bounds_the_limits_of_all() -> None:
    def of(descriptors: int, ports: int, *, io_uring: bool = True) -> Limits:
        return Limits(descriptors_soft=descriptors, ports=PortRange(low=1, high=ports), io_uring=io_uring)

    found = together([(of(1000, 30_000), 1.0), (of(1500, 60_000, io_uring=False), 2.0)])
    # The second has two thirds of the users: 1500 descriptors are enough for 2250 of them, not 3000.
    assert found.descriptors_soft == 2250
    assert found.ports is not None
    assert found.ports.size == 90_000
    assert found.io_uring is False
    unknown = together([(of(1000, 30_000), 1.0), (Limits(), 1.0)])
    assert (unknown.descriptors_soft, unknown.ports, unknown.io_uring) == (None, None, None)


def test_files_travel_with_a_load_and_are_found_where_they_were_put(tmp_path: Path) -> None:
    body, rows, ca = (tmp_path / name for name in ("body.bin", "rows.csv", "ca.pem"))
    for path in (body, rows, ca):
        path.write_text(path.name)
    workload = Workload(
        name="files",
        steps=(Step(path="/a", method="POST", body_file=str(body)), Step(path="/b")),
        feeders={"people": Feeder(file=str(rows), order="random")},
    )
    load = EngineLoad(
        url="https://h", tls=TlsOptions(ca=ca), workload=workload, load=ClosedLoad(users=1), cpus=()
    )
    contents = files.of_load(load)
    assert contents == {str(path): path.name.encode() for path in (body, rows, ca)}
    there = tmp_path / "there"
    there.mkdir()
    moved = files.moved(load, files.put(contents, there))
    assert moved.tls.ca is not None
    found = [moved.workload.feeders["people"].file or "", str(moved.tls.ca)]
    found += [step.body_file for step in moved.workload.all_steps if step.body_file is not None]
    assert sorted(Path(path).read_text() for path in found) == ["body.bin", "ca.pem", "rows.csv"]
    assert all(Path(path).parent == there for path in found)
    body.unlink()
    with pytest.raises(UsageError, match=r"body\.bin"):
        files.of_load(load)


def row(t_ms: float, client: float | None, server: float | None = None) -> HostRow:
    return HostRow(t_ms=t_ms, duration_ms=1000, client_cpus_busy=client, server_cpus_busy=server)


def test_rows_are_the_servers_hosts_with_the_client_that_was_busiest_then() -> None:
    server = (row(1000, None, 0.5), row(2000, None, 0.6), row(9000, None, 0.7))
    loads = [(row(1010, 0.2), row(2010, 0.9)), (row(990, 0.4), row(1990, 0.1))]
    found = merged_rows(server, loads)
    assert [(one.server_cpus_busy, one.client_cpus_busy) for one in found] == [
        (0.5, 0.4),
        (0.6, 0.9),
        (0.7, None),  # no load host told anything of that second
    ]
    assert [one.client_cpus_busy for one in merged_rows(None, loads)] == [0.4, 0.9]


def test_the_window_has_the_servers_cpus_and_the_worst_of_the_clients() -> None:
    def window(cpu: int, busy: float, others: float | None) -> HostWindow:
        return HostWindow(
            wall_s=3.0,
            cpus=(CpuUse(cpu=cpu, busy=busy, steal=0.0),),
            others_on_client_cpus=others,
            sysctls_changed=(),
        )

    server = window(0, 0.9, None)
    found = merged_window(server, [window(3, 0.2, 0.01), window(4, 0.5, 0.3)])
    assert found is not None
    assert [cpu.cpu for cpu in found.cpus] == [0]
    assert found.others_on_client_cpus == 0.3
    alone = merged_window(None, [window(3, 0.2, 0.01), window(4, 0.5, 0.3)])
    assert alone is not None
    assert [cpu.cpu for cpu in alone.cpus] == [4]
    unknown = merged_window(server, [window(3, 0.2, None), window(4, 0.5, 0.3)])
    assert unknown is not None
    assert unknown.others_on_client_cpus is None
    assert merged_window(None, []) is None


def test_cpus_of_two_hosts_are_not_the_same_cpus() -> None:
    same = CpuPartition(server=(0, 1), client=(1, 2))
    assert same.common == (1,)
    assert same.count == 3
    apart = same.model_copy(update={"apart": True})
    assert apart.common == ()
    assert apart.count == 4


class Told:
    """A host that tells which settings changed, or is lost."""

    facts = SimpleNamespace(fingerprint=SimpleNamespace(sysctls={}))

    def __init__(self, name: str, *names: str, lost: bool = False) -> None:
        self.name, self._names, self._lost = name, names, lost

    def call(self, _method: str, *_args: object, **_options: object) -> tuple[str, ...]:
        if self._lost:
            raise HostLost(f"{self.name} was lost")
        return self._names


def test_a_host_that_is_lost_after_the_load_costs_nothing_that_the_others_tell() -> None:
    testbed = object.__new__(HostsTestbed)
    testbed.servers = {}
    testbed.loads = (Told("a", lost=True), Told("b", "net.core.somaxconn"))  # type: ignore[assignment]
    assert testbed.settings_changed() == ("b: net.core.somaxconn",)


class ServersHost:
    """A server's host that has some addresses."""

    def __init__(self, group: str, *addresses: str, reached_at: str = "10.0.0.9") -> None:
        self.name = group
        self._addresses = addresses
        self.attached = SimpleNamespace(reached_at=reached_at)

    def call(self, method: str, name: str) -> bool:
        assert method == "is_here"
        return name in self._addresses


def hosted(url: str, *hosts: ServersHost, **more: object) -> str | None:
    """The host on which a server at this URL is read."""
    testbed = object.__new__(HostsTestbed)
    testbed.servers = {one.name: one for one in hosts}  # type: ignore[misc]
    at = Url.model_validate({"url": url, **more})
    found = testbed.target(at, ExternalServer(at))
    assert (found.owned, found.name, found.built) == (False, url, None)
    return found.host.name if isinstance(found, HostedExternal) else None


def test_a_server_at_a_url_is_read_by_the_host_that_has_its_address() -> None:
    x86, arm = ServersHost("x86", "10.0.0.2", "app.internal"), ServersHost("arm", "10.0.0.3", "fd00::3")
    assert hosted("http://10.0.0.2:8080", x86, arm) == "x86"
    assert hosted("http://app.internal", x86, arm) == "x86"
    assert hosted("https://[fd00::3]:8443", x86, arm) == "arm"
    assert hosted("http://10.0.0.7", x86, arm) is None, "of another host nothing can be read"
    assert hosted("http://10.0.0.7", x86, arm, addresses=("10.0.0.3:80",)) == "arm", "where connections go"
    assert hosted("http://10.0.0.2") is None, "a file with load hosts only"


def test_a_loopback_address_is_the_servers_host_only_where_the_host_is_reached_by_one() -> None:
    assert hosted("http://127.0.0.1:8080", ServersHost("far", "127.0.0.1")) is None
    assert hosted("http://localhost:8080", ServersHost("near", reached_at="127.0.0.1")) == "near"


class LoadHost:
    """A load host whose engine is told everything and says nothing."""

    facts = SimpleNamespace(fingerprint=None, cpus=(0,))

    def __init__(self, name: str) -> None:
        self.name = name
        self.host = SimpleNamespace(role="load", weight=1.0, keys=SimpleNamespace(cpus=None))

    def clock(self) -> ClockEstimate:
        return ClockEstimate(0.0, 0.0, 0.0, 1000.0, 1)

    def round_trips(self) -> tuple[RoundTrip, ...]:
        return ()

    def begin(self, _method: str, *_args: object) -> None:
        """Nothing comes of it."""

    def end(self, _future: None, _method: str) -> int:
        return 1

    def call(self, method: str, *_args: object, timeout_s: float = 0.0) -> tuple[Any, ...] | None:
        del timeout_s
        return None if method == "events" else ()


def test_a_load_host_without_a_part_in_the_load_is_no_evidence_unless_it_is_lost() -> None:
    lost: dict[str, str] = {}
    hosts = (LoadHost("a"), LoadHost("b"))
    places = HostedPlaces(CpuPartition(server=(), client=()), Limits(), None, hosts, lambda: lost)  # type: ignore[arg-type]
    assert [one.name for one in places.evidence()] == ["a", "b"]
    load = EngineLoad(url="http://h", workload=from_url("/"), load=ClosedLoad(users=1), cpus=())
    engine = places.engine(load)
    try:
        assert [one.name for one in places.evidence()] == ["a"]
        lost["b"] = "b was lost: its worker has ended"
        assert [one.name for one in places.evidence()] == ["a", "b"]
    finally:
        engine.close()


class Starts(Told):
    """A load host whose engine starts, or does not."""

    host = SimpleNamespace(weight=1.0, keys=SimpleNamespace(cpus=None))

    def __init__(self, name: str, *, fails: bool = False) -> None:
        super().__init__(name)
        self.fails, self.open = fails, 0

    def begin(self, *_args: object) -> None:
        self.open += 1

    def clock(self) -> None:
        """Not compared."""

    def end(self, *_args: object) -> int:
        if self.fails:
            self.open -= 1
            raise EnvironmentFault("the engine did not start")
        return 1

    def call(self, _method: str, *_args: object, **_options: object) -> tuple[str, ...]:
        assert _method == "close"
        self.open -= 1
        return ()


def test_an_engine_that_does_not_start_leaves_none_of_another_host() -> None:
    hosts = [Starts("a"), Starts("b", fails=True), Starts("c")]
    places = HostedPlaces(CpuPartition(server=(), client=()), Limits(), None, hosts, dict)  # type: ignore[arg-type]
    load = EngineLoad(url="http://10.0.0.1", workload=from_url("/"), load=ClosedLoad(users=3), cpus=())
    with pytest.raises(EnvironmentFault):
        places.engine(load)
    assert [host.open for host in hosts] == [0, 0, 0]
