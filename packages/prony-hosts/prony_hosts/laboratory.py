"""The laboratory's connection to its hosts: scheduler, workers, actors and lost hosts."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from prony.errors import EnvironmentFault
from prony.load.base import HostLost
from prony_hosts.actor import Abandoned, HostActor
from prony_hosts.facts import Facts
from prony_hosts.file import Host
from prony_hosts.liveness import Liveness
from prony_hosts.load.clock import RoundTrip

T = TypeVar("T")
CALL_S = 30.0
POLL_S = 0.5
"""Interval at which a waiting call checks for the loss of its host; there may be many waiting calls."""
SCHEDULER_HEARD_S = 1.0
"""Time for all connections to be seen closed after the scheduler has ended."""
END_S = 5.0
"""Grace for calls in progress when the laboratory ends."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A host whose worker is registered and runs the same Prony."""

    host: Host
    address: str
    """The worker's address, such as tls://10.0.0.3:41234."""
    facts: Facts
    roles: tuple[str, ...]
    """Roles that its worker serves."""

    @property
    def reached_at(self) -> str:
        """Address at which load hosts reach a server on this host."""
        return self.host.keys.address or urlsplit(self.address).hostname or ""


class Remote:
    """An actor on a host. Calls raise the method's own error, HostLost when the host vanishes, and
    EnvironmentFault after `timeout_s`.
    """

    def __init__(self, task: Any, attached: Attached, laboratory: Laboratory) -> None:
        self._task = task  # Dask's future; the worker forgets the actor with it
        self.attached, self._laboratory = attached, laboratory
        self.on_round_trip: Callable[[RoundTrip], None] = lambda _trip: None
        """Called on the event loop with each sign of life, which compares the two clocks."""

    @property
    def name(self) -> str:
        """The host's name."""
        return self.attached.host.name

    def submit(self, method: str, *args: Any, **options: Any) -> Future[Any]:
        """Starts a call; the future holds the method's result."""
        return self._laboratory.run(self._called(method, args, options))

    def call(self, method: str, *args: Any, timeout_s: float = CALL_S, **options: Any) -> Any:
        """Calls the method and returns its result."""
        return self.wait(self.submit(method, *args, **options), method, timeout_s)

    def wait(self, future: Future[T], what: str, timeout_s: float = CALL_S) -> T:
        """Result of a submitted call."""
        return self._laboratory.wait(future, self.name, what, timeout_s)

    def end(self) -> None:
        """Ends the actor; a lost host has ended by itself."""
        self._laboratory.liveness.forget(self.name)
        with contextlib.suppress(HostLost):
            self.call("end")

    @property
    def ended(self) -> bool:
        """Whether the scheduler saw the worker's connection close."""
        return bool(self._task.status != "finished")

    async def alive(self) -> None:
        """Polls the actor. Raises OSError where nothing listens, HostLost after the lease's end."""
        sent_ns = time.monotonic_ns()
        reply = await self._laboratory.execute(self.attached.address, self._task.key, "alive", (), {})
        received_ns = time.monotonic_ns()
        self.on_round_trip(RoundTrip(sent_ns, await self._result(reply), received_ns))

    async def _called(self, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        try:
            reply = await self._laboratory.execute(
                self.attached.address, self._task.key, method, args, options
            )
        except OSError as fault:
            raise await self._gone("its worker has ended") from fault
        return await self._result(reply)

    async def _result(self, reply: dict[str, Any]) -> Any:
        """Raises the method's error, or HostLost when the lease had run out."""
        if reply["status"] == "OK":
            return reply["result"]
        fault = reply["exception"]
        if isinstance(fault, Abandoned):
            raise await self._gone(str(fault)) from fault
        raise fault

    async def _gone(self, why: str) -> HostLost:
        """The fault of a host that ended; a scheduler that ended first is the cause."""
        until_s = time.monotonic() + SCHEDULER_HEARD_S
        while self._laboratory.scheduled and time.monotonic() < until_s:
            await asyncio.sleep(SCHEDULER_HEARD_S / 10)
        return HostLost(self._laboratory.liveness.ended(self.name, self._laboratory.why_ended(why)))


class Laboratory:
    """The attached hosts of a file. Methods may be called from any thread but the event loop's."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.hosts: tuple[Attached, ...] = ()
        self.faults: dict[str, EnvironmentFault] = {}
        """Why workers could not be started, by name of the host."""
        self.liveness = Liveness(client.loop.asyncio_loop)
        self._remotes: list[Remote] = []
        self._under_way: set[asyncio.Task[Any]] = set()

    def run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Schedules the coroutine on the event loop."""
        return asyncio.run_coroutine_threadsafe(self._noted(work), self._client.loop.asyncio_loop)

    async def _noted(self, work: Coroutine[Any, Any, T]) -> T:
        """Tracks the call for `close`: a call to a silent host lasts until its connection ends."""
        own = asyncio.current_task()
        assert own is not None
        self._under_way.add(own)
        try:
            return await work
        finally:
            self._under_way.discard(own)

    def wait(self, future: Future[T], name: str, what: str, timeout_s: float = CALL_S) -> T:
        """The future's result. Raises HostLost, EnvironmentFault after `timeout_s`."""
        until_s = time.monotonic() + timeout_s
        while True:
            lost = self._why_lost(name)
            if lost is not None:
                future.cancel()
                raise HostLost(lost)
            try:
                return future.result(timeout=POLL_S)
            except TimeoutError:
                if future.done():  # meanwhile, or the error is the method's own
                    return future.result()
            if time.monotonic() > until_s:
                future.cancel()
                raise EnvironmentFault(f"{name}: no reply to '{what}' within {timeout_s:g} s")

    def attached(self, name: str) -> Attached:
        """The host with this name. Raises KeyError."""
        return next(host for host in self.hosts if host.host.name == name)

    def of_role(self, role: str) -> tuple[Attached, ...]:
        """Servers' hosts or load hosts, in the order of the file."""
        return tuple(host for host in self.hosts if host.host.role == role)

    def start(self, actor: type[HostActor], name: str, *args: Any) -> Remote:
        """Starts an actor on the host with this name. Raises HostLost, EnvironmentFault."""
        attached = self.attached(name)
        task = self.wait(self.run(self._started(actor, attached, args)), name, f"start {actor.__name__}")
        remote = Remote(task, attached, self)
        self._remotes.append(remote)
        self.liveness.watch(name, remote.alive)
        return remote

    async def execute(
        self, address: str, key: str, method: str, args: tuple[Any, ...], options: dict[str, Any]
    ) -> dict[str, Any]:
        """Calls an actor's method on its worker directly. Returns `status`, and `result` or `exception`."""
        from distributed.protocol import to_serialize

        reply = await self._client.rpc(address).actor_execute(
            actor=key,
            function=method,
            args=[to_serialize(value) for value in args],
            kwargs={name: to_serialize(value) for name, value in options.items()},
        )
        return dict(reply)

    async def _started(self, actor: type[HostActor], attached: Attached, args: tuple[Any, ...]) -> Any:
        task = self._client.submit(
            actor,
            *args,
            actor=True,
            key=f"{actor.__name__}-{attached.host.name}-{uuid.uuid4().hex[:8]}",
            workers=[attached.address],
            allow_other_workers=False,
            resources={attached.host.role: 1},
            retries=0,
            pure=False,
        )
        await task
        return task

    def lost(self) -> dict[str, str]:
        """Why each lost host is lost, by name."""
        for remote in self._remotes:
            if remote.ended:
                self.liveness.ended(remote.name, self.why_ended())
        return self.liveness.lost()

    def _why_lost(self, name: str) -> str | None:
        """Why this host is lost; None while it is not. Cheap: every waiting call polls it."""
        if any(remote.ended for remote in self._remotes if remote.name == name):
            return self.liveness.ended(name, self.why_ended())
        return self.liveness.why_lost(name)

    @property
    def scheduled(self) -> bool:
        """Whether the scheduler's connection is known to be open."""
        return bool(self._client.status == "running")

    def why_ended(self, why: str = "its worker has ended") -> str:
        """Why a host ended; workers end with their scheduler."""
        return why if self.scheduled else "the laboratory's scheduler has ended"

    def workers(self) -> dict[str, dict[str, Any]]:
        """The scheduler's record of each worker, by the worker's name."""
        identity = self._identity()
        return {str(record["name"]): {**record, "address": at} for at, record in identity["workers"].items()}

    def alone(self) -> bool:
        """Whether no other laboratory uses the scheduler."""
        return int(self._identity()["laboratories"]) <= 1

    def _identity(self) -> dict[str, Any]:
        future = self.run(self._client.scheduler.identity(n_workers=-1))
        try:
            return dict(future.result(timeout=CALL_S))
        except (OSError, TimeoutError) as fault:
            raise EnvironmentFault("the laboratory's scheduler has ended; start again") from fault

    def terminate(self) -> None:
        """Ends the scheduler and with it its workers."""
        with contextlib.suppress(OSError, TimeoutError):
            self.run(self._client.scheduler.terminate()).result(timeout=CALL_S)

    def end(self) -> None:
        """Ends every actor started here."""
        for remote in self._remotes:
            with contextlib.suppress(EnvironmentFault, OSError):
                remote.end()
        self._remotes.clear()

    def close(self) -> None:
        """Waits for all work on the event loop, before it ends."""
        with contextlib.suppress(OSError, TimeoutError):
            self.run(self._nothing_under_way()).result(timeout=CALL_S)

    async def _nothing_under_way(self) -> None:
        await self.liveness.end()
        left = self._under_way - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=END_S)
