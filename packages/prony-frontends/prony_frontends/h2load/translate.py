"""h2load's command line into a load: clients are connections, and each of their streams is a user."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from prony.errors import UsageError
from prony.plan.load import ClosedLoad, Connections, Load, Measured, OpenLoad, SteadyWindow, WholeRun
from prony.plan.step import Step
from prony.plan.target import TlsOptions
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Scenario, Workload
from prony_frontends.base import Refused, Translated
from prony_frontends.h2load import walks
from prony_frontends.h2load.arguments import TOOL, H2loadArguments
from prony_frontends.h2load.uris import Requested

AGENT = "h2load nghttp2/1.52.0"
LONGEST_WAIT_S = 60.0
"""h2load itself waits for ever, unless -N is given."""
MOST_KEPT = 1_000_000
"""Requests whose times are kept one by one, as h2load does itself; of more, histograms."""
RATES_OVER = 0.98
"""The share of a run of known length over which each client's rate is taken: that span must end before the
run does.
"""
LEAST_WINDOW = 65_535
"""Of a connection, by RFC 9113."""
USUAL_BITS = 30


def translated(asked: H2loadArguments, wanted: Requested) -> Translated:
    """The same clients, streams and requests. Raises UsageError for a load that cannot be offered."""
    https = wanted.target.https
    version = asked.http_version(https)
    if https and asked.suites:
        instead = "leave it out: TLS takes the best that both sides have, and the report says which"
        raise Refused(asked.suites[0], TOOL, None, "a choice of ciphers or groups", instead)
    streams = asked.streams if version == "2" else 1
    notes = [f"{flag} changes nothing here" for flag in (*asked.inert, *asked.suites)]
    try:
        steps = [_step(asked, wanted, path, number) for number, path in enumerate(wanted.paths, 1)]
        load, workload, measured = _shaped(asked, wanted, steps, streams, notes)
        trial = TrialPlan(
            workload=workload,
            load=load,
            measured=measured,
            warm_up=fixed(asked.warm_up_s if asked.duration_s else 0.0),
            connections=_connections(asked, version, streams > 1 or bool(wanted.at_ms), notes),
            request_timeout_ms=max(1, round((asked.inactive_s or LONGEST_WAIT_S) * 1000)),
            preflight=False,
            scaling_probe=not isinstance(measured, SteadyWindow),
            threads=asked.threads,
            rate_groups=None if keeps_all(asked) else asked.clients,
            rate_span_ms=_rate_span_ms(asked),
        )
    except ValidationError as fault:
        reason = str(fault.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"{TOOL}: the load cannot be offered: {reason}") from fault
    target = wanted.target.model_copy(update={"tls": TlsOptions(insecure=True, sni=asked.sni)})
    return Translated(TOOL, target, trial, f"{TOOL} {wanted.target.url}", tuple(notes))


def requests_of(asked: H2loadArguments, wanted: Requested) -> int | None:
    """How many requests there will be; None where time ends the run."""
    if asked.duration_s:
        return None
    if wanted.at_ms:
        return asked.clients * len(wanted.at_ms)
    return 1 if asked.requests is None else asked.requests


def keeps_all(asked: H2loadArguments) -> bool:
    """Whether a row is kept for every request: always where a line for each is asked for."""
    return asked.log is not None or (not asked.duration_s and (asked.requests or 1) <= MOST_KEPT)


def _rate_span_ms(asked: H2loadArguments) -> int:
    over_s = asked.warm_up_s + asked.duration_s if asked.duration_s else 1.0
    return max(1, round(over_s * RATES_OVER * 1000))


def _connections(asked: H2loadArguments, version: str, shared: bool, notes: list[str]) -> Connections:
    if version == "1.1":
        depth = 1 if asked.data is not None else asked.streams
        return Connections(pipeline=depth, tls_resumption=False)
    window, whole = 2**asked.window_bits - 1, 2**asked.connection_window_bits - 1
    if not window:
        raise Refused("-w", TOOL, None, "0, a window in which no response fits", "use 1 to 30")
    if whole < LEAST_WINDOW:
        notes.append(f"-W {asked.connection_window_bits} is 16: no connection has a smaller window")
    return Connections(
        http_version="2",
        count=asked.clients if shared else None,
        stream_window_bytes=None if asked.window_bits == USUAL_BITS else window,
        connection_window_bytes=None
        if asked.connection_window_bits == USUAL_BITS
        else max(LEAST_WINDOW, whole),
        header_table_bytes=asked.table_bytes,
        tls_resumption=False,
    )


def _step(asked: H2loadArguments, wanted: Requested, path: str, number: int) -> Step:
    method = "GET" if asked.data is None else "POST"
    own = (
        {"user-agent": AGENT}
        if wanted.target.unix is None
        else {"Host": wanted.authority, "user-agent": AGENT}
    )
    for name, value in asked.headers:
        if name == ":method":
            method = value
        elif name == ":authority":
            own["Host"] = value
        elif name.startswith(":"):
            raise Refused("-H", TOOL, None, f"the pseudo header {name}", "use :authority or :method")
        elif name in own and name != "user-agent":
            raise Refused("-H", TOOL, None, f"the header {name} twice", "join its values in one header")
        else:
            own["Host" if name == "host" else name] = value
    return Step.model_validate(
        {
            "name": f"uri-{number}" if len(wanted.paths) > 1 else "request",
            "path": literal(path),
            "method": method,
            "headers": {name: literal(value) for name, value in own.items()},
            "body_file": None if asked.data is None else str(asked.data.absolute()),
        }
    )


def literal(text: str) -> str:
    """Text in which nothing is a placeholder."""
    return text.replace("${", "$${")


def _shaped(
    asked: H2loadArguments, wanted: Requested, steps: Sequence[Step], streams: int, notes: list[str]
) -> tuple[Load, Workload, Measured]:
    """Who sends what, and until when."""
    title = f"{steps[0].method} {wanted.paths[0]}"
    total = requests_of(asked, wanted)
    until_s = asked.active_s or None
    measured: Measured = WholeRun(total_requests=total, duration_s=until_s)
    if asked.duration_s and asked.warm_up_s:
        measured = SteadyWindow(window_s=asked.duration_s)
    elif asked.duration_s:
        measured = WholeRun(duration_s=min(asked.duration_s, until_s or asked.duration_s))

    def walked(scenarios: Sequence[Scenario]) -> Workload:
        return Workload(name=TOOL, title=title, scenarios=tuple(scenarios))

    plain = Workload(name=TOOL, title=title, steps=tuple(steps))
    if wanted.at_ms:
        load, lines = walks.timed(asked.clients, steps, wanted.at_ms)
        return load, walked(lines), measured
    if asked.per_client_s:
        return _at_a_rate(asked, asked.clients * streams, steps), plain, measured
    ramp = None if asked.rate is None else walks.Ramp(asked.rate, asked.rate_period_s)
    found = walks.walks(asked.clients, streams, len(steps), total)
    if ramp is None:
        found = walks.merged(found)
    if walks.length(found) > walks.MOST_STEPS:
        notes.append("all streams begin with the first URI: there are too many to begin at different ones")
        return ClosedLoad(users=asked.clients * streams), plain, measured
    if len(found) > 1:
        several, scenarios = walks.groups(found, steps, ramp)
        return several, walked(scenarios), measured
    (only,) = found
    if only.rounds is not None:
        measured = WholeRun(iterations_per_user=only.rounds, duration_s=until_s)
    starts = {} if ramp is None else walks.ramped(ramp, only.users)
    one = Workload(name=TOOL, title=title, steps=only.entries(steps))
    return ClosedLoad(users=only.users, **starts), one, measured


def _at_a_rate(asked: H2loadArguments, places: int, steps: Sequence[Step]) -> OpenLoad:
    if len(steps) > 1:
        raise Refused("--rps", TOOL, None, f"{len(steps)} URIs at a rate", "give one URI")
    rate_per_s = asked.clients * asked.per_client_s
    return OpenLoad(rate_per_s=rate_per_s, max_users=places, connections=places, at_cap="wait")
