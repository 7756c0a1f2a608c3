"""Groups of users in a closed load, each with its start, end and scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from prony.evidence.base import Record
from prony.plan.think import NO_THINK, Pause


class Population(Record):
    """A group of users."""

    name: str = Field(min_length=1)
    users: int = Field(ge=1)
    users_before: int = Field(default=0, ge=0)
    """Users of the same group in earlier populations, after which `${user}` counts on."""
    start_s: float = Field(default=0.0, ge=0)
    """Start of its first user, from the start of the run."""
    ramp_up_s: float = Field(default=0.0, ge=0)
    """Its users start evenly over this time."""
    ramp_up_steps: int | None = Field(default=None, ge=1)
    duration_s: float | None = Field(default=None, gt=0)
    """End of its users after `start_s`, each after its current response. Default: with the run."""
    iterations_per_user: int | None = Field(default=None, ge=1)
    think: Pause = NO_THINK
    scenarios: tuple[str, ...] = ()
    """Scenarios of its users, drawn by weight. Default: all of the workload's."""
    feeders: tuple[str, ...] | None = None
    """Feeders of its users. Default: those that its scenarios name."""

    @property
    def bounded(self) -> bool:
        return self.duration_s is not None or self.iterations_per_user is not None

    @property
    def end_s(self) -> float | None:
        return None if self.duration_s is None else self.start_s + self.duration_s

    def walks(self, scenario: str) -> bool:
        return not self.scenarios or scenario in self.scenarios

    def started(self, at_s: float) -> int:
        after_s = at_s - self.start_s
        if after_s < 0:
            return 0
        if after_s >= self.ramp_up_s:
            return self.users
        steps = self.ramp_up_steps or self.users
        groups = int(after_s / self.ramp_up_s * steps) + 1
        return min(self.users, -(-groups * self.users // steps))


def most_at_once(populations: Sequence[Population]) -> int:
    """Most concurrent users; those bounded by iterations are taken to stay."""
    moments = {population.start_s + population.ramp_up_s for population in populations}
    moments |= {population.end_s - 1e-9 for population in populations if population.end_s is not None}

    def there(population: Population, at_s: float) -> int:
        return 0 if population.end_s is not None and at_s >= population.end_s else population.started(at_s)

    return max(sum(there(population, at_s) for population in populations) for at_s in moments)


def last_end_s(populations: Sequence[Population]) -> float | None:
    """End of all populations from the start of the run; None if any has none."""
    ends = [group.end_s for group in populations]
    finite = [end_s for end_s in ends if end_s is not None]
    return max(finite) if finite and len(finite) == len(ends) else None


def misfit(
    populations: Sequence[Population], scenarios: Mapping[str, str], feeders: Sequence[str]
) -> str | None:
    """Why these populations cannot walk these scenarios (name -> text); None if they can."""
    names = [group.name for group in populations]
    for group in populations:
        if names.count(group.name) > 1:
            return f"two populations are named '{group.name}'; give each its own name"
        for kind, given, declared in (
            ("scenario", group.scenarios, list(scenarios)),
            ("feeder", group.feeders or (), feeders),
        ):
            for name in given:
                if name not in declared:
                    return (
                        f"the population '{group.name}' names the {kind} '{name}'; "
                        f"the workload has: {', '.join(declared) or 'none'}"
                    )
        if group.feeders is not None:
            for name in _named(group, scenarios, feeders):
                if name not in group.feeders:
                    return (
                        f"the population '{group.name}' lacks the feeder '{name}', whose values its "
                        "scenarios send; add it to its feeders"
                    )
    for name in scenarios:
        who = [group for group in populations if group.walks(name)]
        if not who:
            return f"no population walks the scenario '{name}'; add it to a population"
        for other in who[1:]:
            if other.think != who[0].think:
                return (
                    f"the populations '{who[0].name}' and '{other.name}' walk the scenario '{name}' with "
                    "different think; write a scenario for each, or the pauses into its steps"
                )
    return None


def drawn(population: Population, scenarios: Mapping[str, str], feeders: Sequence[str]) -> tuple[str, ...]:
    return _named(population, scenarios, feeders) if population.feeders is None else population.feeders


def _named(population: Population, scenarios: Mapping[str, str], feeders: Sequence[str]) -> tuple[str, ...]:
    walked = [text for name, text in scenarios.items() if population.walks(name)]
    return tuple(name for name in feeders if any(f"${{{name}." in text for text in walked))
