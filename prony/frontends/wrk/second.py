"""wrk2: wrk's command line with a rate (`-R`), which is an open load. Must not offer load or judge."""

from __future__ import annotations

from collections.abc import Sequence

from prony.frontends import wrk
from prony.frontends.base import Context, FrontEnd, Translated
from prony.frontends.wrk.arguments import USAGE_2, WrongUsage, parse


def translate(argv: Sequence[str]) -> Translated:
    """wrk2's arguments as a load. Raises UsageError."""
    asked = parse(argv, second=True)
    if not asked.url:
        raise WrongUsage("wrk2: no URL was given")
    return wrk.translated(asked)


def run(argv: Sequence[str], context: Context) -> int:
    """One run, from the first line to the exit code."""
    return wrk.run(argv, context, second=True)


FRONT_END = FrontEnd(name="wrk2", usage=USAGE_2, translate=translate, run=run)
