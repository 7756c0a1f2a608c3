"""JMeter's functions of properties, threads and files, and the table of all functions."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.plan.blocks import Condition, Loop
from prony.plan.step import Block, Entry
from prony_frontends.jmeter import dates, draws, expressions, row_functions, texts
from prony_frontends.jmeter.functions import CALLS, Call, KnownValues, Text, TextPart
from prony_frontends.jmeter.setup_properties import given_property, of_property

MOST_VARIABLES = 200
DRAWN = re.compile(r"random int (-?\d{1,15}) (-?\d{1,15})")


@contextmanager
def within(name: str | None, values: KnownValues) -> Iterator[list[Entry]]:
    """Collects entries of functions while a sampler of this name, or a header, is read, to run before it."""
    outside = values.sampler, values.stores
    stores: list[Entry] = []
    values.sampler, values.stores = name, stores
    try:
        yield stores
    finally:
        values.sampler, values.stores = outside


def _property(call: Call) -> Text:
    given = call.constants(1, 3)
    if call.name == "__P":
        default = given[1] if len(given) > 1 else "1"
    else:
        default = given[2] if len(given) == 3 else given[0]
    value = of_property(given[0], default, call.values, call.where)
    return value if call.name == "__P" else call.stored(value, given[1:2])


def _variable(call: Call) -> Text:
    drawn = _one_of_variables(call)
    if drawn is not None:
        return drawn
    name, *rest = call.texts(1, 2)
    if name.constant is None:
        return _of_changing_name(call, name, rest[0] if rest else None)
    if name.constant in call.values.variables or call.values.match_of(name.constant) is not None:
        return call.values.text("${" + name.constant + "}", call.where)
    return rest[0] if rest else name


def _of_changing_name(call: Call, name: Text, default: Text | None) -> Text:
    """`${__V(name_${i})}`: one of the plan's constants, or of all matches of an extractor. Without such a
    variable JMeter gives the default, or the name itself.
    """
    values = call.values
    dynamic = [part for part in name.parts if part.dynamic]
    if call.once or values.stores is None or len(dynamic) != 1:
        raise call.refused("an argument differs from request to request", "write a constant", "varies")
    at = name.parts.index(dynamic[0])
    before, after = name.around(at)
    index, place = (values.changing(values.unique(kind), call.where) for kind in ("index", "text"))
    values.used |= {index, place}
    missing = Text.of(before) + Text.placeholder(index) + Text.of(after)
    values.stores.append(Block(set={index: Text((dynamic[0],)).engine}))
    values.stores.append(Block(set={place: (missing if default is None else default).engine}))
    known: list[Entry] = []
    for variable, value in sorted(values.variables.items()):
        middle = variable[len(before) : len(variable) - len(after)]
        if variable == before + middle + after and middle and variable not in values.undefined:
            values.used.update(part.text for part in value.parts if part.dynamic)
            held = Condition(left=f"${{{index}}}", op="matches", right=f"^{re.escape(middle)}$")
            known.append(Block(condition=held, steps=(Block(set={place: value.engine}),)))
    if len(known) > MOST_VARIABLES:
        raise call.refused(f"one of {len(known)} variables", f"use at most {MOST_VARIABLES}", "limit")
    base = before.removesuffix("_")
    if base in values.several and before.endswith("_") and not after:
        number, one = values.own_value("place"), values.own_value("one")
        held = Condition(left=f"${{{number} | plus 1}}", op="==", right=f"${{{index}}}")
        found = Block(condition=held, steps=(Block(set={place: f"${{{one}}}"}),))
        known.append(
            Block(loop=Loop(each=f"{values.several[base]}_list", element=one, index=number), steps=(found,))
        )
    elif not known:
        raise call.refused(
            f"no variable of the plan is named {before}…{after}", "define them as constants", "undefined"
        )
    values.stores += known
    return Text.placeholder(place)


def _one_of_variables(call: Call) -> Text | None:
    """`${__V(name_${__Random(1,3)})}` over constant words; None for others."""
    name = call.texts(1, 2)[0]
    draws_of_parts = [DRAWN.fullmatch(part.text) if part.dynamic else None for part in name.parts]
    if name.constant is not None or sum(part.dynamic for part in name.parts) != 1 or not any(draws_of_parts):
        return None
    (place,) = (at for at, match in enumerate(draws_of_parts) if match)
    low, high = (int(number) for number in draws_of_parts[place].groups())  # type: ignore[union-attr]
    if high - low >= draws.MOST_WORDS:
        raise call.refused(f"one of {high - low + 1} variables", f"use at most {draws.MOST_WORDS}", "limit")
    before, after = name.around(place)
    words = []
    for number in range(low, high + 1):
        variable = call.values.variables.get(f"{before}{number}{after}")
        value = None if variable is None else variable.constant
        if not value or re.search(r"[\s|{}]", value):
            return None
        words.append(value)
    return Text.placeholder(f"random choice {' '.join(words)}")


def _counter(call: Call) -> Text:
    given = call.constants(0, 2)
    if call.once:
        return call.stored(Text.of("1"), given[1:])
    each = bool(given) and given[0].strip().lower() == "true" and call.values.users != 1
    name = call.values.unique("count")
    return call.stored(Text.placeholder(f"sequence name={name}" + (" per=user" if each else "")), given[1:])


def _is_property(call: Call) -> Text:
    (name,) = call.constants(1, 1)
    call.values.read_properties.add(name)
    return Text.of("true" if name in call.values.properties else "false")


def _is_variable(call: Call) -> Text:
    (name,) = call.constants(1, 1)
    if name in call.values.values:
        raise call.refused(
            f"whether '{name}' has a value in the run", "compare it with its default", "varies"
        )
    return Text.of("true" if name in call.values.variables else "false")


def _iteration(call: Call) -> Text:
    call.constants(0, 1)
    return Text.of("1") if call.once else Text.placeholder("iteration")


def _sum(call: Call) -> Text:
    given = call.texts(2, 100)
    last = given[-1].constant
    named = last is not None and not re.fullmatch(r"\s*[+-]?\d+\s*", last)
    texts = given[:-1] if named else given
    changing = [text for text in texts if text.constant is None]
    numbers = [text.constant for text in texts if text.constant is not None]
    least, most = (-(2**31), 2**31 - 1) if call.name == "__intSum" else (-(2**63), 2**63 - 1)
    total = sum(call.values.whole(number, call.where, f"a number of {call.name}") for number in numbers)
    if not least <= total <= most:
        raise call.where.wrong(f"a sum of {call.name} from {least} to {most}, found {total}")
    variable = [last] if named and last is not None else []
    if not changing:
        return call.stored(Text.of(str(total)), variable)
    if len(changing) > 1:
        raise call.refused(
            f"a sum of {len(changing)} changing numbers", "add constants to a single one", "varies"
        )
    (part,) = call.single_placeholder(changing[0]).parts
    return call.stored(Text((TextPart(f"{part.text} | plus {total}", True),)), variable)


def set_property(call: Call) -> Text:
    """`__setProperty(name,value,true)`: with constants, and only before any other value has been read."""
    given = [*call.texts(2, 3), Text()]
    name, tells = call.constant(given[0]).strip(), call.constant(given[2]).strip().lower() == "true"
    value = given[1].constant
    if value is None and call.values.sets_up and call.values.stores is not None and not tells:
        place = given_property(name, call.values, call.where)
        call.values.stores.append(Block(set={place: given[1].engine}))
        return Text()
    if value is None:
        raise call.refused(
            f"the property '{name}' gets a value of the run, shared by threads",
            "extract it in each thread that sends it, or set it with -J",
            "varies",
        )
    before = call.values.properties.get(name)
    if before != value and name in call.values.read_properties:
        raise call.refused(f"the property '{name}' changes after it was read", "set it with -J", "varies")
    call.values.properties[name] = value
    return Text.of(before or "") if tells else Text()


def _of_last_response(call: Call) -> Text:
    raise call.refused("it reads the last response", "use an extractor below that request")


def _logged(call: Call) -> Text:
    """Returns the text, or '' for `__logn`; nothing is logged."""
    text = call.texts(1, 4)[0]
    return text if call.name == "__log" else Text()


def _file(call: Call) -> Text:
    """The file's contents, read anew each time; a row of a data set may name the file."""
    given = call.texts(1, 3)
    encoding, variable = [*map(call.constant, given[1:]), "", ""][:2]
    encoding = encoding.strip() or "UTF-8"
    if given[0].constant is None:
        return call.stored(row_functions.contents(call, given[0], encoding), [variable])
    return call.stored(Text.of(row_functions.content(call, given[0].constant, encoding)), [variable])


