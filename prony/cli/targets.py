"""URL or SERVER: what `prony sweep` and `prony capacity` put under load. Must not measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prony.cli import options
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.experiment.bench import Bench
    from prony.experiment.points import RealPoints
    from prony.report.progress import AnyProgress
    from prony.store import Store

URL_WARM_UP_S = 3.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the options say, before anything is opened."""

    target: str
    workload: str | None
    window: str | None
    warmup: str | None
    quick: bool
    driver: str
    jdk: str | None
    seed: int

    @property
    def is_url(self) -> bool:
        """A URL names its scheme; everything else is a server of the catalogue."""
        return "://" in self.target

    def points(self, store: Store, bench: Bench, progress: AnyProgress) -> RealPoints:
        """The target, ready to be put under any load. Raises UsageError."""
        driver: Any = options.one_of(self.driver, "--driver", ("auto", "io_uring", "epoll"))
        return (self._url if self.is_url else self._server)(store, bench, progress, driver)

    def _url(self, store: Store, bench: Bench, progress: AnyProgress, driver: Any) -> RealPoints:
        from prony.cli.load import request
        from prony.experiment.points import UrlPoints
        from prony.experiment.running import RunningLoad, Target
        from prony.plan import workload as workloads
        from prony.plan.load import ClosedLoad, SteadyWindow

        if self.jdk is not None:
            raise UsageError("--jdk goes with a server of the catalogue; this one is running already")
        target = Target.parse(self.target)
        if self.workload is not None and target.path != "/":
            raise UsageError("--workload brings its own paths; give the URL without a path")
        sends = (
            request(target.path, None, [], None, None)
            if self.workload is None
            else workloads.load(self.workload)
        )
        window_s = options.seconds(self.window or ("5s" if self.quick else "10s"), "--window", at_least_s=1.0)
        warm_up_s = URL_WARM_UP_S if self.warmup is None else options.seconds(self.warmup, "--warmup")
        like = RunningLoad(
            target=target,
            workload=sends,
            load=ClosedLoad(users=1),
            measured=SteadyWindow(window_s=window_s),
            warm_up_s=warm_up_s,
            driver=driver,
            seed=self.seed,
        )
        return UrlPoints(like, window_s, bench, store, progress, quick=self.quick)

    def _server(self, store: Store, bench: Bench, progress: AnyProgress, driver: Any) -> RealPoints:
        from prony.experiment.points import ServerPoints
        from prony.experiment.run import check_workload
        from prony.plan import workload as workloads
        from prony.plan.trial import capped, full_trial, quick_trial
        from prony.server.catalogue import Catalogue

        spec = Catalogue.load().resolve(self.target)
        name = self.workload or next(iter(spec.workloads), None)
        if name is None:
            raise UsageError(f"{spec.name} does not say which workload it offers; name one with --workload")
        chosen = workloads.load(name)
        check_workload({spec.name: spec}, chosen.name)
        window_s = None if self.window is None else options.seconds(self.window, "--window", at_least_s=1.0)
        trial = (quick_trial if self.quick else full_trial)(chosen, 1, window_s)
        trial = trial.model_copy(update={"driver": driver, "published_requests": None})
        if self.warmup is not None:
            cap_s = options.seconds(self.warmup, "--warmup", at_least_s=1.0)
            trial = trial.model_copy(update={"warm_up": capped(trial.warm_up, cap_s)})
        return ServerPoints(
            server=spec.name,
            spec=spec,
            trial=trial,
            window_s=trial.measured_s,
            bench=bench,
            store=store,
            progress=progress,
            seed=self.seed,
            jdk=self.jdk,
            quick=self.quick,
        )
