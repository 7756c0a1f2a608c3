"""A real export with any field replaced by anything: it is refused by a sentence and nothing of it remains,
or every page, command and format shows it. `PRONY_MUTATIONS`: values per field of the whole tests (100: all).
"""

from __future__ import annotations

import io
import json
import logging
import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from prony.errors import PronyError
from prony.experiment.conclude import rejudge
from prony.report import exports
from prony.report.console import Console
from prony.report.delivery import as_plain
from prony.report.export import to_json
from prony.report.reading import load_result
from prony.report.terminal import render
from prony.store import Store, transfer
from prony_serve.publish import anonymous
from prony_serve.publish.figures import text as markdown
from prony_serve.trends.stored import series_names
from prony_serve.web.access import Rules
from tests.cli.conftest import prony
from tests.exports.stored import keep
from tests.report import factory
from tests.store.test_store_hostile_rows import Lines, _places, _put, lines_of, signed
from tests.web.client import Client
from tests.web.conftest import reader

__all__ = ["prony"]
Way = tuple[object, ...]
TOKEN = "correct-horse-battery-staple"
GONE = object()
TWICE = object()
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 255, 65_536, 2**31 - 1, 2**31, -(2**31), 2**53, 2**53 + 1, 2**63 - 1,
    2**63, -(2**63), 2**64, 10**19, -(10**19), 10**400, 0.5, 1.5, -0.0, 5e-324, 1e-300, 1e18, 1e19, 1e300,
    1e308, -1e308, float("nan"), float("inf"), float("-inf"), "", " ", "\n", "0", "1", "-1", "true", "null",
    "NaN", "Infinity", "1e999", "0x10", "١٢", "x" * 33, "x" * 129, "x" * 10_001, "\x00", "a\x00b", "\ud800",
    "\udfff\ud800", "\ufffe", "\U0010ffff", "\u202e\u2066x", "\u200f", "\x9b31m", "\x1b[31m", "\x85",
    "\u2028", "=cmd|' /C calc'!A0", "+1", "@x", "<script>alert(1)</script>", "'\"&<>", "]]>", "{{ 7 * 7 }}",
    "%00", "%s%n", "{}", "[red]x[/red]", "../../etc/passwd", "/etc/passwd", "C:\\x", "-rf", "http://u:p@h/",
    "javascript:alert(1)", "data:,x", "latest", "261127-0000", "2026-11-21", "2026-11-21T12:00:00",
    "2026-11-21T12:00:00Z", "1970-01-01T00:00:00+00:00", "8999-12-31T23:59:59+00:00",
    "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "1764223200", "P1D", [], {}, [[]], [None],
    [1, 2, 3], ["a"] * 50, {"": None}, {"a": 1}, {"\ud800": 1}, GONE, TWICE,
)  # fmt: skip


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """The lines of an export with a note and a trial."""
    folder = tmp_path_factory.mktemp("export")
    store = Store.open(folder / "results.db")
    trial = factory.trial(factory.record("spring-tomcat"))
    identifier = keep(store, factory.experiment([trial], ["spring-tomcat"], shape="single", title="theirs"))
    store.note(identifier, "a note")
    transfer.write(store, identifier, folder / "file")
    store.close()
    return lines_of(folder / "file")


def fields(exported: Lines) -> dict[Way, list[Way]]:
    """The ways to every field, by the field; those of a list's elements are one."""
    found: dict[Way, list[Way]] = defaultdict(list)
    for way in _places(exported):
        found[tuple("#" if isinstance(step, int) else step for step in way)].append(way)
    return found


def mutated(exported: Lines, way: Way, value: object) -> bytes | None:
    """The file with this value there; None where that is no JSON."""
    lines: Any = json.loads(json.dumps(exported))
    above, last = way[:-1], way[-1]
    if value not in (GONE, TWICE):
        return signed(_put(lines, way, value))
    if last is json:
        return None

    def change(at: Any) -> Any:
        if isinstance(at, list):
            assert isinstance(last, int)
            return [*at[:last], *([at[last]] * (0 if value is GONE else 2)), *at[last + 1 :]]
        kept = {name: one for name, one in at.items() if name != last or value is TWICE}
        return kept | ({f"{last}2": at[last]} if value is TWICE else {})

    at = lines
    for step in above:
        at = json.loads(at) if step is json else at[step]
    return signed(_put(lines, above, change(at)))


