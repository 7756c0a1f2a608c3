"""Single requests outside the load: readiness, and the server's request count."""

from __future__ import annotations

from prony.load.contract import EngineLoad
from prony.load.preflight import Preflight
from prony.load.short import short_load, walk_once
from prony.plan.response import Capture, Expectation
from prony.plan.step import Step
from prony.plan.target import CountKeys, TlsOptions
from prony.plan.workload import Workload
from prony.server.address import Address


def _asking(url: str, step: Step) -> EngineLoad:
    """A load of a single request; certificates are not checked."""
    return short_load(url, Workload(name=step.name, steps=(step,)), tls=TlsOptions(insecure=True))


def number_at(address: Address, keys: CountKeys) -> float | None:
    """The number in a JSON response; None without one."""
    step = Step(name="count", path=keys.path, capture={"found": Capture(json_pointer=keys.pointer)})
    try:
        return float(walk_once(_asking(address.url, step), (step,)).values.get("found", ""))
    except ValueError:
        return None


def request_count(address: Address, keys: CountKeys | None) -> int | None:
    """Requests read so far; None when the server does not count or answer."""
    number = None if keys is None else number_at(address, keys)
    return None if number is None else int(number)


def status_probe(host: str, port: int, path: str = "/", status: int = 200, tls: bool = False) -> Preflight:
    """A request for a path that expects this status."""
    step = Step(name="ready", path=path, expect=Expectation(status=(status,)))
    return Preflight(_asking(Address(host, port, tls).url, step))
