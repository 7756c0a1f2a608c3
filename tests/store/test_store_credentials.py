"""What goes into a store leaves its credentials behind, and what an earlier Prony stored with them comes out
without: rows, exports, imports, rescued trials.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from pathlib import Path

import pytest
from sqlalchemy import text as sql

from prony.errors import StoreError
from prony.evidence.host import Fingerprint
from prony.evidence.server import Probe, ServerIdentity
from prony.evidence.trial import TrialRecord
from prony.judge.finding import Finding, Judgement
from prony.store import Store, transfer
from prony_serve.trends.stored import series_trials
from tests.store.store_samples import make_trial, plan

SECRET = "s3cret-value"
SPEC = plan(command="load", step={"path": "/", "headers": {"Authorization": SECRET}})
NAME = f"load http://me:{SECRET}@h/?access_token={SECRET}"
JUDGEMENT = Judgement(
    conforms=False,
    findings=(Finding(check="errors", code="failed", conforms=False, reason=f"GET /?token={SECRET} failed"),),
)


def telling(identifier: str, number: int = 1) -> TrialRecord:
    """A trial whose server says what it was sent."""
    made = make_trial(identifier, number, rows=1)
    evidence = made.evidence.model_copy(
        update={
            "server": ServerIdentity(name="x", command=("app", "--db-password", SECRET)),
            "probes": (
                Probe(
                    step="a",
                    status=401,
                    body_bytes=1,
                    meets_expectation=False,
                    why_not=f"header Set-Cookie is 'sid={SECRET}', expected it to contain 'x'",
                ),
            ),
        }
    )
    return made.model_copy(
        update={
            "evidence": evidence,
            "failure": f"http://me:{SECRET}@h/ refused it",
            "notes": (f"Authorization: Bearer {SECRET}",),
        }
    )


def rows(store: Store) -> str:
    """Everything in it, unpacked."""
    found = []
    with store._database.writing() as connection:
        for table in (
            "experiments",
            "trials",
            "judgements",
            "notes",
            "experiment_summaries",
            "trial_summaries",
        ):
            for row in connection.execute(sql(f"SELECT * FROM {table}")):
                found += [
                    zlib.decompress(one).decode() if isinstance(one, bytes) else str(one) for one in row
                ]
    return "\n".join(found)


def filled(store: Store, fingerprint: Fingerprint) -> str:
    identifier = store.create_experiment(name=NAME, spec=SPEC, fingerprint=fingerprint, seed=1, quick=False)
    store.update_plan(identifier, {**SPEC, "note": f"curl -H 'Cookie: a={SECRET}'"})
    store.add_trial(telling(identifier), JUDGEMENT, {"requests_per_s": 1.0})
    store.add_judgements({f"{identifier}-001": (JUDGEMENT, {"requests_per_s": 1.0})})
    store.note(identifier, f"sent with -H 'X-Api-Key: {SECRET}'")
    store.finish_experiment(identifier)
    return identifier


def test_nothing_of_them_is_stored(store: Store, fingerprint: Fingerprint) -> None:
    identifier = filled(store, fingerprint)
    assert SECRET not in rows(store)
    assert SECRET not in Path(store.where).read_bytes().decode("latin-1")
    (found,) = store.trials(identifier)
    assert found.record.evidence.server.command == ("app", "--db-password", "REDACTED")
    assert found.record.evidence.load == telling(identifier).evidence.load
    store.add_trial(telling(identifier, 2), JUDGEMENT, {})
    with pytest.raises(StoreError, match=identifier):
        store.add_trial(telling(identifier, 1).model_copy(update={"seed": 5}), JUDGEMENT, {})


def raw(store: Store, identifier: str) -> None:
    """As an earlier Prony left it: with everything."""
    record = telling(identifier).model_dump_json()
    with store._database.writing() as connection:
        connection.execute(
            sql("UPDATE experiments SET name = :name, spec = :spec"), {"name": NAME, "spec": json.dumps(SPEC)}
        )
        connection.execute(
            sql("UPDATE trials SET record = :record, failure = :failure"),
            {"record": zlib.compress(record.encode()), "failure": telling(identifier).failure},
        )
        connection.execute(
            sql("UPDATE judgements SET judgement = :judgement"), {"judgement": JUDGEMENT.model_dump_json()}
        )
        connection.execute(sql("UPDATE trial_summaries SET reason = :text"), {"text": f"token={SECRET}"})
        connection.execute(sql("UPDATE notes SET text = :text"), {"text": f"password={SECRET}"})
    assert rows(store).count(SECRET) > 8


def test_what_is_there_with_them_is_read_and_exported_without(
    store: Store, fingerprint: Fingerprint, tmp_path: Path
) -> None:
    identifier = filled(store, fingerprint)
    transfer.write(store, identifier, tmp_path / "before")
    raw(store, identifier)
    read = [
        store.experiment(identifier),
        store.trials(identifier),
        store.search(),
        store.labels_of(identifier),
    ]
    read += [series_trials(store, "tomcat:async", "hello", "closed-10"), store.raw(identifier).experiment]
    assert SECRET not in repr(read)
    transfer.write(store, identifier, tmp_path / "after")
    assert SECRET not in gzip.decompress((tmp_path / "after").read_bytes()).decode()
    assert transfer.read(store, tmp_path / "before") == (identifier, 0), "the same trials"


def test_a_file_that_has_them_is_imported_without(
    store: Store, fingerprint: Fingerprint, tmp_path: Path
) -> None:
    identifier = filled(store, fingerprint)
    transfer.write(store, identifier, tmp_path / "file")
    lines = [json.loads(line) for line in gzip.decompress((tmp_path / "file").read_bytes()).splitlines()][:-1]
    lines[0]["experiment"] |= {"name": NAME, "spec": json.dumps(SPEC)}
    lines[0]["notes"][0]["text"] = f"token={SECRET}"
    lines[1]["trial"] |= {
        "record": telling(identifier).model_dump_json(),
        "failure": telling(identifier).failure,
    }
    for judged in lines[1]["judgements"]:
        judged["judgement"] = JUDGEMENT.model_dump_json()
    encoded = "".join(json.dumps(line) + "\n" for line in lines)
    last = json.dumps({"sha256": hashlib.sha256(encoded.encode()).hexdigest()})
    (tmp_path / "file").write_bytes(gzip.compress(f"{encoded}{last}\n".encode()))
    other = Store.open(tmp_path / "other.db")
    assert transfer.read(other, tmp_path / "file") == (identifier, 1)
    assert SECRET not in rows(other)
    assert transfer.read(other, tmp_path / "file") == (identifier, 0)
    assert transfer.read(store, tmp_path / "file") == (identifier, 0), "into the store that it came from"
    other.close()


def test_a_rescued_trial_has_none(
    store: Store, fingerprint: Fingerprint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    identifier = store.create_experiment(name=NAME, spec=SPEC, fingerprint=fingerprint, seed=1, quick=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    insert = Store._insert_trial
    monkeypatch.setattr(Store, "_insert_trial", full)
    with pytest.raises(StoreError, match="results import"):
        store.add_trial(telling(identifier), JUDGEMENT, {})
    monkeypatch.setattr(Store, "_insert_trial", insert)
    (saved,) = tmp_path.glob("prony-*.json")
    assert SECRET not in saved.read_text()
    assert transfer.read(store, saved) == (identifier, 1)
