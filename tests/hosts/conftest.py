"""A host made of files, as the tests of one host have it."""

from tests.host.conftest import tree

__all__ = ["tree"]
