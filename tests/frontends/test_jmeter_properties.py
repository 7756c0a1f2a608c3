"""prony jmeter: properties files, as java.util.Properties of Java 17 reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import UsageError
from prony_frontends.jmeter.arguments import parse
from prony_frontends.jmeter.property_files import read

FILE = (
    b"p = caf\\u00e9\nq:x y \nr   s\n  t\\\n   =1\\\n   2\nu\\=v=w\n#c\\\nd=1\n!no=1\ne\n"
    b"\\u0066=six\ng=a\\\\\nb\nh=\\ lead\ni=tab\\tx\\qy\nk==x\nl= =y\nm=\xc3\xa9\rn=1\r\n\\\no=2\\"
)
READ = {
    "p": "caf\u00e9", "q": "x y ", "r": "s", "t": "12", "u=v": "w", "d": "1", "e": "", "f": "six",
    "g": "a\\", "b": "", "h": " lead", "i": "tab\tx" + "qy", "k": "=x", "l": "=y", "m": "\u00c3\u00a9",
    "n": "1", "o": "2",
}  # fmt: skip
"""By Java 17, printed by JMeter 5.6.3 as ${__P(…)}."""


def test_properties_are_those_that_java_reads(tmp_path: Path) -> None:
    file = tmp_path / "q.properties"
    file.write_bytes(FILE)
    assert read(file) == READ


def test_an_escape_that_java_refuses_is_named(tmp_path: Path) -> None:
    file = tmp_path / "q.properties"
    file.write_text("a=1\nb=\\u12\n")
    with pytest.raises(UsageError, match=r"q.properties:2: invalid escape"):
        read(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "none")


def test_later_options_win_and_an_empty_value_removes(tmp_path: Path) -> None:
    file = tmp_path / "q.properties"
    file.write_text("a=q\nb=q\nc=q\n")
    asked = parse(["-n", "-t", "p.jmx", "-Ja=J", "-q", str(file), "-Jb=J", "-Jc="])
    assert asked.properties == {"a": "q", "b": "J"}
    first = parse(["-n", "-t", "p.jmx", "-Ja=J", "-p", str(file)])
    assert first.properties == {"a": "J", "b": "q", "c": "q"}
