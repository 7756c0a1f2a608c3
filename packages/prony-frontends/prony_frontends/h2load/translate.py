"""Translates h2load's command line into a load: each client is a connection, each of its streams a user."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from prony.errors import UsageError
from prony.plan.load import ClosedLoad, Connections, Load, Measured, OpenLoad, SteadyWindow, WholeRun
from prony.plan.step import Step
from prony.plan.target import TlsOptions
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Scenario, Workload
from prony_frontends.base import Note, Refused, Translated
from prony_frontends.h2load import walks
from prony_frontends.h2load.arguments import TOOL, H2loadArguments
from prony_frontends.h2load.uris import Requested

AGENT = "h2load nghttp2/1.52.0"
LONGEST_WAIT_S = 60.0
"""h2load itself has no limit without -N."""
MOST_KEPT = 1_000_000
"""Requests logged individually, as in h2load; above, histograms are used."""
RATES_OVER = 0.98
"""Share of a timed run over which each client's rate is taken; that span must end before the run."""
LEAST_WINDOW = 65_535
"""A connection's default window, RFC 9113."""
USUAL_BITS = 30


def translated(args: H2loadArguments, wanted: Requested) -> Translated:
    """The load with the same clients, streams and requests. Raises UsageError for an impossible load."""
    https = wanted.target.https
    version = args.http_version(https)
    if https and args.suites:
        instead = "leave it out: TLS takes the best that both sides have, and the report says which"
        raise Refused(args.suites[0], TOOL, None, "a choice of ciphers or groups", instead)
    streams = args.streams if version == "2" else 1
    notes = [Note("no_effect", "no effect", flag) for flag in (*args.inert, *args.suites)]
    try:
        steps = [_step(args, wanted, path, number) for number, path in enumerate(wanted.paths, 1)]
        load, workload, measured = _shaped(args, wanted, steps, streams, notes)
        trial = TrialPlan(
            workload=workload,
            load=load,
            measured=measured,
            warm_up=fixed(args.warm_up_s if args.duration_s else 0.0),
            connections=_connections(args, version, streams > 1 or bool(wanted.at_ms), notes),
            request_timeout_ms=max(1, round((args.inactive_s or LONGEST_WAIT_S) * 1000)),
            preflight=False,
            scaling_probe=not isinstance(measured, SteadyWindow),
            threads=args.threads,
            rate_groups=None if logs_all(args) else args.clients,
            rate_span_ms=_rate_span_ms(args),
        )
    except ValidationError as fault:
        reason = str(fault.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"{TOOL}: the load cannot be offered: {reason}") from fault
    target = wanted.target.model_copy(update={"tls": TlsOptions(insecure=True, sni=args.sni)})
    return Translated(TOOL, target, trial, f"{TOOL} {wanted.target.url}", tuple(notes))


def requests_of(args: H2loadArguments, wanted: Requested) -> int | None:
    """The number of requests; None for a timed run."""
    if args.duration_s:
        return None
    if wanted.at_ms:
        return args.clients * len(wanted.at_ms)
    return 1 if args.requests is None else args.requests


def logs_all(args: H2loadArguments) -> bool:
    """Whether each request is logged: always with --log-file."""
    return args.log is not None or (not args.duration_s and (args.requests or 1) <= MOST_KEPT)


def _rate_span_ms(args: H2loadArguments) -> int:
    over_s = args.warm_up_s + args.duration_s if args.duration_s else 1.0
    return max(1, round(over_s * RATES_OVER * 1000))


def _connections(args: H2loadArguments, version: str, shared: bool, notes: list[Note]) -> Connections:
    if version == "1.1":
        depth = 1 if args.data is not None else args.streams
        return Connections(pipeline=depth, tls_sessions="none")
    window, whole = 2**args.window_bits - 1, 2**args.connection_window_bits - 1
    if not window:
        raise Refused("-w", TOOL, None, "0, a window too small for any response", "use 1 to 30")
    if whole < LEAST_WINDOW:
        notes.append(
            Note("window", f"{args.connection_window_bits} becomes 16, the smallest of a connection", "-W")
        )
    return Connections(
        http_version="2",
        count=args.clients if shared else None,
        stream_window_bytes=None if args.window_bits == USUAL_BITS else window,
        connection_window_bytes=None
        if args.connection_window_bits == USUAL_BITS
        else max(LEAST_WINDOW, whole),
        header_table_bytes=args.table_bytes,
        tls_sessions="none",
    )


