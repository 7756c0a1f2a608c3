"""Translates a whole script into a load."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from prony.errors import UsageError
from prony.plan.load import Connections, WholeRun
from prony.plan.script import Script
from prony.plan.step import Auth, calls
from prony.plan.step import requests as every_request
from prony.plan.target import TlsOptions, Url, parse_url
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import MOST_STEPS, Workload
from prony_frontends.artillery import script
from prony_frontends.artillery.config import PLUGINS, left_out
from prony_frontends.artillery.config import calls as scripted
from prony_frontends.artillery.endpoints import Endpoints
from prony_frontends.artillery.flags import Flags, parse
from prony_frontends.artillery.flow import TranslatedScenario, walked
from prony_frontends.artillery.hooks import captured, is_built, script_of
from prony_frontends.artillery.json_values import names_kept_as_json
from prony_frontends.artillery.payload import payload
from prony_frontends.artillery.phases import NamedPhase, schedule
from prony_frontends.artillery.processor import NONE, Processor, processor
from prony_frontends.artillery.requests import GOT_AGENT, USER_AGENT, ScriptSettings, of_userinfo
from prony_frontends.artillery.script import ScriptNode
from prony_frontends.artillery.script_context import at_load, config_of, load_scope, scope_of, whole_script
from prony_frontends.artillery.sections import WALKED, lists_of, section
from prony_frontends.artillery.steps import as_read
from prony_frontends.artillery.templates import UNDEFINED, NameScope, Rows, constant, str_of
from prony_frontends.artillery.walk import too_many
from prony_frontends.base import Note, Translated

SCRIPT_KEYS = frozenset({"config", "scenarios", "before", "after"})
DEFAULTS_KEYS = frozenset({"headers", "cookie", "think", "strictCapture"})
TIMEOUT_S = 10.0
DRAIN_S = 3600.0
"""Grace for users in progress at the end; Artillery waits for all of them."""
REPORTED_DIFFERENCES = Note(
    "reported",
    "redirects to other servers than the target are errors; responses other than "
    "2xx are wrong in the judgement, unless the script expects them",
)


@dataclass(frozen=True, slots=True)
class TranslatedScript:
    """A script, translated."""

    translated: Translated
    given: Flags
    phases: tuple[NamedPhase, ...]
    scenarios: tuple[TranslatedScenario, ...]
    ensure: ScriptNode | None
    plugins: frozenset[str]
    endpoints: Endpoints
    namespace: str
    """Counters before the metrics by endpoint."""
    hidden: tuple[str, ...]
    """Prefixes of metrics in the report that are not printed."""


def translate(argv: Sequence[str]) -> Translated:
    """Translates Artillery's arguments into a load. Raises UsageError and Refused."""
    return read(argv).translated


def read(argv: Sequence[str]) -> TranslatedScript:
    """Like `translate`, with the data for the report. Raises UsageError and Refused."""
    given = parse(argv)
    root = whole_script(given)
    try:
        return _read(given, root)
    except ValidationError as fault:  # a limit of the plan model, not of Artillery
        first = fault.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{root.file}: {where + ': ' if where else ''}{first['msg']}") from fault


