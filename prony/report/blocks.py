"""Tables and lines of text, as values: what a terminal and a page both show, each drawn in its own way."""

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
    """One cell: the median and its range as text; `text` alone for words."""

    text: str
    spread: str = ""
    best: bool = False
    kind: Kind | None = None
    """Of words about whether trials conform."""

    @property
    def beside(self) -> str:
        """The range as it stands beside the median, or the notes beside such words."""
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
    """False for what others published: no mark of ours belongs on it."""
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
    """What stands over a column of cells."""

    name: str
    number: bool = True
    """Numbers stand at the right; words stand at the left and may be wrapped."""
    rank: int = 0
    """Where there is no room for all columns, those of the highest rank go first; 0: never."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns; `heading` stands over the labels."""

    columns: tuple[Column, ...]
    sections: tuple[Section, ...]
    title: str = ""
    note: str = ""
    heading: str = ""
    caption: str = ""
    """Accessible name; the title by default."""

    @property
    def ranked(self) -> bool:
        """Whether columns may be left out; otherwise what does not fit goes into a further table."""
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
    """False for text that stands as it is, such as what a script printed."""


Block = Table | Lines


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing that is stored with a result, with the text below it."""

    heading: str
    words: str
    """The same for who cannot see."""
    svg: str
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading of a page and what stands under it, shown on request."""

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
