"""Hosts and links in the report: each host beside the sum, nothing on one host."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from prony.evidence.hosts import Clock, HostEvidence, Link, NetworkUse
from prony.judge.finding import Finding
from prony.report import shapes
from prony.report.blocks import Table
from prony.report.cell_view import TrialView
from prony.report.export import to_json
from prony.report.hosts import host_blocks, hosts_of
from prony.report.result import ResultView
from prony.report.terminal import render

from . import factory
from .page import rendered


def on_hosts(trial: TrialView, machine: str = "big") -> TrialView:
    """The trial as the sum of two load hosts, of which the first did a third."""
    evidence = trial.record.evidence
    assert evidence.engine is not None
    assert evidence.engine.window is not None

    def one(name: str, part: float, idle_ms: float) -> HostEvidence:
        assert evidence.engine is not None
        assert evidence.engine.window is not None
        window = evidence.engine.window
        own = window.model_copy(update={"completed": int(window.completed * part)})
        return HostEvidence(
            name=name,
            role="load",
            weight=3 * part,
            engine=evidence.engine.model_copy(update={"window": own}),
            clock=Clock(offset_s=7.0, uncertainty_s=1e-4, round_trips=50, skew_s=0.0004),
            link=Link(
                interface="ens5", speed_bits_per_s=1e10, speed_declared=True, round_trip_idle_ms=idle_ms
            ),
            network=NetworkUse(received_bytes_per_s=1.25e8, sent_bytes_per_s=1.25e7, dropped=0),
        )

    server = HostEvidence(name=machine, role="server", host_window=evidence.host_window)
    hosts = (one("near", 1 / 3, 0.2), one("far", 2 / 3, 1.5), server)
    evidence = evidence.model_copy(update={"hosts": hosts})
    return replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))


def view() -> ResultView:
    return factory.changed(factory.experiment(), on_hosts)


def tables(*trials: TrialView) -> list[list[list[str]]]:
    made = []
    for block in host_blocks(trials):
        assert isinstance(block, Table)
        made.append([[row.label, *(c.text for c in row.cells)] for row in block.sections[0].rows])
    return made


def test_a_row_per_host_and_per_link() -> None:
    trial = on_hosts(factory.experiment().trials[0])
    hosts, links = tables(trial)
    assert [row[0] for row in hosts] == ["big", "near", "far"]
    assert hosts[0][1:5] == ["server", "–", "–", "–"]
    assert hosts[2][1] == "load, weight 2"
    rates = [float(row[2].replace(",", "")) for row in hosts[1:]]
    assert abs(rates[1] / rates[0] - 2) < 0.01
    assert links[1] == [
        "near",
        "ens5, 10 Gbit/s (declared)",
        "100 Mbit/s",
        "1 Gbit/s",
        "0",
        "0.200",
        "–",
        "0.400",
    ]


def test_of_several_trials_the_median() -> None:
    trials = [on_hosts(trial) for trial in factory.experiment().trials[:3]]
    alone = sorted(float(tables(trial)[0][1][2].replace(",", "")) for trial in trials)
    together = float(tables(*trials)[0][1][2].replace(",", ""))
    assert together == alone[1]


def test_with_two_machines_a_load_host_has_a_row_for_each() -> None:
    """One median over both would describe neither."""
    x86, arm, again = factory.experiment().trials[:3]
    rows = tables(on_hosts(x86, "x86"), on_hosts(arm, "arm"), on_hosts(again, "x86"))
    for table in rows:
        assert [row[0] for row in table] == [
            *("x86", "near to x86", "far to x86"),
            *("arm", "near to arm", "far to arm"),
        ]
    alone = tables(on_hosts(arm, "arm"))[0]
    assert [row[0] for row in alone] == ["arm", "near", "far"], "one machine needs no name"
    assert rows[0][4][1:] == alone[1][1:]


def test_a_trial_that_does_not_conform_shows_no_figures_of_its_hosts() -> None:
    lost = Finding(check="hosts", conforms=False, reason="far was lost")
    trial = factory.experiment().trials[0]
    failed = on_hosts(factory.trial(trial.record, lost))
    assert failed.why_not is not None
    assert [line.requests_per_s for line in hosts_of(failed)] == [None, None, None]


def test_where_no_trial_counts_hosts_and_links_are_shown_all_the_same() -> None:
    """What is wrong with them may be the reason."""
    lost = Finding(check="hosts", conforms=False, reason="far was lost")
    shown = factory.changed(factory.experiment(), lambda trial: on_hosts(factory.trial(trial.record, lost)))
    assert not any(cell.counting for cell in shown.cells)
    (hosts, links), *_ = [shapes.hosts(part) for part in shown.parts]
    for block in (hosts, links):
        assert isinstance(block, Table)
        assert [row.label for row in block.sections[0].rows] == ["big", "near", "far"]


def test_nothing_on_one_host() -> None:
    assert host_blocks(factory.experiment().trials) == []
    assert all(
        not trial.hosts
        for part in to_json(factory.experiment()).parts
        for cell in part.cells
        for trial in cell.trials
    )


def test_terminal_page_and_json_show_hosts_and_links() -> None:
    shown = view()
    text = StringIO()
    render(shown, Console(file=text, width=140), details=True)
    for place in (text.getvalue(), rendered(view)):
        assert "ens5, 10 Gbit/s (declared)" in place
    first = to_json(shown).parts[0].cells[0].trials[0]
    assert [host.name for host in first.hosts] == ["big", "near", "far"]
    assert first.hosts[1].round_trip_idle_ms == 0.2