def _step(args: H2loadArguments, wanted: Requested, path: str, number: int) -> Step:
    method = "GET" if args.data is None else "POST"
    own: dict[str, tuple[str, ...]] = {"user-agent": (AGENT,)}
    if wanted.target.unix is not None:
        own = {"Host": (wanted.authority,), **own}
    for name, value in args.headers:
        if name == ":method":
            method = value
        elif name == ":authority":
            own["Host"] = (value,)
        elif name.startswith(":"):
            raise Refused("-H", TOOL, None, f"the pseudo header {name}", "use :authority or :method")
        elif name == "host":
            own["Host"] = (value,)
        else:
            before = () if name == "user-agent" else own.get(name, ())
            own[name] = (*before, value)
    return Step.model_validate(
        {
            "name": f"uri-{number}" if len(wanted.paths) > 1 else "request",
            "path": literal(path),
            "method": method,
            "headers": {
                name: literal(values[0]) if len(values) == 1 else tuple(map(literal, values))
                for name, values in own.items()
            },
            "body_file": None if args.data is None else str(args.data.absolute()),
        }
    )


def literal(text: str) -> str:
    """The text with placeholders escaped."""
    return text.replace("${", "$${")


def _shaped(
    args: H2loadArguments, wanted: Requested, steps: Sequence[Step], streams: int, notes: list[Note]
) -> tuple[Load, Workload, Measured]:
    """The load, the workload and the measured part."""
    title = f"{steps[0].method} {wanted.paths[0]}"
    total = requests_of(args, wanted)
    until_s = args.active_s or None
    measured: Measured = WholeRun(total_requests=total, duration_s=until_s)
    if args.duration_s and args.warm_up_s:
        measured = SteadyWindow(window_s=args.duration_s)
    elif args.duration_s:
        measured = WholeRun(duration_s=min(args.duration_s, until_s or args.duration_s))

    def walked(scenarios: Sequence[Scenario]) -> Workload:
        return Workload(name=TOOL, title=title, scenarios=tuple(scenarios))

    plain = Workload(name=TOOL, title=title, steps=tuple(steps))
    if wanted.at_ms:
        load, lines = walks.timed(args.clients, steps, wanted.at_ms)
        return load, walked(lines), measured
    if args.per_client_s:
        return _at_a_rate(args, args.clients * streams, steps), plain, measured
    ramp = None if args.rate is None else walks.Ramp(args.rate, args.rate_period_s)
    all_walks = walks.walks(args.clients, streams, len(steps), total)
    if ramp is None:
        all_walks = walks.merged(all_walks)
    if walks.length(all_walks) > walks.MOST_STEPS:
        notes.append(Note("first_uri", "all streams begin with the first URI: they are too many"))
        return ClosedLoad(users=args.clients * streams), plain, measured
    if len(all_walks) > 1:
        several, scenarios = walks.groups(all_walks, steps, ramp)
        return several, walked(scenarios), measured
    (only,) = all_walks
    if only.rounds is not None:
        measured = WholeRun(iterations_per_user=only.rounds, duration_s=until_s)
    starts = {} if ramp is None else walks.ramped(ramp, only.users)
    sequence = Workload(name=TOOL, title=title, steps=only.entries(steps))
    return ClosedLoad(users=only.users, **starts), sequence, measured


def _at_a_rate(args: H2loadArguments, places: int, steps: Sequence[Step]) -> OpenLoad:
    if len(steps) > 1:
        raise Refused("--rps", TOOL, None, f"{len(steps)} URIs at a rate", "give one URI", "conflict")
    rate_per_s = args.clients * args.per_client_s
    return OpenLoad(rate_per_s=rate_per_s, max_users=places, connections=places, at_cap="wait")
