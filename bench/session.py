"""A whole benchmark: available tools, rounds, and the resulting rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cases import Case
from bench.measure import Run, Setting, ToolFailed, run_once
from bench.nghttpd import INSTALL
from bench.rounds import turns
from bench.server import BODY, make_certificate
from bench.summary import Row, rows
from bench.tools import TOOLS, LoadGenerator, NotOffered, PeerLoad
from prony.errors import EnvironmentFault, UsageError
from prony.host.affinity import pin_self
from prony.host.partition import partition
from prony.host.resource_limits import raise_descriptors
from prony.server.cache import on_path
from prony_peers.kernel import process_cpu_s

MEASURED_FROM = 1 / 3
"""Warm-up as a share of a run, at most MAX_WARM_S."""
MAX_WARM_S = 0.5


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of a benchmark."""

    cases: tuple[Case, ...]
    tools: tuple[str, ...]
    """Names; unavailable tools become rows with the reason."""
    rounds: int
    seconds: int
    seed: int

    @property
    def warm_s(self) -> float:
        """Warm-up of each run."""
        return min(MAX_WARM_S, self.seconds * MEASURED_FROM)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a benchmark."""

    rows: list[Row]
    versions: dict[str, str]
    client_cpu: int
    server_cpu: int


def chosen_tools(names: Sequence[str]) -> tuple[str, ...]:
    """The named tools in their own order; without names all. Raises UsageError."""
    known = [tool.name for tool in TOOLS]
    for name in names:
        if name not in known:
            raise UsageError(f"--tools names '{name}'; expected one of {', '.join(known)}")
    return tuple(name for name in known if not names or name in names)


def run(plan: Plan, tell: Callable[[str], None]) -> Outcome:
    """Run all feasible cases. Raises EnvironmentFault if there is none."""
    client, server = two_cpus()
    raise_descriptors()
    # The benchmark itself mostly sleeps, on the side that is not measured.
    pin_self({server})
    if process_cpu_s(os.getpid()) is None:
        raise EnvironmentFault("this kernel does not report the CPU time of other processes; Linux is needed")
    reasons: dict[tuple[str, str], str] = {}
    wanted = [tool for tool in TOOLS if tool.name in plan.tools]
    programs = {tool.name: program for tool in wanted if (program := tool.find()) is not None}
    for tool in wanted:
        if tool.name not in programs:
            tell(f"{tool.name} is not installed: {tool.install}")
            for case in plan.cases:
                reasons[case.name, tool.name] = f"not installed: {tool.install}"
    if not programs:
        raise EnvironmentFault(
            "none of the chosen tools is installed; the lines above say how to install them"
        )
    with tempfile.TemporaryDirectory(prefix="prony-bench-") as folder:
        cases = _feasible(plan.cases, [tool.name for tool in wanted], reasons, tell)
        openssl = on_path("openssl")
        tls = any(case.tls for case in cases)
        certificate = make_certificate(openssl, Path(folder)) if tls and openssl else None
        setting = Setting(client, server, certificate, BODY)
        runs = _rounds(
            plan, cases, [tool for tool in wanted if tool.name in programs], programs, setting, reasons, tell
        )
    versions = {tool.name: tool.version(programs[tool.name]) for tool in wanted if tool.name in programs}
    return Outcome(rows(plan.cases, [tool.name for tool in wanted], runs, reasons), versions, client, server)


def two_cpus() -> tuple[int, int]:
    """(client, server). Raises EnvironmentFault if only one CPU is available."""
    cpus = partition()
    if cpus.shared:
        raise EnvironmentFault(
            f"the benchmark needs a CPU for the tool and another for the server. {cpus.note}".strip()
        )
    return cpus.client[-1], cpus.server[0]


def _feasible(
    cases: Sequence[Case],
    tools: Sequence[str],
    reasons: dict[tuple[str, str], str],
    tell: Callable[[str], None],
) -> list[Case]:
    """The feasible cases; missing requirements become the reasons of the other rows."""
    lacks: dict[str, str] = {}
    if on_path("openssl") is None:
        lacks |= {case.name: "no certificate: apt-get install openssl" for case in cases if case.tls}
    if on_path("nghttpd") is None:
        lacks |= {case.name: f"nghttpd is not installed: {INSTALL}" for case in cases if case.nghttpd}
    for reason in dict.fromkeys(lacks.values()):
        left_out = [name for name, why in lacks.items() if why == reason]
        tell(f"{reason}; left out: {', '.join(left_out)}")
    for name, reason in lacks.items():
        for tool in tools:
            reasons.setdefault((name, tool), reason)
    return [case for case in cases if case.name not in lacks]


def _rounds(
    plan: Plan,
    cases: Sequence[Case],
    tools: Sequence[LoadGenerator],
    programs: dict[str, Path],
    setting: Setting,
    reasons: dict[tuple[str, str], str],
    tell: Callable[[str], None],
) -> dict[tuple[str, str], dict[int, Run]]:
    runs: dict[tuple[str, str], dict[int, Run]] = {}
    given_up: set[tuple[str, str]] = set()
    last_round = 0
    for turn in turns(cases, tools, plan.rounds, plan.seed):
        key = (turn.case.name, turn.tool.name)
        if turn.round != last_round:
            last_round = turn.round
            tell(f"round {last_round} of {plan.rounds}")
        if key in given_up:
            continue
        request = PeerLoad(
            turn.case, "", plan.seconds, plan.warm_s, setting.body, setting.client_cpu, plan.seed
        )
        try:
            measured = run_once(turn.tool, programs[turn.tool.name], request, setting)
        except NotOffered as reason:
            reasons[key] = str(reason)
            given_up.add(key)
        except ToolFailed as reason:
            reasons[key] = f"failed in round {turn.round}: {reason}"
            tell(f"{turn.tool.name} in {turn.case.name}: {reason}")
        else:
            runs.setdefault(key, {})[turn.round] = measured
    return runs
