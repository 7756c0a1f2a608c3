"""A store of 300 trials, made once for all tests of the site, which only read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from prony.store import Store
from prony_serve.web.access import Rules
from prony_serve.web.app import create
from prony_serve.web.site import Site
from tests.seeded_store import Seeded, seed

from .client import Client


@dataclass(frozen=True, slots=True)
class Shown:
    """The store, what is in it, and a reader of its site."""

    store: Store
    seeded: Seeded
    site: Site

    @property
    def client(self) -> Client:
        return Client(create(self.site))


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    store = Store.open(tmp_path_factory.mktemp("store") / "results.db")
    seeded = seed(store)
    yield Shown(store, seeded, Site(store))
    store.close()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "results.db")
    yield store
    store.close()


def reader(store: Store, rules: Rules | None = None, **more: Any) -> Client:
    """A reader of a site with these rules."""
    return Client(create(Site(store, rules or Rules(), **more)))
