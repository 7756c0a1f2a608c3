"""Scripts of JSR223, BeanShell and BSF, which Prony does not run. Scripts that only log are left out, simple
ones translated (`prony_frontends.jmeter.plain_scripts`); others are refused with a summary, or skipped if
they cannot affect the load.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from prony_frontends.jmeter import statements
from prony_frontends.jmeter.expression_values import Unsupported
from prony_frontends.jmeter.jmx import JmxNode

ELEMENT = re.compile(
    r"(?:JSR223|BeanShell|BSF)(?:Sampler|PreProcessor|PostProcessor|Listener|Assertion|Timer)"
)
TEXTS = ("script", "BeanShellSampler.query", "BeanShellAssertion.query", "BSFSampler.query")
FILES = ("filename", "BeanShellSampler.filename", "BeanShellAssertion.filename", "BSFSampler.filename")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
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
"""Patterns -> apparent effect of a script."""
LOGGING, NOTHING = "it logs", "it is empty"
ELSEWHERE = frozenset({"sends requests of its own", "uses JMeter's context"})
"""Effects that do not matter in a listener."""
STEERS = re.compile(r"\b(?:getEngine|getThread|setCurrent\w*|setVariables|setSamplingStarted)\b")
MOST_NAMED = 12
INSTEAD = "use extractors, functions, timers or a CSV data set"


@dataclass(frozen=True, slots=True)
class Script:
    """Apparent effects of an element's script."""

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
        """It only logs or is empty: no request depends on it."""
        return self.does in ((LOGGING,), (NOTHING,))


def text_of(node: JmxNode) -> str:
    """The script in the plan; empty where it is in a separate file."""
    return next((text for name in TEXTS if (text := node.value(name))), "")


def read(node: JmxNode) -> Script:
    """Summary of this element's script."""
    if in_a_file(node):
        return Script(("it is in a file of its own",))
    text = COMMENT.sub(" ", text_of(node)).strip()
    if not text:
        return Script((NOTHING,))
    if _only_logs(text):
        return Script((LOGGING,))
    return Script(tuple(words for pattern, words in DOES if re.search(pattern, text)))


def _only_logs(text: str) -> bool:
    """Whether every statement is a logger call with read-only arguments."""
    try:
        return not statements.of(text)
    except Unsupported:
        return False


def check(
    top: JmxNode, skip_unsupported: bool, is_plain: Callable[[JmxNode], bool]
) -> list[tuple[JmxNode, Script]]:
    """Scripts to leave out: empty ones, logging only, and optionally others that cannot affect the load. Each
    remaining script gets the refusal for users that reach it, which covers all untranslatable scripts.
    """
    every = [node for node in top.everything() if ELEMENT.fullmatch(node.tag)]
    samplers = [node for node in every if node.tag.endswith("Sampler") and not in_a_file(node)]
    kept = [node for node in every if is_plain(node) and (node in samplers or not read(node).harmless)]
    summaries = [(node, read(node)) for node in every if not any(node is kept_node for kept_node in kept)]
    left = [(node, script) for node, script in summaries if _may_go(node, script, skip_unsupported)]
    bad = [(node, script) for node, script in summaries if not _may_go(node, script, skip_unsupported)]
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
    """Whether its text is in a separate file."""
    return any(node.value(name) for name in FILES)


def _may_go(node: JmxNode, script: Script, skip_unsupported: bool) -> bool:
    if node.tag.endswith("Sampler"):  # it has a row and a duration
        return skip_unsupported and script.harmless
    if script.harmless:
        return True
    listens = node.tag.endswith("Listener") and set(script.does) <= ELSEWHERE
    return skip_unsupported and listens and not STEERS.search(text_of(node))
