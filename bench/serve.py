"""How long `prony serve` takes for its list with 10,000 stored trials, as a client on the same host sees it.
Asserts nothing; prints what was measured.

    python -m bench.serve [--trials 10000] [--requests 50]
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import time
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, urlsplit

from prony.store import Search, Store
from prony.store.ids import experiment_id
from prony.store.rows import RawExperiment
from tests.seeded_store import Seeded, seed
from tests.web.server import serving

LIMIT_MS = 200.0
"""What the list may take."""


def filled(store: Store, trials: int) -> Seeded:
    """The seeded store, and copies of its experiments on earlier days until there are so many trials."""
    seeded = seed(store)
    originals = [store.raw(one.id) for one in store.search(Search(), limit=None).experiments]
    count = seeded.trials
    day = datetime(2026, 9, 1, tzinfo=UTC)
    while count < trials:
        for original in originals:
            day -= timedelta(hours=3)
            store.add_raw(copied(original, day))
            count += len(original.trials)
            if count >= trials:
                break
    return seeded


def copied(original: RawExperiment, created: datetime) -> RawExperiment:
    """The same experiment at another time, under another id."""
    old, new = str(original.experiment["id"]), experiment_id(created)
    moved = created - datetime.fromisoformat(original.experiment["created"])

    def named(row: dict[str, Any]) -> dict[str, Any]:
        made = {
            k: v.replace(old, new) if k.endswith("id") and isinstance(v, str) else v for k, v in row.items()
        }
        for key in ("created", "started", "ended", "made"):
            if made.get(key):
                made[key] = (datetime.fromisoformat(made[key]) + moved).isoformat()
        if "record" in made:
            made["record"] = zlib.compress(
                zlib.decompress(row["record"]).replace(old.encode(), new.encode()), 1
            )
        return made

    return RawExperiment(
        named(original.experiment),
        tuple(named(row) for row in original.trials),
        tuple(named(row) for row in original.judgements),
    )


def timed_ms(address: str, path: str, requests: int) -> list[float]:
    """One connection, one request after the other; the first one finds nothing that is kept."""
    at = urlsplit(address)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=120)
    took: list[float] = []
    for _ in range(requests + 1):
        begun = time.perf_counter()
        connection.request("GET", path, headers={"Accept": "text/html"})
        reply = connection.getresponse()
        body = reply.read()
        took.append((time.perf_counter() - begun) * 1000)
        if reply.status != 200:
            raise SystemExit(f"{path} was answered with {reply.status}: {body[:200]!r}")
    connection.close()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=50)
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="prony-bench-serve-") as folder:
        path = Path(folder) / "results.db"
        store = Store.open(path)
        seeded = filled(store, asked.trials)
        total = store.search(Search(), limit=1).total
        print(f"{asked.trials:,} trials in {total:,} experiments, {path.stat().st_size / 2**20:.0f} MiB\n")
        series = "&".join(
            f"{name}={quote(value)}"
            for name, value in (
                ("server", seeded.server),
                ("workload", seeded.workload),
                ("load", seeded.load_name),
            )
        )
        store.close()
        paths = {
            "list": ("/", asked.requests),
            "list, last page": (f"/?page={-(-total // 50)}", asked.requests),
            "list, one server": ("/?server=*jetty*", asked.requests),
            "list, a word and what does not conform": ("/?q=nightly&conforming=no", asked.requests),
            "list as JSON": ("/api/results", asked.requests),
            "series": ("/trends", asked.requests),
            "trend of 5,000 trials": (f"/trend?{series}", 3),
            "changes": ("/changes", 3),
        }
        print(f"{'page':<28}{'first':>9}{'median':>9}{'longest':>9}   ms, limit of a list {LIMIT_MS:.0f} ms")
        with serving(str(path)) as address:
            for name, (where, requests) in paths.items():
                first, *took = timed_ms(address, where, requests)
                print(f"{name:<28}{first:>9.1f}{statistics.median(took):>9.1f}{max(took):>9.1f}")


if __name__ == "__main__":
    main()
