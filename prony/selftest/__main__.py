"""`python -m prony.selftest [--section …] [--write docs/truth.md]`: simulate or stage, and print the tables
or put them in their place. Must not judge.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from prony.selftest.tables import Rounds, replace_between, statistics_tables

SECTIONS = ("statistics", "catalogue", "honest")


def main() -> int:
    """Exit code 2 when the file has no place for the tables."""
    asked = argparse.ArgumentParser(prog="python -m prony.selftest", description=__doc__)
    asked.add_argument("--write", type=Path, metavar="FILE", help="replace the tables in this file")
    asked.add_argument("--section", choices=SECTIONS, default="statistics", help="which tables")
    asked.add_argument(
        "--rounds", type=int, default=100, metavar="PERCENT", help="of the usual number of experiments"
    )
    asked.add_argument("--trials", type=int, default=60, help="of the section honest")
    asked.add_argument("--server", help="of the section honest: a server of the catalogue as well")
    chosen = asked.parse_args()
    if chosen.write is None:
        print(_tables(chosen), end="")
        return 0
    begin, end = marks(chosen.section)
    try:
        before = chosen.write.read_text(encoding="utf-8")
        replace_between(before, begin, end, "")  # refused before the minutes, not after them
        found = _tables(chosen)
        chosen.write.write_text(replace_between(before, begin, end, "\n" + found + "\n"), encoding="utf-8")
    except (OSError, ValueError) as fault:
        print(f"{chosen.write}: {fault}", file=sys.stderr)
        return 2
    return 0


def marks(section: str) -> tuple[str, str]:
    """The lines between which a section's tables stand."""
    option = "" if section == "statistics" else f"--section {section} "
    begin = f"<!-- {section}: begin (python -m prony.selftest {option}--write docs/truth.md) -->"
    return begin, f"<!-- {section}: end -->"


def _tables(chosen: argparse.Namespace) -> str:
    if chosen.section == "statistics":
        usual = Rounds()
        counts = (usual.intervals, usual.verdicts, usual.bootstrap)
        return statistics_tables(Rounds(*(max(20, n * chosen.rounds // 100) for n in counts)), _say)
    return _staged(chosen)


def _staged(chosen: argparse.Namespace) -> str:
    from prony.host.affinity import pin_self
    from prony.host.limits import raise_descriptors
    from prony.host.partition import partition
    from prony.selftest.lies.book import ALL, prove_entry
    from prony.selftest.lies.honest import honest_table, honest_trials
    from prony.selftest.lies.prove import Told, markdown

    raise_descriptors()
    pin_self(partition().client)
    if chosen.section == "honest":
        return honest_table(honest_trials(chosen.trials, chosen.server, _say)) + "\n"
    told: list[Told] = []
    for number in ALL:
        told.append(prove_entry(number, tools=True))
        _say(f"{number}: {told[-1].said}; twin: {told[-1].twin} {' '.join(told[-1].faults)}")
    return markdown(told) + "\n"


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