def _group(call: Call) -> Text:
    if call.values.group is None:
        raise call.refused("it is called outside of a thread group", "write the name", "outside")
    return Text.of(call.values.group)


def _sampler(call: Call) -> Text:
    given = call.constants(0, 1)
    if call.values.sampler is None:
        raise call.refused("it is called outside of a sampler", "write the name", "outside")
    return call.stored(Text.of(call.values.sampler), given)


def _address(call: Call) -> Text:
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError as fault:
        raise call.refused(f"the address of this host is not known ({fault})", "write it") from fault
    return call.stored(Text.of(address), call.constants(0, 1))


def _plan_name(call: Call) -> Text:
    call.constants(0, 0)
    return Text.of(Path(call.where.file).name)


CALLS.update(draws.FUNCTIONS)
CALLS.update(texts.FUNCTIONS)
CALLS.update(expressions.FUNCTIONS)
CALLS.update(row_functions.FUNCTIONS)
CALLS.update(
    {
        "__P": _property,
        "__property": _property,
        "__isPropDefined": _is_property,
        "__V": _variable,
        "__isVarDefined": _is_variable,
        "__isDefined": _is_variable,
        "__counter": _counter,
        "__threadNum": lambda call: Text.of("1") if call.values.users == 1 else Text.placeholder("user"),
        "__iterationNum": _iteration,
        "__threadGroupName": _group,
        "__samplerName": _sampler,
        "__machineName": lambda call: call.stored(Text.of(socket.gethostname()), call.constants(0, 1)),
        "__machineIP": _address,
        "__TestPlanName": _plan_name,
        "__intSum": _sum,
        "__longSum": _sum,
        "__setProperty": set_property,
        "__regexFunction": _of_last_response,
        "__XPath": _of_last_response,
        "__time": dates.now,
        "__timeShift": dates.shifted,
        "__dateTimeConvert": dates.converted,
        "__log": _logged,
        "__logn": _logged,
        "__FileToString": _file,
    }
)
