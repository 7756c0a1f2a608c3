"""The cell of a plan: a server, a workload and a load."""

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
    """A source's published figures of a cell."""

    label: str
    source: str
    figures: dict[str, float]
    note: str = ""


class HostNeeds(Record):
    """Requirements on the host, in addition to the forecast of ports and descriptors."""

    descriptors: int | None = Field(default=None, ge=1)
    ports: int | None = Field(default=None, ge=1)
    """Size of the range of ephemeral ports."""
    cpus: int | None = Field(default=None, ge=1)


class Cell(Record):
    """A server under a load of a workload, with its number of trials."""

    id: Name
    part: Name
    server: Name
    target: Target
    trial: TrialPlan
    trials: int = Field(ge=1)
    took_s: float | None = None
    """Duration of such trials here before; None: estimated by the plan."""
    controls: int = 0
    """Additional trials pinned from the start, to compare warm-up methods."""
    explain: bool = False
    limits: dict[str, Any] = Field(default_factory=dict)
    expected_requests_per_s: float | None = None
    needs: HostNeeds | None = None
    optional: bool = False
    published: tuple[PublishedFigures, ...] = ()

    @property
    def users(self) -> int | None:
        return self.trial.load.users if isinstance(self.trial.load, ClosedLoad) else None

    @property
    def control(self) -> TrialPlan:
        return self.trial.model_copy(update={"warm_up": pinned(self.trial.warm_up)})

    @property
    def explained(self) -> TrialPlan:
        """The explained trial: the same load, warm-up and window, without extras for figures."""
        update: dict[str, Any] = {
            "published_requests": None, "beside": (), "scaling_probe": False, "log": None,
            "instructions": False,
        }  # fmt: skip
        if isinstance(self.trial.measured, SteadyWindow):
            update["measured"] = self.trial.measured.model_copy(update={"precision": None})
        return self.trial.model_copy(update=update)

    @property
    def trial_s(self) -> float:
        return self.takes_s(self.trial) if self.took_s is None else self.took_s

    def takes_s(self, trial: TrialPlan) -> float:
        return trial.estimate_s - (0.0 if self.target.owned else START_S + STOP_S)

    def under(self, load: Load) -> Cell:
        trial = self.trial.model_copy(update={"load": load})
        alone = {"trials": 1, "took_s": None, "controls": 0, "explain": False, "published": ()}
        own_id = cell_id(self.part, self.server, trial)
        return self.model_copy(update={"id": own_id, "trial": trial, **alone})


def cell_id(part: str, server: str, trial: TrialPlan) -> str:
    return name(f"{part}/{server}/{trial.workload.name}/{trial.load_name}")


def cell_of(part: str, server: str, target: Target, trial: TrialPlan, trials: int = 1, **more: Any) -> Cell:
    """A cell with its id. Raises UsageError for steps with further servers if Prony launches the server."""
    if others := trial.workload.other_servers:
        if not isinstance(target, Url):
            raise UsageError(
                f"a step of the workload '{trial.workload.name}' names the server {others[0]}, but Prony "
                f"launches {server}; start it yourself and give its URL"
            )
        addresses = trial.workload.server_addresses
        reached = (f"http://{addresses[other]}" if other in addresses else other for other in others)
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
