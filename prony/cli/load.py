"""`prony load`: measure a server under a load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from typer import Argument

from prony import redaction
from prony.cli import options
from prony.cli.command import measures
from prony.cli.common import Common
from prony.cli.load_options import KEYS, LoadOptions, in_options
from prony.cli.targets import KINDS
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.cli.targets import Server
    from prony.plan.load import Load, Measured
    from prony.plan.trial import WarmUpPlan
    from prony.plan.workload import Workload

T = TypeVar("T")
GOOD_ENOUGH, LONGEST_S = 0.05, 60.0
"""Without a duration, a window ends when its figure is known to ± this share, or after this time."""


@measures(without=("until_clear", "max_trials", "jdk", "share_process"))
def command(
    target: str | None = Argument(
        None,
        metavar="URL|SERVER",
        help="URL, such as http://127.0.0.1:8080/path or unix:/run/app.sock:/path; or a server that Prony "
        f"starts: {KINDS}.",
    ),
    *,
    typed: LoadOptions,
    common: Common,
) -> int:
    """Measure a server under a load. At a URL, checks that need to own the server are unknown."""
    from prony.cli import measure
    from prony.cli.targets import server
    from prony.plan.budget import FEWEST
    from prony.plan.load import Connections
    from prony.plan.plan import one_part, shape_of
    from prony.plan.trial import TrialPlan

    if target is None:
        raise UsageError(
            "name the URL of a running server, such as http://127.0.0.1:8080/path, a server, or --resume ID"
        )
    named = server(target)
    sends = _requests(named, typed)
    keys = typed.keys()
    load = load_of(keys["loads"], sends.users)
    measured = _measured(keys["measured"], load, typed.whole, common)
    named, sources = _reached(named, typed, keys)
    trial = _fits(
        "measured",
        lambda: TrialPlan(
            workload=sends,
            load=load,
            measured=measured,
            warm_up=_warm_up(typed.warmup, measured, load.ramp_up_s, owned=named.target.owned),
            connections=_fits("connections", lambda: Connections.model_validate(keys["connections"])),
            source_addresses=sources,
            log=None if typed.log is None else str(typed.log),
        ),
    )
    times = typed.trials if common.budget is None else max(typed.trials, FEWEST)
    cells = [named.cell(trial, options.trials(times))]
    plan = one_part(
        "load", f"load {redaction.url(target)}", cells, seed=options.seed(common.seed), shape=shape_of(cells)
    )
    return measure.run(plan, common)


def _requests(named: Server, typed: LoadOptions) -> Workload:
    """The workload, or the request of the options. Raises UsageError for both."""
    from prony.cli import targets
    from prony.cli.load_options import request

    has_request_options = any((typed.method, typed.header, typed.body, typed.body_file))
    if typed.workload is not None and (named.path != "/" or has_request_options):
        raise UsageError(
            "--workload brings paths, methods, headers and bodies of its own; give the URL without a "
            "path and leave --method, --header and --body out"
        )
    if typed.workload is not None or (named.workloads and not has_request_options):
        return targets.request([named], typed.workload)
    sends = request(named.path, typed.method, typed.header or [], typed.body, typed.body_file)
    return sends.with_auth(named.auth)


def _reached(
    named: Server, typed: LoadOptions, keys: dict[str, dict[str, Any]]
) -> tuple[Server, tuple[str, ...]]:
    """The server with TLS and addresses of the options, and source addresses. Raises UsageError."""
    from prony.cli.load_options import resolved
    from prony.plan.planfile import UrlKeys
    from prony.plan.target import Url

    if typed.ipv4 and typed.ipv6:
        raise UsageError("--ipv4 and --ipv6 exclude each other; omit both for both families")
    if typed.no_resumption and typed.tls_sessions not in (None, "none"):
        raise UsageError("--no-resumption and --tls-sessions exclude each other")
    target, given = named.target, keys["servers"]
    if not isinstance(target, Url):
        if given or typed.resolve:
            option = KEYS["servers"][next(iter(given))] if given else "--resolve"
            raise UsageError(f"{option} applies to a URL; Prony starts {named.name} and knows its address")
        return named, ()
    reached = _fits("servers", lambda: UrlKeys(url=target.url, **given))
    if not target.https and keys["connections"].keys() & {"tls_version", "tls_sessions"}:
        raise UsageError(f"--tls-version and --tls-sessions go with https://; this is {target.url}")
    addresses = reached.addresses or target.addresses
    if typed.resolve:
        if addresses or target.unix:
            raise UsageError("--resolve needs a host name in the URL, and excludes --address")
        addresses = tuple(resolved(typed.resolve, target.host, target.port))
    more = {"tls": reached.tls, "addresses": addresses}
    return replace(named, target=target.model_copy(update=more)), reached.source_addresses


def _fits(section: str, make: Callable[[], T]) -> T:
    """What the plan file's model makes of these keys. Raises UsageError in the words of the options."""
    try:
        return make()
    except ValidationError as fault:
        raise UsageError(in_options(fault, section)) from fault


def load_of(keys: dict[str, Any], default_users: int) -> Load:
    """The closed or open load of these keys of `loads`. Raises UsageError."""
    from prony.plan.planfile import LoadKeys
    from prony.plan.planfile_read import expand

    if not keys.keys() & {"users", "rate_per_s", "phases"}:
        keys = keys | {"users": options.users(default_users)}
    (load,) = _fits("loads", lambda: expand(LoadKeys.model_validate(keys)))
    return load


def _measured(keys: dict[str, Any], load: Load, whole: bool, common: Common) -> Measured:
    from prony.plan.planfile import MeasuredKeys
    from prony.plan.planfile_read import measured

    named = [KEYS["measured"][key] for key in keys]
    phased = load.model == "open" and bool(load.phases)
    if len(named) > 1:
        raise UsageError(f"{named[0]} and {named[1]} exclude each other; give a time or a number")
    if phased and named:
        raise UsageError(f"both --phases and {named[0]} were given; the phases say how long it takes")
    if not named and not phased and (whole or common.windows is not None):
        keys = {"window_s": 10.0}
    if whole and "window_s" in keys:
        keys = {"duration_s": keys["window_s"]}
    if not named and not phased and not keys:
        keys = {"window_s": LONGEST_S, "precision": None if common.within is not None else GOOD_ENOUGH}
    if load.model == "closed" and load.ramp_down_s and "window_s" in keys:
        raise UsageError("--ramp-down lies after a measured window; give --whole to measure all of the run")
    return _fits("measured", lambda: measured(MeasuredKeys.model_validate(keys), load))


def _warm_up(warmup: str | None, measured: Measured, ramp_up_s: float, *, owned: bool) -> WarmUpPlan:
    """Of a server that Prony starts until it is level, unless its time is given. Raises UsageError."""
    from prony.plan.trial import QUICK_WARM_UP, fixed

    if measured.kind != "steady":
        if warmup is not None:
            raise UsageError(
                "--warmup applies to --duration; otherwise the window starts with the first request"
            )
        return fixed(0.0)
    if warmup is None:
        return QUICK_WARM_UP if owned else fixed(3.0 + ramp_up_s)
    warm_up_s = options.seconds(warmup, "--warmup")
    if warm_up_s < ramp_up_s:
        raise UsageError(
            f"--warmup is {warm_up_s:g} s and --ramp-up {ramp_up_s:g} s; expected the ramp to be over "
            "before anything is measured"
        )
    return fixed(warm_up_s)
