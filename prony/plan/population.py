"""Several groups of users in one closed load, each with a start, an end and scenarios of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from prony.evidence.base import Record
from prony.plan.think import NO_THINK, Pause


class Population(Record):
    """One group of users."""

    name: str = Field(min_length=1)
    users: int = Field(ge=1)
    users_before: int = Field(default=0, ge=0)
    """Users of the same group in populations before this one: `${user}` counts on from them."""
    start_s: float = Field(default=0.0, ge=0)
    """Its first user starts so long after the start of the run."""
    ramp_up_s: float = Field(default=0.0, ge=0)
    """Its users start evenly spread over this time."""
    ramp_up_steps: int | None = Field(default=None, ge=1)
    duration_s: float | None = Field(default=None, gt=0)
    """So long after `start_s` its users end, each after the response under way; with the run when not given.
    """
    iterations_per_user: int | None = Field(default=None, ge=1)
    think: Pause = NO_THINK
    scenarios: tuple[str, ...] = ()
    """What its users walk, drawn by the weights; all of the workload's when not given."""
    feeders: tuple[str, ...] | None = None
    """Whose rows its users draw; those that its scenarios name when not given."""

    @property
    def bounded(self) -> bool:
        """Whether it ends by itself."""
        return self.duration_s is not None or self.iterations_per_user is not None

    @property
    def end_s(self) -> float | None:
        """When its time is over, after the start of the run."""
        return None if self.duration_s is None else self.start_s + self.duration_s

    def walks(self, scenario: str) -> bool:
        """Whether its users walk this scenario."""
        return not self.scenarios or scenario in self.scenarios

    def started(self, at_s: float) -> int:
        """Its users who have started by then, those who have ended too."""
        after_s = at_s - self.start_s
        if after_s < 0:
            return 0
        if after_s >= self.ramp_up_s:
            return self.users
        steps = self.ramp_up_steps or self.users
        groups = int(after_s / self.ramp_up_s * steps) + 1
        return min(self.users, -(-groups * self.users // steps))


def most_at_once(populations: Sequence[Population]) -> int:
    """Users who are there together, at most; those who end by their iterations are taken to stay."""
    moments = {one.start_s + one.ramp_up_s for one in populations}
    moments |= {one.end_s - 1e-9 for one in populations if one.end_s is not None}

    def there(one: Population, at_s: float) -> int:
        return 0 if one.end_s is not None and at_s >= one.end_s else one.started(at_s)

    return max(sum(there(one, at_s) for one in populations) for at_s in moments)


def last_end_s(populations: Sequence[Population]) -> float | None:
    """When the time of all of them is over, after the start of the run; None where one has no such end."""
    ends = [one.end_s for one in populations]
    known = [end_s for end_s in ends if end_s is not None]
    return max(known) if known and len(known) == len(ends) else None


def misfit(
    populations: Sequence[Population], scenarios: Mapping[str, str], feeders: Sequence[str]
) -> str | None:
    """Why these populations cannot walk these scenarios (name -> all of it as text); None when they can."""
    names = [one.name for one in populations]
    for one in populations:
        if names.count(one.name) > 1:
            return f"two populations are called '{one.name}'; give each a name of its own"
        for kind, given, known in (
            ("scenario", one.scenarios, list(scenarios)),
            ("feeder", one.feeders or (), feeders),
        ):
            for name in given:
                if name not in known:
                    return (
                        f"the population '{one.name}' names the {kind} '{name}'; "
                        f"the workload has: {', '.join(known) or 'none'}"
                    )
        if one.feeders is not None:
            for name in _named(one, scenarios, feeders):
                if name not in one.feeders:
                    return (
                        f"the population '{one.name}' does not draw from the feeder '{name}', but a scenario "
                        "of its users sends values of it; add it to its feeders"
                    )
    for name in scenarios:
        who = [one for one in populations if one.walks(name)]
        if not who:
            return f"the scenario '{name}' is walked by no population; name it in one of them"
        for other in who[1:]:
            if other.think != who[0].think:
                return (
                    f"the populations '{who[0].name}' and '{other.name}' walk the scenario '{name}' with "
                    "different think; write a scenario for each, or the pauses into its steps"
                )
    return None


def drawn(one: Population, scenarios: Mapping[str, str], feeders: Sequence[str]) -> tuple[str, ...]:
    """The feeders whose rows its users draw."""
    return _named(one, scenarios, feeders) if one.feeders is None else one.feeders


def _named(one: Population, scenarios: Mapping[str, str], feeders: Sequence[str]) -> tuple[str, ...]:
    """The feeders whose values its scenarios send."""
    walked = [text for name, text in scenarios.items() if one.walks(name)]
    return tuple(name for name in feeders if any(f"${{{name}." in text for text in walked))
