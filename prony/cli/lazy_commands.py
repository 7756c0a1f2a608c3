"""Commands as lines of the help, imported when they are run or completed: Prony's own and other packages'."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from prony import seams
from prony.cli.shortened import Command


class LazyCommand(TyperCommand):
    """Imports a command when it is run or completed."""

    key: str = ""
    """Of another package; empty: Prony's own."""
    where: str = ""
    """Of Prony's own: module:function."""

    def get_short_help_str(self, limit: int = 45) -> str:
        return seams.summary(seams.COMMANDS, self.key) if self.key else super().get_short_help_str(limit)

    def real(self) -> Any:
        """The command itself. Raises EnvironmentFault where its package is not installed."""
        module, _, function = self.where.partition(":")
        there = (
            getattr(import_module(module), function)
            if module
            else seams.need(seams.COMMANDS, self.key, f"prony {self.key}")
        )
        if not isinstance(there, typer.Typer):
            alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            alone.command(self.name, cls=Command if hasattr(there, "own") else None)(there)
            there = alone
        made = typer.main.get_command(there)
        made.name = self.name
        return made


class FrontEnd(TyperCommand):
    """A line in `prony --help`: the arguments are another tool's, which this parser does not read."""

    def get_short_help_str(self, limit: int = 45) -> str:  # noqa: ARG002
        return seams.summary(seams.FRONT_ENDS, str(self.name))


class Group(TyperGroup):
    """Commands, some in other packages."""

    _listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if not isinstance(command, LazyCommand) or self._listing:
            return command
        missing = command.key and not seams.installed(seams.COMMANDS, command.key)
        if ctx.resilient_parsing and missing:  # completion
            return command
        return command.real()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_commands(ctx, formatter)
        finally:
            self._listing = False


def own(app: typer.Typer, name: str, where: str, short_help: str) -> None:
    """Adds a command of this package. `where`: a module of it, and the function or typer app there."""
    cls = type("_OwnCommand", (LazyCommand,), {"where": f"{__package__}.{where}"})
    # Short help: the parser's library would cut the first sentence of the docstring.
    app.command(name, cls=cls, short_help=short_help)(_unread)


def add(app: typer.Typer, name: str, within: str = "") -> None:
    """Adds a command of another package, as `prony WITHIN NAME`."""
    key = f"{within} {name}".strip()
    app.command(name, cls=type("_LazyCommand", (LazyCommand,), {"key": key}))(_unread)


def front_end(app: typer.Typer, name: str) -> None:
    """Adds another tool's name; `prony.cli.main` hands its arguments over unread."""
    app.command(name, cls=FrontEnd)(_unread)


def _unread() -> int:
    raise AssertionError("prony.cli.main reads its arguments")
