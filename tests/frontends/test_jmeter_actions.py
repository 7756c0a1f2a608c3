"""prony jmeter: flow control actions, hosts of a DNS cache manager, data files that are elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.load.contract import engine_plan
from prony.plan.step import Block, Step, pauses
from prony_frontends.jmeter.arguments import OwnSettings
from tests.entries import requests
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import as_asked, explained
from tests.frontends.jmx_text import element, flag, found, load_of, prop, sampler, translated_of, variables


def action(number: int, duration: object = "", below: str = "") -> str:
    return element(
        "TestAction", f'<intProp name="ActionProcessor.action">{number}</intProp>',
        '<intProp name="ActionProcessor.target">0</intProp>', prop("ActionProcessor.duration", duration),
        below=below,
    )  # fmt: skip


def timer(ms: object) -> str:
    return element("ConstantTimer", prop("ConstantTimer.delay", ms))


def test_a_pause_waits_and_timers_hold_before_it() -> None:
    steps = load_of(sampler("/a") + action(1, 250, timer(50)) + sampler("/b")).workload.steps
    assert [think.ms for think in pauses(steps)] == [50, 250]
    steps = load_of(timer(7) + sampler("/a") + action(1, 250)).workload.steps
    assert [think.ms for think in pauses(steps)] == [7, 7, 250]
    (drawn,) = pauses(load_of(sampler("/a") + action(1, "${__Random(10,20)}")).workload.steps)
    assert (drawn.min_ms, drawn.max_ms) == (10, 20)


def test_a_pause_alone_in_a_controller_is_kept() -> None:
    think = element("GenericController", below=action(1, 0, timer(300)), name="think")
    assert [one.ms for one in pauses(load_of(sampler("/a") + think).workload.steps)] == [300]


def test_a_debug_sampler_sends_nothing() -> None:
    made = load_of(
        sampler("/a") + element("DebugSampler", flag("displayJMeterVariables", True), name="Debug")
    )
    first, last = made.workload.steps
    assert isinstance(first, Step)
    assert isinstance(last, Block)
    assert last.note == "=Debug"


DUMMY = "kg.apc.jmeter.samplers.DummySampler"


def test_a_dummy_sampler_waits_and_sends_nothing() -> None:
    """Of jmeter-plugins; what it would give to extractors and assertions is not made up."""
    says = flag("WAITING", True) + flag("SUCCESFULL", True) + prop("RESPONSE_CODE", 200)
    dummy = element(DUMMY, says, prop("RESPONSE_TIME", 40), prop("RESPONSE_DATA", "{}"), name="made up")
    made = translated_of(sampler("/a") + dummy)
    _, pause, row = made.trial.workload.steps
    assert isinstance(pause, Block)
    assert isinstance(row, Block)
    assert (pause.pause and pause.pause.ms, row.note) == (40, "=made up")
    at_once = load_of(sampler() + element(DUMMY, flag("WAITING", False), prop("RESPONSE_TIME", 9)))
    assert not any(one.ms for one in pauses(at_once.workload.steps))
    drawn = element(DUMMY, says, prop("RESPONSE_TIME", "${__Random(50,500)}"))
    assert next(iter(pauses(load_of(sampler() + drawn).workload.steps))).max_ms == 500
    for other in (
        element(DUMMY, says.replace('SUCCESFULL">true', 'SUCCESFULL">false')),
        element(DUMMY, says.replace(">200<", ">500<")),
        element(DUMMY, says, below=found("x", "(.)")),
    ):
        with refuses("unsupported", DUMMY):
            load_of(sampler() + other)


def hosts(**known: str) -> str:
    entries = "".join(
        f'<elementProp name="{name}" elementType="StaticHost">{prop("StaticHost.Name", name)}'
        f"{prop('StaticHost.Address', address)}</elementProp>"
        for name, address in known.items()
    )
    return element(
        "DNSCacheManager", f'<collectionProp name="DNSCacheManager.hosts">{entries}</collectionProp>'
    )


def test_hosts_of_a_dns_cache_manager_are_where_connections_go() -> None:
    shop = sampler("http://Shop:8080/x")
    made = translated_of(hosts(shop="127.0.0.1", other="127.0.0.2") + shop)
    assert (made.target.url, made.target.addresses) == ("http://shop:8080", ("127.0.0.1:8080",))
    (step,) = requests(made.trial.workload.steps)
    assert step.headers["Host"] == "shop:8080"
    assert translated_of(hosts(other="127.0.0.2") + shop).target.addresses == ()
    assert translated_of(hosts(shop="::1") + shop).target.addresses == ("[::1]:8080",)


def test_a_whole_url_may_hold_variables_of_the_plan() -> None:
    made = translated_of(variables(host="127.0.0.1", folder="a b") + sampler("http://${host}:81/${folder}/x"))
    (step,) = requests(made.trial.workload.steps)
    assert (made.target.url, step.path) == ("http://127.0.0.1:81", "/a%20b/x")


def test_hosts_of_further_servers_too() -> None:
    two = sampler("http://shop:8080/x") + sampler("http://images:81/y") + sampler("http://127.0.0.3:82/z")
    made = translated_of(hosts(images="::1") + two)
    assert made.trial.workload.server_addresses == {"http://images:81": "[::1]:81"}
    others = engine_plan(as_asked(made))["other_targets"]
    assert others == [
        {"url": "http://images:81", "addresses": ["[::1]:81"]}, {"url": "http://127.0.0.3:82"},
    ]  # fmt: skip
    assert made.plan().cells[0].target.every_address[1:] == (("::1", 81), ("127.0.0.3", 82))  # type: ignore[union-attr]
    assert explained(made).workload == made.trial.workload


def rows(file: str) -> str:
    return element("CSVDataSet", prop("filename", file), flag("recycle", True))


def test_missing_data_files_are_named_together_and_looked_for_elsewhere(tmp_path: Path) -> None:
    inside = rows("data/users.csv") + rows(r"C:\\data\\items.csv") + sampler("/x?u=${user}&amp;i=${item}")
    with pytest.raises(
        UsageError, match=r"2 data files are missing: data/users\.csv \(line 5\), C:.*--csv-dir"
    ):
        load_of(inside)
    (tmp_path / "users.csv").write_text("user\nada\n")
    with pytest.raises(UsageError, match="1 data file is missing: C:"):
        translated_of(inside, own_settings=OwnSettings(csv_dir=tmp_path))
    (tmp_path / "items.csv").write_text("item\nbook\n")
    feeders = translated_of(inside, own_settings=OwnSettings(csv_dir=tmp_path)).trial.workload.feeders
    assert [Path(feeder.file or "").name for feeder in feeders.values()] == ["users.csv", "items.csv"]


def test_data_files_whose_names_hold_variables_are_named_with_the_others() -> None:
    named = rows("${here}/a.csv") + rows("${folder}/b.csv") + rows("${__P(set)}.csv") + rows("people.csv")
    read = sampler("/${__CSVRead(c.csv,0)}${__CSVRead(people.csv,1)}?t=${__FileToString(d.txt)}")
    with pytest.raises(UsageError) as fault:
        load_of(variables(here="data") + named + read)
    assert str(fault.value) == (
        "p.jmx:5: 5 data files are missing: data/a.csv (line 5, written ${here}/a.csv), ${folder}/b.csv "
        "(line 5; no value for folder), 1.csv (line 5, written ${__P(set)}.csv), c.csv (line 5), d.txt (line "
        "5); define the variables, put them next to the plan, or name their folder with --csv-dir"
    )
    with pytest.raises(UsageError, match=r"1 data file is missing: a/b\.csv \(line 5, written"):
        load_of(variables(folder="a") + rows("${folder}/b.csv") + sampler())


@pytest.mark.parametrize("names", ["", "town,place"])
def test_a_data_file_that_rows_name_is_no_missing_one(names: str) -> None:
    of_rows = element("CSVDataSet", prop("filename", "people.csv"), prop("variableNames", names))
    with pytest.raises(UsageError, match=r"'\$\{town\}\.csv' varies"):
        load_of(of_rows + rows("${town}.csv") + sampler("/${town}"))


def test_variables_without_a_value_are_sent_as_they_are_written() -> None:
    made = translated_of(
        variables(known="1") + sampler("/x?a=1", more=prop("HTTPSampler.method", "GET"), name="${nobody}")
    )
    (step,) = requests(made.trial.workload.steps)
    assert step.name == "${nobody}"
    assert noted(made.notes, "undefined", "${nobody} (line 5)")
    with pytest.raises(UsageError, match=r"found '\$\{host\}', an undefined variable"):
        load_of(sampler().replace("127.0.0.1", "${host}"))
