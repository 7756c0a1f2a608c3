"""`prony sweep` and `prony capacity` as a user runs them. What is asserted holds on a noisy host, too."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Lab
from tests.load.test_load_models import server

SHORT = ("--window", "2s", "--warmup", "1s", "--seed", "1")


def test_a_sweep_of_a_running_server(lab: Lab) -> None:
    page = lab.folder / "sweep.html"
    with server("--delay", "fixed:10ms") as url:
        words = (*SHORT, "--trials", "1", *lab.lenient, "--report", str(page))
        shown = lab.json("sweep", url + "/", "--users", "1,2…8", *words)
    (part,) = shown["parts"]
    assert [cell["users"] for cell in part["cells"]] == [1, 2, 4, 8]
    trials = [trial for cell in part["cells"] for trial in cell["trials"]]
    assert len({trial["id"] for trial in trials}) == 4
    # A user waits 10 ms for each response: never more than 100 responses per second and user.
    for cell in part["cells"]:
        for trial in cell["trials"]:
            assert trial["counts"], trial["not_conforming"]
            assert 0 < trial["figures"]["requests_per_s"]["value"] <= 101 * cell["users"]
    assert "Scaling" in page.read_text(encoding="utf-8")
    # One object in the store, shown again as it was.
    assert all(trial["id"].startswith(shown["id"]) for trial in trials)
    assert lab.json("results", "show", shown["id"]) == shown
    assert len(lab.json("results", "list")["experiments"]) == 1
    again = lab.folder / "again.html"
    assert lab.run("report", shown["id"], "--output", str(again)).returncode == 0
    assert again.read_text(encoding="utf-8") == page.read_text(encoding="utf-8")


@pytest.mark.rarely
def test_a_sweep_of_a_server_of_ours_starts_it_anew_for_every_point(lab: Lab) -> None:
    lab.server("mine")
    cells = lab.cells(
        "sweep", "mine", "--users", "2,4", "--window", "2s", "--warm-up-cap", "1s", "--seed", "1"
    )
    assert [cell["users"] for cell in cells] == [2, 4]
    assert "fewer than four numbers of users" in lab.run("results", "show", "latest").stdout
    assert lab.leftovers() == []


def test_a_capacity_is_never_more_than_the_server_has(lab: Lab) -> None:
    """One worker and 20 ms: 50 responses per second at the most, whatever the host does."""
    with server("--workers", "1", "--delay", "fixed:20ms") as url:
        words = ("--slo", "p50<200ms", "--start", "20", "--resolution", "30", "--search-trials", "8")
        shown = lab.json("capacity", url + "/", *words, *SHORT, *lab.lenient)
    search = shown["parts"][0]["search"]
    assert search["end"] is not None
    assert search["tried"]
    assert lab.json("results", "show", "latest") == shown
    assert search["held_per_s"] is not None, search
    assert 20 <= search["held_per_s"] <= 60
    assert all(one["outcome"] != "met" for one in search["tried"] if one["rate_per_s"] >= 75)


def test_bad_input_ends_with_a_sentence(lab: Lab) -> None:
    for words, said in (
        (("capacity", "http://127.0.0.1:1/", "--slo", "p98<5ms"), "objective 'p98<5ms'"),
        (("sweep", "http://127.0.0.1:1/", "--users", "8…2"), "the smaller number first"),
        (("sweep", "no-such-server"), "no-such-server"),
        (("sweep", "http://127.0.0.1:1/", "--jdk", "21"), "--jdk applies to servers"),
        (("compare", "spring-tomcat", "spring-jetty", "--max-trials", "9"), "--max-trials requires"),
    ):
        done = lab.run(*words)
        assert done.returncode == 2, done.stderr
        assert said in " ".join(done.stderr.split()), done.stderr
