"""A server as it is named on the command line, and the options that say how it is measured."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from prony.cli import options
from prony.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prony.plan import target as targets
    from prony.plan.cell import Cell
    from prony.plan.load import Load
    from prony.plan.step import Auth
    from prony.plan.trial import TrialPlan
    from prony.plan.workload import Workload
    from prony.server.catalogue import Catalogue
    from prony.server.spec import ServerSpec


URL_WARM_UP_S = 3.0
_OWN = "a folder with a server.yaml, a command line with {port}, or image:NAME"
KINDS = f"NAME, NAME:VARIANT (prony servers), {_OWN}"
LAUNCHED = f"a server of the catalogue (prony servers lists them), {_OWN}"

Target = Annotated[
    str | None,
    Argument(
        metavar="URL|SERVER",
        help=f"A URL (http://…) of a running server; or a server that Prony starts: {KINDS}.",
    ),
]


@dataclass(frozen=True, slots=True)
class Server:
    """A server named on the command line; `spec` is None if it is already running."""

    name: str
    target: targets.Target
    spec: ServerSpec | None
    path: str = "/"
    auth: Auth | None = None

    @property
    def launched(self) -> ServerSpec:
        """Its spec. Only for a server that Prony starts."""
        assert self.spec is not None, "the command starts this server itself"
        return self.spec

    @property
    def workloads(self) -> Sequence[str]:
        """Names of the workloads in its server.yaml."""
        return () if self.spec is None else self.spec.workloads

    @property
    def catalogued(self) -> bool:
        """Whether it comes from the catalogue rather than from a folder, a file or an image."""
        from prony.plan.target import Launch, is_image, is_path

        target = self.target
        return isinstance(target, Launch) and not (
            target.folder or is_path(target.address) or is_image(target.address)
        )

    def known_as(self, name: str) -> Server:
        """A copy under another name."""
        if name == self.name or self.spec is None:
            return self
        target = self.target.model_copy(update={"known_as": name})
        return replace(self, name=name, target=target, spec=self.spec.model_copy(update={"name": name}))

    def cell(self, trial: TrialPlan, trials: int = 1, **more: Any) -> Cell:
        """A cell of `trials` trials in the plan's main part; a container's CPU set is fixed."""
        from prony.plan.cell import cell_of
        from prony.plan.plan import MAIN
        from prony.plan.trial import pinned

        if self.spec is not None and self.spec.image is not None and trial.warm_up.method == "all-cpus":
            trial = trial.model_copy(update={"warm_up": pinned(trial.warm_up)})
        return cell_of(MAIN, self.name, self.target, trial, trials, **more)


def server(word: str, *, instead: str | None = None, catalogue: Catalogue | None = None) -> Server:
    """The server of this word: NAME, NAME:VARIANT+setting=value, the path of a server.yaml or of its folder
    in place of NAME, a URL, a command line, or `image:NAME`. `instead`: of a command that starts its servers
    itself, the remedy for a URL. Raises UsageError.
    """
    from prony.plan.target import is_url, launched, parse_url
    from prony.server.catalogue import Catalogue

    if is_url(word):
        if instead is not None:
            raise UsageError(f"{word} is already running; {instead}")
        target, path, auth = parse_url(word)
        return Server(target.url, target, None, path, auth)
    launch = launched(word)
    spec = (catalogue or Catalogue.load()).resolve(launch.address, folder=launch.folder)
    return Server(spec.name, launch, spec)


def servers(words: Sequence[str], *, instead: str | None = None) -> list[Server]:
    """The server of each word. Equal names get a suffix: folders `app@base`, `app@candidate`, command lines
    their folder and variables. Raises UsageError.
    """
    from prony.plan.target import Launch
    from prony.server.catalogue import Catalogue
    from prony.server.command_line import long_name

    catalogue = Catalogue.load()
    named = [server(word, instead=instead, catalogue=catalogue) for word in words]
    taken = Counter(entry.name for entry in named)
    for at, entry in enumerate(named):
        if taken[entry.name] > 1 and isinstance(entry.target, Launch) and entry.target.folder is not None:
            named[at] = entry.known_as(long_name(entry.target.address))
    folders: dict[str, dict[Path, str]] = defaultdict(dict)
    for entry in named:
        if entry.spec is not None:
            folders[entry.name][entry.spec.folder] = ""
    for name, same in folders.items():
        folders[name] = dict(zip(same, _distinct_names(list(same)), strict=True))
    return [
        entry
        if entry.spec is None or entry.catalogued or len(folders[entry.name]) < 2
        else entry.known_as(f"{entry.name}@{folders[entry.name][entry.spec.folder]}")
        for entry in named
    ]


def _distinct_names(folders: Sequence[Path]) -> list[str]:
    """By the nearest folder above them whose name is another for each, else by all of the path."""
    for depth in range(min(len(folder.parents) for folder in folders)):
        above = [folder.parents[depth].name for folder in folders]
        if len(set(above)) == len(above):
            return above
    return [str(folder.parent) for folder in folders]


def request(named: Sequence[Server], workload: str | None) -> Workload:
    """The workload of this name; else the first that all offer, the URLs' requests, or GET /."""
    from prony.plan.workload import from_url, load

    paths = {s.path for s in named if s.spec is None}
    auth, *others = {str(s.auth): s.auth for s in named if s.spec is None}.values() or (None,)
    if others:
        raise UsageError("the URLs have different credentials; expected the same for all")
    if workload is not None:
        if paths - {"/"}:
            raise UsageError("--workload brings its own paths; give the URL without a path")
        return load(workload).with_auth(auth)
    if len(paths) > 1:
        raise UsageError(
            f"the URLs request {' and '.join(sorted(paths))}; expected the same path for all, or --workload, "
            "which brings its own"
        )
    claims = {s.name: s.workloads for s in named if s.workloads}
    if claims and not paths:
        return load(_common(claims))
    return from_url(next(iter(paths), "/")).with_auth(auth)


