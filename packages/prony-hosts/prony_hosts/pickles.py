"""What may be unpickled between laboratory, scheduler and workers: values, and Prony's actors by name. Must
not know who sends it.

Dask unpickles what it receives before any handler sees it, and unpickling a chosen value runs a chosen
function. `restrict` replaces the one function through which Dask does it, in this process, by one that makes
only the classes below. Prony's are looked up among the modules that are loaded: to import a module runs it.
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
"""Names outside Prony: containers, times, paths, Dask's envelope of a task, and exceptions' tracebacks."""


PACKAGES = ("prony", "prony_hosts")
"""Whose values are taken."""
MODULES = ("prony_hosts.actors", "prony_hosts.server_host", "prony_hosts.check")
"""They have the actors, and import the classes of all values that go to an actor or come from it."""


class Refused(pickle.UnpicklingError):
    """Something else than a value or one of Prony's actors."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in ALLOWED:
            return super().find_class(module, name)
        if module == "builtins" and _is_exception(getattr(builtins, name, None)):
            return super().find_class(module, name)
        if module.split(".")[0] in PACKAGES and _is_value(found := _named(module, name)):
            return found
        raise Refused(f"{module}.{name}: hosts take Prony's actors and values, nothing else")


def _named(module: str, name: str) -> object:
    """What Prony's module calls so: a name of the module itself, not one that it imported."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if getattr(found, "__module__", "").split(".")[0] in PACKAGES else None


def _is_exception(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Exception)


def _is_value(found: object) -> bool:
    """A class that only holds values, or an actor. A function of Prony's may run anything."""
    if not isinstance(found, type):
        return False
    named_tuple = issubclass(found, tuple) and hasattr(found, "_fields")
    return (
        issubclass(found, (BaseModel, Enum, Exception, HostActor))
        or dataclasses.is_dataclass(found)
        or named_tuple
    )


def loads(text: bytes, *, buffers: Iterable[Any] = ()) -> Any:
    """The value. Raises Refused."""
    return _Unpickler(io.BytesIO(text), buffers=buffers or None).load()


def restrict() -> None:
    """From now on Dask unpickles by `loads` in this process."""
    for module in MODULES:
        importlib.import_module(module)
    from distributed.protocol import pickle as dask_pickle

    dask_pickle.loads = loads
