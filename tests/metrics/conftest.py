"""A server under test that runs already, and a command line of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Lab
from tests.load.test_engine import Reference


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def reference_server() -> Iterator[str]:
    reference = Reference()
    try:
        yield reference.url
    finally:
        reference.finish()
