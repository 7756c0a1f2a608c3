"""Nothing that was stored or answered gives orders to a terminal."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.live import Live
from rich.table import Table

from prony.report.console import Console
from prony.report.terminal import render
from prony.report.wording import printable

from . import factory

ORDERS = "\x1b[2J\x1b]52;c;ZXZpbA==\x07\x9b31m\x08\r"


@pytest.mark.parametrize("forced", [True, False])
def test_orders_to_a_terminal_are_shown_and_not_obeyed(forced: bool) -> None:
    stream = StringIO()
    console = Console(
        file=stream, force_terminal=forced, width=100, color_system="standard" if forced else None
    )
    table = Table("title")
    table.add_row(f"[bold]a title{ORDERS}")
    for one in (table, f"a note{ORDERS}", f"[red]{ORDERS}[/]"):
        console.print(one)
    console.print(f"as it is{ORDERS}", markup=False, highlight=False)
    for order in ("\x1b[2J", "\x1b]52", "\x07", "\x9b", "\x08", "\r"):
        assert order not in stream.getvalue()
    for word in ("a title", "a note", "as it is", "]52;c;"):
        assert word in stream.getvalue()
    assert ("\x1b[" in stream.getvalue()) is forced, "colours stay where there are any"


def test_a_line_that_is_drawn_again_still_is() -> None:
    stream = StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    with Live("first\nsecond", console=console, auto_refresh=False) as live:
        live.update("third", refresh=True)
    assert "\x1b[1A" in stream.getvalue(), "the cursor goes up: that is rich's own"


def test_a_whole_report_is_the_same_with_it() -> None:
    from rich.console import Console as RichConsole

    with_it, without = StringIO(), StringIO()
    render(factory.troubled(), Console(file=with_it, width=120, force_terminal=True))
    render(factory.troubled(), RichConsole(file=without, width=120, force_terminal=True))
    assert with_it.getvalue() == without.getvalue()


def test_lines_tabs_and_every_script_stay() -> None:
    text = "a\tb\nprüfen 測定 µs ≥ 3 %"
    assert printable(text) == text
    assert printable("a\x00b\x7fc") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
