"""Whole screens and pages, word for word."""

from __future__ import annotations

import io
import math
from collections.abc import Callable

import pytest
from rich.console import Console

from prony.report.html import render_html
from prony.report.result import ResultView
from prony.report.terminal import render
from tests.report import (
    factory,
    test_intervals,
    test_scaling,
    test_sessions,
    test_shared,
    test_two_pass,
)
from tests.report.page import Page
from tests.wording import assert_as_written


def screen(view: ResultView, *, details: bool = True) -> str:
    """What a terminal of 100 columns shows."""
    out = io.StringIO()
    render(view, Console(file=out, width=100), details=details)
    return out.getvalue()


def words(view: ResultView) -> str:
    """Texts of a page, a line for each: headings, paragraphs, summaries and items."""
    page = Page(render_html(view))
    shown = (e for e in page.elements if e.tag in ("h1", "h2", "h3", "p", "summary", "li", "title"))
    return "".join(f"{e.tag}: {' '.join(e.text.split())}\n" for e in shown)


SCREENS: dict[str, Callable[[], str]] = {
    "answer": lambda: screen(factory.troubled(), details=False),
    "comparison": lambda: screen(factory.troubled()),
    "nothing-conforms": lambda: screen(factory.hopeless()),
    "load": lambda: screen(factory.foreign_load()),
    "not-started": lambda: screen(factory.without_engine()),
    "failed-requests": lambda: screen(test_intervals.failing(100)),
    "sessions": lambda: screen(factory.changed(factory.foreign_load(), test_sessions.walked)),
    "sweep": lambda: screen(test_scaling.sweep((1, 2, 4, 8, 16, 32, 64), failing_at=4)),
    "short-sweep": lambda: screen(test_scaling.sweep((1, 2, 4))),
    "capacity": lambda: screen(test_scaling.capacity()),
    "shared-process": lambda: screen(test_shared.result({"closed-512": math.log(0.9)})),
    "two-pass": lambda: screen(test_two_pass.two_pass()),
    "page": lambda: words(factory.troubled()),
    "page-of-a-load": lambda: words(factory.foreign_load()),
}


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_as_it_was_written(name: str) -> None:
    assert_as_written(name, SCREENS[name]())
