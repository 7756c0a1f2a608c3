"""Expansion of the keys `loads` and `measured` of a plan file."""

from __future__ import annotations

from itertools import product

from prony.plan.load import ClosedLoad, Load, Measured, OpenLoad, SteadyWindow, WholeRun
from prony.plan.planfile import LoadKeys, MeasuredKeys
from prony.plan.think import NO_THINK

DEFAULT_WINDOW_S = 30.0


def expand(keys: LoadKeys) -> list[Load]:
    is_open = keys.rate_per_s is not None or keys.phases is not None
    model: type[ClosedLoad] | type[OpenLoad] = OpenLoad if is_open else ClosedLoad
    listed, values = ("rate_per_s", keys.rate_per_s) if is_open else ("users", keys.users)
    same = {name: getattr(keys, name) for name in keys.model_fields_set & {*model.model_fields}}
    return [
        model.model_validate(same | {"think": think} | ({} if value is None else {listed: value}))
        for think, value in product(keys.think or (NO_THINK,), values or (None,))
    ]


def measured(keys: MeasuredKeys, load: Load) -> Measured:
    """The measured part; by default a steady window, or all of a load that ends by itself."""
    bounds = (keys.duration_s, keys.total_requests, keys.iterations_per_user)
    groups = load.populations if isinstance(load, ClosedLoad) else ()
    ends = bool(groups) and all(group.bounded for group in groups)
    ends = ends or (isinstance(load, OpenLoad) and bool(load.phases))
    if keys.window_s is None and (any(bound is not None for bound in bounds) or ends):
        return WholeRun(
            duration_s=keys.duration_s,
            total_requests=keys.total_requests,
            iterations_per_user=keys.iterations_per_user,
            warm_up_s=keys.warm_up_s,
            drain_s=keys.drain_s,
        )
    return SteadyWindow(
        window_s=keys.window_s or DEFAULT_WINDOW_S, windows=keys.windows, precision=keys.precision
    )
