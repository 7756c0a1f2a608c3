"""The servers under test of a plan, each found once however many cells it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from prony.plan.cell import Cell
from prony.plan.target import Target
from prony.server.catalogue import Catalogue
from prony.targets import ServerUnderTest, under_test


@dataclass(slots=True)
class Targets:
    """Cell -> its server under test."""

    catalogue: Catalogue = field(default_factory=Catalogue.load)
    hosted: Callable[[Target, ServerUnderTest], ServerUnderTest] | None = None
    """Puts a server on the host that launches it, or on which it runs."""
    _known: dict[str, ServerUnderTest] = field(default_factory=dict)

    def of(self, cell: Cell) -> ServerUnderTest:
        """Raises UsageError for a server that is not in the catalogue, or a setting that it does not have."""
        return self.at(cell.target)

    def at(self, target: Target) -> ServerUnderTest:
        """The same without a cell."""
        key = target.model_dump_json()
        if key not in self._known:
            found = under_test(target, self.catalogue)
            if self.hosted is not None:
                found = self.hosted(target, found)
            self._known[key] = found
        return self._known[key]
