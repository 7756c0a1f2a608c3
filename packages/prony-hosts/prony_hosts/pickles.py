"""Restricts unpickling between laboratory, scheduler and workers to values and Prony's actors.

Dask unpickles every message before a handler sees it, and unpickling a crafted value runs a chosen function.
`restrict` replaces Dask's loader in this process by one that makes only the classes below. Prony's classes
are looked up in loaded modules: importing a module runs it.
"""

from __future__ import annotations

import builtins
import dataclasses
import importlib
import io
import pickle
import sys
from collections.abc import Iterable
from enum import Enum
from typing import Any

from pydantic import BaseModel

from prony_hosts.actor import HostActor

ALLOWED = frozenset(
    {
        ("builtins", name)
        for name in (
            "bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "object",
            "range", "set", "slice", "str", "tuple",
        )
    }
    | {("collections", name) for name in ("OrderedDict", "defaultdict", "deque")}
    | {("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")}
    | {("pathlib", name) for name in ("Path", "PosixPath", "PurePosixPath")}
    | {("dask._task_spec", name) for name in ("Alias", "DataNode", "Dict", "List", "Task", "TaskRef")}
    | {("dask._expr", name) for name in ("Expr._reconstruct", "LLGExpr")}
    | {("distributed.actor", "Actor")}
    | {("tblib", name) for name in ("Code", "Frame", "Traceback")}
    | {
        ("tblib.pickling_support", name)
        for name in ("unpickle_exception", "unpickle_exception_with_attrs", "unpickle_traceback")
    }
)  # fmt: skip
"""Names outside Prony: containers, times, paths, Dask's task envelope, and tracebacks."""


PACKAGES = ("prony", "prony_hosts")
"""Packages whose values are accepted."""
MODULES = ("prony_hosts.actors", "prony_hosts.server_host", "prony_hosts.check")
"""Packages that have the actors, and import the classes of all values sent to or returned by them."""


class Refused(pickle.UnpicklingError):
    """Neither a value nor an actor of Prony's."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in ALLOWED:
            return super().find_class(module, name)
        if module == "builtins" and _is_exception(getattr(builtins, name, None)):
            return super().find_class(module, name)
        if module.split(".")[0] in PACKAGES and _is_value(value := _named(module, name)):
            return value
        raise Refused(f"{module}.{name}: hosts accept Prony's actors and values only")


def _named(module: str, name: str) -> object:
    """The object that Prony's module defines under this name; None for an imported one."""
    value: object = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value if getattr(value, "__module__", "").split(".")[0] in PACKAGES else None


def _is_exception(candidate: object) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, Exception)


def _is_value(candidate: object) -> bool:
    """Whether it is a class of plain values or an actor. A function could run anything."""
    if not isinstance(candidate, type):
        return False
    named_tuple = issubclass(candidate, tuple) and hasattr(candidate, "_fields")
    return (
        issubclass(candidate, (BaseModel, Enum, Exception, HostActor))
        or dataclasses.is_dataclass(candidate)
        or named_tuple
    )


def loads(text: bytes, *, buffers: Iterable[Any] = ()) -> Any:
    """Unpickles a value. Raises Refused."""
    return _Unpickler(io.BytesIO(text), buffers=buffers or None).load()


def restrict() -> None:
    """Makes Dask in this process unpickle by `loads`."""
    for module in MODULES:
        importlib.import_module(module)
    from distributed.protocol import pickle as dask_pickle

    dask_pickle.loads = loads
