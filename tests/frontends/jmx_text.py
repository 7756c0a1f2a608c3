"""Test plans of JMeter as text, for tests: small enough to be read beside what they become."""

from __future__ import annotations

from pathlib import Path

from prony.plan.trial import TrialPlan
from prony_frontends.base import Translated
from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.arguments import OwnSettings
from prony_frontends.jmeter.translate import of_tree

ARGUMENTS = (
    '<elementProp name="HTTPsampler.Arguments" elementType="Arguments">'
    '<collectionProp name="Arguments.arguments">{}</collectionProp></elementProp>'
)
PLANS = Path(__file__).parent / "jmeter"


def prop(name: str, value: object) -> str:
    return f'<stringProp name="{name}">{value}</stringProp>'


def flag(name: str, value: bool) -> str:
    return f'<boolProp name="{name}">{str(value).lower()}</boolProp>'


GUIS = {"ConfigTestElement": "HttpDefaultsGui", "HeaderManager": "HeaderPanel",
        "CookieManager": "CookiePanel", "DNSCacheManager": "DNSCachePanel",
        "AuthManager": "AuthPanel"}  # fmt: skip
"""Windows by which JMeter knows what belongs to an HTTP sampler."""


def element(tag: str, *properties: str, below: str = "", name: str = "it", gui: str = "") -> str:
    inside = "".join(properties)
    gui = gui or GUIS.get(tag, "G")
    head = f'<{tag} guiclass="{gui}" testclass="{tag}" testname="{name}">'
    return f"{head}{inside}</{tag}><hashTree>{below}</hashTree>"


def sampler(
    path: str = "/", more: str = "", below: str = "", name: str = "page", domain: str = "127.0.0.1"
) -> str:
    where = prop("HTTPSampler.domain", domain) + prop("HTTPSampler.path", path)
    if "HTTPsampler.Arguments" not in more:  # JMeter looks for them in any case
        more += ARGUMENTS.format("")
    if "use_keepalive" not in more:
        more += flag("HTTPSampler.use_keepalive", True)
    return element("HTTPSamplerProxy", where, more, below=below, name=name)


def posted(path: str, body: str, below: str = "") -> str:
    """A POST of this text."""
    argument = f'<elementProp name="" elementType="HTTPArgument">{prop("Argument.value", body)}</elementProp>'
    raw = flag("HTTPSampler.postBodyRaw", True) + prop("HTTPSampler.method", "POST")
    raw += ARGUMENTS.format(argument)
    return sampler(path, raw, below)


def repeated(loops: object, forever: bool = False) -> str:
    """The loops of a thread group."""
    inside = flag("LoopController.continue_forever", forever) + prop("LoopController.loops", loops)
    return (
        f'<elementProp name="ThreadGroup.main_controller" elementType="LoopController">{inside}</elementProp>'
    )


def variables(**values: str) -> str:
    """User-defined variables."""
    held = "".join(
        f'<elementProp name="{name}" elementType="Argument">{prop("Argument.name", name)}'
        f"{prop('Argument.value', value)}</elementProp>"
        for name, value in values.items()
    )
    return element("Arguments", f'<collectionProp name="Arguments.arguments">{held}</collectionProp>')


def found(variable: str, pattern: str) -> str:
    """An extractor of the first group in the body."""
    return element(
        "RegexExtractor", prop("RegexExtractor.refname", variable), prop("RegexExtractor.regex", pattern),
        prop("RegexExtractor.template", "$1$"), prop("RegexExtractor.match_number", 1),
        prop("RegexExtractor.default", "none"), prop("RegexExtractor.useHeaders", "false"),
    )  # fmt: skip


def document(inside: str, beside: str = "", group: str = "") -> bytes:
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2" properties="5.0" jmeter="5.6.3"><hashTree>
<TestPlan guiclass="G" testclass="TestPlan" testname="T"/><hashTree>{beside}
<ThreadGroup guiclass="G" testclass="ThreadGroup" testname="G">{group}</ThreadGroup><hashTree>
{inside}
</hashTree></hashTree></hashTree></jmeterTestPlan>""".encode()


def translated_of(
    inside: str, beside: str = "", group: str = "", own_settings: OwnSettings | None = None, **properties: str
) -> Translated:
    """The load that these elements of a thread group become."""
    tree = jmx.parse(document(inside, beside, group), "p.jmx")
    return of_tree(tree, PLANS / "p.jmx", properties, own_settings).translated


def load_of(inside: str, beside: str = "", group: str = "", **properties: str) -> TrialPlan:
    """Its trial."""
    return translated_of(inside, beside, group, None, **properties).trial
