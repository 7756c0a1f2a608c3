"""Formats by name: a module here that has a `FORMAT`, or another package's entry point (`prony.seams`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from prony import seams

if TYPE_CHECKING:  # the command line lists the formats at every start: no statistics are imported for that
    from prony.report.result import ResultView


@dataclass(frozen=True, slots=True)
class Exported:
    """The exported content, and a notice for standard error."""

    content: str | bytes | Iterator[str]
    """Of a format that can be long (a row per request) piece by piece, and then to be taken once."""
    note: str = ""

    @property
    def text(self) -> str:
        assert not isinstance(self.content, bytes)
        return self.content if isinstance(self.content, str) else "".join(self.content)

    def pieces(self) -> Iterator[bytes]:
        if isinstance(self.content, bytes):
            yield self.content
        elif isinstance(self.content, str):
            yield self.content.encode()
        else:
            for piece in self.content:
                yield piece.encode()


@dataclass(frozen=True, slots=True)
class Format:
    """What it is in a few words, and how a result is written in it. Raises PronyError where it cannot be."""

    what: str
    write: Callable[[ResultView], Exported]
    suffix: str
    """Of a file in this format, with the dot."""
    one_trial: bool = False
    """A file holds a single trial: `write` gets a view with one."""
    binary: bool = False


def own() -> tuple[str, ...]:
    """Prony's formats, by name, those of packages that are not installed among them; nothing is imported."""
    return tuple(sorted({*(module.name for module in iter_modules(__path__)), *seams.own(seams.EXPORTS)}))


def names() -> tuple[str, ...]:
    """All formats, those of others' packages among them."""
    return tuple(sorted({*own(), *seams.names(seams.EXPORTS)}))


def named(name: str) -> Format:
    """Raises KeyError when there is none, EnvironmentFault where its package is not installed."""
    if name not in names():
        raise KeyError(name)
    if any(module.name == name for module in iter_modules(__path__)):
        exporter = import_module(f"{__name__}.{name}").FORMAT
    else:
        exporter = seams.need(seams.EXPORTS, name, f"the format {name}")
    assert isinstance(exporter, Format), f"{name} has no FORMAT"
    return exporter
