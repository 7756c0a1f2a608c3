"""Which tests run with nothing beside them, and what a run that wants only these, or only the others, need
not even import. Must not know what a test does beyond its place.
"""

from __future__ import annotations

from pathlib import Path, PurePath

PLACES = (
    "bench",
    "explain/test_many_threads.py",
    "host",
    "hosts/test_hostile.py",
    "hosts/test_laboratory.py",
    "hosts/test_measured.py",
    "hosts/test_namespaces.py",
    "hosts/test_rig.py",
    "hosts/test_way.py",
    "load/test_load_models.py",
    "load/test_together.py",
    "selftest/test_faults.py",
)
"""Where a neighbour is what a test is about, or what it would mistake for something else: a test that has the
judge's default limits call a real run *valid* among them. What waits for an event, however long, is not.
"""
ASKED = {"alone": True, "not alone": False}
"""The words after -m that ask for these tests, or for the others, and for nothing else."""


def is_alone(file: PurePath) -> bool:
    """Of a file below tests/."""
    return any(file.is_relative_to(place) for place in PLACES)


def is_left_out(file: Path, asked: str, tests: Path) -> bool:
    """Whether no test of this file can be wanted by these words after -m; `tests`: the folder of all."""
    wanted = ASKED.get(asked)
    if wanted is None or not file.name.startswith("test_") or not file.is_relative_to(tests):
        return False
    return is_alone(file.relative_to(tests)) != wanted
