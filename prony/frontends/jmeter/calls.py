"""JMeter's functions, except `__CSVRead`. Must not know elements beyond the place that a message names."""

from __future__ import annotations

import hashlib
import re
import socket
import string
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote_plus

from prony.frontends.jmeter import dates
from prony.frontends.jmeter.functions import CALLS, Call, KnownValues, Text, TextPart

LETTERS_AND_DIGITS = frozenset(string.ascii_letters + string.digits)
LONGEST_DRAWN = 64
"""Characters of a random string that are drawn one by one."""
MOST_FILE_BYTES = 1 << 20
"""Of a file that becomes a text of the plan."""


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


def _sum(call: Call) -> Text:
    given = call.constants(2, 100)
    named = not re.fullmatch(r"\s*[+-]?\d+\s*", given[-1])
    numbers = given[:-1] if named else given
    least, most = (-(2**31), 2**31 - 1) if call.name == "__intSum" else (-(2**63), 2**63 - 1)
    total = sum(call.values.whole(number, call.where, f"a number of {call.name}") for number in numbers)
    if not least <= total <= most:
        raise call.where.wrong(f"a sum of {call.name} from {least} to {most}, found {total}")
    return call.stored(Text.of(str(total)), given[-1:] if named else ())


def _encoded(call: Call) -> Text:
    (text,) = call.constants(1, 1)
    return Text.of(text).encoded()


def _decoded(call: Call) -> Text:
    (text,) = call.constants(1, 1)
    return Text.of(unquote_plus(text))


def _evaluated(call: Call) -> Text:
    """The text once more, with the variables that stand in it."""
    if len(call.arguments) != 1:
        raise call.where.wrong(f"one argument of {call.name}, found {len(call.arguments)}")
    constant = call.arguments[0].constant
    return call.arguments[0] if constant is None else call.values.text(constant, call.where, call.once)


def _case(call: Call) -> Text:
    given = call.constants(1, 3)
    mode = (given[1] if len(given) > 1 else "").strip().upper() or "UPPER"
    text = given[0]
    changed = {"UPPER": text.upper(), "LOWER": text.lower(), "CAPITALIZE": text[:1].upper() + text[1:]}
    if mode not in changed:
        raise call.refused(f"the mode {mode}", f"use one of {', '.join(changed)}")
    return call.stored(Text.of(changed[mode]), given[2:])


def _characters(call: Call) -> Text:
    given = call.constants(1, 100)
    try:
        return Text.of("".join(chr(int(number.strip(), 0)) for number in given))
    except (ValueError, OverflowError) as fault:
        raise call.where.wrong(f"numbers of characters in {call.name}, found {', '.join(given)}") from fault


def _logged(call: Call) -> Text:
    """The text itself; nothing is logged here."""
    return Text.of(call.constants(1, 4)[0])


def _digest(call: Call) -> Text:
    given = call.constants(2, 5)
    name = given[0].strip().upper().replace("-", "")
    if name not in ("MD5", "SHA1", "SHA224", "SHA256", "SHA384", "SHA512"):
        raise call.refused(f"the digest {given[0]}", "use MD5, SHA-1, SHA-256, SHA-384 or SHA-512")
    salt, upper, store = (given[place] if len(given) > place else "" for place in (2, 3, 4))
    found = hashlib.new(name.lower(), (given[1] + salt).encode(), usedforsecurity=False).hexdigest()
    return call.stored(Text.of(found.upper() if upper.strip().lower() == "true" else found), [store])


def _file(call: Call) -> Text:
    """The whole file, which JMeter reads anew each time."""
    given = call.constants(1, 3)
    path = call.values.folder / given[0].strip()
    try:
        if path.stat().st_size > MOST_FILE_BYTES:
            raise call.refused(f"{path.name} has more than {MOST_FILE_BYTES >> 20} MiB", "use a shorter file")
        text = path.read_text(encoding=(given[1] if len(given) > 1 else "").strip() or "UTF-8")
    except (OSError, UnicodeDecodeError, LookupError) as fault:
        raise call.where.wrong(f"a file that can be read in {call.name}; {path}: {fault}") from fault
    return call.stored(Text.of(text), given[2:])


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
        "__time": dates.now,
        "__timeShift": dates.shifted,
        "__dateTimeConvert": dates.converted,
        "__urlencode": _encoded,
        "__urldecode": _decoded,
        "__eval": _evaluated,
        "__changeCase": _case,
        "__char": _characters,
        "__log": _logged,
        "__digest": _digest,
        "__FileToString": _file,
    }
)
