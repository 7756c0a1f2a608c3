"""Converts other tools' regular expressions to the engine's syntax (Rust's `regex`), and reports what has no
equivalent.

Only the engine knows whether a pattern is too large.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

COUNT = re.compile(r"\{(\d{1,9})(?:(,)(\d{1,9})?)?\}")
NAMED = re.compile(r"\(\?P?<([A-Za-z_]\w*)>")
FLAGS = re.compile(r"\(\?(?=[a-z-]+[:)])[imsx]*(?:-[imsx]+)?([:)])")
LOOK_AROUND = re.compile(r"\(\?<?[=!]")
OF_NAME = re.compile(r"\[:\^?(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit):\]")
"""POSIX set within a class: `[[:alpha:]]`."""
CODE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4}))")
PROPERTY = re.compile(r"\\([pP])(?:\{(\^?[\w=: -]+)\}|([A-Z]))")
OCTAL = re.compile(r"\\0([0-7]{0,3})")
POSIX = {"Alpha": "alpha", "Digit": "digit", "Alnum": "alnum", "Upper": "upper", "Lower": "lower",
         "Punct": "punct", "Graph": "graph", "Print": "print", "Blank": "blank", "Cntrl": "cntrl",
         "XDigit": "xdigit", "Space": "space", "ASCII": "ascii"}  # fmt: skip
"""Java's names for POSIX classes."""
SETS = frozenset("dDwWsS")
SAME = SETS | frozenset("fnrtv")
"""Escapes with the same meaning everywhere."""
PLACES = frozenset("bBAz")
"""Escapes for positions in the text."""


