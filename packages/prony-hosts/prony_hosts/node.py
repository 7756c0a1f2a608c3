"""Dask's scheduler and worker without an HTTP server and without handlers that run arbitrary code; each side
of a TLS connection is authenticated.

Trust (docs/hosts.md): the holder of the laboratory's certificate may run Prony's actors on every host. A
host's certificate only lets a worker register.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import dask.config
from dask._task_spec import Task
from distributed import Client, Scheduler, Security, Worker
from distributed.core import Server, Status
from distributed.threadpoolexecutor import ThreadPoolExecutor
from tornado.httpserver import HTTPServer

from prony_hosts.actor import HostActor
from prony_hosts.certificates import LABORATORY
from prony_hosts.pickles import Refused, restrict

ACTOR_THREADS = 16
"""Concurrent method calls on a worker."""
TCP_TIMEOUT = "12s"
"""A connection without acknowledgements for this long is closed on both sides; Dask's ten probes allow no
less than 11 s. Leases end sooner.
"""
CONNECT_TIMEOUT = "5s"
WORKER_HANDLERS = frozenset(
    {"actor_attribute", "actor_execute", "connection_stream", "free_keys", "gather", "get_data", "identity",
     "keys", "ping", "terminate", "versions"}
)  # fmt: skip
SCHEDULER_HANDLERS = frozenset(
    {"connection_stream", "gather", "heartbeat_worker", "identity", "ncores", "proxy", "register-client",
     "register-worker", "terminate", "unregister", "versions", "who_has"}
)  # fmt: skip
FROM_WORKERS = frozenset({"close", "heartbeat_worker", "register-worker"})
"""Requests to the scheduler that a host's certificate allows."""
ON_A_WORKERS_STREAM = frozenset(
    {"close-stream", "keep-alive", "log-event", "long-running", "release-worker-data", "task-erred",
     "task-finished", "worker-status-change"}
)  # fmt: skip
"""Messages allowed after registration; Dask reads them as a list."""
CONFIG = {
    "distributed.comm.timeouts.tcp": TCP_TIMEOUT,
    "distributed.comm.timeouts.connect": CONNECT_TIMEOUT,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.scheduler.worker-ttl": "10s",
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.client.heartbeat": "1s",
}


def prepare() -> None:
    """Sets up Dask in this process, unpickling included. Call it before starting anything of Dask."""
    dask.config.set(CONFIG)
    for name in ("distributed", "tornado", "asyncssh"):
        for logger in (
            name,
            *(child for child in logging.root.manager.loggerDict if child.startswith(f"{name}.")),
        ):
            logging.getLogger(logger).setLevel(logging.CRITICAL)
    restrict()


class _Quiet(Server):  # type: ignore[misc]
    """Common to scheduler and worker."""

    only: frozenset[str]

    def start_http_server(self, routes: Any, *_args: Any, **_options: Any) -> None:
        """No-op: Dask's server of dashboard and metrics is not started."""
        from distributed.http.routing import RoutingApplication

        self.http_application = RoutingApplication(routes)
        self.http_server = HTTPServer(self.http_application)
        self.http_server.address, self.http_server.port = "", 0

    def bar(self) -> None:
        """Blocks all handlers that Prony does not need."""
        self.blocked_handlers = sorted(set(self.handlers) - self.only)

    async def _handle_comm(self, comm: Any) -> None:
        self.admit(comm)
        await super()._handle_comm(comm)

    def admit(self, comm: Any) -> None:
        raise NotImplementedError


def _is_laboratory(comm: Any) -> bool:
    """Whether the peer holds the laboratory's certificate. Plain TCP has none: every peer counts."""
    if not str(comm.peer_address).startswith("tls://"):
        return True
    subject = (comm.extra_info.get("peercert") or {}).get("subject", ())
    return (("commonName", LABORATORY),) in subject


class WrongScheduler(OSError):
    """The server at the scheduler's address is not the laboratory's scheduler."""


class LabClient(Client):  # type: ignore[misc]
    """Closes connections to a scheduler without the laboratory's certificate."""

    async def _start(self, *args: Any, **options: Any) -> Any:
        connect = self.rpc.connect

        async def connected(address: str, timeout: float | None = None) -> Any:
            comm = await connect(address, timeout)
            try:
                if address == self.scheduler.address:
                    self._admit(comm)
            except WrongScheduler:
                self.rpc.reuse(address, comm)  # closed: the pool drops it
                raise
            return comm

        self.rpc.connect = connected
        return await super()._start(*args, **options)

    async def _ensure_connected(self, timeout: float | None = None) -> None:
        await super()._ensure_connected(timeout=timeout)
        if self.scheduler_comm is not None and not self.scheduler_comm.closed():
            self._admit(self.scheduler_comm.comm)

    def _admit(self, comm: Any) -> None:
        if not _is_laboratory(comm):
            comm.abort()
            raise WrongScheduler("the server there does not have the laboratory's certificate")