class Site:
    """A store with a result of its own, and whoever reads it."""

    def __init__(self, folder: Path) -> None:
        self.store = Store.open(folder / "results.db")
        trial = factory.trial(factory.record("spring-tomcat"))
        view = factory.experiment([trial], ["spring-tomcat"], shape="single", title="mine")
        self.own = keep(self.store, view)
        self.file = folder / "published"

    @property
    def client(self) -> Client:
        return reader(self.store)

    def upload(self, content: bytes) -> str | None:
        """The id of a file that was taken."""
        client = reader(self.store, Rules(token=TOKEN))
        reply = client.post("/api/results", content, authorization=f"Bearer {TOKEN}")
        if reply.status == 201:
            return str(reply.json()["id"])
        said = reply.json()["error"]
        assert (reply.status in (409, 422), "\n" in said, len(said) < 700) == (True, False, True), said
        assert [one.id for one in self.store.search().experiments] == [self.own]
        return None

    def show(self, identifier: str) -> None:
        """Every page, output and format."""
        assert self.store.search().unreadable == ()
        key = self.store.raw(identifier).experiment["fingerprint_key"]
        pages = ["/", "/trends", "/changes.atom", "/hosts", f"/hosts/{key}", "/api/results", "/api/trends"]
        pages += [f"/results/{identifier}", f"/compare/{self.own}/{identifier}"]
        for name in series_names(self.store):
            words = {"server": name.server, "workload": name.workload, "load": name.load_name}
            pages.append(f"/trend?{urlencode(words)}")
        for page in pages:
            reply = self.client.get(page)
            named = page.startswith("/trend?") and "no trial of" in reply.text
            assert reply.status == 200 or named, (page, reply.text)
        rejudge(self.store, identifier, {})
        view = load_result(self.store, identifier)
        json.dumps(as_plain(to_json(view)), allow_nan=False)
        render(view, Console(file=io.StringIO(), width=100))
        markdown(view)
        transfer.write_raw(anonymous.anonymous(self.store.raw(identifier)), self.file)
        for form in exports.names():
            with suppress(PronyError):
                for _ in exports.named(form).write(view).pieces():
                    pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    logging.getLogger("prony_serve.web").disabled = True
    yield made
    logging.getLogger("prony_serve.web").disabled = False
    made.store.close()


def drawn(exported: Lines, per_field: int) -> list[tuple[Way, object]]:
    """So many values for each field. The same every time."""
    source = random.Random(31)
    return [
        (source.choice(ways), value)
        for ways in fields(exported).values()
        for value in source.sample(VALUES, min(per_field, len(VALUES)))
    ]


def try_all(exported: Lines, site: Site, some: list[tuple[Way, object]], shown: int) -> int:
    """Uploads files with these values; of those taken every `shown`-th is shown."""
    taken = 0
    for way, value in some:
        content = mutated(exported, way, value)
        identifier = None if content is None else site.upload(content)
        if identifier is None:
            continue
        taken += 1
        try:
            if taken % shown == 0:
                site.show(identifier)
        except BaseException as fault:
            fault.add_note(f"{way}: {value!r:.60}")
            raise
        finally:
            site.store.remove(identifier)
    return taken


@pytest.mark.everyday
def test_a_sample_of_fields_and_values(exported: Lines, site: Site) -> None:
    some = random.Random(4).sample(drawn(exported, 4), 120)
    assert try_all(exported, site, some, 4) > 10


PARTS = 12


@pytest.mark.rarely
@pytest.mark.parametrize("part", range(PARTS))
def test_every_field(exported: Lines, site: Site, part: int) -> None:
    every = drawn(exported, int(os.environ.get("PRONY_MUTATIONS", "4")))
    assert try_all(exported, site, every[part::PARTS], 10) > 20


def test_the_command_refuses_and_takes_the_same(
    exported: Lines, site: Site, tmp_path: Path, prony: Callable[..., Any]
) -> None:
    file = tmp_path / "file"
    (created,) = (way for way in _places(exported) if way[-1] == "created")
    for value, code in (("1764223200", 2), ("\ud800", 2), ("2026-11-21T12:00:00Z", 0)):
        content = mutated(exported, created, value)
        assert content is not None
        file.write_bytes(content)
        done = prony(tmp_path, "results", "import", str(file), "--db", str(tmp_path / "results.db"))
        assert (done.returncode, "experiment.created" in done.stderr) == (code, code == 2)
        identifier = site.upload(content)
        assert (identifier is None) is (code == 2)
        if identifier is not None:
            site.store.remove(identifier)
