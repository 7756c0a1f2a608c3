"""Front ends: other tools' command lines and scripts, translated into the laboratory's own load.

Each is a package of this folder that holds a `FRONT_END` (prony_frontends.base); nothing else lists it. They
are found without being imported, so that other commands do not pay for them. A package that begins with `_`
is no tool: it holds what tools of one family share.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from prony.errors import UsageError

if TYPE_CHECKING:
    from prony_frontends.base import FrontEnd


def names() -> tuple[str, ...]:
    """The tools' names, as on the command line."""
    return tuple(
        sorted(found.name for found in iter_modules(__path__) if found.ispkg and found.name[0] != "_")
    )


def summary(name: str) -> str:
    """Its line in `prony --help`: the first sentence of its docstring, read without importing it."""
    source = Path(__path__[0], name, "__init__.py").read_text(encoding="utf-8")
    text = " ".join((ast.get_docstring(ast.parse(source)) or "").split())
    return text.partition(": ")[2].partition(".")[0] + "."


def front_end(name: str) -> FrontEnd:
    """The front end of this name, imported now. Raises UsageError when there is none."""
    if name not in names():
        raise UsageError(f"unknown tool '{name}'; expected {', '.join(names())}")
    found: FrontEnd = import_module(f"{__name__}.{name}").FRONT_END
    return found


def front_ends() -> tuple[FrontEnd, ...]:
    """All of them, imported now."""
    return tuple(front_end(name) for name in names())
