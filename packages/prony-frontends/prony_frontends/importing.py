"""`prony import`: converts another tool's script into a Prony plan file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer

from prony import redaction
from prony.cli import options
from prony.errors import ExitCode, UsageError
from prony_frontends import front_end, front_ends, names

PREFIXES = frozenset(
    {"prony", "time", "exec", "nohup", "sudo", "env", "command", "do", "then", "else", "if", "!", "{"}
)
"""Words that a shell line may have before the tool."""


def command(
    script: str = typer.Argument(
        ...,
        metavar="SCRIPT",
        help="A tool's script (.jmx, .yml, .lua), a shell file with one line of a tool, or such a line.",
    ),
    rest: list[str] = typer.Argument(
        None, metavar="[-- ARGS]", help="Further arguments of the tool, such as wrk's URL."
    ),
    output: Path = typer.Option(..., "--output", "-o", help="The plan file to write."),
) -> int:
    """Convert another tool's script or command line into a plan for `prony run`."""
    from prony_frontends.base import explain

    options.writable(output, "--output")
    name, argv = tool_line(script, list(rest or ()))
    translated = front_end(name).translate(argv)
    output.write_text(explain(translated), encoding="utf-8")
    for note in translated.notes:
        typer.echo(f"prony: note: {redaction.text(str(note))}", err=True)
    typer.echo(f"{output} written; run it with: prony run {shlex.quote(str(output))}", err=True)
    return ExitCode.OK


def tool_line(script: str, rest: list[str]) -> tuple[str, list[str]]:
    """The tool and its arguments. Raises UsageError when neither name nor content identifies the tool."""
    path = Path(script)
    tools = [tool for tool in front_ends() if path.suffix.lower() in tool.script_endings]
    if tools and len(shlex.split(script.replace("'", ""))) == 1:
        if not path.is_file():
            raise UsageError(f"the script {script} does not exist; name a readable file")
        return tools[0].name, [*tools[0].before_script, script, *rest]
    return _from_line(_shell_text(path, script), script, rest)


def _shell_text(path: Path, script: str) -> str:
    try:
        if path.is_file():
            return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"{script}: cannot be read as text: {fault}") from fault
    return script


def _from_line(text: str, script: str, rest: list[str]) -> tuple[str, list[str]]:
    tool_lines: list[tuple[str, list[str]]] = []
    for line in text.replace("\\\n", " ").splitlines():
        for words in map(_without_prefix, _commands(line)):
            if words and Path(words[0]).name in names():
                _no_variables(line, words)
                tool_lines.append((Path(words[0]).name, words[1:]))
    if len(tool_lines) != 1:
        many = f"{len(tool_lines)}" if tool_lines else "none"
        endings = [ending for tool in front_ends() for ending in tool.script_endings]
        raise UsageError(
            f"'{script}' is not a script ({', '.join(endings)}); expected one command line of a tool "
            f"({', '.join(names())}), found {many}"
        )
    name, argv = tool_lines[0]
    return name, [*argv, *rest]


def _without_prefix(words: list[str]) -> list[str]:
    """The words from the tool on, without `prony`, `time` and environment assignments."""
    for place, word in enumerate(words):
        if word not in PREFIXES and re.match(r"[A-Za-z_]\w*=", word) is None:
            return words[place:]
    return []


def _no_variables(line: str, words: list[str]) -> None:
    """Raises UsageError for words that only a shell can expand: variables and command substitutions."""
    shown = re.sub(r"'[^']*'", "", line)
    for word in words:
        for expansion in re.findall(r"\$(?:[A-Za-z_]\w*|\{[^}]*\}|[0-9@*])|\$$|`", word):
            if expansion in shown and f"\\{expansion}" not in shown:
                raise UsageError(
                    f"'{line.strip()}': {expansion} has a value only in the shell; write the value "
                    '(or quote the line: prony import "…" -o plan.yaml)'
                )


def _commands(line: str) -> list[list[str]]:
    """The words of each command in a shell line, without redirections. Raises UsageError."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    to_file = False
    try:
        for word in lexer:
            if word and not word.strip(lexer.punctuation_chars):
                now = commands[-1]
                to_file = "<" in word or ">" in word
                if not to_file:
                    commands.append([])
                elif now and len(now[-1]) == 1 and now[-1].isdigit() and f" {now[-1]}{word}" in line:
                    now.pop()  # the number of a redirected stream, as in 2>&1
            elif to_file:
                to_file = False
            else:
                commands[-1].append(word)
    except ValueError as fault:
        if not any(name in line for name in names()):
            return []  # part of a quotation over several lines
        raise UsageError(f"invalid shell line '{line.strip()}': {fault}") from fault
    return commands