def _common(claims: dict[str, Sequence[str]]) -> str:
    """The first workload of the first server that all offer. Raises UsageError."""
    for name in next(iter(claims.values())):
        if all(name in names for names in claims.values()):
            return name
    listed = "; ".join(f"{server}: {', '.join(names)}" for server, names in claims.items())
    raise UsageError(f"these servers share no workload ({listed}); compare servers that share a workload")


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Target, workload and window of commands with several loads."""

    target: Target = None
    workload: Annotated[str | None, Option("--workload", "-w", help="Workload.")] = None
    window: Annotated[
        str | None,
        Option(
            "--window", help="Measured part of a trial [default: 10s, of a server that Prony starts 30s]."
        ),
    ] = None
    warmup: Annotated[
        str | None, Option("--warmup", help="Of a URL: load before the window, such as 5s [default: 3s].")
    ] = None
    warm_up_cap: Annotated[
        str | None,
        Option(
            "--warm-up-cap",
            help="Of a server that Prony starts: longest warm-up, such as 60s; residual "
            "drift then widens its plateau.",
        ),
    ] = None
    quick: Annotated[bool, Option("--quick", help="Shorter windows, a first look.")] = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """A target, and its trial under any load."""

    title: str
    server: Server
    trial: TrialPlan

    def cell(self, load: Load, trials: int = 1) -> Cell:
        """The cell of this load."""
        return self.server.cell(self.trial.model_copy(update={"load": load}), trials)


def chosen(typed: TargetOptions) -> Chosen:
    """Target and trial of these options. Raises UsageError."""
    if typed.target is None:
        raise UsageError(f"name a URL, {LAUNCHED}")
    named = server(typed.target)
    sends = request([named], typed.workload)
    if named.spec is None:
        return Chosen(typed.target, named, _at_url(sends, typed))
    return Chosen(named.name, named, _launched(sends, typed))


def _at_url(sends: Workload, typed: TargetOptions) -> TrialPlan:
    from prony.plan.load import ClosedLoad, SteadyWindow
    from prony.plan.trial import TrialPlan, fixed

    if typed.warm_up_cap is not None:
        raise UsageError("--warm-up-cap applies to servers that Prony starts; with a URL use --warmup")
    window_s = options.seconds(typed.window or ("5s" if typed.quick else "10s"), "--window", at_least_s=1.0)
    warm_up_s = URL_WARM_UP_S if typed.warmup is None else options.seconds(typed.warmup, "--warmup")
    return TrialPlan(
        workload=sends,
        load=ClosedLoad(users=1),
        measured=SteadyWindow(window_s=window_s),
        warm_up=fixed(warm_up_s),
    )


def _launched(sends: Workload, typed: TargetOptions) -> TrialPlan:
    from prony.plan.trial import full_trial, quick_trial

    if typed.warmup is not None:
        raise UsageError(
            "--warmup applies to a URL; a server that Prony starts is warmed up until steady, for at most "
            "--warm-up-cap"
        )
    trial = (quick_trial if typed.quick else full_trial)(sends, 1, _window_s(typed.window))
    return _capped(trial.model_copy(update={"published_requests": None}), typed.warm_up_cap)


def _window_s(window: str | None) -> float | None:
    return None if window is None else options.seconds(window, "--window", at_least_s=1.0)


def _capped(trial: TrialPlan, warm_up_cap: str | None) -> TrialPlan:
    from prony.plan.trial import capped

    if warm_up_cap is None:
        return trial
    cap_s = options.seconds(warm_up_cap, "--warm-up-cap", at_least_s=1.0)
    return trial.model_copy(update={"warm_up": capped(trial.warm_up, cap_s)})


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """Options of each server's trial."""

    workload: Annotated[
        str | None, Option("--workload", "-w", help="Workload [default: the first that every server offers].")
    ] = None
    users: Annotated[
        int | None, Option("--users", "-c", help="Closed loop: number of users, a connection each.")
    ] = None
    setting: Annotated[
        list[str] | None, Option("--set", help="Set a workload setting, such as delay_ms=50; repeatable.")
    ] = None
    band: Annotated[
        str,
        Option(
            "--band", help="Equivalence band: servers that differ by less are equivalent, such as 1% or 0.01."
        ),
    ] = "2%"
    at_least: Annotated[str, Option("--at-least", help="Smallest difference worth a claim, such as 10%.")] = (
        "1%"
    )
    window: Annotated[
        str | None,
        Option("--window", help="Measured part of a trial, such as 30s [default: 30s, quick: 10s]."),
    ] = None
    quick: Annotated[
        bool, Option("--quick", help="A first look: few trials, short windows; every figure is marked quick.")
    ] = False
    warm_up: Annotated[
        str,
        Option(
            "--warm-up", help="all-cpus: faster, same plateau; pinned: on the server's CPUs from the start."
        ),
    ] = "all-cpus"
    warm_up_cap: Annotated[
        str | None,
        Option("--warm-up-cap", help="Longest warm-up, such as 60s; residual drift then widens the plateau."),
    ] = None

    def trial(
        self,
        servers: Sequence[Server],
        form: Callable[[Workload, int, float | None], TrialPlan] | None = None,
    ) -> TrialPlan:
        """The trial of these servers; `form`: its usual lengths. Raises UsageError."""
        from prony.plan.trial import full_trial, pinned, quick_trial

        chosen = request(servers, self.workload).with_settings(options.settings(self.setting or []))
        number = options.users(chosen.users if self.users is None else self.users)
        usual = form or (quick_trial if self.quick else full_trial)
        trial = usual(chosen, number, _window_s(self.window))
        running = any(server.spec is None for server in servers)
        if running:
            trial = trial.model_copy(update={"published_requests": None})
        if options.one_of(self.warm_up, "--warm-up", ("all-cpus", "pinned")) == "pinned":
            if running:
                raise UsageError(
                    "--warm-up pinned moves servers that Prony starts; pin a running server with taskset"
                )
            trial = trial.model_copy(update={"warm_up": pinned(trial.warm_up)})
        return _capped(trial, self.warm_up_cap)
