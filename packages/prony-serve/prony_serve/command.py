"""`prony serve`: the web page of all stored results."""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from prony.cli import options
from prony.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from prony_serve.web.access import Network
    from prony_serve.web.site import Site

PORT = 8321
BACKLOG = 128
STOP_S = 2
"""Grace period for open event streams at shutdown."""
MOST_HEAD_BYTES = 32 * 1024


def command(
    db: options.Db = None,
    host: str = typer.Option("127.0.0.1", "--host", metavar="ADDRESS", help="Address to listen on."),
    port: int = typer.Option(PORT, "--port", help="Port; 0: any free port."),
    token_file: Path | None = typer.Option(
        None, "--token-file", metavar="FILE", help="File with the token that every request needs."
    ),
    trusted_header: str | None = typer.Option(
        None,
        "--trusted-header",
        metavar="NAME",
        help="Header in which a proxy names the logged-in user; requests without it are refused.",
    ),
    trusted_proxy: list[str] | None = typer.Option(
        None,
        "--trusted-proxy",
        metavar="ADDRESS",
        help="Address or network of that proxy [default: this host]; repeatable.",
    ),
    allow_host: list[str] | None = typer.Option(
        None, "--allow-host", metavar="NAME", help="Host name of this server; repeatable."
    ),
) -> int:
    """Show all results in a browser: search, compare, trends with change points, what runs now.

    On 127.0.0.1 without a password; another address needs --token-file or --trusted-header.
    """
    if not 0 <= port <= 65535:
        raise UsageError(f"--port is {port}; expected 0 to 65535")
    if trusted_proxy and trusted_header is None:
        raise UsageError("--trusted-proxy needs --trusted-header NAME")
    if token_file is None and trusted_header is None and not _loopback(host):
        raise UsageError(
            f"--host {host} is reachable from other hosts; add --token-file FILE, or --trusted-header NAME "
            "behind a proxy with a log-in"
        )
    from prony.store import Store
    from prony_serve.web.access import Rules, read_token
    from prony_serve.web.site import Site

    rules = Rules(
        token=None if token_file is None else read_token(token_file),
        trusted_header=trusted_header,
        trusted_proxies=() if trusted_header is None else _networks(trusted_proxy or ["127.0.0.0/8", "::1"]),
    )
    store = Store.open(db)
    listening = _listening(host, port)
    address, bound = listening.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    typer.echo(f"Results in {store.where}: http://{shown}:{bound}/")
    if not _loopback(host) and rules.token is not None:
        typer.echo("The token and all pages are sent unencrypted; put a TLS proxy in front to encrypt them.")
    _serve(Site(store, rules), tuple(allow_host or ()), listening)
    return 0


def _serve(site: Site, names: tuple[str, ...], listening: socket.socket) -> None:
    """Runs until interrupted."""
    import uvicorn

    from prony_serve.web.app import create
    from prony_serve.web.connections import Connection

    config = uvicorn.Config(
        create(site, names),
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        http=Connection,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        timeout_graceful_shutdown=STOP_S,
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn re-raises Ctrl-C and SIGTERM after its shutdown
        return
    finally:
        listening.close()


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as fault:
        raise UsageError(f"--host is '{host}', not an address of this host: {fault.strerror}") from fault
    try:
        return socket.create_server(where[:2], family=family, backlog=BACKLOG)
    except OSError as fault:
        reason = os.strerror(fault.errno) if fault.errno else fault
        raise EnvironmentFault(f"{host}:{port}: {reason}; choose another --host or --port") from fault


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _networks(given: list[str]) -> tuple[Network, ...]:
    networks = []
    for text in given:
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError as fault:
            raise UsageError(f"--trusted-proxy '{text}'; expected an address or a network") from fault
    return tuple(networks)
