"""A server as it is named on the command line, and the options that say how it is measured."""

from __future__ import annotations

from collections import defaultdict
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
    from prony.plan.target import RequestUrl
    from prony.plan.trial import TrialPlan
    from prony.plan.workload import Workload
    from prony.server.catalogue import Catalogue
    from prony.server.spec import ServerSpec


URL_WARM_UP_S = 3.0
LAUNCHED = "a server of the catalogue (prony servers lists them), or a folder with a server.yaml"

Target = Annotated[
    str | None,
    Argument(
        metavar="URL|SERVER",
        help="A URL (http://…) of a running server; or one that Prony starts: NAME, NAME:VARIANT "
        "(prony servers), or a folder with a server.yaml.",
    ),
]


@dataclass(frozen=True, slots=True)
class Server:
    """What a word of the command line names; `spec` is None where it is running already."""

    name: str
    target: targets.Target
    spec: ServerSpec | None
    path: str = "/"

    @property
    def launched(self) -> ServerSpec:
        """Raises UsageError for one that is running already."""
        assert self.spec is not None, "server() was told that the command starts it"
        return self.spec

    @property
    def workloads(self) -> Sequence[str]:
        """Those that it says it offers."""
        return () if self.spec is None else self.spec.workloads

    @property
    def catalogued(self) -> bool:
        """Whether its name is one of the catalogue's, and not that of a folder."""
        from prony.plan.target import Launch, is_path

        return isinstance(self.target, Launch) and not is_path(self.target.address)

    def known_as(self, name: str) -> Server:
        """The same under another name, wherever it is spoken of."""
        if name == self.name or self.spec is None:
            return self
        target = self.target.model_copy(update={"known_as": name})
        return replace(self, name=name, target=target, spec=self.spec.model_copy(update={"name": name}))

    def cell(self, trial: TrialPlan, trials: int = 1, **more: Any) -> Cell:
        """So many trials of it, in the only part of a plan."""
        from prony.plan.cell import cell_of
        from prony.plan.plan import MAIN

        return cell_of(MAIN, self.name, self.target, trial, trials, **more)


def server(word: str, *, instead: str | None = None, catalogue: Catalogue | None = None) -> Server:
    """The server of this word: NAME, NAME:VARIANT+setting=value, the path of a server.yaml or of its folder
    in place of NAME, or a URL. `instead`: of a command that starts its servers itself, what a URL is told.
    Raises UsageError.
    """
    from prony.plan.target import is_url, launched, parse_url
    from prony.server.catalogue import Catalogue

    if is_url(word):
        if instead is not None:
            raise UsageError(f"{word} is already running; {instead}")
        target, path = parse_url(word)
        return Server(target.url, target, None, path)
    asked = launched(word)
    spec = (catalogue or Catalogue.load()).resolve(asked.address)
    return Server(spec.name, asked, spec)


def servers(words: Sequence[str], *, instead: str | None = None) -> list[Server]:
    """Those of several words. Folders of one name are told apart: `app@base`, `app@candidate`."""
    from prony.server.catalogue import Catalogue

    catalogue = Catalogue.load()
    found = [server(word, instead=instead, catalogue=catalogue) for word in words]
    folders: dict[str, dict[Path, str]] = defaultdict(dict)
    for one in found:
        if one.spec is not None:
            folders[one.name][one.spec.folder] = ""
    for name, same in folders.items():
        folders[name] = dict(zip(same, _told_apart(list(same)), strict=True))
    return [
        one
        if one.spec is None or one.catalogued or len(folders[one.name]) < 2
        else one.known_as(f"{one.name}@{folders[one.name][one.spec.folder]}")
        for one in found
    ]


def _told_apart(folders: Sequence[Path]) -> list[str]:
    """By the nearest folder above them whose name is another for each, else by all of the path."""
    for depth in range(min(len(folder.parents) for folder in folders)):
        above = [folder.parents[depth].name for folder in folders]
        if len(set(above)) == len(above):
            return above
    return [str(folder.parent) for folder in folders]


def url(word: str) -> RequestUrl:
    """The URL of a command that only takes one that is running; a host needs no scheme. Raises UsageError."""
    from prony.plan.target import is_url, parse_url
    from prony.server.catalogue import SERVER_FILE, Catalogue

    if is_url(word):
        return parse_url(word)
    if any(map(str.isspace, word.strip())):
        raise UsageError(f"prony load takes the URL of a running server; start '{word}' and give its URL")
    name = word.partition(":")[0]
    here = name.startswith((".", "/")) or (Path(name) / SERVER_FILE).is_file()
    if here or name in Catalogue.load().files:
        server(word)  # else it says what is wrong with it
        raise UsageError(
            f"prony load takes the URL of a running server and starts none; use prony sweep {word} --users 10"
        )
    return parse_url(word)


