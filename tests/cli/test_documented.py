"""Help and docs agree: what docs name exists; commands and options of the short help are in the docs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from prony import seams
from prony.cli import lazy_commands, main
from prony.cli.shortened import USUAL, Command

ROOT = Path(__file__).parents[2]
FILES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PAGES = {page.name: page.read_text(encoding="utf-8") for page in FILES}
OF_EVERY_COMMAND = {"--help", "-h", "--version", "--verbose", "--install-completion", "--show-completion"}
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")


@cache
def commands() -> dict[str, Any]:
    """By their words, such as `results list`; not other tools' names, whose options are theirs."""
    by_name: dict[str, Any] = {}

    def add(command: Any, name: str) -> None:
        real = command.real() if isinstance(command, lazy_commands.LazyCommand) else command
        for below, one in getattr(real, "commands", {}).items():
            add(one, f"{name} {below}".strip())
        if name and not isinstance(real, lazy_commands.FrontEnd):
            by_name[name] = real

    add(typer.main.get_command(main.app), "")
    return by_name


def typed(one: Any) -> set[str]:
    """How an option may be written; empty for an argument."""
    return {word for word in (*one.opts, *one.secondary_opts) if word.startswith("-")}


def options(name: str) -> set[str]:
    return OF_EVERY_COMMAND.union(*map(typed, commands()[name].params))


def lines(text: str) -> list[str]:
    """Command lines of Prony: of a block, or between backquotes."""
    blocks = "\n".join(re.findall(r"```.*?\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    inline = re.findall(r"`prony ([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [*re.findall(r"^\s*(?:\$ )?prony (.*)$", blocks, re.MULTILINE), *inline]


@pytest.mark.parametrize("page", PAGES)
def test_a_command_line_in_the_docs_has_options_of_its_command(page: str) -> None:
    for line in lines(PAGES[page]):
        words = line.split()
        name = next((n for n in (" ".join(words[:2]), words[0]) if n in commands()), None)
        assert name is not None or not_named(words[0]), f"prony {line}"
        if name is not None:
            assert set(OPTION.findall(line)) <= options(name), f"prony {line}"


def not_named(word: str) -> bool:
    """Another tool's name, an option of `prony` itself, or a placeholder."""
    return word in seams.names(seams.FRONT_ENDS) or word.startswith("-") or not word[0].islower()


def test_command_lines_are_found_in_the_docs() -> None:
    assert sum(len(lines(text)) for text in PAGES.values()) > 100


def test_an_option_in_the_page_of_commands_exists() -> None:
    every = set().union(*map(options, commands()))
    assert set(OPTION.findall(PAGES["commands.md"])) <= every


def test_every_command_is_in_the_page_of_commands() -> None:
    table = PAGES["commands.md"].partition("## How a server")[0]
    assert [name for name in commands() if not all(word in table for word in name.split())] == []


def test_what_the_short_help_shows_is_in_the_docs() -> None:
    text = "\n".join(PAGES.values())
    missing = [
        (name, param.name)
        for name, command in commands().items()
        for param in command.params
        if isinstance(command, Command)
        and param.name in USUAL | command.callback.own  # type: ignore[union-attr]
        and not getattr(param, "hidden", False)
        and typed(param) - OF_EVERY_COMMAND
        and not any(re.search(rf"(?<![\w-]){word}(?![\w-])", text) for word in typed(param))
    ]
    assert missing == []
