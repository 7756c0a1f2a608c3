"""The short part of the conformance suite, once for every server and workload, before their first trial."""

from __future__ import annotations

from prony.conformance.result import CheckResult, CheckStatus, Conformance
from prony.evidence.trial import ConformanceFacts, Nonconformity
from prony.experiment.testbed import Testbed
from prony.plan.trial import CONFORMANCE_S, TrialPlan
from prony.server.spec import HttpVersion
from prony.targets import ServerUnderTest
from prony.trial.observer import TrialObserver

SHORT = ("answers", "keep-alive", "concurrent", "streams", "delay")
"""What a figure rests on; the rest is about clients that take no part in a measurement."""


_known: dict[tuple[object, ...], ConformanceFacts | None] = {}
"""For as long as this program runs: the points of a sweep are experiments of the same server and workload."""


def conformance_of(
    target: ServerUnderTest, plan: TrialPlan, testbed: Testbed, listener: TrialObserver
) -> ConformanceFacts | None:
    """What was found before the first trial of this server under this workload, on the CPUs that it has in a
    trial. None when nothing is built, or the server could not be asked: its trial will say why.
    """
    workload, built = plan.workload, target.built
    version = plan.spoken(target.http_version).connections.http_version
    spoken: HttpVersion = "2" if version == "2" else "1.1"
    if built is None:
        return None
    key = (
        target.name,
        built.spec.name,
        built.spec.file,
        built.key,
        workload.name,
        spoken,
        *workload.settings.items(),
    )
    if key not in _known:
        listener.phase("conformance", CONFORMANCE_S)
        if testbed.hosts is not None:
            found = testbed.hosts.conformance(target, workload, SHORT, spoken, plan.start_timeout_s)
        else:
            from prony.conformance.suite import check  # its own HTTP client: not for a server at a URL

            cpus = testbed.partition.server
            found = check(
                built, workload, only=SHORT, http_version=spoken, cpus=cpus,
                start_timeout_s=plan.start_timeout_s,
            )  # fmt: skip
        _known[key] = _facts(found) if found.started else None
        for result in found.failed if found.started else ():
            listener.note(f"{result.server} does not conform: {result.check}: {result.found}")
    return _known[key]


def _facts(found: Conformance) -> ConformanceFacts:
    counted = found.counted
    failed = found.failed
    return ConformanceFacts(
        passed=len(counted) - len(failed),
        checks=len(counted),
        failed=tuple(map(_nonconformity, failed)),
        declared=tuple(
            _nonconformity(result) for result in found.results if result.status is CheckStatus.DECLARED
        ),
    )


def _nonconformity(result: CheckResult) -> Nonconformity:
    return Nonconformity(check=result.check, found=result.found, expected=result.expected)
