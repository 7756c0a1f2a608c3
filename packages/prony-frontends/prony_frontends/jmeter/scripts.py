"""Scripts of JSR223, BeanShell and BSF: Prony runs none of them. Those that only log are left out, plain ones
are translated (`prony_frontends.jmeter.plain_scripts`); of the others what each seems to do is said with the
refusal, and those that cannot change the load may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from prony_frontends.jmeter.jmx import JmxNode

ELEMENT = re.compile(
    r"(?:JSR223|BeanShell|BSF)(?:Sampler|PreProcessor|PostProcessor|Listener|Assertion|Timer)"
)
TEXTS = ("script", "BeanShellSampler.query", "BeanShellAssertion.query", "BSFSampler.query")
FILES = ("filename", "BeanShellSampler.filename", "BeanShellAssertion.filename", "BSFSampler.filename")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
LOGS = re.compile(
    r"(?:(?:log|OUT|System\.out|System\.err)\s*\.\s*(?:trace|debug|info|warn|error|print|println)|print|println)"
    r"\s*\((?:[^()]|\([^()]*\))*\)|import\s+[\w.*]+"
)
"""One statement that logs, or an import. Calls within its arguments must only read: `READS`."""
READS = frozenset({"get", "getVariables", "toString", "getResponseCode", "getResponseDataAsString", "getTime",
                   "getSampleLabel", "getThreadNum", "getResponseMessage", "isSuccessful", "getLatency",
                   "getResponseHeaders", "getRequestHeaders", "getSamplerData", "getUrlAsString",
                   "currentTimeMillis", "size", "length"})  # fmt: skip
DOES = (
    (r"\bvars\s*\.\s*(?:put|putObject|remove)\b|\bvars\s*\[[^\]]*\]\s*=[^=]", "sets variables"),
    (r"\bprops\s*\.\s*(?:put|setProperty|remove)\b", "sets properties"),
    (r"\bsampler\s*\.\s*(?:set|add|remove)\w*", "changes the request"),
    (r"\bprev\s*\.\s*(?:set|add)\w*|\bSampleResult\s*\.\s*set\w*|\bAssertionResult\b|\bFailure\s*=",
     "changes the result"),
    (r"\bThread\s*\.\s*sleep\b|\bsleep\s*\(", "waits"),
    (r"\bnew\s+(?:File|FileWriter|FileOutputStream|PrintWriter)\b", "reads or writes a file"),
    (r"\b(?:HttpClient|HttpURLConnection|openConnection|Socket)\b", "sends requests of its own"),
    (r"\b(?:MessageDigest|Mac|Signature|Cipher)\b", "signs or encrypts"),
    (r"\bctx\b", "uses JMeter's context"),
    (r"\b(?:stopTest\w*|stopThread|setStop\w*|StandardJMeterEngine)\b", "stops threads or the test"),
)  # fmt: skip
"""Patterns -> what a script that has one seems to do."""
LOGGING, NOTHING = "it logs", "it is empty"
ELSEWHERE = frozenset({"sends requests of its own", "uses JMeter's context"})
"""What a listener may do without a change of the load."""
STEERS = re.compile(r"\b(?:getEngine|getThread|setCurrent\w*|setVariables|setSamplingStarted)\b")
MOST_NAMED = 12
INSTEAD = "use extractors, functions, timers or a CSV data set"


@dataclass(frozen=True, slots=True)
class Script:
    """What an element's script seems to do."""

    does: tuple[str, ...]

    @property
    def summary(self) -> str:
        """In words."""
        return ", ".join(self.does) or "it computes something"

    @property
    def empty(self) -> bool:
        """There is none."""
        return self.does == (NOTHING,)

    @property
    def harmless(self) -> bool:
        """It only logs, or is empty: nothing that is sent can depend on it."""
        return self.does in ((LOGGING,), (NOTHING,))


def text_of(node: JmxNode) -> str:
    """As it stands in the plan; empty where it is in a file of its own."""
    return next((found for name in TEXTS if (found := node.value(name))), "")


def read(node: JmxNode) -> Script:
    """What the script of this element seems to do."""
    if in_a_file(node):
        return Script(("it is in a file of its own",))
    text = COMMENT.sub(" ", text_of(node)).strip()
    if not text:
        return Script((NOTHING,))
    if _only_logs(text):
        return Script((LOGGING,))
    return Script(tuple(words for pattern, words in DOES if re.search(pattern, text)))


def _only_logs(text: str) -> bool:
    """Whether every statement is a call of a logger whose arguments only read."""
    rest = LOGS.sub("", text)
    calls = set(re.findall(r"\.\s*(\w+)\s*\(", text)) - {
        "trace",
        "debug",
        "info",
        "warn",
        "error",
        "print",
        "println",
    }
    assigns = re.search(
        r"(?<![=!<>])=(?!=)|\+\+|--", re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', "", text)
    )
    return not re.sub(r"[\s;]", "", rest) and calls <= READS and assigns is None


def check(
    top: JmxNode, skip_unsupported: bool, is_plain: Callable[[JmxNode], bool]
) -> list[tuple[JmxNode, Script]]:
    """Those that are left out: empty ones, those that only log, and, if that is wished, others that cannot
    change the load. The others get the sentence with which they are refused where a user comes to one; it is
    about all of them that are not plain.
    """
    every = [node for node in top.everything() if ELEMENT.fullmatch(node.tag)]
    samplers = [node for node in every if node.tag.endswith("Sampler") and not in_a_file(node)]
    kept = [node for node in every if is_plain(node) and (node in samplers or not read(node).harmless)]
    found = [(node, read(node)) for node in every if not any(node is one for one in kept)]
    left = [(node, script) for node, script in found if _may_go(node, script, skip_unsupported)]
    bad = [(node, script) for node, script in found if not _may_go(node, script, skip_unsupported)]
    some = "; ".join(
        f"line {node.line} {node.element}: {script.summary}" for node, script in bad[:MOST_NAMED]
    )
    more = f"; and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
    skippable = sum(_may_go(node, script, True) for node, script in bad)
    hint = (
        f"; --skip-unsupported leaves out {skippable} of them, which cannot change the load"
        if skippable
        else ""
    )
    for node, _ in bad:
        node.refusal = (
            f"Prony runs no Java, Groovy or JavaScript, and the plan has {len(bad)} "
            f"script{'s' if len(bad) > 1 else ''} ({some}{more})",
            f"{INSTEAD}{hint}",
        )
    return left


def in_a_file(node: JmxNode) -> bool:
    """Its text is not in the plan."""
    return any(node.value(name) for name in FILES)


def _may_go(node: JmxNode, script: Script, skip_unsupported: bool) -> bool:
    if node.tag.endswith("Sampler"):  # it has a row, and takes its time
        return skip_unsupported and script.harmless
    if script.harmless:
        return True
    listens = node.tag.endswith("Listener") and set(script.does) <= ELSEWHERE
    return skip_unsupported and listens and not STEERS.search(text_of(node))