def request(named: Sequence[Server], workload: str | None) -> Workload:
    """The workload of this name; else the first that all offer, or what URLs request. Raises UsageError."""
    from prony.cli.load_options import request as one_request
    from prony.plan import workload as workloads

    paths = {one.path: one for one in named if one.spec is None}
    if not paths:
        return workloads.load(workload or _common({one.name: one.workloads for one in named}))
    if workload is not None:
        if set(paths) != {"/"}:
            raise UsageError("--workload brings its own paths; give the URL without a path")
        return workloads.load(workload)
    if len(paths) > 1:
        raise UsageError(
            f"the URLs request {' and '.join(paths)}; expected one path for all, or --workload, which brings "
            "its own"
        )
    return one_request(next(iter(paths)), None, [], None, None)


def _common(offered: dict[str, Sequence[str]]) -> str:
    """The first workload of the first server that all offer; a server that claims none takes any."""
    claims = {name: names for name, names in offered.items() if names}
    if not claims:
        said = (
            "does not say which workload it offers"
            if len(offered) == 1
            else "say no workload that they offer"
        )
        raise UsageError(f"{' and '.join(offered)} {said}; name one with --workload")
    for name in next(iter(claims.values())):
        if all(name in names for names in claims.values()):
            return name
    listed = "; ".join(f"{server}: {', '.join(names)}" for server, names in claims.items())
    raise UsageError(f"these servers share no workload ({listed}); compare servers that offer the same one")


@dataclass(frozen=True, slots=True)
class AskedTarget:
    """What is put under load, and how long: of the commands that try several loads on it."""

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
    """A target, and a trial of it under any load."""

    title: str
    server: Server
    trial: TrialPlan

    def cell(self, load: Load, trials: int = 1) -> Cell:
        """The cell of this load."""
        return self.server.cell(self.trial.model_copy(update={"load": load}), trials)


def chosen(asked: AskedTarget) -> Chosen:
    """What the options say. Raises UsageError."""
    if asked.target is None:
        raise UsageError(f"name a URL, {LAUNCHED}")
    named = server(asked.target)
    sends = request([named], asked.workload)
    if named.spec is None:
        return Chosen(asked.target, named, _at_url(sends, asked))
    return Chosen(named.name, named, _launched(sends, asked))


def _at_url(sends: Workload, asked: AskedTarget) -> TrialPlan:
    from prony.plan.load import ClosedLoad, SteadyWindow
    from prony.plan.trial import TrialPlan, fixed

    if asked.warm_up_cap is not None:
        raise UsageError("--warm-up-cap applies to a server that Prony starts; of a URL give --warmup")
    window_s = options.seconds(asked.window or ("5s" if asked.quick else "10s"), "--window", at_least_s=1.0)
    warm_up_s = URL_WARM_UP_S if asked.warmup is None else options.seconds(asked.warmup, "--warmup")
    return TrialPlan(
        workload=sends,
        load=ClosedLoad(users=1),
        measured=SteadyWindow(window_s=window_s),
        warm_up=fixed(warm_up_s),
    )


def _launched(sends: Workload, asked: AskedTarget) -> TrialPlan:
    from prony.plan.trial import full_trial, quick_trial

    if asked.warmup is not None:
        raise UsageError(
            "--warmup applies to a URL; a server that Prony starts is warmed up until it is steady, for no "
            "longer than --warm-up-cap"
        )
    trial = (quick_trial if asked.quick else full_trial)(sends, 1, _window_s(asked.window))
    return _capped(trial.model_copy(update={"published_requests": None}), asked.warm_up_cap)


def _window_s(window: str | None) -> float | None:
    return None if window is None else options.seconds(window, "--window", at_least_s=1.0)


def _capped(trial: TrialPlan, warm_up_cap: str | None) -> TrialPlan:
    from prony.plan.trial import capped

    if warm_up_cap is None:
        return trial
    cap_s = options.seconds(warm_up_cap, "--warm-up-cap", at_least_s=1.0)
    return trial.model_copy(update={"warm_up": capped(trial.warm_up, cap_s)})


@dataclass(frozen=True, slots=True)
class AskedTrial:
    """One trial of each server."""

    workload: Annotated[
        str | None, Option("--workload", "-w", help="Workload [default: the first that every server offers].")
    ] = None
    users: Annotated[
        int | None, Option("--users", "-c", help="Closed loop: number of users, one connection each.")
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
        Option("--window", help="Measured part of a trial, such as 30s [default: 30s; quick and gate: 10s]."),
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
        running = any(one.spec is None for one in servers)
        if running:
            trial = trial.model_copy(update={"published_requests": None})
        if options.one_of(self.warm_up, "--warm-up", ("all-cpus", "pinned")) == "pinned":
            if running:
                raise UsageError(
                    "--warm-up pinned moves servers that Prony starts; pin a running one with taskset"
                )
            trial = trial.model_copy(update={"warm_up": pinned(trial.warm_up)})
        return _capped(trial, self.warm_up_cap)
