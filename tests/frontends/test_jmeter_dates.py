"""prony jmeter: dates of `__time`, `__timeShift` and `__dateTimeConvert`, held against JMeter itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import unquote_plus

import pytest

from prony.errors import UsageError
from prony_frontends.base import Refused
from tests.entries import requests
from tests.frontends.conftest import Served
from tests.frontends.jmx_text import ARGUMENTS, document, load_of, prop, repeated, sampler, variables
from tests.frontends.real_jmeter import needs_jmeter, run_by

SHIFTED = {
    "${__time(yyyy-MM-dd)}": (0, "%Y-%m-%d"),
    "${__time(YMD)}": (0, "%Y%m%d"),
    "${__time(EEE d MMM yy)}": (0, "%a {d} %b %y"),
    "${__time(dd/MM/yyyy 'at' ''EEEE'')}": (0, "%d/%m/%Y at '%A'"),
    "${__timeShift(yyyy-MM-dd,,P40D,,)}": (40, "%Y-%m-%d"),
    "${__timeShift(D MMMM,,-P3DT0H,,)}": None,
    "${__timeShift(d.M.yyyy,,P-3D,,)}": (-3, "{d}.{m}.%Y"),
    "${__timeShift(yyyyMMdd,,PT48H,,later)}/${later}": (2, "%Y%m%d/%Y%m%d"),
}
"""Of today: days from now, and how they are written; None: refused."""
CONSTANT = {
    "${__timeShift(dd/MM/yyyy,28/02/2024,P1D,,)}": "29/02/2024",
    "${__timeShift(yyyy-MM-dd'T'HH:mm:ss,2024-12-31T23:59:58,PT3S,,)}": "2025-01-01T00:00:01",
    "${__timeShift(,1700000000000,PT1M,,)}": "1700000060000",
    "${__dateTimeConvert(01212018,MMddyyyy,dd/MMM/yyyy,)}": "21/Jan/2018",
    "${__dateTimeConvert(2024-02-29 10:05,yyyy-MM-dd HH:mm,h:mm a,)}": "10:05 AM",
}


def shown(days: int, pattern: str) -> str:
    when = datetime.now() + timedelta(days=days)
    return when.strftime(pattern.replace("{d}", str(when.day)).replace("{m}", str(when.month)))


def asked(call: str, port: int = 80) -> str:
    """As the value of a parameter, which is encoded."""
    held = prop("Argument.name", "v") + prop("Argument.metadata", "=") + prop("Argument.value", call)
    held += '<boolProp name="HTTPArgument.always_encode">true</boolProp>'
    argument = f'<elementProp name="v" elementType="HTTPArgument">{held}</elementProp>'
    return sampler("/d", prop("HTTPSampler.port", port) + ARGUMENTS.format(argument))


@pytest.mark.parametrize("call", CONSTANT)
def test_a_date_that_is_known_before_the_start(call: str) -> None:
    (step,) = requests(load_of(asked(call)).workload.steps)
    assert unquote_plus(step.path.partition("v=")[2]) == CONSTANT[call]


def test_variables_of_the_plan_hold_the_time_of_the_start() -> None:
    before = datetime.now().strftime("%Y-%m-%d")
    (step,) = requests(load_of(variables(day="${__time(yyyy-MM-dd)}") + sampler("/${day}")).workload.steps)
    assert step.path in (f"/{before}", datetime.now().strftime("/%Y-%m-%d"))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("${__timeShift(D MMMM,,,,)}", "'D' in the format"),
        ("${__time(yyyy|MM)}", "leave out brackets"),
        ("${__timeShift(yyyy,,tomorrow,,)}", "a duration such as P2D"),
        ("${__timeShift(yyyy,20,P1D,,)}", "a date in its format"),
        ("${__timeShift(yyyy-MM,,P1D,fr_FR,)}", "the locale fr_FR"),
        ("${__dateTimeConvert(x,,yyyy,)}", "milliseconds since 1970"),
        ("${__time(/7)}", "the format '/7'"),
    ],
)
def test_what_is_refused(call: str, says: str) -> None:
    with pytest.raises((Refused, UsageError), match=re.escape(says)):
        load_of(asked(call))


def sent(served: Served) -> list[str]:
    served.ended()
    heads = [line for line in served.recorded().decode().splitlines() if line.startswith("GET ")]
    return [unquote_plus(line.split()[1].partition("v=")[2]) for line in heads]


@needs_jmeter
@pytest.mark.parametrize("who", ["theirs", "ours"])
def test_jmeter_itself_sends_the_same(who: str, serve: Callable[..., Served], tmp_path: Path) -> None:
    served, file = serve(), tmp_path / "p.jmx"
    days = {call: day for call, day in SHIFTED.items() if day is not None}
    pages = "".join(asked(call, served.port) for call in [*days, *CONSTANT])
    file.write_bytes(document(pages, group=prop("ThreadGroup.num_threads", 1) + repeated(1)))
    before = [shown(*day) for day in days.values()]
    argv = ["-n", "-t", str(file), "-l", str(tmp_path / "out.jtl")]
    run_by(who, argv, tmp_path)
    after = [shown(*day) for day in days.values()]
    found = sent(served)
    assert found[: len(days)] in (before, after)
    assert found[len(days) :] == list(CONSTANT.values())
