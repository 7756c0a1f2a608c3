"""Response times of `prony serve` with 10,000 stored trials, from a client on the same host. Prints results,
asserts nothing.

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
"""Aim for the list."""


def filled(store: Store, trials: int) -> Seeded:
    """The seeded store, with copies of its experiments on earlier days up to this number of trials."""
    seeded = seed(store)
    originals = [store.raw(row.id) for row in store.search(Search(), limit=None).experiments]
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
    """The experiment at another time, with another id."""
    old, new = str(original.experiment["id"]), experiment_id(created)
    moved = created - datetime.fromisoformat(original.experiment["created"])

    def named(row: dict[str, Any]) -> dict[str, Any]:
        values = {
            k: v.replace(old, new) if k.endswith("id") and isinstance(v, str) else v for k, v in row.items()
        }
        for key in ("created", "started", "ended", "made"):
            if values.get(key):
                values[key] = (datetime.fromisoformat(values[key]) + moved).isoformat()
        if "record" in values:
            values["record"] = zlib.compress(
                zlib.decompress(row["record"]).replace(old.encode(), new.encode()), 1
            )
        return values

    return RawExperiment(
        named(original.experiment),
        tuple(named(row) for row in original.trials),
        tuple(named(row) for row in original.judgements),
    )


def timed_ms(address: str, path: str, requests: int) -> list[float]:
    """Response times in ms over one connection, one request at a time; the first is uncached."""
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
            raise SystemExit(f"{path}: status {reply.status}: {body[:200]!r}")
    connection.close()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=50)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="prony-bench-serve-") as folder:
        path = Path(folder) / "results.db"
        store = Store.open(path)
        seeded = filled(store, options.trials)
        total = store.search(Search(), limit=1).total
        print(f"{options.trials:,} trials in {total:,} experiments, {path.stat().st_size / 2**20:.0f} MiB\n")
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
            "list": ("/", options.requests),
            "list, last page": (f"/?page={-(-total // 50)}", options.requests),
            "list, one server": ("/?server=*jetty*", options.requests),
            "list, word and not conforming": ("/?q=nightly&conforming=no", options.requests),
            "list as JSON": ("/api/results", options.requests),
            "series": ("/trends", options.requests),
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
