"""`prony load` with arrivals at a rate, and with users who think: the command as a user runs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from prony.load.engine import find_engine
from tests.e2e.conftest import PATIENCE_S, Lab
from tests.load.test_load_models import server


def findings(shown: dict[str, object]) -> dict[str, dict[str, object]]:
    listed = shown["findings"]
    assert isinstance(listed, list)
    return {finding["check"]: finding for finding in listed}


def test_an_open_loop_is_measured_and_judged_by_its_schedule(lab: Lab) -> None:
    with server("--delay", "fixed:200ms") as url:
        words = ("--rate", "30", "--arrivals", "poisson", "--ramp-up", "1s", "--warmup", "1s", "-d", "2s")
        shown = lab.trial("load", url + "/", *words, "--seed", "1")
    found = findings(shown)
    assert {"schedule", "arrivals", "little"} <= set(found)
    assert "think" not in found
    assert found["schedule"]["code"] != "unread"
    assert found["arrivals"]["code"] != "unread"
    # From the intended send: never less than what the server waits by design.
    assert shown["latency"]["mean_ms"] >= 199
    assert shown["service_time"]["mean_ms"] >= 199
    assert not shown["counters"]["errors"]


def test_a_server_that_cannot_keep_up_ends_with_the_code_for_no_figure(lab: Lab) -> None:
    with server("--workers", "1", "--delay", "fixed:100ms") as url:
        done = lab.run("load", url + "/", "--rate", "60", "--max-users", "6", "--warmup", "1s", "-d", "2s")
    assert done.returncode == 3, done.stderr
    assert "blocked by the cap on users" in " ".join(done.stdout.split())


def test_an_open_load_too_short_for_a_p99_has_an_answer(lab: Lab) -> None:
    """80 requests: what they support is printed, and --details has both times."""
    with server("--delay", "fixed:20ms") as url:
        done = lab.run("load", url + "/", "--rate", "40", "--warmup", "1s", "-d", "2s")
    if done.returncode == 3:  # a host that stood still
        return
    first = " ".join(done.stdout.split()).partition(", good to")[0]
    assert first.startswith(("p50 ", "p90 ", "mean ")), done.stdout
    told = lab.run("results", "show", "latest", "--details").stdout
    assert "times are latencies, from the intended send" in " ".join(told.split())


def test_users_who_think_are_judged_by_their_think_times(lab: Lab) -> None:
    with server() as url:
        shown = lab.trial("load", url + "/", "-c", "4", "--think", "200ms", "--warmup", "1s", "-d", "2s")
    found = findings(shown)
    assert found["think"]["code"] != "unread"
    assert "schedule" not in found
    # Four users, each once in 200 ms and a little more.
    assert 0 < shown["counters"]["requests"] <= 4 * (shown["duration_s"] / 0.2 + 1)


@pytest.mark.rarely
def test_requests_that_go_out_together_are_counted_one_by_one(lab: Lab) -> None:
    """A group that is counted as one is missed by 80 %; what a neighbour takes of the client's CPU in a run
    of a moment, by less than 50 %.
    """
    with server("--delay", "fixed:2ms") as url:
        words = ("-c", "3", "--pipeline", "5", "-n", "300", "--limits", "little_deviation=0.5")
        shown = lab.trial("load", url + "/", *words)
    assert shown["counters"]["requests"] == 300
    assert not shown["counters"]["errors"]
    little = findings(shown)["little"]
    assert little["conforms"], little


@pytest.mark.rarely
def test_connections_go_to_and_come_from_several_addresses_in_http_1_0(lab: Lab) -> None:
    with server() as url:
        port = url.rpartition(":")[2]
        words = ("--address", f"127.0.0.1:{port}", "--source", "127.0.0.5", "--source", "127.0.0.6")
        shown = lab.trial(
            "load", f"http://localhost:{port}/", *words, "--http-version", "1.0", "-n", "100", "-c", "2"
        )
    assert shown["counters"]["requests"] == 100
    assert not shown["counters"]["errors"]


def test_a_unix_socket_has_no_ports(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "app.sock"
    command = [str(find_engine()), "serve", "--unix", str(file), "--stdin-guard"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        assert json.loads(serving.stdout.readline())["address"] == f"unix:{file}"
        shown = lab.trial("load", f"unix:{file}:/hello", "-n", "200", "-c", "2")
        serving.communicate(timeout=PATIENCE_S)
    assert shown["counters"]["requests"] == 200
    found = findings(shown)
    assert (found["ports"]["code"], found["ports"]["value"]) == ("ok", 0)
    assert "no ports" in str(found["ports"]["reason"])


def test_a_unix_socket_that_is_not_there_is_one_sentence(lab: Lab, tmp_path: Path) -> None:
    done = lab.run("load", f"unix:{tmp_path}/none.sock")
    assert done.returncode != 0
    assert "none.sock gives no response: connection refused" in " ".join(done.stderr.split())
