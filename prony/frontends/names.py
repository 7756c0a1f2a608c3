"""Which front ends there are. Must not import them: `prony --help` only needs their names."""

from __future__ import annotations

SUMMARIES = {
    "ab": "ApacheBench: prony ab [flags] URL.",
    "fhb": "Faban's HTTP bench: prony fhb [flags] URL.",
    "artillery": "Artillery's command line: prony artillery run [flags] SCRIPT.",
    "jmeter": "JMeter without a window: prony jmeter -n -t PLAN.jmx [flags].",
    "wrk": "wrk, with its Lua scripts: prony wrk [flags] URL.",
}
"""Name (a module of this package that has a `FRONT_END`) -> its line in `prony --help`."""
