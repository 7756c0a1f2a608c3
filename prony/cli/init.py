"""`prony init`: the files that keep a server's command line and its requests."""

from __future__ import annotations

from pathlib import Path, PurePath

from typer import Argument

from prony.errors import ExitCode, UsageError

SERVER, WORKLOAD = "server.yaml", "workload.yaml"
REQUESTS = """# Requests of one iteration, and the expected responses (docs/workloads.md).
title: GET /
users: 10
steps:
  - path: /
    expect: {status: [200]}
"""


def command(
    line: str = Argument(metavar="COMMAND", help="A command line with {port}, in quotes."),
) -> int:
    """Write a server.yaml and a workload.yaml for this command line into the current folder."""
    made = {SERVER: server_file(line), WORKLOAD: REQUESTS}
    there = [name for name in made if Path(name).exists()]
    if there:
        raise UsageError(f"{' and '.join(there)} exist in {Path.cwd()}; change them, or use another folder")
    for name, text in made.items():
        Path(name).write_text(text, encoding="utf-8")
    print(f"wrote {SERVER} and {WORKLOAD}; next: prony servers check . -w {WORKLOAD}")
    return ExitCode.OK


def server_file(line: str) -> str:
    """The text of a server.yaml. A JVM gets Prony's flags and agent. Raises UsageError."""
    import yaml

    from prony.server.command_line import parsed

    words, variables = parsed(line)
    if PurePath(words[0]).name == "java":
        words = ("{java}", "{jvm}", *words[1:])
    keys = {"title": line, "workdir": ".", "command": list(words)} | ({"env": variables} if variables else {})
    text = yaml.safe_dump(keys, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    return f"# How the server is started (docs/servers.md).\n{text}"
