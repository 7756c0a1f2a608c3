"""`prony wrk [flags] URL`: wrk's command line, Lua scripts and report."""

from __future__ import annotations

from prony_frontends._wrk.arguments import USAGE
from prony_frontends._wrk.run import run, translate
from prony_frontends.base import FrontEnd

__all__ = ["FRONT_END", "run", "translate"]

FRONT_END = FrontEnd(
    name="wrk", usage=USAGE, translate=translate, run=run, script_endings=(".lua",), before_script=("-s",)
)
