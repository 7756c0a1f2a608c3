"""prony jmeter: counters with formats, maxima and resets; sums and digests of what changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from prony.errors import UsageError
from prony_frontends.base import Refused
from prony_frontends.jmeter import translate
from tests.frontends.conftest import Served, offered
from tests.frontends.jmx_text import document, element, flag, prop, repeated, sampler, translated_of
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter


def counter(
    name: str, start: object = 1, step: object = 1, end: object = "", form: str = "", own: bool = False,
    again: bool = False,
) -> str:  # fmt: skip
    return element(
        "CounterConfig", prop("CounterConfig.start", start), prop("CounterConfig.incr", step),
        prop("CounterConfig.end", end), prop("CounterConfig.name", name), prop("CounterConfig.format", form),
        flag("CounterConfig.per_user", own), flag("CounterConfig.reset_on_tg_iteration", again),
    )  # fmt: skip


COUNTERS = {
    "a": counter("a", 8, 1, form="000"),
    "b": counter("b", 1, 2, end=6),
    "c": counter("c", 0, 1, end=1, form="user_00"),
    "d": counter("d", 5, own=True, form="#"),
    "e": counter("e", 1, own=True, again=True),
}
PATH = "/${a}/${b}/${c}/${d}/${e}/${__intSum(${d},10)}/${__digest(MD5,${a},x,,)}"
SIX = [
    "008/1/user_00/5/1",
    "009/3/user_01/6/2",
    "010/5/user_00/7/1",
    "011/1/user_01/8/2",
    "012/3/user_00/9/1",
]
"""The counters of a loop of two rounds, in the first rounds."""


def plan(port: int, folder: Path) -> Path:
    inside = element(
        "LoopController", prop("LoopController.loops", 2),
        below="".join(COUNTERS.values()) + sampler(PATH, prop("HTTPSampler.port", port)),
    )  # fmt: skip
    (folder / "p.jmx").write_bytes(document(inside, group=prop("ThreadGroup.num_threads", 1) + repeated(3)))
    return folder / "p.jmx"


def paths(server: Served) -> list[str]:
    server.ended()
    heads = [line for line in server.recorded().decode().splitlines() if line.startswith("GET ")]
    return [urlsplit(line.split()[1]).path for line in heads]


def test_counters_begin_again_and_have_their_digits(serve: Callable[..., Served], tmp_path: Path) -> None:
    server = serve()
    offered(translate(["-n", "-t", str(plan(server.port, tmp_path))]))
    found = paths(server)
    assert [path.split("/", 6)[1:6] for path in found][:5] == [text.split("/") for text in SIX]
    assert [path.split("/")[6] for path in found] == ["15", "16", "17", "18", "19", "20"]


@needs_jmeter
def test_jmeter_itself_counts_so(serve: Callable[..., Served], tmp_path: Path) -> None:
    theirs, ours = serve(), serve()
    run_jmeter(["-n", "-t", str(plan(theirs.port, tmp_path))], tmp_path)
    offered(translate(["-n", "-t", str(plan(ours.port, tmp_path))]))
    sent = paths(ours)
    assert len(sent) == 6
    assert sent == paths(theirs)


def test_a_counter_of_each_thread_is_one_of_each_user() -> None:
    made = translated_of(counter("n", own=True) + sampler("/${n}"), group=prop("ThreadGroup.num_threads", 3))
    assert "per=user" in made.trial.workload.model_dump_json()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (counter("n", 5, end=4), "a maximum of at least the start"),
        (counter("n", 1, 0), "a step of at least 1"),
        (counter("n", form="0.0"), "the number format '0.0'"),
    ],
)
def test_what_is_no_counter(given: str, says: str) -> None:
    with pytest.raises((Refused, UsageError), match=says):
        translated_of(given + sampler("/${n}"))
