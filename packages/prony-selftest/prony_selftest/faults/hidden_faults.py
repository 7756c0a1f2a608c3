"""Faults that leave rate and times plausible: memory, the client's quota, CPUs, bodies, paths."""

from __future__ import annotations

from functools import partial

from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.workload import Feeder, Workload
from prony_selftest.faults.disturbances import cpu_quota, memory_limit
from prony_selftest.faults.edited import sibling_busy, sibling_idle
from prony_selftest.faults.model import BODY, Entry, Setup, coded, conditional
from prony_selftest.faults.other_process import SHARED

ANSWERS = (*SHARED, "{host}", "{port}")
WORKS = (*ANSWERS, "works")
PAGES = (*WORKS, "pages")
MEMORY_BYTES = 48 * 2**20
"""The server's own memory and a third of its file."""
CACHES = (*WORKS, "caches")
ROWS = 5000


def items(distinct: int) -> Workload:
    """A path for each row of a feeder, of which so many differ."""
    rows = tuple((str(number % distinct),) for number in range(ROWS))
    feeder = Feeder(rows=rows, columns=("id",), order="sequence", at_end="recycle")
    expected = Expectation(status=(200,), body_bytes=len(BODY))
    step = Step(name="item", path="/items/${item.id}", expect=expected)
    return Workload(name="items", steps=(step,), feeders={"item": feeder})


HIDDEN: tuple[Entry, ...] = (
    Entry(61, "pages that are not in memory",
        "a control group has no room for the file that the server maps: its pages are read again and again",
        Setup(command=PAGES, disturbance=memory_limit(MEMORY_BYTES), needs=("memory",)), ("host",),
        Setup(command=PAGES), partial(coded, "host", "short_of_memory"), other_tools=False),
    Entry(62, "CPU quota of the load generator", "a control group limits the load generator to 1 % of a CPU",
        Setup(disturbance=cpu_quota(0.01, "client"), in_window=True, needs=("cgroup",)), ("client",), Setup(),
        partial(coded, "client", "throttled"), biased=("mean_ms",), other_tools=False),
    Entry(63, "a server that pins itself elsewhere",
        "the server sets its own affinity to every CPU of the host, the load generator's too",
        Setup(command=(*WORKS, "roams"), needs=("two-cpus",)), ("isolation",),
        Setup(command=(*WORKS, "pins")), partial(coded, "isolation", "repinned"), other_tools=False),
    Entry(64, "wrong bodies of the right length",
        "every fourth response is another page of the same length, and only the length is declared",
        Setup(command=(*ANSWERS, "forges")), ("content",), Setup(command=(*ANSWERS, "dates")),
        partial(coded, "content", "other_body"), other_tools=False),
    Entry(65, "a busy hardware thread beside the server's",
        "another process uses 80 % of a sibling that is in neither CPU set (edited: a guest has no siblings)",
        Setup(edited=sibling_busy), ("isolation",), Setup(edited=sibling_idle),
        partial(coded, "isolation", "siblings"), other_tools=False),
    Entry(66, "a helper outside the server's process tree",
        "a running server at a URL has work done by a daemon, whose CPU time is not counted as the server's",
        Setup(command=(*WORKS, "helper"), foreign=True), ("isolation",), Setup(command=WORKS, foreign=True),
        partial(conditional, "isolation"), other_tools=False),
    Entry(67, "few distinct paths", "the feeder's 5,000 rows repeat 20 paths, which the server caches",
        Setup(command=CACHES, workload=items(20)), ("urls",), Setup(command=CACHES, workload=items(ROWS)),
        partial(coded, "urls", "few"), other_tools=False),
)  # fmt: skip
