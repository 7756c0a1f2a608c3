"""Evaluates plain expressions in `__groovy`, `__javaScript`, `__jexl3` and similar: numbers, texts,
variables, methods of texts, random numbers and the current time. Nothing of the plan is executed: expressions
are parsed here, and unsupported parts are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from prony.plan.blocks import Condition
from prony.plan.step import Block
from prony_frontends.jmeter import statements
from prony_frontends.jmeter.expression_parser import MARK, Parser, text_of
from prony_frontends.jmeter.expression_values import Unsupported
from prony_frontends.jmeter.functions import Call, Function, Text

MOST_THREADS = 1000
THREAD_OF_CONTEXT = re.compile(r"\bctx\s*\.\s*(?:getThreadNum\s*\(\s*\)|threadNum\b)")
IMPORTS = re.compile(r"\s*(?:import\s+[\w.*]+\s*;?\s*)+")
INSTEAD = (
    "Prony evaluates numbers, texts, vars.get(…), props.get(…), methods of texts, random numbers and the "
    "current time; use functions, extractors or a data set for the rest"
)


def evaluated(call: Call) -> Text:
    """The expression's value as a text, which may be stored in a variable. Raises Refused."""
    given = call.texts(1, 2)
    marks = [part for part in given[0].parts if part.dynamic]
    numbers = iter(range(len(marks)))
    raw = "".join(f"\0{next(numbers)}\0" if part.dynamic else part.text for part in given[0].parts)
    shown = MARK.sub("${…}", raw.strip())
    try:
        if call.name in ("__groovy", "__BeanShell"):
            statements.check_imports(raw)
        raw = IMPORTS.sub("", raw, count=1) if IMPORTS.match(raw) else raw
        of_thread = (marks and "%" in raw) or THREAD_OF_CONTEXT.search(raw)
        if of_thread and all(mark.text == "user" for mark in marks):
            text = _of_thread(raw, call)
        else:
            text = text_of(Parser(raw.strip().removesuffix(";"), marks, call).whole(), call)
    except Unsupported as why:
        found_words = f"the expression '{shown}'" + (f": {why}" if str(why) else "")
        raise call.refused(found_words, INSTEAD) from why
    return call.stored(text, [call.constant(given[1])] if len(given) > 1 else ())


def by_thread(raw: str, call: Call) -> dict[str, list[int]]:
    """The values of an expression with a thread's number (a mark, or `ctx.getThreadNum()` from 0), each with
    the numbers of its threads. Raises NotPlain.
    """
    threads = call.values.users
    if threads is None or threads > MOST_THREADS:
        raise Unsupported(f"the remainder of a thread's number among more than {MOST_THREADS} threads")
    found: dict[str, list[int]] = {}
    for number in range(1, threads + 1):
        plain = THREAD_OF_CONTEXT.sub(str(number - 1), MARK.sub(str(number), raw))
        text = text_of(Parser(plain.strip().removesuffix(";"), (), call).whole(), call).constant
        if text is None:
            raise Unsupported("a thread's number with another changing value")
        found.setdefault(text, []).append(number)
    return found


def is_thread(numbers: Sequence[int]) -> Condition:
    """Whether the user is one of these threads."""
    return Condition(left="${user}", op="matches", right=f"^(?:{'|'.join(map(str, numbers))})$")


def _of_thread(raw: str, call: Call) -> Text:
    values = by_thread(raw, call)
    if len(values) == 1:
        return Text.of(next(iter(values)))
    if call.once or call.values.stores is None:
        raise Unsupported("the remainder of a thread's number, outside of a sampler")
    place = call.values.changing(call.values.unique("text"), call.where)
    call.values.used.add(place)
    call.values.stores += [
        Block(condition=is_thread(numbers), steps=(Block(set={place: Text.of(value).engine}),))
        for value, numbers in values.items()
    ]
    return Text.placeholder(place)


FUNCTIONS: dict[str, Function] = dict.fromkeys(
    ("__groovy", "__javaScript", "__jexl", "__jexl2", "__jexl3", "__BeanShell"), evaluated
)
