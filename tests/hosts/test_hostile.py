"""A worker and the scheduler take Prony's actors and nothing else, whoever asks and however."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prony.errors import EnvironmentFault
from prony.host.check import HostCheck
from prony_hosts import certificates
from prony_hosts.actors import HostDescription, MeasuredHost
from prony_hosts.attach import attached, start_scheduler
from prony_hosts.certificates import LAB, ON_HOST, identity
from tests.hosts.loopback import Loopback

pytestmark = pytest.mark.rarely

distributed = pytest.importorskip("distributed", reason="the extra hosts is not installed")


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with Loopback(tmp_path_factory.mktemp("hosts")) as loopback:
        loopback.start_scheduler()
        yield loopback


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


async def asked(address: str, own: certificates.Identity | None, message: dict[str, Any]) -> Any:
    """The reply to one message on a connection of its own."""
    from distributed.comm import connect

    arguments = own.security().get_connection_args("client") if own else {}
    comm = await connect(address, timeout=5, **arguments)
    try:
        await comm.write({**message, "reply": True})
        return await asyncio.wait_for(comm.read(), 5)
    finally:
        comm.abort()


def said(address: str, own: certificates.Identity | None, message: dict[str, Any]) -> str:
    """Why the message was not done: the error in reply, or `closed` where there was none. Fails where it was
    done.
    """
    try:
        reply = asyncio.run(asked(address, own, message))
    except (OSError, TimeoutError):
        return "closed"
    assert isinstance(reply, dict), reply
    assert reply.get("status") in ("uncaught-error", "error"), reply
    error = reply["exception"]
    # With a traceback it comes as it was pickled, by a scheduler of this test.
    return repr(pickle.loads(error) if isinstance(error, bytes) else error)


OPERATIONS = ("run", "run_coroutine", "plugin-add", "upload_file", "update_data", "call_stack", "get_logs")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_worker_runs_nothing_for_the_laboratory_either(hosts: Loopback, operation: str) -> None:
    worker, own = hosts.address("load-1"), identity(hosts.certificates, LAB)
    assert asyncio.run(asked(worker, own, {"op": "ping"})) == b"pong"
    message = {"op": operation, "function": pickle.dumps(os.getpid), "wait": True}
    assert "disallowed" in said(worker, own, message)


def test_what_a_worker_unpickles_is_not_run(hosts: Loopback, tmp_path: Path) -> None:
    from distributed.protocol import to_serialize
    from distributed.protocol.serialize import ToPickle

    worker, own, there = hosts.address("load-1"), identity(hosts.certificates, LAB), tmp_path / "made"
    pickle.loads(pickle.dumps(Touch(there)))
    assert there.is_dir()  # it does what it should where pickles are not restricted
    there.rmdir()
    for wrapped in (to_serialize(Touch(there)), ToPickle(Touch(there))):
        message = {"op": "actor_execute", "actor": "x", "function": "y", "args": [wrapped]}
        assert "mkdir" in said(worker, own, message)
    # Of what the scheduler only passes on, it unpickles nothing; of the rest, no more than a worker.
    message = {"op": "identity", "n_workers": ToPickle(Touch(there))}
    assert "mkdir" in said(hosts.file.lab.scheduler, own, message)
    assert not there.exists()
    assert asyncio.run(asked(worker, own, {"op": "ping"})) == b"pong"


def test_a_name_that_is_unpickled_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from prony_hosts import pickles

    for module in ("prony.__main__", "prony_selftest.sections"):
        monkeypatch.delitem(sys.modules, module, raising=False)
        with pytest.raises(pickles.Refused):
            pickles.loads(f"c{module}\nmain\n.".encode())
        assert module not in sys.modules
    for value in (HostDescription, MeasuredHost, HostCheck, EnvironmentFault("a sentence")):
        assert type(pickles.loads(pickle.dumps(value))) is type(value)
    with pytest.raises(pickles.Refused, match="fingerprint"):
        pickles.loads(b"cprony.hosts.actors\nfingerprint\n.")


@pytest.mark.parametrize(
    "operation",
    ["run_function", "register_worker_plugin", "register_scheduler_plugin", "broadcast", "scatter"],
)
def test_the_scheduler_runs_nothing(hosts: Loopback, operation: str) -> None:
    own = identity(hosts.certificates, LAB)
    message = {"op": operation, "function": pickle.dumps(os.getpid), "plugin": pickle.dumps(Touch)}
    assert "disallowed" in said(hosts.file.lab.scheduler, own, message)


def test_tasks_and_actors_of_others_are_refused(hosts: Loopback, tmp_path: Path) -> None:
    hosts.address("load-1")
    security = identity(hosts.certificates, LAB).security()
    there = tmp_path / "made"
    with distributed.Client(
        hosts.file.lab.scheduler, security=security, timeout=10, set_as_default=False
    ) as client:
        for work in (
            client.submit(os.mkdir, str(there), pure=False),
            client.submit(lambda: there.mkdir(), pure=False),
            client.submit(Path.mkdir, there, pure=False),
            client.submit(Touch, there, actor=True),
        ):
            with pytest.raises(Exception, match=r"Prony's actors|deserializ"):
                work.result(timeout=10)
        with pytest.raises(Exception, match="disallowed"):
            client.run_on_scheduler(os.getpid)
    assert not there.exists()


def test_one_host_may_not_ask_another_nor_be_the_laboratory(hosts: Loopback) -> None:
    worker, own = hosts.address("load-1"), identity(hosts.certificates, ON_HOST)
    assert said(worker, own, {"op": "ping"}) == "closed"
    for operation in ("register-client", "terminate", "proxy", "gather", "unregister", "identity", "who_has"):
        message: dict[str, Any] = {"op": operation, "client": "x", "versions": {}}
        assert f"'{operation}'" in said(hosts.file.lab.scheduler, own, message)
    assert hosts.scheduler is not None
    assert hosts.scheduler.poll() is None
    reply = asyncio.run(asked(hosts.file.lab.scheduler, own, {"op": "heartbeat_worker", **HEARTBEAT}))
    assert reply["status"] == "missing"


BANDWIDTH: dict[str, Any] = {"total": 1, "workers": {}, "types": {}}
METRICS = {"bandwidth": BANDWIDTH, "digests_total_since_heartbeat": {}, "executing": 0, "memory": 0}
HEARTBEAT = {"address": "tls://127.0.0.1:1", "metrics": METRICS, "executing": {}}


async def stays(own: certificates.Identity, scheduler: str, *said: dict[str, Any]) -> bool:
    """Whether the scheduler keeps a worker that registers and then says this on its stream."""
    from prony_hosts.node import HostWorker

    worker = HostWorker(
        scheduler, name="stranger", role="load", host="127.0.0.1", port=0, security=own.security(), facts={}
    )
    await worker
    for one in said:
        worker.batched_send(one)
    try:
        await asyncio.wait_for(worker.finished(), 2)
    except TimeoutError:
        return True
    finally:
        await worker.close()
    return False


def test_a_registered_host_speaks_of_itself_only(hosts: Loopback) -> None:
    there, scheduler = hosts.address("load-1"), hosts.file.lab.scheduler
    own, lab = identity(hosts.certificates, ON_HOST), identity(hosts.certificates, LAB)
    status = {"op": "worker-status-change", "status": "closing", "stimulus_id": "x"}
    assert asyncio.run(stays(own, scheduler, {"op": "keep-alive"}))
    for said in (
        {**status, "worker": there},
        {"op": "cancel-keys", "client": "x", "keys": [], "force": True},
        {"op": "close-client", "client": "x"},
    ):
        assert not asyncio.run(stays(own, scheduler, {"op": "keep-alive"}, said))
    known = asyncio.run(asked(scheduler, lab, {"op": "identity", "n_workers": -1}))["workers"]
    assert known[there]["status"] == "running"


def test_a_worker_takes_nothing_from_a_host_in_the_schedulers_place(tmp_path: Path) -> None:
    with Loopback(tmp_path) as hosts:
        own = identity(hosts.certificates, ON_HOST)
        hosts.scheduler = start_scheduler(hosts.file, own, lives="stdin")
        assert hosts.workers["load-1"].wait(20) == 0


def test_the_laboratory_takes_nothing_from_a_host_in_the_schedulers_place(tmp_path: Path) -> None:
    with Loopback(tmp_path) as hosts:
        own = identity(hosts.certificates, ON_HOST)
        hosts.scheduler = start_scheduler(hosts.file, own, lives="stdin")
        with (
            pytest.raises(EnvironmentFault, match="certificate"),
            attached(hosts.file),
        ):
            pass


def test_who_has_no_certificate_of_this_authority_is_not_let_in(hosts: Loopback, tmp_path: Path) -> None:
    certificates.make(tmp_path / "others")
    other = identity(tmp_path / "others", LAB)
    for address in (hosts.address("load-1"), hosts.file.lab.scheduler):
        assert said(address, other, {"op": "identity"}) == "closed"
        assert said(address.replace("tls://", "tcp://"), None, {"op": "identity"}) == "closed"


def test_nothing_listens_on_all_interfaces(hosts: Loopback) -> None:
    hosts.address("load-1")
    assert hosts.scheduler is not None
    listening = [
        row.split()[3]
        for pid in (hosts.scheduler.pid, hosts.workers["load-1"].pid)
        for row in sockets_of(pid)
    ]
    assert len(listening) == 2  # one each: no dashboard, no metrics
    assert all(address.startswith("127.0.0.1:") for address in listening)


def sockets_of(pid: int) -> list[str]:
    """Listening TCP sockets as rows of `ss`-like columns, from /proc."""
    links = Path(f"/proc/{pid}/fd").iterdir()
    inodes = {text[8:-1] for link in links if (text := str(link.readlink())).startswith("socket:[")}
    rows = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                rows.append(f"{name} LISTEN 0 {_dotted(words[1])}")
    return rows


def _dotted(text: str) -> str:
    address, _, port = text.partition(":")
    if len(address) > 8:
        return f"[{address}]:{int(port, 16)}"
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(address))) + f":{int(port, 16)}"
