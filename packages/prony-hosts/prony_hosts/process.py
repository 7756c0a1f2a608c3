"""Scheduler and worker as processes. Settings come as a JSON line on standard input; a line reports
readiness; SIGTERM, a command or the end of standard input ends them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from prony.errors import EnvironmentFault, PronyError, UsageError
from prony.server.cache import cache_dir
from prony_hosts.certificates import Identity

if TYPE_CHECKING:
    from distributed import Security

Lives = Literal["stdin", "scheduler", "ever"]
"""Lifetime: until standard input ends, while the scheduler is up, or until stopped."""
FIRST_CONTACT_S = 30.0
AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a scheduler or, with a name, of a worker."""

    scheduler: str
    lives: Lives
    identity: Identity | None
    """None: plain TCP."""
    name: str = ""
    role: str = ""
    listen: str = ""
    """A worker's listening address; empty: this host's address towards the scheduler."""
    port: int = 0

    def line(self) -> str:
        """The settings as the process reads them."""
        return json.dumps(asdict(self)) + "\n"

    @staticmethod
    def read(line: str) -> Settings:
        """Settings from a line. Raises UsageError."""
        try:
            fields: dict[str, Any] = json.loads(line)
            own = fields.pop("identity")
            return Settings(**fields, identity=Identity(**own) if own else None)
        except (ValueError, TypeError, KeyError, AttributeError) as fault:
            raise UsageError(
                f"the settings on standard input cannot be read ({fault}); prony hosts up and the "
                "commands with --hosts write them"
            ) from fault

    @property
    def security(self) -> Security | None:
        """For Dask."""
        return self.identity.security() if self.identity else None


def own_address(scheduler: str) -> str:
    """This host's address towards the scheduler. Raises EnvironmentFault."""
    parts = urlsplit(scheduler)
    try:
        kind, *_, target = socket.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.connect(target)  # sends nothing
            return str(probe.getsockname()[0])
    except OSError as fault:
        raise EnvironmentFault(
            f"no route to {parts.hostname} from this host ({fault.strerror}); "
            "check the scheduler's address and the routes"
        ) from fault


def serve(settings: Settings, ready: Callable[[str], None], waits: Callable[[], None] = lambda: None) -> None:
    """Runs the scheduler or the worker until its end. `ready` gets its address; `waits` is called before each
    wait for a scheduler. Raises EnvironmentFault.
    """
    from prony_hosts.node import prepare

    prepare()
    asyncio.run(_worker(settings, ready, waits) if settings.name else _scheduler(settings, ready))


async def _scheduler(settings: Settings, ready: Callable[[str], None]) -> None:
    from prony_hosts.node import LabScheduler

    parts = urlsplit(settings.scheduler)
    assert parts.hostname is not None
    scheduler = LabScheduler(
        host=parts.hostname, port=parts.port or 0, protocol=parts.scheme, security=settings.security
    )
    try:
        await scheduler
    except OSError as fault:
        raise EnvironmentFault(
            f"the scheduler cannot listen on {settings.scheduler}: {fault.strerror or fault}; is that an "
            "address of this host, and is the port free?"
        ) from fault
    ready(scheduler.address)
    await _either(scheduler.finished(), _stop_event(settings.lives).wait())
    await scheduler.close()


async def _worker(settings: Settings, ready: Callable[[str], None], waits: Callable[[], None]) -> None:
    """Starts a new worker for each new scheduler, while `lives` is "ever"."""
    stopped = _stop_event(settings.lives)
    while not stopped.is_set():
        waits()
        worker = _new_worker(settings)
        first_s = None if settings.lives == "ever" else FIRST_CONTACT_S
        try:
            started = await _either(_started(worker), stopped.wait(), within_s=first_s)
        except RuntimeError as fault:  # Dask's for any failed start
            await worker.close()
            if settings.lives != "ever":
                raise EnvironmentFault(_why_not(settings, fault)) from fault
            await _either(asyncio.sleep(AGAIN_S), stopped.wait())
            continue
        if started:
            ready(worker.address)
            await _either(worker.finished(), stopped.wait())
        await worker.close()
        if not started and not stopped.is_set():
            raise EnvironmentFault(
                f"no scheduler at {settings.scheduler} within {FIRST_CONTACT_S:g} s; is it running there, "
                "and does a firewall let its port through?"
            )
        if settings.lives != "ever":
            return
        await _either(asyncio.sleep(AGAIN_S), stopped.wait())


def _why_not(settings: Settings, fault: RuntimeError) -> str:
    """Why the worker was not accepted, or cannot listen."""
    cause = str(fault.__cause__ or fault)
    if "name taken" in cause:
        return (
            f"a worker '{settings.name}' is already registered at {settings.scheduler}; end it "
            "(prony hosts down), or give this host another name"
        )
    return f"the worker '{settings.name}' could not start: {cause}"


async def _either(
    first: Coroutine[Any, Any, object], other: Coroutine[Any, Any, object], *, within_s: float | None = None
) -> bool:
    """Waits for the first of two and cancels the rest; whether it was `first`. Raises its error."""
    tasks = [asyncio.ensure_future(work) for work in (first, other)]
    await asyncio.wait(tasks, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    ended = tasks[0].done()
    for task in tasks:
        task.cancel()
    if ended:
        tasks[0].result()
    return ended


def _new_worker(settings: Settings) -> Any:
    from prony_hosts.facts import facts
    from prony_hosts.node import HostWorker

    return HostWorker(
        settings.scheduler,
        name=settings.name,
        role=settings.role,
        host=settings.listen or own_address(settings.scheduler),
        port=settings.port,
        security=settings.security,
        facts=facts().model_dump(),
    )


async def _started(worker: Any) -> None:
    await worker


def _stop_event(lives: Lives) -> asyncio.Event:
    """Set by SIGTERM, SIGINT and SIGHUP, and for `stdin` lifetimes by the end of standard input."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)
    if lives == "stdin":

        def wait() -> None:
            while os.read(sys.stdin.fileno(), 4096):
                pass
            loop.call_soon_threadsafe(stopped.set)

        threading.Thread(target=wait, daemon=True, name="stdin").start()
    return stopped


def detached() -> int:
    """Runs `main` in a process of its own, passes the settings on, prints its first line and ends."""
    log = cache_dir("hosts") / f"worker-{os.getpid()}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "prony_hosts.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(sys.stdin.readline())
    process.stdin.close()
    print(process.stdout.readline(), end="", flush=True)
    return 0


def main() -> int:
    """Reads settings from standard input; prints `ready` or the fault as a JSON line."""
    from prony.errors import ExitCode

    def say(**what: str) -> None:
        print(json.dumps(what), flush=True)

    try:
        serve(Settings.read(sys.stdin.readline()), lambda address: say(ready=address))
    except PronyError as fault:
        say(fault=str(fault))
        return fault.exit_code
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
