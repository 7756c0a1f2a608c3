"""Tables and lines of text, as values that the terminal and the page draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.judge.finding import Kind

KIND_STYLE = {
    Kind.NOT_CONFORMING: "bold red",
    Kind.BUDGET: "yellow",
    Kind.PROVIDED: "cyan",
    Kind.FINE: "green",
}
KIND_WORDS = {
    Kind.NOT_CONFORMING: "does not conform",
    Kind.BUDGET: "budget",
    Kind.PROVIDED: "provided that",
    Kind.FINE: "conforms",
}


@dataclass(frozen=True, slots=True)
class TableCell:
    """The median and its range as text; only `text` for words."""

    text: str
    spread: str = ""
    best: bool = False
    kind: Kind | None = None
    """Of words about whether trials conform."""

    @property
    def spread_text(self) -> str:
        """The range in brackets after the median; notes after words."""
        if not self.spread:
            return ""
        return self.spread if self.kind is not None or self.spread[0] == "[" else f"({self.spread})"


@dataclass(frozen=True, slots=True)
class Row:
    """A label and a cell per column."""

    label: str
    cells: tuple[TableCell, ...]
    unit: str = ""
    measured: bool = True
    """False for figures that others published, which get no marks."""
    server: str = ""
    """Server of the row, if rows belong to servers."""

    @property
    def named(self) -> str:
        """The label with its unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label


@dataclass(frozen=True, slots=True)
class Section:
    """Rows that belong together."""

    rows: tuple[Row, ...]
    title: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """Heading of a column."""

    name: str
    number: bool = True
    """Right-aligned numbers; words are left-aligned and may wrap."""
    rank: int = 0
    """Columns of the highest rank are dropped first where width runs out; 0: never."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns; `heading`: over the labels."""

    columns: tuple[Column, ...]
    sections: tuple[Section, ...]
    title: str = ""
    note: str = ""
    heading: str = ""
    caption: str = ""
    """Accessible name; the title by default."""

    @property
    def ranked(self) -> bool:
        """Whether columns may be dropped; otherwise they continue in a further table."""
        return any(column.rank for column in self.columns)


@dataclass(frozen=True, slots=True)
class Lines:
    """Sentences under a title."""

    title: str
    lines: tuple[str, ...]
    note: str = ""
    marked: bool = False
    """Whether each rests on measured figures, so that a quick run marks it."""
    style: str = ""
    listed: bool = True
    """False for verbatim text, such as a script's output."""


Block = Table | Lines


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing that is stored with a result, with the text below it."""

    heading: str
    words: str
    """Text alternative of the drawing."""
    svg: str
    said: tuple[str, ...] = ()
    """Stored with results under this name."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading of a page and its content, shown on request."""

    id: str
    title: str
    items: tuple[object, ...]
    """Blocks and charts, as the page draws them."""
    lead: str = ""


def words(*texts: str) -> tuple[TableCell, ...]:
    return tuple(TableCell(text) for text in texts)


def plain(head: Sequence[str], rows: Sequence[Sequence[str]], title: str, note: str = "") -> Table:
    """A table of text: the first column holds the labels, the others numbers."""
    made = tuple(Row(row[0], words(*row[1:])) for row in rows)
    columns = tuple(Column(name) for name in head[1:])
    return Table(columns, (Section(made),), title=title, note=note, heading=head[0])
