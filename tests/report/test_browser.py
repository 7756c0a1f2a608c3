"""The page in a real browser: it draws, is quiet, asks the network for nothing, follows light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.report.html import write_text

from . import factory
from .page import Page, addresses, brightness, chromium, rendered

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_text(rendered(factory.four_troubled), path)
    return path


def test_it_opens_without_a_word_of_complaint_and_without_the_network(page: Path, tmp_path: Path) -> None:
    net_log = tmp_path / "net.json"
    run = chromium(page, tmp_path, "--dump-dom", "--enable-logging=stderr", f"--log-net-log={net_log}")
    assert run.returncode == 0, run.stderr
    complaints = [line for line in run.stderr.splitlines() if "CONSOLE" in line or "Content Security" in line]
    assert complaints == []
    assert addresses(net_log) == []
    dom = Page(run.stdout)
    assert dom.all("h1")[0].text == factory.TITLE
    sections = {e.attributes.get("id") for e in dom.all("section")}
    assert {"results", "ratios", "latency", "throughput", "findings", "trials", "host", "plan"} <= sections
    assert len([e for e in dom.all("svg") if e.attributes.get("role") == "img"]) == 31
    assert len([e for e in dom.all("path") if "svg" in e.inside]) > 100


def test_the_tests_own_eyes_see_a_request_and_a_complaint(tmp_path: Path) -> None:
    """The check above would be worth nothing if it could not fail."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        '<!doctype html><title>x</title><img src="http://127.0.0.1:9/x.png"><script>console.error("oh")</script>'
    )
    net_log = tmp_path / "net.json"
    run = chromium(bad, tmp_path, "--dump-dom", "--enable-logging=stderr", f"--log-net-log={net_log}")
    assert any("CONSOLE" in line for line in run.stderr.splitlines())
    assert "http://127.0.0.1:9/x.png" in addresses(net_log)


def test_light_and_dark_follow_the_reader(page: Path, tmp_path: Path) -> None:
    seen = {}
    for name, scheme in (("dark", 0), ("light", 1)):
        shot = tmp_path / f"{name}.png"
        chromium(
            page,
            tmp_path,
            f"--screenshot={shot}",
            "--window-size=500,400",
            f"--blink-settings=preferredColorScheme={scheme}",
        )
        assert shot.exists(), f"no {name} screenshot was taken"
        seen[name] = brightness(shot)
    assert seen["light"] > 0.8
    assert seen["dark"] < 0.25
