"""`prony import`: another tool's script as a Prony plan file. Must not run it."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from prony.cli import options
from prony.errors import ExitCode, UsageError
from prony.frontends.names import SUMMARIES

BY_ENDING = {".jmx": "jmeter", ".yml": "artillery", ".yaml": "artillery", ".lua": "wrk"}
"""What a file's name says of the tool."""
BEFORE_SCRIPT = {"jmeter": ["-n", "-t"], "artillery": ["run"], "wrk": ["-s"]}
"""What the tool's command line has before the script."""


def command(
    script: str = typer.Argument(
        ...,
        metavar="SCRIPT",
        help="A .jmx, .yml or .lua file, a shell file with one line of a tool, or such a line in quotes.",
    ),
    rest: list[str] = typer.Argument(
        None, metavar="[-- ARGS]", help="More of the tool's own arguments, such as wrk's URL."
    ),
    output: Path = typer.Option(..., "--output", "-o", help="The plan file to write."),
) -> int:
    """Translate a script of wrk, ab, JMeter, Artillery or fhb into a plan that `prony run` runs."""
    from prony.frontends.base import explain
    from prony.frontends.registry import front_end

    options.writable(output, "--output")
    name, argv = tool_line(script, list(rest or ()))
    translated = front_end(name).translate(argv)
    output.write_text(explain(translated), encoding="utf-8")
    for note in translated.notes:
        typer.echo(f"prony: note: {note}", err=True)
    typer.echo(f"{output} written; run it with: prony run {shlex.quote(str(output))}", err=True)
    return ExitCode.OK


def tool_line(script: str, rest: list[str]) -> tuple[str, list[str]]:
    """The tool and its arguments. Raises UsageError when neither the name nor the content says which."""
    path = Path(script)
    tool = BY_ENDING.get(path.suffix.lower())
    if tool is not None and len(shlex.split(script.replace("'", ""))) == 1:
        if not path.is_file():
            raise UsageError(f"the script {script} is not there; name a file that can be read")
        return tool, [*BEFORE_SCRIPT[tool], script, *rest]
    return _from_line(_shell_text(path, script), script, rest)


def _shell_text(path: Path, script: str) -> str:
    try:
        if path.is_file():
            return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"{script}: cannot be read as text: {fault}") from fault
    return script


def _from_line(text: str, script: str, rest: list[str]) -> tuple[str, list[str]]:
    found: list[tuple[str, list[str]]] = []
    for line in text.replace("\\\n", " ").splitlines():
        words = _words(line)
        if words[:1] == ["prony"]:
            words = words[1:]
        if words and Path(words[0]).name in SUMMARIES:
            found.append((Path(words[0]).name, words[1:]))
    if len(found) != 1:
        many = f"{len(found)} of them" if found else "none"
        raise UsageError(
            f"'{script}' is no .jmx, .yml or .lua file; expected one line of a tool "
            f"({', '.join(SUMMARIES)}), found {many}"
        )
    name, argv = found[0]
    return name, [*argv, *rest]


def _words(line: str) -> list[str]:
    """The words of a shell line up to the first redirection, pipe or other command. Raises UsageError."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[str] = []
    try:
        for word in lexer:
            if word and not word.strip(lexer.punctuation_chars):
                numbered = found and len(found[-1]) == 1 and found[-1].isdigit()
                # The number of a redirected stream belongs to it: 2>&1.
                return found[:-1] if numbered and f" {found[-1]}{word}" in line else found
            found.append(word)
    except ValueError as fault:
        raise UsageError(f"'{line.strip()}' is no shell line: {fault}") from fault
    return found
