"""`python -m prony.selftest [--write docs/truth.md]`: simulate, and print the tables or put them in place."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from prony.selftest.tables import Rounds, replace_between, statistics_tables

BEGIN = "<!-- statistics: begin (python -m prony.selftest --write docs/truth.md) -->"
END = "<!-- statistics: end -->"


def main() -> int:
    """Exit code 2 when the file has no place for the tables."""
    asked = argparse.ArgumentParser(prog="python -m prony.selftest", description=__doc__)
    asked.add_argument("--write", type=Path, metavar="FILE", help="replace the tables in this file")
    asked.add_argument(
        "--rounds", type=int, default=100, metavar="PERCENT", help="of the usual number of experiments"
    )
    chosen = asked.parse_args()
    usual = Rounds()
    rounds = Rounds(
        *(max(20, n * chosen.rounds // 100) for n in (usual.intervals, usual.verdicts, usual.bootstrap))
    )
    if chosen.write is None:
        print(statistics_tables(rounds, _say), end="")
        return 0
    try:
        before = chosen.write.read_text(encoding="utf-8")
        replace_between(before, BEGIN, END, "")  # refused before the minutes, not after them
        found = statistics_tables(rounds, _say)
        chosen.write.write_text(replace_between(before, BEGIN, END, "\n" + found + "\n"), encoding="utf-8")
    except (OSError, ValueError) as fault:
        print(f"{chosen.write}: {fault}", file=sys.stderr)
        return 2
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
