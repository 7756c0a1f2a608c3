"""JMeter's functions, except `__CSVRead`. Must not know elements beyond the place that a message names."""

from __future__ import annotations

import re
import socket
import string
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.frontends.jmeter.functions import CALLS, Call, KnownValues, Text, TextPart

LETTERS_AND_DIGITS = frozenset(string.ascii_letters + string.digits)
LONGEST_DRAWN = 64
"""Characters of a random string that are drawn one by one."""
TIME_INSTEAD = "use ${__time()} or ${__time(/1000)}"


@contextmanager
def within(name: str, values: KnownValues) -> Iterator[list[tuple[str, str]]]:
    """While a sampler of this name is read: what its functions store before it is sent."""
    values.sampler, values.stores = name, []
    try:
        yield values.stores
    finally:
        values.sampler, values.stores = None, None


def _drawn(placeholder: str) -> Text:
    return Text((TextPart(placeholder, True),))


def _property(call: Call) -> Text:
    given = call.constants(1, 3)
    if call.name == "__P":
        default = given[1] if len(given) > 1 else "1"
    else:
        default = given[2] if len(given) == 3 else given[0]
    found = Text.of(call.values.properties.get(given[0], default))
    return found if call.name == "__P" else call.stored(found, given[1:2])


def _variable(call: Call) -> Text:
    parts = call.constants(1, 2)
    if parts[0] not in call.values.variables and len(parts) == 2:
        return Text.of(parts[1])
    return call.values.text("${" + parts[0] + "}", call.where)


def _random(call: Call) -> Text:
    given = call.constants(2, 3)
    low, high = (call.values.whole(text, call.where, "an end of __Random") for text in given[:2])
    if low > high:
        raise call.where.wrong(f"__Random(low,high), found {low},{high}")
    if call.once:
        return call.stored(Text.of(str(call.values.draws.randint(low, high))), given[2:])
    return call.stored(_drawn(f"random int {low} {high}"), given[2:])


def _random_string(call: Call) -> Text:
    given = call.constants(1, 3)
    length = call.values.whole(given[0], call.where, "the length of __RandomString")
    letters = given[1] if len(given) > 1 else ""
    if not letters or length < 1:
        raise call.refused("any character of Unicode may come", "name the letters: __RandomString(8,abcdef)")
    if call.once:
        return call.stored(
            Text.of("".join(call.values.draws.choice(letters) for _ in range(length))), given[2:]
        )
    if set(letters) == LETTERS_AND_DIGITS:
        return call.stored(_drawn(f"random string {length}"), given[2:])
    if length > LONGEST_DRAWN or re.search(r"[\s|}]", letters):
        raise call.refused(
            f"{length} characters out of '{letters}'",
            f"use at most {LONGEST_DRAWN}, without blanks, | and }}, or all letters and digits",
        )
    return call.stored(Text((TextPart("random choice " + " ".join(letters), True),) * length), given[2:])


def _uuid(call: Call) -> Text:
    if call.once:
        return Text.of(str(uuid.UUID(int=call.values.draws.getrandbits(128), version=4)))
    return _drawn("uuid")


def _counter(call: Call) -> Text:
    given = call.constants(0, 2)
    if call.once:
        return call.stored(Text.of("1"), given[1:])
    each = bool(given) and given[0].strip().lower() == "true" and call.values.users != 1
    name = call.values.unique("count")
    return call.stored(_drawn(f"sequence name={name}" + (" per=user" if each else "")), given[1:])


def _thread_number(call: Call) -> Text:
    return Text.of("1") if call.values.users == 1 else _drawn("user")


def _time(call: Call) -> Text:
    given = call.constants(0, 2)
    pattern = given[0] if given else ""
    divided = re.fullmatch(r"/(\d{1,15})", pattern)
    if not call.once and pattern in ("", "/1000"):
        return call.stored(_drawn("time s" if pattern else "time"), given[1:])
    now_ms = time.time_ns() // 1_000_000
    if call.once and not pattern:
        return call.stored(Text.of(str(now_ms)), given[1:])
    if call.once and divided and int(divided.group(1)):
        return call.stored(Text.of(str(now_ms // int(divided.group(1)))), given[1:])
    raise call.refused(f"the format '{pattern}'", TIME_INSTEAD)


def _sum(call: Call) -> Text:
    given = call.constants(2, 100)
    named = not re.fullmatch(r"\s*[+-]?\d+\s*", given[-1])
    numbers = given[:-1] if named else given
    least, most = (-(2**31), 2**31 - 1) if call.name == "__intSum" else (-(2**63), 2**63 - 1)
    total = sum(call.values.whole(number, call.where, f"a number of {call.name}") for number in numbers)
    if not least <= total <= most:
        raise call.where.wrong(f"a sum of {call.name} from {least} to {most}, found {total}")
    return call.stored(Text.of(str(total)), given[-1:] if named else ())


def _group(call: Call) -> Text:
    if call.values.group is None:
        raise call.refused("it is called outside of a thread group", "write the name")
    return Text.of(call.values.group)


def _sampler(call: Call) -> Text:
    given = call.constants(0, 1)
    if call.values.sampler is None:
        raise call.refused("it is called outside of a sampler", "write the name")
    return call.stored(Text.of(call.values.sampler), given)


def _machine(call: Call) -> Text:
    return call.stored(Text.of(socket.gethostname()), call.constants(0, 1))


def _plan_name(call: Call) -> Text:
    call.constants(0, 0)
    return Text.of(Path(call.where.file).name)


CALLS.update(
    {
        "__P": _property,
        "__property": _property,
        "__V": _variable,
        "__Random": _random,
        "__RandomString": _random_string,
        "__UUID": _uuid,
        "__counter": _counter,
        "__threadNum": _thread_number,
        "__threadGroupName": _group,
        "__samplerName": _sampler,
        "__machineName": _machine,
        "__TestPlanName": _plan_name,
        "__intSum": _sum,
        "__longSum": _sum,
        "__time": _time,
    }
)
