"""JMeter's random functions: numbers, letters, dates and choices."""

from __future__ import annotations

import re
import string
import uuid
from datetime import date, timedelta

from prony_frontends.jmeter import dates
from prony_frontends.jmeter.functions import Call, Function, Text

LETTERS_AND_DIGITS = frozenset(string.ascii_letters + string.digits)
MOST_WORDS = 4000
"""Limit on choices: ten years of days; more would make an unreadable plan."""


def number(call: Call) -> Text:
    """`__Random(low,high,variable)`."""
    given = call.constants(2, 3)
    low, high = (call.values.whole(text, call.where, "an end of __Random") for text in given[:2])
    if low > high:
        raise call.where.wrong(f"__Random(low,high), found {low},{high}")
    return call.stored(between(call, low, high), given[2:])


def between(call: Call, low: int, high: int) -> Text:
    """A random whole number, both ends included."""
    if call.once:
        return Text.of(str(call.values.draws.randint(low, high)))
    return Text.placeholder(f"random int {low} {high}")


def letters(call: Call) -> Text:
    """`__RandomString(length,letters,variable)`."""
    given = call.constants(1, 3)
    length = call.values.whole(given[0], call.where, "the length of __RandomString")
    alphabet = given[1] if len(given) > 1 else ""
    if length < 1:
        raise call.where.wrong(f"a length of at least 1 in {call.name}, found {length}")
    if not alphabet:
        alphabet = string.ascii_letters + string.digits
        call.values.note(
            "letters_and_digits",
            f"{call.name} without letters draws letters and digits (JMeter: any characters of Unicode)",
            call.where,
        )
    return call.stored(of_letters(call, length, alphabet), given[2:])


def of_letters(call: Call, length: int, alphabet: str) -> Text:
    """A random text of this length."""
    if call.once:
        return Text.of("".join(call.values.draws.choice(alphabet) for _ in range(length)))
    if set(alphabet) == LETTERS_AND_DIGITS:
        return Text.placeholder(f"random string {length}")
    if re.search(r"[\s|}]", alphabet):
        raise call.refused(f"letters out of '{alphabet}'", "leave out spaces, | and }")
    return Text.placeholder(f"random string {length} {alphabet}")


def one_of(call: Call, words: list[str]) -> Text:
    """A random choice. Raises Refused for words that no placeholder can hold."""
    if call.once:
        return Text.of(call.values.draws.choice(words))
    if len(set(words)) == 1:
        return Text.of(words[0])
    bad = next((word for word in words if not word or re.search(r"[\s|}]", word)), None)
    if bad is not None:
        raise call.refused(f"'{bad}', one of several", "use texts without spaces, | and }")
    if len(words) > MOST_WORDS:
        raise call.refused(f"a choice of {len(words)}", f"use at most {MOST_WORDS}", "limit")
    return Text.placeholder("random choice " + " ".join(words))


def a_uuid(call: Call) -> Text:
    """`__UUID`."""
    if call.once:
        return Text.of(str(uuid.UUID(int=call.values.draws.getrandbits(128), version=4)))
    return Text.placeholder("uuid")


def day(call: Call) -> Text:
    """`__RandomDate(format,start,end,locale,variable)`: start inclusive, end exclusive."""
    given = [*call.constants(3, 5), "", ""]
    pattern = given[0].strip() or "yyyy-MM-dd"
    start = dates.day(call, given[1], pattern) if given[1].strip() else date.today()
    end = dates.day(call, given[2], pattern)
    if end <= start:
        raise call.where.wrong(f"an end after the start in {call.name}, found {start} and {end}")
    if given[3].strip()[:2] not in ("", "en"):
        raise call.refused(f"the locale {given[3]}", "leave it empty")
    days = (end - start).days
    if days > MOST_WORDS and not call.once:
        raise call.refused(f"a choice of {days} days", f"use at most {MOST_WORDS} days", "limit")
    written = [dates.day_text(call, start + timedelta(days=later), pattern) for later in range(days)]
    return call.stored(one_of(call, written), given[4:5])


def of_variables(call: Call) -> Text:
    """`__RandomFromMultipleVars(a|b,variable)`."""
    given = call.constants(1, 2)
    words: list[str] = []
    for name in given[0].split("|"):
        text = call.values.variables.get(name.strip())
        if text is None or text.constant is None:
            raise call.refused(
                f"the variable {name.strip()}, which is not a constant", "use __Random", "varies"
            )
        words.append(text.constant)
    return call.stored(one_of(call, words), given[1:])


def chosen(call: Call) -> Text:
    """`__chooseRandom(a,b,c,variable)` of the plug-in; the last argument is the variable."""
    given = call.constants(3, 200)
    return call.stored(one_of(call, given[:-1]), given[-1:])


FUNCTIONS: dict[str, Function] = {
    "__Random": number, "__RandomString": letters, "__RandomDate": day,
    "__RandomFromMultipleVars": of_variables, "__chooseRandom": chosen, "__UUID": a_uuid,
}  # fmt: skip
