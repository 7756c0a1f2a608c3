"""What a report cannot know beyond what its checks say: some of it always, some because of this host and this
plan. Pure.
"""

from __future__ import annotations

from prony.report.result import ResultView
from prony.report.wording import counted, ranges


def conditions(view: ResultView) -> tuple[str, ...]:
    """Sentences, the most important first."""
    said = [_load(view), *_host(view), *_always(view)]
    return tuple(sentence for sentence in said if sentence)


def _load(view: ResultView) -> str:
    loads = {cell.cell.trial.load.model for cell in view.cells}
    if loads != {"closed"}:
        return ""
    users = {cell.users for cell in view.cells}
    of = f" of {counted(next(iter(users)) or 0, 'user')}" if len(users) == 1 else ""
    return (
        f"The load was a closed loop{of}: a user sends the next request only after the last response. That "
        "shows how much a server carries, not how long requests wait that arrive whether or not it keeps up."
    )


def _host(view: ResultView) -> list[str]:
    said = []
    partition, host = view.partition, view.fingerprint
    if partition is not None and partition.shared:
        said.append(
            f"Server and client shared CPU {ranges(partition.server)}: what one used, the other missed. "
            "Ratios are comparable; the figures themselves are too low."
        )
    if host is not None and host.hypervisor:
        said.append(
            f"The host is a virtual machine ({host.hypervisor}). Its neighbours show only as steal time; "
            "what they did to shared caches and memory bandwidth does not show at all."
        )
    if host is not None and host.smt and partition is not None and not partition.shared:
        said.append(
            "The host's CPUs are hardware threads that share cores: server and client may have slowed each "
            "other although their CPU sets are disjoint."
        )
    return said


def _always(view: ResultView) -> list[str]:
    external = view.external
    said = [
        "Client and server talked over the loopback device of one host: no network card, cable or switch, "
        "and none of their interrupts. Figures over a network differ."
        if not external
        else "The network between client and server is part of every time.",
        "The servers ran with the settings of the plan below and their defaults otherwise. Nothing is said "
        "about how far tuning would carry each of them."
        if not external
        else "The server was already running: its settings, its age and its CPUs are not known.",
    ]
    if len({cell.cell.trial.workload.name for cell in view.cells}) == 1:
        said.append(
            "One workload was measured. Another request, response size or mix may order the servers "
            "differently."
        )
    said.append(
        "Intervals cover the variation between trials on this host on this day, not between hosts, "
        "kernels or versions."
    )
    return said
