"""What a report does not know: some of it always, some because of this host and this plan. Pure."""

from __future__ import annotations

from prony.judge.finding import Status
from prony.report.model import ExperimentView
from prony.report.summary import counting, join
from prony.report.wording import counted, ranges


def not_known(view: ExperimentView) -> tuple[str, ...]:
    """Sentences, the most important first."""
    said = [_trials(view), _load(view), *_host(view), *_checks(view)]
    said += [
        "Client and server talked over the loopback device of one machine: no network card, no cable, "
        "no switch, and none of their interrupts. Figures over a network differ.",
        "The servers ran with the settings that the plan below shows and with their defaults otherwise. "
        "Nothing is said about how far tuning would carry each of them.",
        "One workload was measured. Another request, answer size or mix may order the servers differently.",
        "Intervals cover the variation between fresh processes on this machine on this day, "
        "not between machines, kernels or versions.",
    ]
    return tuple(s for s in said if s)


def _trials(view: ExperimentView) -> str:
    fewest = min((len(counting(view, s.address)) for s in view.servers), default=0)
    if view.quick:
        return (
            f"This was a quick run: {counted(fewest, 'trial')} per server where a comparison needs "
            "at least 5, a short window and a capped warm-up. Take it as a first look."
        )
    return ""


def _load(view: ExperimentView) -> str:
    loads = [t.record.evidence.load for t in view.trials]
    if not loads or loads[0].model != "closed":
        return ""
    users = loads[0].users
    of = f" of {counted(users, 'user')}" if users else ""
    return (
        f"The load was a closed loop{of}: a user sends the next request only after the answer to the last. "
        "That shows how much a server carries. It does not show how long people wait who arrive whether "
        "or not the server keeps up."
    )


def _host(view: ExperimentView) -> list[str]:
    said = []
    partition, host = view.partition, view.fingerprint
    if partition is not None and partition.shared:
        said.append(
            f"Server and client shared CPU {ranges(partition.server)}: what one used, the other missed. "
            "Ratios are still comparable; the figures themselves are too low."
        )
    if host is not None and host.hypervisor:
        said.append(
            f"The host is a virtual machine ({host.hypervisor}): what its neighbours did shows only as "
            "stolen time, and shared caches and memory bandwidth not at all."
        )
    if host is not None and host.smt and partition is not None and not partition.shared:
        said.append(
            "The host's CPUs are hardware threads that share cores: server and client may have slowed "
            "each other although their CPU sets are disjoint."
        )
    return said


def _checks(view: ExperimentView) -> list[str]:
    blind = {
        f.check for t in view.trials if t.counts for f in t.judgement.findings if f.status is Status.UNKNOWN
    }
    if not blind:
        return []
    return [f"These checks could not be made, because a counter could not be read: {join(sorted(blind))}."]
