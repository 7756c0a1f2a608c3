"""Scripts of JSR223, BeanShell and BSF: Prony runs none of them. What each seems to do is said with the
refusal, and those that cannot change the load may be left out.

Must not know what else stands in a plan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from prony.frontends.jmeter.jmx import JmxNode

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
MOST_NAMED = 12


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


def read(node: JmxNode) -> Script:
    """What the script of this element seems to do."""
    if any(node.value(name) for name in FILES):
        return Script(("it is in a file of its own",))
    text = COMMENT.sub(" ", next((found for name in TEXTS if (found := node.value(name))), "")).strip()
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


def check(top: JmxNode, skip_unsupported: bool) -> list[tuple[JmxNode, Script]]:
    """Those that are left out: empty ones, and, if that is wished, those that cannot change the load. The
    others get the sentence with which they are refused where a user comes to one; it is about all of them.
    """
    found = [(node, read(node)) for node in top.everything() if ELEMENT.fullmatch(node.tag)]
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
            f"use extractors, functions, timers or a CSV data set{hint}",
        )
    return left


def _may_go(node: JmxNode, script: Script, skip_unsupported: bool) -> bool:
    if node.tag.endswith("Sampler"):  # it has a row, and takes its time
        return skip_unsupported and script.harmless
    if script.empty:
        return True
    listens = node.tag.endswith("Listener") and not script.does
    return skip_unsupported and (script.harmless or listens)
