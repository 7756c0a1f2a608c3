"""What a user types about a load, into the values of `prony.plan.load`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from prony import redaction
from prony.cli import options
from prony.errors import UsageError
from prony.plan.load import ClosedLoad, Load, OpenLoad, RatePhase
from prony.plan.think import NO_THINK, Think

if TYPE_CHECKING:
    from prony.plan.workload import Workload

THINK_FORMS = "500ms, uniform:0.5s,1.5s, exponential:1s or gaussian:1s,0.2s"
PHASE_FORMS = "a time, @, and a rate or two: 10s@0..100,60s@100"


def think(text: str | None, option: str = "--think") -> Think:
    """A think time such as `500ms` or `uniform:0.5s,1.5s`. Raises UsageError."""
    if text is None:
        return NO_THINK
    kind, colon, rest = text.partition(":")
    if not colon:
        ms = options.seconds(text, option) * 1000
        return Think(kind="constant", ms=ms) if ms else NO_THINK
    parts = rest.split(",")
    wanted = {"constant": 1, "uniform": 2, "exponential": 1, "gaussian": 2}
    if wanted.get(kind) != len(parts):
        raise UsageError(f"{option} is '{text}'; expected {THINK_FORMS}")
    first, last = (options.seconds(parts[at], option) * 1000 for at in (0, -1))
    match kind:
        case "constant":
            return Think(kind="constant", ms=first)
        case "uniform":
            if last < first:
                raise UsageError(f"{option} is '{text}'; expected the shorter time first: {THINK_FORMS}")
            return Think(kind="uniform", min_ms=first, max_ms=last)
        case "exponential":
            return Think(kind="exponential", mean_ms=first)
        case _:
            return Think(kind="gaussian", mean_ms=first, stdev_ms=last)


def phases(text: str, option: str = "--phases") -> tuple[RatePhase, ...]:
    """`10s@0..100,60s@100`: ten seconds from 0 to 100 arrivals per second, then a minute at 100."""
    found: list[RatePhase] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([\d.]+\w*)@(\d+(?:\.\d+)?)(?:\.\.(\d+(?:\.\d+)?))?\s*", part)
        if match is None:
            raise UsageError(f"{option} has '{part}'; expected {PHASE_FORMS}")
        rates = (float(match[2]), float(match[3] or match[2]))
        if max(rates) > options.MAX_RATE_PER_S:
            raise UsageError(
                f"{option} has '{part}'; expected at most {options.MAX_RATE_PER_S:,.0f} per second"
            )
        length_s = options.seconds(match[1], option, at_least_s=0.001)
        found.append(RatePhase(duration_s=length_s, from_per_s=rates[0], to_per_s=rates[1]))
    if not any(phase.from_per_s or phase.to_per_s for phase in found):
        raise UsageError(f"{option} is '{text}', without any arrivals; expected {PHASE_FORMS}")
    return tuple(found)


def chosen(
    *,
    users: int | None,
    think_time: str | None,
    ramp_up: str | None,
    ramp_down: str | None,
    rate: float | None,
    phase_list: str | None,
    arrivals: str | None,
    sessions: bool,
    max_users: int | None,
    deadline: str | None,
    default_users: int,
) -> Load:
    """The closed or open load that was asked for. Raises UsageError when both were, or when an option has no
    meaning there.
    """
    pause = think(think_time)
    if rate is None and phase_list is None:
        given = {
            "--arrivals": arrivals,
            "--max-users": max_users,
            "--deadline": deadline,
            "--sessions": sessions,
        }
        for name, value in given.items():
            if value:
                raise UsageError(f"{name} applies to an open loop; add --rate, or leave {name} out")
        return ClosedLoad(
            users=options.users(default_users if users is None else users),
            think=pause,
            ramp_up_s=options.seconds(ramp_up or "0s", "--ramp-up"),
            ramp_down_s=options.seconds(ramp_down or "0s", "--ramp-down"),
        )
    how = "--rate" if rate is not None else "--phases"
    if rate is not None and phase_list is not None:
        raise UsageError("both --rate and --phases were given; give one of them")
    closed = {"--users": users, "--ramp-down": ramp_down, "--think": None if sessions else think_time}
    for name, option in closed.items():
        if option is not None:
            raise UsageError(
                f"both {how} and {name} were given; give {how} for an open loop, or {name} for a closed one"
                + (" (or --sessions, whose users may think)" if name == "--think" else "")
            )
    if phase_list is not None and ramp_up is not None:
        raise UsageError("--ramp-up applies to --rate; with --phases write the ramp as a phase: 10s@0..100")
    spacing = options.one_of(arrivals or "constant", "--arrivals", ("constant", "poisson"))
    return OpenLoad.model_validate(
        {
            "rate_per_s": None if rate is None else options.rate(rate),
            "ramp_up_s": options.seconds(ramp_up or "0s", "--ramp-up"),
            "phases": () if phase_list is None else phases(phase_list),
            "arrivals": spacing,
            "session": "user" if sessions else "request",
            "think": pause,
            "max_users": None if max_users is None else options.max_users(max_users),
            "deadline_ms": None
            if deadline is None
            else options.seconds(deadline, "--deadline", at_least_s=0.001) * 1000,
        }
    )


def request(
    path: str, method: str | None, headers: list[str], body: str | None, body_file: Path | None
) -> Workload:
    """The one request that is repeated. Raises UsageError for what cannot be sent."""
    from pydantic import ValidationError

    from prony.plan.step import METHODS
    from prony.plan.workload import from_url

    if body is not None and body.startswith("@"):
        if body_file is not None:
            raise UsageError("both --data @FILE and --body-file were given; give one")
        body_file = Path(body[1:])
        body = None
    if body is not None and body_file is not None:
        raise UsageError("both --body and --body-file were given; give one")
    if body_file is not None and not body_file.is_file():
        raise UsageError(f"the body's file {body_file} is not there; name a file that can be read")
    word = method.upper() if method is not None else "GET" if body is None and body_file is None else "POST"
    chosen = options.one_of(word, "--method", METHODS)
    pairs: dict[str, str] = {}
    for line in headers:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or "\n" in line or "\r" in line:
            shown = redaction.beginning(line)
            raise UsageError(f"--header is '{shown}'; expected a name, a colon and a value: 'Accept: */*'")
        pairs[name.strip()] = value.strip()
    try:
        return from_url(path, chosen, pairs, body, None if body_file is None else str(body_file.resolve()))
    except ValidationError as fault:
        reason = str(fault.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"the request cannot be sent: {reason}") from fault
