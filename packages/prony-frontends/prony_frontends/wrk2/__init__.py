"""`prony wrk2 [flags] URL`: wrk2's command line, an open load at a rate, its scripts and its report."""

from __future__ import annotations

from functools import partial

from prony_frontends._wrk.arguments import USAGE_2
from prony_frontends._wrk.run import run, translate
from prony_frontends.base import FrontEnd

FRONT_END = FrontEnd(
    name="wrk2", usage=USAGE_2, translate=partial(translate, second=True), run=partial(run, second=True)
)
