"""What other packages put into the laboratory, and what it does without them.

A package names what it has as entry points, and none is imported before it is needed. Prony's own stand here
as well: help and completion name a command whose package is not installed, with the line that installs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, PackageNotFoundError, distribution, entry_points
from typing import Any

from prony.errors import EnvironmentFault

COMMANDS, FRONT_ENDS, EXPORTS, HOOKS, SCHEMAS = (
    "prony.commands",
    "prony.front_ends",
    "prony.exports",
    "prony.hooks",
    "prony.schemas",
)
"""The groups of entry points. A command is a function that typer reads, or a typer app; a front end is a
function from its argument list, its own name first, to an exit code; an export is a
`prony.report.exports.Format`; a schema is the type of JSON that is printed.
"""


@dataclass(frozen=True, slots=True)
class Known:
    """One of Prony's own."""

    package: str
    help: str = ""


FRONTENDS, HOSTS, SERVE, EXPLAIN, CONFORMANCE, SELFTEST, PEERS = (
    f"prony-{name}" for name in ("frontends", "hosts", "serve", "explain", "conformance", "selftest", "peers")
)
OWN: dict[tuple[str, str], Known] = {
    (COMMANDS, "second-opinion"): Known(PEERS, "Cross-check with other load generators."),
    (COMMANDS, "hosts"): Known(HOSTS, "Several hosts: check, start and end them."),
    (COMMANDS, "explain"): Known(EXPLAIN, "Where does its CPU time go?"),
    (COMMANDS, "aa"): Known(SELFTEST, "How often is a server called different from itself?"),
    (COMMANDS, "selftest"): Known(SELFTEST, "Are injected faults detected, without false alarms?"),
    (COMMANDS, "serve"): Known(SERVE, "All results in a browser, with trends."),
    (COMMANDS, "import"): Known(FRONTENDS, "Another tool's script as a plan file."),
    (COMMANDS, "servers check"): Known(CONFORMANCE, "Does a server answer as its workloads declare?"),
    (COMMANDS, "results publish"): Known(SERVE, "Write a folder to publish: file, page and main figures."),
    (COMMANDS, "results push"): Known(SERVE, "Send one experiment to a search engine."),
    (FRONT_ENDS, "ab"): Known(FRONTENDS, "ApacheBench's command line and report."),
    (FRONT_ENDS, "artillery"): Known(FRONTENDS, "Artillery's command line, scripts and report."),
    (FRONT_ENDS, "fhb"): Known(FRONTENDS, "Faban's HTTP bench and its two checks."),
    (FRONT_ENDS, "h2load"): Known(FRONTENDS, "h2load's command line and report, over HTTP/2 and HTTP/1."),
    (FRONT_ENDS, "jmeter"): Known(FRONTENDS, "JMeter's command line without its GUI, and its test plans."),
    (FRONT_ENDS, "wrk"): Known(FRONTENDS, "wrk's command line, Lua scripts and report."),
    (FRONT_ENDS, "wrk2"): Known(
        FRONTENDS, "wrk2's command line, an open load at a rate, its scripts and its report."
    ),
    **{(EXPORTS, name): Known(FRONTENDS) for name in ("hgrm", "hlog", "jtl", "wrk")},
    **{(EXPORTS, name): Known(SERVE) for name in ("elasticsearch", "markdown", "openmetrics", "parquet")},
    **{(EXPORTS, name): Known(EXPLAIN) for name in ("collapsed", "jfr", "pprof")},
    (HOOKS, "hosts"): Known(HOSTS),
    (HOOKS, "listeners"): Known(SERVE),
    (HOOKS, "conformance"): Known(CONFORMANCE),
    (HOOKS, "profilers"): Known(EXPLAIN),
    (HOOKS, "attaching"): Known(EXPLAIN),
    (HOOKS, "explanations"): Known(EXPLAIN),
    (HOOKS, "peers"): Known(PEERS),
    (HOOKS, "cross-check"): Known(PEERS),
}


@cache
def _points(package: str | None, group: str) -> EntryPoints:
    """Of this package; None: of all, which reads the metadata of everything that is installed."""
    try:
        if package is None:
            return entry_points(group=group)
        return distribution(package).entry_points.select(group=group)
    except PackageNotFoundError:
        return EntryPoints()


def _point(group: str, name: str) -> EntryPoint | None:
    known = OWN.get((group, name))
    points = _points(None if known is None else known.package, group)
    return next((one for one in points if one.name == name), None)


def own(group: str) -> tuple[str, ...]:
    """Prony's own of a group, installed or not."""
    return tuple(name for known, name in OWN if known == group)


def names(group: str) -> tuple[str, ...]:
    """Everything of a group, Prony's own in their order, then others'."""
    return tuple(dict.fromkeys([*own(group), *(one.name for one in _points(None, group))]))


def summary(group: str, name: str) -> str:
    """What it is, in a line: without importing it."""
    known = OWN.get((group, name))
    if known is not None:
        return known.help if installed(group, name) else f"{known.help} ({_line(known)})"
    point = _point(group, name)
    assert point is not None, f"{name} is not among names({group})"
    return f"Of the package {point.dist.name if point.dist is not None else point.module}."


def installed(group: str, name: str) -> bool:
    """Whether there is a package that has it."""
    return _point(group, name) is not None


def found(group: str, name: str) -> Any:
    """What stands behind a name, imported now; None where its package is not installed."""
    one = _point(group, name)
    return None if one is None else one.load()


def need(group: str, name: str, what: str) -> Any:
    """The same, which is there. `what` begins the sentence. Raises EnvironmentFault where the package is not
    installed.
    """
    one = found(group, name)
    if one is None:
        known = OWN[group, name]
        raise EnvironmentFault(
            f"{what} needs the package {known.package}, which is not installed; {_line(known)}"
        )
    return one


def _line(known: Known) -> str:
    return f"install it: pip install 'prony[{known.package.removeprefix('prony-')}]'"
