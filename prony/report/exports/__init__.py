"""Formats for other programs: one module each, found by its name. Must not know where the text goes.

A new format is a module in this folder that has a `FORMAT`; nothing else needs to know of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line lists the formats at every start: no statistics are imported for that
    from prony.report.result import ResultView


@dataclass(frozen=True, slots=True)
class Exported:
    """The text, and what its reader should be told besides (on standard error)."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """What it is in a few words, and how a result is written in it."""

    what: str
    write: Callable[[ResultView], Exported]


def names() -> tuple[str, ...]:
    """All formats, by name; their modules are not imported."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def named(name: str) -> Format:
    """The format of this name. Raises KeyError when there is none."""
    if name not in names():
        raise KeyError(name)
    found = import_module(f"{__name__}.{name}").FORMAT
    assert isinstance(found, Format), f"{name} has no FORMAT"
    return found
