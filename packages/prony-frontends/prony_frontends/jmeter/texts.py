"""JMeter's text functions, and those of the plug-in "Custom JMeter Functions"."""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from binascii import Error as NotBase64
from collections.abc import Callable
from html.entities import codepoint2name
from urllib.parse import unquote_plus
from xml.sax.saxutils import escape

from prony_frontends.jmeter.functions import Call, Function, Text

DIGESTS = ("MD5", "SHA1", "SHA224", "SHA256", "SHA384", "SHA512")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def encoded(call: Call) -> Text:
    """`__urlencode`."""
    return call.texts(1, 1)[0].encoded()


def decoded(call: Call) -> Text:
    """`__urldecode`."""
    (text,) = call.constants(1, 1)
    return Text.of(unquote_plus(text))


def evaluated(call: Call) -> Text:
    """`__eval`: the text with its variables evaluated."""
    (text,) = call.texts(1, 1)
    constant = text.constant
    return text if constant is None else call.values.text(constant, call.where, call.once)


def evaluated_variable(call: Call) -> Text:
    """`__evalVar`: the same for a variable's text."""
    (name,) = call.constants(1, 1)
    text = call.values.text("${" + name + "}", call.where)
    constant = text.constant
    return text if constant is None else call.values.text(constant, call.where, call.once)


def cased(call: Call) -> Text:
    """`__changeCase(text,UPPER)`."""
    given = [*call.texts(1, 3), Text(), Text()]
    mode, name = (call.constant(text) for text in given[1:3])
    mode = mode.strip().upper() or "UPPER"
    if mode == "UPPER":
        return call.stored(call.each(given[0], str.upper, "upper"), [name])
    if mode == "LOWER":
        return call.stored(call.each(given[0], str.lower, "lower"), [name])
    text = given[0].constant
    if mode != "CAPITALIZE":
        raise call.refused(f"the mode {mode}", "use one of UPPER, LOWER, CAPITALIZE")
    if text is None:
        raise call.refused(
            "a changing text with CAPITALIZE", "use UPPER or LOWER, or write a constant", "varies"
        )
    return call.stored(Text.of(text[:1].upper() + text[1:]), [name])


def in_base64(call: Call) -> Text:
    """`__base64Encode(text)` of the plug-in."""
    given = [*call.texts(1, 2), Text()]
    return call.stored(base64_of(call, given[0]), [call.constant(given[1])])


def base64_of(call: Call, text: Text) -> Text:
    """The text's bytes in Base64."""
    whole = text if text.constant is not None else call.single_placeholder(text)
    return call.each(whole, lambda plain: base64.b64encode(plain.encode()).decode(), "base64")


def digest(call: Call) -> Text:
    """`__digest(MD5,text,salt,true,variable)`."""
    given = [*call.texts(2, 5), Text(), Text(), Text()]
    algorithm, upper, store = (call.constant(given[place]) for place in (0, 3, 4))
    name = algorithm.strip().upper().replace("-", "")
    if name not in DIGESTS:
        raise call.refused(f"the digest {algorithm}", "use MD5, SHA-1, SHA-256, SHA-384 or SHA-512")
    capitals = upper.strip().lower() == "true"
    text = (given[1] + given[2]).joined
    if text.constant is not None:
        digest_hex = hashlib.new(name.lower(), text.constant.encode(), usedforsecurity=False).hexdigest()
        return call.stored(Text.of(digest_hex.upper() if capitals else digest_hex), [store])
    if name == "SHA224":
        raise call.refused(
            "SHA-224 of a changing text", "use MD5, SHA-1, SHA-256, SHA-384 or SHA-512", "varies"
        )
    (part,) = call.single_placeholder(text).parts
    filters = f"{name.lower()} | upper" if capitals else name.lower()
    return call.stored(Text.placeholder(f"{part.text} | {filters}"), [store])


def characters(call: Call) -> Text:
    """`__char(65,0x42)`."""
    given = call.constants(1, 100)
    try:
        return Text.of("".join(chr(int(number.strip(), 0)) for number in given))
    except (ValueError, OverflowError) as fault:
        raise call.where.wrong(f"numbers of characters in {call.name}, found {', '.join(given)}") from fault


def split(call: Call) -> Text:
    """`__split(text,name,separator)`: the parts become `${name_1}` and so on, their number `${name_n}`."""
    given = [*call.constants(2, 3), ","]
    name = given[1].strip()
    pieces = given[0].split(given[2] or ",")
    for place, piece in enumerate(pieces, 1):
        call.stored(Text.of(piece or "?"), [f"{name}_{place}"])
    call.stored(Text.of(str(len(pieces))), [f"{name}_n"])
    return call.stored(Text.of(given[0]), [name])


def _in_html(text: str) -> str:
    """With HTML 4 entities."""
    return "".join(f"&{name};" if (name := codepoint2name.get(ord(char))) else char for char in text)


def unescaped(text: str) -> str:
    """With Java's escapes decoded."""

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return ESCAPES.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9A-Fa-f]{4})|(.))", character, text, flags=re.DOTALL)


def _decoded_base64(text: str) -> str:
    return base64.b64decode(text, validate=True).decode()


def _substring(text: str, begin: str, end: str = "") -> str:
    start, stop = int(begin), int(end) if end else len(text)
    if not 0 <= start <= stop <= len(text):
        raise ValueError(f"{start} to {stop} of a text of {len(text)} characters")
    return text[start:stop]


PLAIN: dict[str, tuple[int, int, Callable[..., str]]] = {
    "__escapeHtml": (1, 1, _in_html),
    "__unescapeHtml": (1, 1, html.unescape),
    "__escapeXml": (1, 1, lambda text: escape(text, {'"': "&quot;", "'": "&apos;"})),
    "__escapeOroRegexpChars": (1, 1, lambda text: re.sub(r"(\W)", r"\\\1", text)),
    "__unescape": (1, 1, unescaped),
    "__MD5": (1, 1, lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()),
    "__base64Decode": (1, 1, _decoded_base64),
    "__strLen": (1, 1, lambda text: str(len(text))),
    "__substring": (2, 3, _substring),
    "__strReplace": (3, 3, lambda text, old, new: text.replace(old, new)),
    "__uppercase": (1, 1, str.upper),
    "__lowercase": (1, 1, str.lower),
    "__env": (1, 1, lambda name: os.environ.get(name.strip(), "")),
}
"""Functions of constants: number of arguments and result; the last argument may be a variable."""


def _plain(name: str) -> Function:
    least, most, plain = PLAIN[name]

    def function(call: Call) -> Text:
        given = call.constants(least, most + 1)
        variable = given[most:]
        try:
            return call.stored(Text.of(plain(*given[:most])), variable)
        except (ValueError, NotBase64) as fault:
            raise call.where.wrong(f"arguments of {call.name} that fit; {fault}") from fault

    return function


FUNCTIONS: dict[str, Function] = {
    "__urlencode": encoded, "__urldecode": decoded, "__eval": evaluated, "__evalVar": evaluated_variable,
    "__changeCase": cased, "__base64Encode": in_base64, "__digest": digest, "__char": characters,
    "__split": split, **{name: _plain(name) for name in PLAIN},
}  # fmt: skip
