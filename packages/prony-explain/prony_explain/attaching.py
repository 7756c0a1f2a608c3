"""Asks for consent before a profiler is attached to a server that Prony did not start."""

from __future__ import annotations

import pwd
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from prony.errors import UsageError
from prony_explain.processes import uid_of

if TYPE_CHECKING:
    from prony.cli.common import Common
    from prony.plan.plan import Plan
    from prony.plan.target import Url


def may_attach(plan: Plan, common: Common, *, several_hosts: bool) -> None:
    """Returns if profilers may be attached. Raises UsageError on refusal, or without a terminal."""
    cells = [cell for cell in plan.cells if cell.explain]
    if common.attach and not cells:
        raise UsageError("--attach needs --explain")
    if not cells:
        return
    if several_hosts:
        raise UsageError(
            "--explain attaches its profiler on this host, but the servers are on others; leave it out, or "
            "run prony on the server's host without --hosts"
        )
    from prony.plan.target import Url

    for at in dict.fromkeys(cell.target for cell in cells if isinstance(cell.target, Url)):
        if not common.attach:
            _ask(at)


def _ask(at: Url) -> None:
    from prony.targets.external import RunningExternal

    pids = RunningExternal(at).pids()
    if not pids:
        raise UsageError(
            f"--explain needs a readable process of this host that listens at {at.url}; run Prony on the "
            "server's host, as its user or as root"
        )
    target = f"{'one or all of ' if len(pids) > 1 else ''}{_named(pids)}"
    if not sys.stdin.isatty():
        raise UsageError(f"--explain would attach to {target}, which Prony did not start; allow it: --attach")
    if not typer.confirm(f"Attach a profiler to {target}, which listens at {at.url}?", err=True):
        raise UsageError(f"no profiler attached to {target}; leave --explain out")


def _named(pids: Sequence[int]) -> str:
    """`11 (sh) of root; 12, 13 (java) of app`. The busiest is profiled, or all of them (perf)."""
    from prony.server import proc

    alike: dict[str, list[str]] = {}
    for pid in pids:
        name, who = proc.program(pid), uid_of(pid)
        kind = (f" ({name})" if name else "") + ("" if who is None else f" of {_user(who)}")
        alike.setdefault(kind, []).append(str(pid))
    return "; ".join(f"{', '.join(numbers)}{kind}" for kind, numbers in alike.items())


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