def _read(given: Flags, root: ScriptNode) -> TranslatedScript:
    config, notes = config_of(root, given)
    notes += root.unread("the key", SCRIPT_KEYS)
    root = as_read(root, notes)
    early = load_scope(given)
    scope = scope_of(config, early)
    notes += left_out(root, config)
    plugins = _plugins(config)
    http, defaults = _http(config, notes)
    target, base_path, auth = _target(config, scope)
    headers = at_load(None if defaults is None else defaults.get("headers"), early)
    cookies = at_load(None if defaults is None else defaults.get("cookie"), early, "undefined")
    notes += scope.uses.said
    lax = None if defaults is None else defaults.get("strictCapture")
    strict = lax is None or lax.value is not False
    settings = ScriptSettings(
        target,
        base_path,
        auth,
        headers,
        expects="expect" in plugins,
        default_200=_is_on(config, "expectDefault200"),
        strict=strict,
        cookies={} if cookies is None else dict(cookies.items()),
        pool=_pool(http),
        endpoints=_endpoints(config),
        processor=_processor(root, config, given),
    )
    planned = schedule(config.get("phases"), scope, "solo" in given.switches, config.get("mode"))
    folder = Path(given.scripts[0]).parent
    fed = payload(config.get("payload"), given.values.get("payload"), folder, scope)
    kept = names_kept_as_json(root)
    walks = [node.value for node in (root.get(key) for key in WALKED) if node is not None]
    if any(scripted(walk) or is_built(walk, scope) for walk in walks):
        kept |= frozenset(captured(walks))  # JavaScript gets them all
    scope = replace(scope, constants={**scope.constants, **fed.rows}, fed=fed.columns, kept=kept)
    before = section(root, "before", scope, settings, defaults)
    # As in Artillery, variables and columns override captures of before.
    overriding = {**scope.constants, **scope.fed}
    names = {name: ours for name, ours in before.names.items() if name not in overriding}
    scope = replace(scope, captured=names, kept=kept | frozenset(before.kept))
    after = section(root, "after", scope, settings, defaults)
    flows = _scenarios(root, given, scope, settings, defaults, notes)
    if sum(len(list(every_request(flow.steps))) for other in flows for flow in other.scenarios) > MOST_STEPS:
        raise too_many(root.children["scenarios"])
    timeout_ms = max(1, round(_timeout_s(config, http, scope) * 1000))
    notes += [*planned.notes, *fed.notes, *before.notes, *after.notes]
    notes += [note for flow in flows for note in flow.notes]
    if _is_on(config, "reportFailuresAsErrors"):
        notes.append(
            Note("failed_expectation", "a failed one does not fail the user", "reportFailuresAsErrors")
        )
    if not settings.expects and "'expect'" in repr(root.value):
        notes.append(Note("expect_not_checked", "not checked: config.plugins lacks it, as in Artillery"))
    workload = Workload(
        name=Path(given.scripts[0]).stem or "artillery",
        scenarios=tuple(scenario for flow in flows for scenario in flow.scenarios),
        feeders=fed.feeders | lists_of((before, *flows, after)),
        cookies=True,
        prepare=before.steps,
        cleanup=after.steps,
    )
    trial = TrialPlan(
        workload=workload,
        load=planned.load,
        measured=WholeRun(drain_s=DRAIN_S),
        warm_up=fixed(0.0),
        request_timeout_ms=timeout_ms,
        connect_timeout_ms=timeout_ms,
        preflight=False,
        request_parts=True,
        connections=Connections(shared=settings.pool is not None),
        script=_called(root, settings, scope, timeout_ms, workload),
    )
    translated = Translated(
        "artillery",
        target.model_copy(update={"tls": _tls(config)}),
        trial,
        f"artillery {Path(given.scripts[0]).name}",
        tuple(dict.fromkeys((*notes, REPORTED_DIFFERENCES))),
    )
    namespace = _option(config, "metrics-by-endpoint", "metricsNamespace")
    prefix = "plugins.metrics-by-endpoint" if namespace is None else str(namespace)
    return TranslatedScript(
        translated,
        given,
        planned.phases,
        flows,
        _ensure(config),
        plugins,
        settings.endpoints,
        f"{prefix}.",
        _hidden(config),
    )


def _processor(root: ScriptNode, config: ScriptNode, given: Flags) -> Processor:
    """The scenarios' JavaScript, in the folder of the script or of --config."""
    node = config.get("processor")
    walks = [root.get(key) for key in WALKED]
    if (
        node is None
        or node.value == ""
        or not any(walk_node is not None and scripted(walk_node.value) for walk_node in walks)
    ):
        return NONE
    files = [given.scripts[0], *(given.values[name] for name in ("config",) if name in given.values)]
    return processor(node, tuple(Path(file).absolute().parent for file in files))


