"""Regular expressions of other tools, as the engine reads them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from prony.load.short import run_short, short_load
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.workload import Workload
from prony_frontends.patterns import Untranslatable, pattern
from tests.frontends.conftest import Served

SAME = (
    r"a|b*?", r"\d{2,3}", r"x{2}", r"x{2,}?", r"(a)(?:b)", r"(?i)a", r"(?i:a)b", r"[a-z\d]+", r"[^<>]",
    r"\x41", r"\p{L}+", r"^\s*$", "a(.+?)", r"[[:alpha:]]", r"a}", r"\.\/\-\"", r"[-a]", r"",
)  # fmt: skip
OTHERWISE = {
    r'{"status":"UP"}': r'\{"status":"UP"}',
    r'{"id":(\d+)': r'\{"id":(\d+)',
    r"a{,3}{x}": r"a\{,3}\{x}",
    r"(?:{|a)": r"(?:\{|a)",
    r"[\w-.]+@[a[b]": r"[\w\-.]+@[a\[b]",
    r"[a-\d]": r"[a\-\d]",
    r"[]a]": r"[\]a]",
    r"[a&&b]": r"[a&\&b]",
    r"[+--]": r"[+-\-]",
    r"\p{Alpha}[\P{Digit}]": r"[[:alpha:]][[:^digit:]]",
    r"a\Z": r"a(?:\n?\z)",
    r"\e\cA\07\u00e9": r"\x{1b}\x{1}\x{7}\u00e9",
    r"\<a\>": r"<a>",
    r"[\b]": r"[\x{8}]",
    r"(?<year>\d+)": r"(?P<year>\d+)",
}
OF_JAVASCRIPT = {
    r"[^]": r"[\s\S]", r"a\-\Q\Z": r"a\-QZ", r"\a\e": "ae", r'{"id":(\d+)': r'\{"id":(\d+)',
    r"[[:x]": r"[\[:x]", "a(.+?)": "(?R)a(.+?)",
}  # fmt: skip
REFUSED = {
    "(?=a)": "look-around", "(?<!a)": "look-around", "(?>a)": "an atomic group", r"(a)\1": "a back reference",
    r"\k<a>": "a back reference", "a*+": "a possessive repetition", "a{2}+": "a possessive repetition",
    r"\Qa\E": r"the escape \Q", "(a": "a group that is not closed", "a)": "a ) without its (",
    "[a": "a class that is not closed", "*a": "'*' with nothing to repeat", "(|+a)": "'+' with nothing",
    "a{3,1}": "the repetition {3,1}", "a\\": "a \\ at its end", r"\ud83d": "half a character",
    "(?d)a": "'(?d'", r"\p{javaUpperCase}": "the property javaUpperCase",
}  # fmt: skip


@pytest.mark.parametrize("text", SAME)
def test_what_all_read_alike_stays(text: str) -> None:
    assert pattern(text).text == text


@pytest.mark.parametrize("text", OTHERWISE)
def test_what_the_engine_reads_otherwise_is_written_anew(text: str) -> None:
    assert pattern(text).text == OTHERWISE[text]


@pytest.mark.parametrize("text", OF_JAVASCRIPT)
def test_javascript_has_its_own(text: str) -> None:
    assert pattern(text, javascript=True).text == OF_JAVASCRIPT[text]


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_engine_cannot_do_is_said(text: str) -> None:
    with pytest.raises(Untranslatable) as why:
        pattern(text)
    assert REFUSED[text] in str(why.value)


def test_groups_are_counted() -> None:
    assert pattern(r"(a)(?:b)(?<c>c)\([(](?i)").groups == 2


def test_the_engine_takes_all_of_them(serve: Callable[..., Served]) -> None:
    given = [pattern(text).text for text in (*SAME, *OTHERWISE)]
    given += [pattern(text, javascript=True).text for text in OF_JAVASCRIPT]
    step = Step(path="/", expect=Expectation(body_not_matches=tuple(given)))
    report = run_short(short_load(serve().url, Workload(name="patterns", steps=(step,))))
    assert report.totals.completed == 1
