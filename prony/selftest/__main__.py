"""`python -m prony.selftest [--section …] [--write docs/truth.md]`: simulate or run, and print the tables or
write them into a file. Must not judge.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from prony.selftest.explained import explain_tables
from prony.selftest.gate_rule import ROUNDS as GATES
from prony.selftest.gate_rule import gate_tables
from prony.selftest.gate_runs import SAME, SLOWER, real_gates
from prony.selftest.laws import usl_table
from prony.selftest.percentile_coverage import ROUNDS
from prony.selftest.percentile_tables import percentile_tables
from prony.selftest.shared_processes import ROUNDS as SHARED
from prony.selftest.shared_processes import shared_tables
from prony.selftest.steady_tables import TRIALS, steady_tables
from prony.selftest.tables import Repetitions, Say, replace_between, statistics_tables

SIMULATED: Mapping[str, Callable[[float, Say], str]] = {
    "statistics": lambda share, say: statistics_tables(Repetitions().times(share), say),
    "percentiles": lambda share, say: percentile_tables(max(20, int(ROUNDS * share)), say),
    "usl": usl_table,
    "shared": lambda share, say: shared_tables(max(20, int(SHARED * share)), say),
    "gate-rule": lambda share, say: gate_tables(max(20, int(GATES * share)), say),
    "explain": explain_tables,
    "steady": lambda share, say: steady_tables(max(2, round(TRIALS * share)), say),
}
"""Sections that run nothing: from the share of the usual number of rounds to the tables."""
SECTIONS = (*SIMULATED, "catalogue", "honest", "gate")


def main() -> int:
    """Exit code 2 when the file lacks the marks between which the tables go."""
    asked = argparse.ArgumentParser(prog="python -m prony.selftest", description=__doc__)
    asked.add_argument("--write", type=Path, metavar="FILE", help="replace the tables in this file")
    asked.add_argument("--section", choices=SECTIONS, default="statistics", help="which tables")
    asked.add_argument(
        "--rounds",
        type=int,
        default=100,
        metavar="PERCENT",
        help="of the usual number of simulated experiments",
    )
    asked.add_argument("--trials", type=int, default=60, help="with --section honest: number of trials")
    asked.add_argument("--server", help="with --section honest: a server of the catalogue as well")
    asked.add_argument("--same", type=int, default=SAME, help="with --section gate: gates of the same build")
    asked.add_argument("--slower", type=int, default=SLOWER, help="with --section gate: of a slower build")
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
    """The marker lines around a section's tables."""
    option = "" if section == "statistics" else f"--section {section} "
    begin = f"<!-- {section}: begin (python -m prony.selftest {option}--write docs/truth.md) -->"
    return begin, f"<!-- {section}: end -->"


def _tables(chosen: argparse.Namespace) -> str:
    if chosen.section == "gate":
        return real_gates(chosen.same, chosen.slower, _say)
    simulated = SIMULATED.get(chosen.section)
    return _faults(chosen) if simulated is None else simulated(chosen.rounds / 100, _say)


def _faults(chosen: argparse.Namespace) -> str:
    from prony.host.affinity import pin_self
    from prony.host.partition import partition
    from prony.host.resource_limits import raise_descriptors
    from prony.selftest.faults.clean_trials import clean_trials, clean_trials_table
    from prony.selftest.faults.entries import ALL, run_number
    from prony.selftest.faults.single_trial import EntryResult, markdown

    raise_descriptors()
    pin_self(partition().client)
    if chosen.section == "honest":
        return clean_trials_table(clean_trials(chosen.trials, chosen.server, _say)) + "\n"
    told: list[EntryResult] = []
    for number in ALL:
        told.append(run_number(number, tools=True))
        _say(f"{number}: {told[-1].reported}; clean: {told[-1].clean} {' '.join(told[-1].failures)}")
    return markdown(told) + "\n"


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
