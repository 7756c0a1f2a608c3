"""False alarms of trends without a change, and detection of planted changes: simulated series of nights,
three trials each, with a spread between nights. Prints shares, asserts nothing.

python -m bench.trend_alarms [--series 1000]
"""

from __future__ import annotations

import argparse

import numpy as np

from prony_serve.trends.levels import changes

NIGHTS, EACH = 50, 3
SPREAD = 0.01
"""Standard deviation (log) between trials of a night."""
NIGHT_SPREADS = (0.0, 0.003, 0.005, 0.01, 0.02)
STEPS = (0.03, 0.05)


def series(source: np.random.Generator, nights: float, step: float = 0.0) -> list[float]:
    """150 trials; with `step`, the second half of the nights is slower by this share."""
    level = np.repeat(source.normal(0, nights, NIGHTS), EACH) + source.normal(0, SPREAD, NIGHTS * EACH)
    level[NIGHTS * EACH // 2 :] += np.log1p(-step)
    return [float(value) for value in 7000 * np.exp(level)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--series", type=int, default=1000)
    count = parser.parse_args().series
    print(f"{count} series of {NIGHTS} nights, {EACH} trials a night with a spread of {SPREAD:.1%}\n")
    print(
        f"{'spread of nights':<18}{'called changed':>15}"
        + "".join(f"{f'{step:.0%} detected':>14}" for step in STEPS)
    )
    sessions = [k // EACH for k in range(NIGHTS * EACH)]
    for nights in NIGHT_SPREADS:
        source = np.random.default_rng(14)
        alarms = sum(bool(changes(series(source, nights), sessions)) for _ in range(count))
        shares = [alarms / count]
        for step in STEPS:
            near = range(NIGHTS * EACH // 2 - EACH, NIGHTS * EACH // 2 + EACH + 1)
            hits = sum(
                any(change.index in near for change in changes(series(source, nights, step), sessions))
                for _ in range(count)
            )
            shares.append(hits / count)
        print(f"{nights:<18.1%}{shares[0]:>15.1%}" + "".join(f"{share:>14.1%}" for share in shares[1:]))


if __name__ == "__main__":
    main()
