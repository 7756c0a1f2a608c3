"""The cell of a plan: one server under one load of one workload."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from prony.errors import UsageError
from prony.evidence.base import Record
from prony.plan.load import ClosedLoad, Load, SteadyWindow
from prony.plan.target import Target, Url
from prony.plan.trial import START_S, STOP_S, TrialPlan, pinned
from prony.redaction import Name, name


class PublishedFigures(Record):
    """What one source printed for a cell."""

    label: str
    source: str
    figures: dict[str, float]
    note: str = ""


class HostNeeds(Record):
    """What the host must have before a part starts; ports and descriptors are forecast besides."""

    descriptors: int | None = Field(default=None, ge=1)
    ports: int | None = Field(default=None, ge=1)
    """The size of the range of ephemeral ports."""
    cpus: int | None = Field(default=None, ge=1)


class Cell(Record):
    """One server under one load of one workload: this many trials of it are run."""

    id: Name
    """`part/server/workload/load`, unique in the plan."""
    part: Name
    server: Name
    """As the reader knows it."""
    target: Target
    trial: TrialPlan
    trials: int = Field(ge=1)
    controls: int = 0
    """Extra trials that are pinned from the start: do both ways of warming up agree?"""
    explain: bool = False
    """One more trial with a profiler, when all others have ended; nothing of it is a figure."""
    limits: dict[str, Any] = Field(default_factory=dict)
    """Of the checks (docs/method.md), in place of their defaults."""
    expected_requests_per_s: float | None = None
    needs: HostNeeds | None = None
    optional: bool = False
    """Left out where the host cannot do it, instead of refusing the whole plan."""
    published: tuple[PublishedFigures, ...] = ()

    @property
    def users(self) -> int | None:
        """Of a closed load."""
        return self.trial.load.users if isinstance(self.trial.load, ClosedLoad) else None

    @property
    def control(self) -> TrialPlan:
        """What a control of this cell does."""
        return self.trial.model_copy(update={"warm_up": pinned(self.trial.warm_up)})

    @property
    def explained(self) -> TrialPlan:
        """What the explained trial of this cell does: the same load, warm-up and window, and nothing that
        only a figure needs.
        """
        update: dict[str, Any] = {
            "published_requests": None, "beside": (), "scaling_probe": False, "log": None,
        }  # fmt: skip
        if isinstance(self.trial.measured, SteadyWindow):
            update["measured"] = self.trial.measured.model_copy(update={"precision": None})
        return self.trial.model_copy(update=update)

    @property
    def trial_s(self) -> float:
        """About how long one trial takes."""
        return self.takes_s(self.trial)

    def takes_s(self, trial: TrialPlan) -> float:
        """About how long a trial of this cell takes that does `trial`: a server at a URL is not started."""
        return trial.estimate_s - (0.0 if self.target.owned else START_S + STOP_S)

    def under(self, load: Load) -> Cell:
        """The same server under another load, once."""
        trial = self.trial.model_copy(update={"load": load})
        return self.model_copy(
            update={
                "id": cell_id(self.part, self.server, trial),
                "trial": trial,
                "trials": 1,
                "controls": 0,
                "explain": False,
                "published": (),
            }
        )


def cell_id(part: str, server: str, trial: TrialPlan) -> str:
    """`part/server/workload/load`."""
    return name(f"{part}/{server}/{trial.workload.name}/{trial.load_name}")


def cell_of(part: str, server: str, target: Target, trial: TrialPlan, trials: int = 1, **more: Any) -> Cell:
    """A cell with the id that follows from what it is. Raises UsageError for steps that name servers beside
    one that is launched.
    """
    if others := trial.workload.other_servers:
        if not isinstance(target, Url):
            raise UsageError(
                f"a step of the workload '{trial.workload.name}' names the server {others[0]}, and "
                f"{server} is launched here; start it yourself and give its URL"
            )
        known = trial.workload.server_addresses
        reached = (f"http://{known[other]}" if other in known else other for other in others)
        target = target.model_copy(update={"others": tuple(reached)})
    return Cell(
        id=cell_id(part, server, trial),
        part=part,
        server=server,
        target=target,
        trial=trial,
        trials=trials,
        **more,
    )
