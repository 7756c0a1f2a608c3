"""Asks before a profiler is attached to a server that somebody else started."""

from __future__ import annotations

import pwd
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.cli.common import Common
    from prony.plan.plan import Plan
    from prony.plan.target import Url


def may_attach(plan: Plan, common: Common, *, several_hosts: bool) -> None:
    """Returns when every explained server may be attached to. Raises UsageError where one may not, or nobody
    can be asked.
    """
    cells = [cell for cell in plan.cells if cell.explain]
    if common.attach and not cells:
        raise UsageError("--attach goes with --explain, and nothing is explained here")
    if not cells:
        return
    if several_hosts:
        raise UsageError(
            "an explained trial attaches its profiler on this host, and the servers are on others; leave "
            "--explain out, or run prony on the server's host without --hosts"
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
            f"--explain finds no process of this host that listens at {at.url} and may be read; run Prony on "
            "the server's host, as its user or as root"
        )
    found = f"{'one or all of ' if len(pids) > 1 else ''}{_named(pids)}"
    if not sys.stdin.isatty():
        raise UsageError(
            f"--explain would attach a profiler to {found}, which Prony did not start; say so with --attach"
        )
    if not typer.confirm(f"Attach a profiler to {found}, which listens at {at.url}?", err=True):
        raise UsageError(f"no profiler is attached to {found}; leave --explain out")


def _named(pids: Sequence[int]) -> str:
    """`11 (sh) of root; 12, 13 (java) of app`. Under load the busiest is profiled, or all of them (perf)."""
    from prony.server import proc

    alike: dict[str, list[str]] = {}
    for pid in pids:
        name, who = proc.program(pid), proc.owner(pid)
        kind = (f" ({name})" if name else "") + ("" if who is None else f" of {_user(who)}")
        alike.setdefault(kind, []).append(str(pid))
    return "; ".join(f"{', '.join(numbers)}{kind}" for kind, numbers in alike.items())


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
