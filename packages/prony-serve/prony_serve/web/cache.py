"""A cache of drawn pages."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Cache(Generic[V]):
    """The latest `most` values. Concurrent requests for a key compute its value once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, V] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of this key, computed if missing. Exceptions of `make` propagate uncached."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._known:
                    return self._known[key]
            try:
                value = make()
                with self._lock:
                    self._known[key] = value
                    while len(self._known) > self._most:
                        self._known.popitem(last=False)
                return value
            finally:
                with self._lock:
                    self._making.pop(key, None)
