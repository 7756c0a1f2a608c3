"""Programs that tests need: CI installs each that a package of the distribution has."""

from __future__ import annotations

from pathlib import Path

from tests.hosts.rig import NEEDED
from tests.programs import PROGRAMS

CI = Path(__file__).parent.parent / ".ci" / "run"


def test_ci_installs_every_package_that_a_test_needs() -> None:
    packages = {how.split()[-1] for _, how in PROGRAMS.values() if how.startswith("apt-get install")}
    script = CI.read_text(encoding="utf-8")
    assert [name for name in sorted(packages) if f"missing+=({name})" not in script] == []


def test_programs_of_namespaces_are_known() -> None:
    assert set(NEEDED) <= set(PROGRAMS)
