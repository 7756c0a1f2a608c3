"""Starts a host's worker over ssh, with `~/.ssh/config` and the agent's keys; host keys are checked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
from dataclasses import dataclass, field
from typing import Any

from prony.errors import EnvironmentFault
from prony_hosts.file import Host, ssh_parts
from prony_hosts.process import Settings

CONNECT_S = 15.0
READY_S = 40.0
END_S = 10.0
LAST_WORDS_S = 2.0
LAST_LINES = 8


@dataclass
class SshWorker:
    """A worker that lives as long as this connection, or, `detached`, on its own."""

    host: Host
    connection: Any
    process: Any
    address: str
    said: list[str] = field(default_factory=list)

    async def end(self) -> None:
        """Closes the worker's standard input, waits for its end, and closes the connection."""
        with contextlib.suppress(Exception):
            self.process.stdin.write_eof()
            await asyncio.wait_for(self.process.wait_closed(), END_S)
        self.connection.close()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.connection.wait_closed(), END_S)


async def start(host: Host, settings: Settings, *, detached: bool = False) -> SshWorker:
    """Connects, starts the worker, waits for its registration. Raises EnvironmentFault with a remedy."""
    import asyncssh

    ssh = host.keys.ssh
    assert ssh is not None
    connection = await _connected(host)
    words = [host.keys.prony, "hosts", "worker", "--settings", "-", *(["--detach"] if detached else [])]
    try:
        process = await connection.create_process(shlex.join(words))
        process.stdin.write(settings.line())
        said: list[str] = []
        address = await asyncio.wait_for(_ready(process, said), READY_S)
    except (TimeoutError, asyncssh.Error, OSError) as fault:
        connection.abort()
        raise EnvironmentFault(f"{host.name}: not ready in {READY_S:g} s: {fault or 'no reply'}") from fault
    except EnvironmentFault:
        connection.abort()
        raise
    if address is None:
        with contextlib.suppress(Exception):
            said.append(await asyncio.wait_for(process.stderr.read(), LAST_WORDS_S))
            # The exit code arrives separately, after the end of the outputs.
            await asyncio.wait_for(process.wait_closed(), LAST_WORDS_S)
        code = process.exit_status
        connection.abort()
        raise EnvironmentFault(
            f"{host.name}: '{words[0]} hosts worker' did not start (exit code {code}); is this version of "
            f"Prony with its extra hosts installed there, and is prony: its path in hosts.yaml?",
            details="\n".join("".join(said).strip().splitlines()[-LAST_LINES:]) or None,
        )
    return SshWorker(host, connection, process, address)


async def _connected(host: Host) -> Any:
    import asyncssh

    user, name, port = ssh_parts(host.keys.ssh or "")
    given: dict[str, Any] = {"username": user, "port": port}
    try:
        return await asyncio.wait_for(
            asyncssh.connect(
                name,
                keepalive_interval=5,
                keepalive_count_max=2,
                **{key: value for key, value in given.items() if value is not None},
            ),
            CONNECT_S,
        )
    except asyncssh.HostKeyNotVerifiable as fault:
        raise EnvironmentFault(
            f"{host.name}: the host key of {name} is not known here or has changed ({fault.reason}); compare "
            f"it with the host's own and accept it once: ssh {host.keys.ssh}"
        ) from fault
    except asyncssh.PermissionDenied as fault:
        raise EnvironmentFault(
            f"{host.name}: ssh to {host.keys.ssh} was refused ({fault.reason}); set it up without a "
            "password: with a key in the agent or in ~/.ssh/config"
        ) from fault
    except (TimeoutError, OSError, asyncssh.Error) as fault:
        raise EnvironmentFault(
            f"{host.name}: ssh to {host.keys.ssh} failed: {str(fault) or f'no reply within {CONNECT_S:g} s'}"
        ) from fault


async def _ready(process: Any, said: list[str]) -> str | None:
    """The worker's address; None at the output's end. Raises EnvironmentFault with its message."""
    while line := await process.stdout.readline():
        try:
            reply = json.loads(line)
        except ValueError:
            said.append(line)  # a login banner, or an old Prony's error
            continue
        if isinstance(reply, dict) and "fault" in reply:
            raise EnvironmentFault(str(reply["fault"]))
        if isinstance(reply, dict) and "ready" in reply:
            return str(reply["ready"])
    return None
