"""The options that `prony sweep` and `prony capacity` share: how a point is measured. Must not check them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Target = Annotated[
    str,
    typer.Argument(help="A URL (http://…) of a running server, or one of the catalogue (prony servers)."),
]
Workload = Annotated[str | None, typer.Option("--workload", "-w", help="Which requests.")]
Window = Annotated[
    str | None,
    typer.Option("--window", help="Measured part of a trial [default: 10s, of a server of ours 30s]."),
]
WarmUp = Annotated[
    str | None,
    typer.Option(
        "--warmup", help="Of a URL: load before it [default: 3s]; of a server of ours: the longest."
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Shorter windows, a first look.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Of the order of trials and of all draws.")]
Driver = Annotated[str, typer.Option("--driver", help="auto, io_uring or epoll.")]
ServerCpus = Annotated[str | None, typer.Option("--server-cpus", help="CPUs for the server.")]
ClientCpus = Annotated[str | None, typer.Option("--client-cpus", help="CPUs for the engine.")]
Jdk = Annotated[str | None, typer.Option("--jdk", help="JDK of a server of ours.")]
Db = Annotated[str | None, typer.Option("--db", help="Where results are kept, a file or an SQLAlchemy URL.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Report = Annotated[Path | None, typer.Option("--report", help="Write a self-contained HTML page.")]