class Untranslatable(ValueError):
    """The engine does not support the pattern; `str()` is the unsupported part, as a noun."""

    def __init__(self, found: str, malformed: bool = False) -> None:
        """`malformed`: no dialect accepts it."""
        super().__init__(found)
        self.malformed = malformed


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression for the engine."""

    text: str
    groups: int
    """Those that capture."""


def pattern(text: str, *, javascript: bool = False) -> Pattern:
    """Converts a pattern of Java or Perl, or of JavaScript. Raises NotTaken."""
    return _Reader(text, javascript).whole()


class _Reader:
    def __init__(self, text: str, javascript: bool) -> None:
        self.text, self.javascript = text, javascript
        self.at = 0
        self.made: list[str] = []
        self.groups = self.depth = 0
        self.dots = self.repeatable = False
        """Whether there is a `.`, and whether the preceding item can be repeated."""

    def whole(self) -> Pattern:
        while self.at < len(self.text):
            self._next()
        if self.depth:
            raise Untranslatable("a group that is not closed", malformed=True)
        no_line_ends = "(?R)" if self.javascript and self.dots else ""  # JMeter's `.` is also a \r
        return Pattern(no_line_ends + "".join(self.made), self.groups)

    def _next(self) -> None:
        match self.text[self.at]:
            case "\\":
                self._escape()
            case "[":
                self._class()
            case "(":
                self._group()
                return
            case ")":
                if not self.depth:
                    raise Untranslatable("a ) without its (", malformed=True)
                self.depth -= 1
                self._add(")", 1)
            case "*" | "+" | "?" as sign:
                self._repeat(sign)
                return
            case "{":
                count = COUNT.match(self.text, self.at)
                if count is not None and self.repeatable:
                    if count[3] and int(count[3]) < int(count[1]):
                        raise Untranslatable(f"the repetition {count[0]}", malformed=True)
                    self._repeat(count[0])
                    return
                self._add(r"\{", 1)  # a literal bracket, as in JSON
            case "|":
                self._add("|", 1)
                self.repeatable = False
                return
            case char:
                self.dots |= char == "."
                self._add(char, 1)
        self.repeatable = True

    def _add(self, made: str, length: int) -> None:
        self.made.append(made)
        self.at += length

    def _peek(self, text: str, ahead: int = 0) -> bool:
        return self.text.startswith(text, self.at + ahead)

    def _repeat(self, words: str) -> None:
        if not self.repeatable:
            raise Untranslatable(f"'{words}' with nothing to repeat", malformed=True)
        self._add(words, len(words))
        if self._peek("?"):
            self._add("?", 1)
        elif self._peek("+"):
            raise Untranslatable("a possessive repetition", malformed=self.javascript)
        self.repeatable = False

    def _group(self) -> None:
        self.repeatable = False
        flags = FLAGS.match(self.text, self.at)
        if named := NAMED.match(self.text, self.at):
            self.groups += 1
            self._add(f"(?P<{named[1]}>", len(named[0]))
        elif flags is not None:
            self._add(flags[0], len(flags[0]))
            if flags[1] == ")":
                return
        elif self._peek("(?:"):
            self._add("(?:", 3)
        elif not self._peek("(?"):
            self.groups += 1
            self._add("(", 1)
        elif LOOK_AROUND.match(self.text, self.at):
            raise Untranslatable("look-around")
        else:
            atomic = self._peek("(?>")
            raise Untranslatable("an atomic group" if atomic else f"'{self.text[self.at : self.at + 3]}'")
        self.depth += 1

    def _class(self) -> None:
        self._add("[", 1)
        if self.javascript and self._peek("^]"):  # any character
            self.made[-1] = r"[\s\S]"
            self.at += 2
            return
        if self._peek("^"):
            self._add("^", 1)
        if self.javascript and self._peek("]"):
            raise Untranslatable("an empty class")
        first, is_set = True, False
        while not self._peek("]") or first:
            if self.at >= len(self.text):
                raise Untranslatable("a class that is not closed", malformed=True)
            is_set = self._member(is_set)
            first = False
        self._add("]", 1)

    def _member(self, after_set: bool) -> bool:
        """Reads a member of a class, possibly a set; returns whether it was one."""
        char = self.text[self.at]
        name = None if self.javascript else OF_NAME.match(self.text, self.at)
        if char == "\\":
            return self._escape(in_class=True)
        if name is not None:
            self._add(name[0], len(name[0]))
            return True
        if char in "[]":
            self._add(f"\\{char}", 1)
        elif char == "-" and (after_set or self._before_set()):
            self._add(r"\-", 1)  # literal: a range needs characters as bounds
        elif char in "&~-" and self._peek(char, 1):
            self._add(f"{char}\\{char}", 2)  # class operators in the engine
        else:
            self._add(char, 1)
        return False

    def _before_set(self) -> bool:
        return self._peek("\\", 1) and self.text[self.at + 2 : self.at + 3] in ("p", "P", *SETS)

    def _escape(self, in_class: bool = False) -> bool:
        """Reads an escape; returns whether it stands for a set of characters."""
        char = self.text[self.at + 1 : self.at + 2]
        code, octal = CODE.match(self.text, self.at), OCTAL.match(self.text, self.at)
        if not char:
            raise Untranslatable("a \\ at its end", malformed=True)
        if char in SAME:
            self._add(f"\\{char}", 2)
            return char in SETS
        if char in PLACES:
            self._place(char, in_class)
        elif code is not None:
            point = int(code[1] or code[2] or code[3], 16)
            if point > 0x10FFFF or 0xD800 <= point < 0xE000:
                raise Untranslatable("half a character")
            self._add(code[0], len(code[0]))
        elif octal is not None:
            self._character(int(octal[1] or "0", 8), len(octal[0]))
        elif char.isdigit() or char == "k":
            raise Untranslatable("a back reference")
        elif char == "c" and self.text[self.at + 2 : self.at + 3].isalpha():
            self._character(ord(self.text[self.at + 2].upper()) ^ 64, 3)
        elif not (char.isascii() and char.isalpha()):
            self._add(char if char in "<>" or not char.isascii() else f"\\{char}", 2)
        elif self.javascript:
            self._add(char, 2)  # literal
        else:
            return self._of_perl(char, in_class)
        return False

    def _place(self, char: str, in_class: bool) -> None:
        if char in "Az" and self.javascript:
            self._add(char, 2)
        elif not in_class:
            self._add(f"\\{char}", 2)
        elif char == "b":
            self._character(8, 2)
        else:
            raise Untranslatable(f"the escape \\{char} in a class", malformed=True)

    def _of_perl(self, char: str, in_class: bool) -> bool:
        """Escapes that JavaScript lacks."""
        match = PROPERTY.match(self.text, self.at)
        if match is not None:
            self._property(match, in_class)
            return True
        if char in "ae":
            self._character({"a": 7, "e": 27}[char], 2)
        elif char == "Z" and not in_class:
            self._add(r"(?:\n?\z)", 2)
        else:
            raise Untranslatable(f"the escape \\{char}")
        return False

    def _property(self, found: re.Match[str], in_class: bool) -> None:
        name, inverse = found[2] or found[3], found[1] == "P"
        if name in POSIX:
            word = f"[:{'^' if inverse else ''}{POSIX[name]}:]"
            self._add(word if in_class else f"[{word}]", len(found[0]))
            return
        if name.startswith(("In", "java")):
            raise Untranslatable(f"the property {name}")
        self._add(found[0], len(found[0]))

    def _character(self, code: int, length: int) -> None:
        self._add(f"\\x{{{code:x}}}", length)
