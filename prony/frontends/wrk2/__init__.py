"""`prony wrk2 [flags] URL`: wrk2's command line, an open load at a rate, its scripts and its report.

wrk2 is wrk with a rate, so all of it is in prony.frontends.wrk.
"""

from __future__ import annotations

from prony.frontends.wrk.second import FRONT_END

__all__ = ["FRONT_END"]
