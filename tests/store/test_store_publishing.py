"""What is published says nothing of who measured, and everything of what was measured."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.evidence.host import Fingerprint, HostWindow
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.finding import Finding, Judgement
from prony.store import Store, transfer
from prony_serve.publish import anonymous
from tests.store.conftest import MakeTrial
from tests.store.store_samples import plan

COMMAND = (
    "/usr/lib/jvm/java-17-openjdk-amd64/bin/java",
    "-XX:ErrorFile=/home/eve/.cache/prony/logs/jetty-20261123-044504-q9m.crash",
    "-javaagent:/home/eve/.cache/prony/builds/agent-063be0b31640e257/agent.jar=/tmp/prony-a/agent.sock",
    "-cp",
    "/data/cache-of-eve/builds/jetty-6c746aa8a413ba9b/app.jar:/root/lib/x.jar",
    "--static=/data/prony-of-eve/servers/jetty/../static",
)
SPEC = plan(step={"path": "/home/eve/", "body_file": "/home/eve/body.json", "method": "POST"})


@pytest.fixture
def measured(store: Store, make_trial: MakeTrial) -> tuple[Store, str]:
    fingerprint = Fingerprint(
        key="9f2c1ab0", hostname="eves-laptop", architecture="x86_64", cpu_model="m", cpus=2, memory_bytes=1,
        kernel="6", os="o",
    )  # fmt: skip
    identifier = store.create_experiment(
        name="of /home/eve/servers", spec=SPEC, fingerprint=fingerprint, seed=7, quick=True
    )
    why = "no route /home/eve/servers/x, but http://127.0.0.1/home/eve/x and /home/evelyn/x"
    finding = Finding(check="errors", value=0.1 + 0.2, limit="0", reason=why)
    judgement = Judgement(conforms=True, findings=(finding,))
    for number in (1, 2):
        record = make_trial(identifier, number)
        server = ServerIdentity(name="jetty", command=COMMAND)
        evidence = record.evidence.model_copy(update={"server": server})
        failure = "it died: see /home/eve/.cache/prony/logs/x.log" if number == 2 else None
        changed = record.model_copy(update={"evidence": evidence, "failure": failure})
        store.add_trial(changed, judgement, {"requests_per_s": 0.1 + 0.2})
    store.note(identifier, "quiet, see /home/eve/notes")
    store.finish_experiment(identifier)
    return store, identifier


def published(store: Store, identifier: str, file: Path, home: Path | None = None) -> str:
    transfer.write_raw(anonymous.anonymous(store.raw(identifier), home), file)
    return gzip.decompress(file.read_bytes()).decode()


def test_folders_are_short_and_what_is_sent_stays(measured: tuple[Store, str], tmp_path: Path) -> None:
    text = published(*measured, tmp_path / "file")
    for gone in ("eves-laptop", "cache-of-eve", "prony-of-eve", "/root/", "anonymous@", ".tmp"):
        assert gone not in text
    lines = [json.loads(line) for line in text.splitlines()]
    record = json.loads(lines[1]["trial"]["record"])
    assert record["evidence"]["server"]["command"] == [
        "/usr/lib/jvm/java-17-openjdk-amd64/bin/java",
        "-XX:ErrorFile=~/.cache/prony/logs/jetty-20261123-044504-q9m.crash",
        "-javaagent:~/.cache/prony/builds/agent-063be0b31640e257/agent.jar=/tmp/prony-a/agent.sock",
        "-cp",
        "~/.cache/prony/builds/jetty-6c746aa8a413ba9b/app.jar:~/lib/x.jar",
        "--static=./servers/jetty/../static",
    ]
    spec = json.loads(lines[0]["experiment"]["spec"])
    assert spec["cells"][0]["trial"]["workload"]["steps"] == [
        {"path": "/home/eve/", "body_file": "~/body.json", "method": "POST"}
    ]
    fingerprint = json.loads(lines[0]["experiment"]["fingerprint"])
    assert fingerprint["hostname"] == "host-9f2c1a"
    assert lines[0]["experiment"]["name"] == "of ~/servers"
    assert lines[2]["trial"]["failure"] == "it died: see ~/.cache/prony/logs/x.log"
    reason = json.loads(lines[1]["judgements"][0]["judgement"])["findings"][0]["reason"]
    assert reason == "no route ~/servers/x, but http://127.0.0.1/home/eve/x and /home/evelyn/x"
    (note,) = lines[0]["notes"]
    assert (note["made_by"], note["text"]) == ("anonymous", "quiet, see ~/notes")


def test_a_home_that_no_command_line_names_is_that_of_who_publishes(
    store: Store, begin: Callable[[], str], make_trial: MakeTrial, judgement: Judgement, tmp_path: Path
) -> None:
    identifier = begin()
    evidence = Evidence(
        load=LoadFacts(model="closed", users=1),
        server=ServerIdentity(name="x", other_listener="/srv/eve/bin/x"),
    )
    store.add_trial(make_trial(identifier, evidence=evidence), judgement, {})
    assert "/srv/eve" in published(store, identifier, tmp_path / "a")
    assert "/srv/eve" not in published(store, identifier, tmp_path / "b", Path("/srv/eve"))
    assert published(store, identifier, tmp_path / "c", Path("/")) == published(
        store, identifier, tmp_path / "a"
    )


def test_it_is_imported_with_the_same_figures_and_published_again_it_is_the_same_file(
    measured: tuple[Store, str], tmp_path: Path
) -> None:
    store, identifier = measured
    published(store, identifier, tmp_path / "first")
    other = Store.open(tmp_path / "other.db")
    assert transfer.read(other, tmp_path / "first") == (identifier, 2)
    for mine, theirs in zip(store.trials(identifier), other.trials(identifier), strict=True):
        assert theirs.record.evidence.engine == mine.record.evidence.engine
        assert theirs.figures == mine.figures == {"requests_per_s": 0.1 + 0.2}
        assert theirs.judgement.findings[0].value == mine.judgement.findings[0].value
        assert theirs.judgement.conforms is mine.judgement.conforms
    published(other, identifier, tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == (tmp_path / "first").read_bytes()


def test_programs_beside_the_measurement_have_no_name(
    store: Store, begin: Callable[[], str], make_trial: MakeTrial, tmp_path: Path
) -> None:
    identifier = begin()
    names = ("grep", "tmux: server", "(sd-pam)", "kworker/0:1-ev", "Web Content", "agent of eve")
    for number, name in enumerate(names):
        busiest = f"{name} (pid {800 + number}), 39.7% of one CPU"
        window = HostWindow(wall_s=10, others_on_client_cpus=0.4, busiest_other=busiest)
        load = LoadFacts(model="closed", users=1)
        server = ServerIdentity(name="x", command=("/usr/bin/grep",))
        finding = Finding(
            check="isolation",
            conforms=False,
            value=0.4,
            limit="2 %",
            reason=f"other processes took 40 % of the client's CPUs (most: {busiest})",
            advice=f"stop the other load and repeat; the busiest was {busiest}",
        )
        evidence = Evidence(load=load, host_window=window, server=server)
        judgement = Judgement(conforms=False, findings=(finding,))
        store.add_trial(make_trial(identifier, number, evidence=evidence), judgement, {})
    text = published(store, identifier, tmp_path / "first")
    other = Store.open(tmp_path / "other.db")
    transfer.read(other, tmp_path / "first")
    said = "another process, 39.7% of one CPU"
    for trial in other.trials(identifier):
        assert trial.record.evidence.host_window is not None
        assert trial.record.evidence.host_window.busiest_other == said
        (judged,) = trial.judgement.findings
        assert judged.reason == f"other processes took 40 % of the client's CPUs (most: {said})"
        assert judged.advice == f"stop the other load and repeat; the busiest was {said}"
        assert trial.record.evidence.server.command == ("/usr/bin/grep",), "the server's own words stay"
    assert "(pid " not in text
    published(other, identifier, tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == (tmp_path / "first").read_bytes()


def test_names_that_are_left_are_found(measured: tuple[Store, str]) -> None:
    store, identifier = measured
    found = anonymous.anonymous(store.raw(identifier))
    left = anonymous.mentions(found, ["eves-laptop", "eve", "nobody"])
    assert list(left) == ["eve"], "of the path of a request, which is sent as it is"
    assert "/home/eve/" in left["eve"]
