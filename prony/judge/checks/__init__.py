"""All checks in output order: each module of this package holds a `Check` of its own name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from prony.judge.check import Check
from prony.judge.finding import Finding


def _found() -> Iterator[Check[Finding | None]]:
    for module in iter_modules(__path__):
        check = getattr(import_module(f"{__name__}.{module.name}"), module.name)
        assert isinstance(check, Check), f"{__name__}.{module.name} holds no check of this name"
        yield check


CHECKS: tuple[Check[Finding | None], ...] = tuple(sorted(_found(), key=lambda check: check.order))