def _called(
    root: ScriptNode, settings: ScriptSettings, scope: NameScope, timeout_ms: int, workload: Workload
) -> Script | None:
    """The processor with its environment; None where nothing calls it."""
    own_processor = settings.processor
    walks = (workload.prepare, workload.cleanup, *(walk.steps for walk in workload.scenarios))
    if not any(True for entries in walks for _ in calls(entries)):
        return None
    named = own_processor.environment | set(
        re.findall(r"\$(?:env|processEnvironment)\.(\w+)", repr(root.value))
    )
    environment = scope.constants["$env"]
    hidden = ("$env", "$processEnvironment")
    constants = {name: value for name, value in scope.constants.items() if name not in hidden}
    surroundings = {
        "variables": {name: value for name, value in constants.items() if not isinstance(value, Rows)},
        "rows": {name: value for name, value in constants.items() if isinstance(value, Rows)},
        "target": settings.target.url + settings.base_path.replace("$${", "${"),
        "origin": settings.target.url,
        "headers": None
        if settings.headers is None
        else {name: value for name, value in settings.headers.value.items() if value is not UNDEFINED},
        "cookies": {name: node.value for name, node in settings.cookies.items()},
        "user_agent": USER_AGENT if settings.headers is None else GOT_AGENT,
        "timeout_ms": timeout_ms,
        "env": {name: environment[name] for name in sorted(named) if name in environment},
    }
    return script_of(own_processor, surroundings)


def _target(config: ScriptNode, scope: NameScope) -> tuple[Url, str, Auth | None]:
    node = config.get("target")
    if node is None:
        raise UsageError(f"{config.place}: config.target is missing; write it, or give --target URL")
    url = str(constant(node, scope))
    if not url.startswith(("http://", "https://")):
        raise node.wrong("an HTTP target such as http://HOST:PORT")
    try:
        target = parse_url(url).target
    except UsageError as fault:
        raise UsageError(f"{node.place}: {fault}") from fault
    # A trailing slash stays, so that paths then begin with two slashes, as in Artillery.
    parts = urlsplit(url)
    base_path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return target, base_path.replace("${", "$${"), of_userinfo(parts.netloc)


def _plugins(config: ScriptNode) -> frozenset[str]:
    node = config.get("plugins")
    named = frozenset(node.children) if node is not None and isinstance(node.value, dict) else frozenset()
    return frozenset(str(name) for name in named)


def _options(config: ScriptNode, plugin: str) -> ScriptNode | None:
    plugins = config.get("plugins")
    return None if plugins is None else plugins.get(plugin)


def _option(config: ScriptNode, plugin: str, option: str) -> Any:
    options = _options(config, plugin)
    node = None if options is None else options.get(option)
    return None if node is None else node.value


def _is_on(config: ScriptNode, option: str) -> bool:
    """An option of the plugin expect."""
    return _option(config, "expect", option) in (True, "true")


def _hidden(config: ScriptNode) -> tuple[str, ...]:
    """Metrics that Artillery adds by itself and does not print."""
    enabled = _options(config, "metrics-by-endpoint") is not None
    names = [name for name in sorted(PLUGINS) if _option(config, name, "suppressOutput")]
    return tuple(f"plugins.{name}" for name in (names if enabled else [*names, "metrics-by-endpoint"]))


def _endpoints(config: ScriptNode) -> Endpoints:
    if _options(config, "metrics-by-endpoint") is None:
        return Endpoints(strip_query=True)

    def on(option: str) -> bool:
        return bool(_option(config, "metrics-by-endpoint", option))

    grouped = _option(config, "metrics-by-endpoint", "groupDynamicURLs")
    return Endpoints(
        on("useOnlyRequestNames"),
        on("stripQueryString"),
        on("ignoreUnnamedRequests"),
        by_value=grouped is not None and not grouped,
    )


def _ensure(config: ScriptNode) -> ScriptNode | None:
    """The checks, from either place that Artillery reads, when the plugin is on."""
    plugins = config.get("plugins")
    if plugins is None or "ensure" not in plugins.children:
        return None
    return config.get("ensure") or plugins.get("ensure")