class _OfAWorker:
    """A connection with a host's certificate: requests, or the worker's stream after registration."""

    def __init__(self) -> None:
        self._registered: str | None = None

    def check(self, message: Any) -> None:
        """Raises Refused."""
        for item in message if isinstance(message, (list, tuple)) else (message,):
            if not isinstance(item, dict):
                continue
            operation = item.get("op")
            if operation not in (FROM_WORKERS if self._registered is None else ON_A_WORKERS_STREAM):
                raise Refused(f"a host's certificate does not allow '{operation}'")
            if operation == "register-worker":
                self._registered = str(item.get("address"))
            elif self._registered is not None and item.get("worker", self._registered) != self._registered:
                raise Refused(f"a host's certificate does not allow '{operation}' of another host")


class LabScheduler(_Quiet, Scheduler):  # type: ignore[misc]
    """The laboratory's scheduler, on one address, with the laboratory's certificate."""

    only = SCHEDULER_HANDLERS

    def __init__(self, *, host: str, port: int, protocol: str, security: Security | None) -> None:
        super().__init__(
            host=host, port=port, protocol=f"{protocol}://", security=security, dashboard=False, extensions={}
        )
        self.bar()
        for name in ("update-data", "cancel-keys", "subscribe-topic", "unsubscribe-topic", "log-event"):
            self.stream_handlers[name] = _unheard

    def admit(self, comm: Any) -> None:
        """Lets a host's worker register and send heartbeats only."""
        if _is_laboratory(comm):
            return
        read, filtered = comm.read, _OfAWorker()

        async def only_a_workers(*args: Any, **options: Any) -> Any:
            message = await read(*args, **options)
            filtered.check(message)
            return message

        comm.read = only_a_workers

    def identity(self, *args: Any, **options: Any) -> dict[str, Any]:
        """Dask's identity, with the number of connected laboratories."""
        record: dict[str, Any] = super().identity(*args, **options)
        return {**record, "laboratories": len(self.clients.keys() & self.client_comms.keys())}

    async def update_graph(self, client: str, *args: Any, **options: Any) -> None:
        """Accepts tasks from the laboratory's clients only: a worker's stream has the same handlers."""
        if client in self.clients:
            await super().update_graph(client, *args, **options)


class HostWorker(_Quiet, Worker):  # type: ignore[misc]
    """A host's worker: runs Prony's actors for the holder of the laboratory's certificate."""

    only = WORKER_HANDLERS

    def __init__(
        self,
        scheduler: str,
        *,
        name: str,
        role: str,
        host: str,
        port: int,
        security: Security | None,
        facts: Mapping[str, object],
    ) -> None:
        threads = ThreadPoolExecutor(ACTOR_THREADS, thread_name_prefix="actor")
        self._scratch = tempfile.TemporaryDirectory(prefix="prony-worker-")
        startup: dict[str, Callable[[Worker], object]] = {"prony": lambda _worker: dict(facts)}
        super().__init__(
            scheduler,
            name=name,
            resources={role: 1},
            nthreads=1,
            host=host,
            port=port,
            protocol=scheduler.split("://", maxsplit=1)[0],
            security=security,
            dashboard=False,
            memory_limit=0,
            extensions={},
            startup_information=startup,
            local_directory=self._scratch.name,
            executor={"actor": threads},
        )
        self.bar()

    def admit(self, comm: Any) -> None:
        """Closes connections from other hosts."""
        if not _is_laboratory(comm):
            comm.abort()

    async def handle_scheduler(self, comm: Any) -> None:
        """Takes tasks from the laboratory's scheduler only and closes the connection to any other."""
        if not _is_laboratory(comm):
            comm.abort()
        await super().handle_scheduler(comm)

    async def execute(self, key: Any, *, stimulus_id: str) -> Any:
        task = self.state.tasks[key]
        spec = task.run_spec
        kind = spec.func if isinstance(spec, Task) else type(spec)
        if not (isinstance(kind, type) and issubclass(kind, HostActor) and key in self.state.actors):
            task.run_spec = Task(key, _refuse, str(getattr(kind, "__qualname__", kind)))
        return await super().execute(key, stimulus_id=stimulus_id)

    async def actor_execute(
        self, actor: Any = None, function: Any = None, args: Any = (), kwargs: Any = None
    ) -> dict[str, Any]:
        """Public methods only."""
        if str(function).startswith("_"):
            raise Refused(f"{function}: not a method of an actor")
        reply: dict[str, Any] = await super().actor_execute(
            actor=actor, function=function, args=args, kwargs=kwargs
        )
        return reply

    def actor_attribute(self, actor: Any = None, attribute: Any = None) -> dict[str, Any]:
        """Raises Refused: actors have methods only."""
        raise Refused(f"{attribute} of {actor}: attributes of an actor are not read")

    async def close(self, *args: Any, **options: Any) -> Any:
        """Stops whatever the actors started, then closes."""
        if self.status not in (Status.closing, Status.closed, Status.failed):
            for actor in list(self.state.actors.values()):
                if isinstance(actor, HostActor):
                    await self.loop.asyncio_loop.run_in_executor(None, actor.abandon)
        try:
            return await super().close(*args, **options)
        finally:
            self._scratch.cleanup()


def _unheard(**_message: object) -> None:
    """Ignores a message; without a handler it would end the stream."""


def _refuse(name: str) -> None:
    raise Refused(f"{name}: a host runs Prony's actors only")
