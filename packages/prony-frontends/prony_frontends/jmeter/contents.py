"""A sampler's content: parameters in the query or as a form, a raw body, a file, or parts."""

from __future__ import annotations

import codecs

from prony_frontends.jmeter.functions import KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.multipart import Multipart, multipart
from prony_frontends.jmeter.sampler_values import SamplerValues
from prony_frontends.jmeter.scope import Shared

WITH_BODY = ("POST", "PUT", "PATCH")
QUERY_ONLY = ("GET", "DELETE", "OPTIONS")


def form_parts(sampler: SamplerValues, method: str) -> Multipart | None:
    """A multipart form, where the sampler asks for it or a file has a parameter name; else None."""
    node = sampler.node
    files = _files(sampler)
    named = any(file.value("File.paramname") for file in files)
    asks = sampler.flag("HTTPSampler.DO_MULTIPART_POST")
    if method not in WITH_BODY or not (asks or named):
        return None
    if sampler.flag("HTTPSampler.postBodyRaw"):
        raise node.refused(
            "a raw body with multipart/form-data", "untick multipart, or use parameters", "conflict"
        )
    if not all(file.value("File.paramname") for file in files):
        raise node.refused("a file without a parameter name among parts", "give it one")
    arguments = sampler.members("Arguments.arguments", "HTTPsampler.Arguments")
    if encoding(sampler) != "UTF-8":
        raise node.refused(f"the encoding {encoding(sampler)} of parts", "use UTF-8")
    browser = sampler.flag("HTTPSampler.BROWSER_COMPATIBLE_MULTIPART")
    return multipart(node, arguments, files, sampler.values, browser)


def _files(sampler: SamplerValues) -> list[JmxNode]:
    """Empty where any file has no path: JMeter then sends none."""
    files = sampler.members("HTTPFileArgs.files", "HTTPsampler.Files")
    old = {"File.path": "HTTPSampler.FILE_NAME", "File.paramname": "HTTPSampler.FILE_FIELD",
           "File.mimetype": "HTTPSampler.mimetype"}  # fmt: skip
    given = {name: sampler.raw(property_name) for name, property_name in old.items()}
    if given["File.path"]:  # JMeter 2's format
        node = sampler.node
        held = [
            JmxNode("stringProp", {"name": name}, node.line, node.file, text) for name, text in given.items()
        ]
        files.insert(0, JmxNode("elementProp", {"name": "file"}, node.line, node.file, children=held))
    return files if all(file.value("File.path") for file in files) else []


def content(
    sampler: SamplerValues, method: str, shared: Shared
) -> tuple[Text | None, str | None, Text, bool]:
    """Body, file of the body, query, and whether the body is a form."""
    node, values = sampler.node, sampler.values
    arguments = sampler.members("Arguments.arguments", "HTTPsampler.Arguments")
    files = _files(sampler)
    nameless = bool(arguments) and not any(argument.value("Argument.name") for argument in arguments)
    raw = sampler.flag("HTTPSampler.postBodyRaw") or nameless  # JMeter 2's format
    charset = encoding(sampler)
    if files:
        if arguments:
            raise node.refused(
                "parameters next to a file as the body, which JMeter drops", "use only one", "conflict"
            )
        return None, _file(node, files, method, values, shared), Text(), False
    if raw and method not in (*WITH_BODY, "DELETE", "GET"):
        values.note("body_not_sent", f"its body is not sent with {method}, as in JMeter", node)
        arguments = []
    elif raw:
        text = Text()
        for argument in arguments:
            value = values.text(argument.value("Argument.value"), argument)
            text = text + (value.encoded() if argument.flag("HTTPArgument.always_encode") else value)
            argument.ignore("Argument.metadata", "HTTPArgument.always_encode", "HTTPArgument.use_equals",
                            "HTTPArgument.content_type", "Argument.name")  # fmt: skip
        if charset != "UTF-8" and any(part.dynamic or not part.text.isascii() for part in text.parts):
            raise node.refused(f"a body in {charset} that is not plain ASCII", "use UTF-8")
        return text, None, Text(), False
    pairs = [_pair(argument, values, charset) for argument in arguments]
    body, query = (Text.of("&").join(pair[place] for pair in pairs if pair is not None) for place in (0, 1))
    if method in WITH_BODY:
        return body, None, Text(), True
    if method == "DELETE":  # JMeter sends its parameters in both places
        return body, None, query, True
    if pairs and method not in QUERY_ONLY:
        values.note("parameters_not_sent", f"its parameters are not sent with {method}, as in JMeter", node)
        return None, None, Text(), False
    return None, None, query, False


def _pair(argument: JmxNode, values: KnownValues, charset: str) -> tuple[Text, Text] | None:
    """A parameter as in a form's body and in a query; None for one without a name, which JMeter leaves out.
    Encoded values are decoded and encoded again in a body, and unchanged in a query.
    """
    encode = argument.flag("HTTPArgument.always_encode")
    equals = argument.flag("HTTPArgument.use_equals", True)
    sign = argument.value("Argument.metadata", "=" if equals else "")
    argument.ignore("Argument.desc", "HTTPArgument.content_type")
    name = values.text(argument.value("Argument.name"), argument)
    value = values.text(argument.value("Argument.value"), argument)
    argument.finish()
    if name.constant is not None and not name.constant.strip():
        return None
    if charset != "UTF-8" and any(part.dynamic for part in (*name.parts, *value.parts)):
        raise argument.refused(f"a changing value in {charset}", "use UTF-8")
    body = name.encoded(charset, not encode) + Text.of("=") + value.encoded(charset, not encode)
    query = (
        name.encoded(charset) + Text.of(sign) + value.encoded(charset)
        if encode
        else name + Text.of(sign) + value
    )
    return body, query


def encoding(sampler: SamplerValues) -> str:
    """The content's encoding, upper case. Raises Refused for an unknown encoding."""
    name = sampler.constant("HTTPSampler.contentEncoding").upper() or "UTF-8"
    try:
        codecs.lookup(name)
    except LookupError as fault:
        raise sampler.node.refused(f"the encoding {name}", "use UTF-8") from fault
    return name


def _file(node: JmxNode, files: list[JmxNode], method: str, values: KnownValues, shared: Shared) -> str:
    """The file that is the body: a single one, without a parameter name."""
    if len(files) != 1 or method not in WITH_BODY:
        raise node.refused(f"{len(files)} files with {method}", "send a single file by POST, PUT or PATCH")
    file = files[0]
    if file.value("File.paramname"):
        raise node.refused("a file as a part of a form", "send it as the body, without a parameter name")
    path = shared.folder / values.constant(file.value("File.path"), file)
    if not path.is_file():
        raise file.wrong(f"a readable file; {path} does not exist")
    kind = values.constant(file.value("File.mimetype"), file)
    if kind:
        node.attributes["content-type"] = kind
    file.finish()
    return str(path.absolute())
