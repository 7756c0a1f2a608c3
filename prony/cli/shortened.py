"""Help with the usual options; `--help-all` prints all."""

from __future__ import annotations

from inspect import Parameter
from typing import Any

from typer import Context, Exit, Option, echo
from typer.core import TyperCommand

USUAL = frozenset(
    {
        "workload", "method", "header", "body", "users", "rate", "duration", "requests", "warmup", "insecure",
        "quick", "window", "budget", "until_clear", "explain", "resume",
        "json", "report", "help", "help_all",
    }
)  # fmt: skip
"""In addition to a command's own."""
SHORT = "prony.short_help"
_ALL = "--help-all"


class Command(TyperCommand):
    """Of a function that `prony.cli.command.measures` made."""

    def get_params(self, ctx: Any) -> list[Any]:
        """While the short help is written, without the options that are not in it."""
        params = super().get_params(ctx)
        if not ctx.meta.get(SHORT):
            return params
        usual = USUAL | self.callback.own  # type: ignore[union-attr]
        return [param for param in params if param.name in usual]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        every = len(self.get_params(ctx))
        ctx.meta[SHORT] = _ALL not in ctx.meta
        super().format_options(ctx, formatter)
        more = every - len(self.get_params(ctx))
        ctx.meta[SHORT] = False
        if more:
            formatter.write(f"\n{more} more options: {ctx.command_path} {_ALL}\n")


def _everything(context: Context, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        context.meta[_ALL] = True
        echo(context.get_help())
        raise Exit


HELP_ALL = Parameter(
    "help_all",
    Parameter.KEYWORD_ONLY,
    default=Option(False, _ALL, is_eager=True, callback=_everything, help="Show every option and exit."),
    annotation=bool,
)
