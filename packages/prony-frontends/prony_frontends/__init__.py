"""Front ends: translate other tools' command lines and scripts into Prony loads.

Each front end is a package of this folder with a `FRONT_END` (prony_frontends.base) and is discovered without
being imported. Packages that begin with `_` hold code shared by a family of tools.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from prony.errors import UsageError

if TYPE_CHECKING:
    from prony_frontends.base import FrontEnd


def names() -> tuple[str, ...]:
    """Names of the tools, as on the command line."""
    return tuple(
        sorted(module.name for module in iter_modules(__path__) if module.ispkg and module.name[0] != "_")
    )


def front_end(name: str) -> FrontEnd:
    """Imports and returns the front end with this name. Raises UsageError for an unknown name."""
    if name not in names():
        raise UsageError(f"unknown tool '{name}'; expected {', '.join(names())}")
    tool: FrontEnd = import_module(f"{__name__}.{name}").FRONT_END
    return tool


def front_ends() -> tuple[FrontEnd, ...]:
    """Imports and returns all front ends."""
    return tuple(front_end(name) for name in names())