def _http(config: ScriptNode, notes: list[Note]) -> tuple[ScriptNode | None, ScriptNode | None]:
    """config.http and the default request settings from either place; `notes` gets unread keys."""
    http = config.get("http")
    outer = config.get("defaults")
    inner = None if http is None else http.get("defaults")
    for given in (outer, inner):
        if given is not None:
            notes += given.unread("the default", DEFAULTS_KEYS)
    if outer is None or inner is None:
        return http, outer or inner
    return http, script.with_children(outer, {**outer.children, **inner.children})


def _pool(http: ScriptNode | None) -> int | None:
    """Number of connections shared by all users; None without sharing."""
    pool = None if http is None else http.get("pool")
    if pool is None:
        return None
    count = pool.number("a number of connections")
    if count < 1:
        raise pool.wrong("a number of connections, 1 or more")
    return int(count)


def _timeout_s(config: ScriptNode, http: ScriptNode | None, scope: NameScope) -> float:
    node = config.get("timeout") or (None if http is None else http.get("timeout"))
    if node is None:
        return TIMEOUT_S
    value = ScriptNode(constant(node, scope), node.file, node.line, {}).number("seconds above 0")
    if not 0 < value <= 86_400:
        raise node.wrong("seconds above 0")
    return value


def _tls(config: ScriptNode) -> TlsOptions:
    node = config.get("tls")
    if node is None:
        return TlsOptions()
    node.only("config.tls", frozenset({"rejectUnauthorized"}), "trust the certificate in the system's store")
    reject = node.children.get("rejectUnauthorized")
    return TlsOptions(insecure=reject is not None and reject.value is False)


def _scenarios(
    root: ScriptNode,
    given: Flags,
    scope: NameScope,
    settings: ScriptSettings,
    defaults: ScriptNode | None,
    notes: list[Note],
) -> tuple[TranslatedScenario, ...]:
    """The scenarios for users; `notes` gets those left out."""
    node = root.get("scenarios")
    if node is None or not node.elements():
        raise UsageError(f"{root.place}: no scenarios; a config of another script goes with --config FILE")
    chosen = _named(node, given.values.get("scenario-name"))
    weights = [
        _weight(child.get("weight") if isinstance(child.value, dict) else None, scope) for _, child in chosen
    ]
    whole = [int(weight) for weight in weights]
    if len(chosen) == 1:
        whole = [1]
    flows = []
    for (index, child), weight, share in zip(chosen, weights, whole, strict=True):
        share_of = float(share) if any(whole) else weight  # Artillery walks none of the latter
        if share_of == 0:
            notes.append(
                child.note("no_weight", "the weight is below 1: no user walks this scenario, as in Artillery")
            )
            continue
        flows.append(walked(child, index, scope, settings, defaults, weight=share_of))
    if not flows:
        raise node.refused("scenarios whose weights are all 0", "use a weight above 0")
    if not any(
        flow.steps or any(True for walk in flow.scenarios for _ in calls(walk.steps)) for flow in flows
    ):
        raise node.wrong("at least one request whose condition can be true")
    return tuple(flows)


def _named(scenarios: ScriptNode, wanted: str | None) -> list[tuple[int, ScriptNode]]:
    """All scenarios, or those with this name, else those whose name matches it as a regular expression."""
    every = list(enumerate(scenarios.elements()))
    if wanted is None:
        return every
    try:
        pattern = re.compile(wanted)
    except re.error:
        pattern = re.compile(re.escape(wanted))
    names = [str(entry.value.get("name", "")) if isinstance(entry.value, dict) else "" for _, entry in every]
    exact = [entry for entry, name in zip(every, names, strict=True) if name == wanted]
    chosen = exact or [entry for entry, name in zip(every, names, strict=True) if pattern.search(name)]
    if not chosen:
        raise UsageError(f"{scenarios.place}: no scenario '{wanted}' (--scenario-name)")
    if len(chosen) > 1:
        raise UsageError(f"{scenarios.place}: --scenario-name '{wanted}' matches {len(chosen)}; expected 1")
    return chosen


def _weight(node: ScriptNode | None, scope: NameScope) -> float:
    """A number above 0, or 0 for anything else, as in Artillery."""
    if node is None:
        return 1.0
    match = re.match(r"\s*\d+(?:\.\d+)?", str_of(constant(node, scope)))
    return float(match[0]) if match else 0.0
