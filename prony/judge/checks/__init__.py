"""The checks, one per file, in the order in which their findings are printed. Must not know the verdict.

Each is a pure function of (evidence, limits); it returns None when it does not apply to this trial.
"""

from __future__ import annotations

from collections.abc import Callable

from prony.evidence.trial import Evidence
from prony.judge.checks.arrivals import arrivals
from prony.judge.checks.bound_by import bound_by
from prony.judge.checks.client import client
from prony.judge.checks.conformance import conformance
from prony.judge.checks.connections import connections
from prony.judge.checks.content import content
from prony.judge.checks.counts import counts
from prony.judge.checks.descriptors import descriptors
from prony.judge.checks.errors import errors
from prony.judge.checks.host import host
from prony.judge.checks.identity import identity
from prony.judge.checks.isolation import isolation
from prony.judge.checks.little import little
from prony.judge.checks.ports import ports
from prony.judge.checks.samples import samples
from prony.judge.checks.schedule import schedule
from prony.judge.checks.stall import stall
from prony.judge.checks.steady import steady
from prony.judge.checks.think import think
from prony.judge.checks.warm import warm
from prony.judge.finding import Finding
from prony.judge.limits import CheckLimits

Check = Callable[[Evidence, CheckLimits], Finding | None]

CHECKS: tuple[Check, ...] = (
    # what explains the others comes first: a neighbour on the CPUs makes an idle-looking server
    errors,
    identity,
    counts,
    isolation,
    host,
    ports,
    descriptors,
    client,
    little,
    think,
    schedule,
    arrivals,
    bound_by,
    connections,
    steady,
    warm,
    samples,
    content,
    conformance,
    stall,
)
