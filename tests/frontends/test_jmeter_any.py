"""prony jmeter: whatever stands in a test plan is translated or refused, with its element, file and line."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from prony.errors import UsageError
from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.translate import of_tree
from tests.frontends.conftest import explained
from tests.frontends.jmx_text import PLANS, document, element, found, posted, prop, sampler

VALUES = st.sampled_from([
    "", "0", "1", "-1", "3", "30.5", "true", "false", "x", "${y}", "${v}", "${__Random(1,2)}", "${__P(a)}",
    "http://127.0.0.1/", "$.a", "${", "${__x(", "é ü", "99999999999999999999", "LAST", "people.csv",
    '${__jexl3("${v}" == "1")}', '"${v}" != "a" || 1 &lt; 2', "${__counter(TRUE)}", "${__time()}", "a;b",
    "(a+)(", "rate(1/s) random_arrivals(2 s)", "user", "$.a[*]", "${__threadNum}", "shareMode.thread",
    "${__CSVRead(people.csv,0)}", "${__CSVRead(people.csv,next())}", "${__CSVRead(a,*b)}${__CSVRead(*b,1)}",
    "${__Random(1,2,v)}", "${__intSum(1,2,y)}", "${__samplerName}", "${__threadGroupName()}",
    "000", "u_00", "S", "//form", "${__setProperty(a,1)}",
    "${__V(v_${__Random(1,2)})}", "${__digest(MD5,${v})}",
])  # fmt: skip
NAMES = st.sampled_from([
    "HTTPSampler.path", "HTTPSampler.port", "HTTPSampler.domain", "HTTPSampler.method",
    "HTTPSampler.follow_redirects", "LoopController.loops", "LoopController.continue_forever",
    "ConstantTimer.delay", "RandomTimer.range", "throughput", "calcMode", "IfController.condition",
    "IfController.useExpression", "IfController.evaluateAll", "WhileController.condition",
    "Assertion.test_type", "Assertion.test_field", "JSON_PATH", "EXPECTED_VALUE", "JSONVALIDATION", "INVERT",
    "RegexExtractor.regex", "RegexExtractor.refname", "RegexExtractor.match_number",
    "BoundaryExtractor.refname", "BoundaryExtractor.lboundary", "JSONPostProcessor.referenceNames",
    "JSONPostProcessor.jsonPathExprs", "JSONPostProcessor.match_numbers", "ThreadGroup.num_threads",
    "ThreadGroup.scheduler", "ThreadGroup.duration", "ThreadGroup.delay",
    "ThreadGroup.same_user_on_next_iteration",
    "OpenModelThreadGroup.schedule", "filename", "variableNames", "delimiter", "SizeAssertion.size",
    "SizeAssertion.operator", "DurationAssertion.duration", "ThroughputController.style",
    "ThroughputController.percentThroughput", "ThroughputController.maxThroughput",
    "ThroughputController.perThread", "InterleaveControl.style", "CounterConfig.name", "CounterConfig.start",
    "variableName", "minimumValue", "clearEachIteration", "Other", "shareMode", "recycle", "quotedData",
    "HTTPSampler.DO_MULTIPART_POST", "RegexExtractor.template", "useExpires", "maxSize",
    "SwitchController.value", "ForeachController.inputVal", "ForeachController.returnVal",
    "ForeachController.endIndex", "IncludeController.includepath", "HTTPSampler.image_parser",
    "HTTPSampler.embedded_url_re", "HTTPSampler.concurrentDwn", "HTTPSampler.concurrentPool",
    "UserParameters.per_iteration", "fileEncoding", "ignoreFirstLine", "Assertion.scope",
    "groupSize", "timeoutInMs", "XPath.xpath", "XPath.tolerant", "throughputPeriod", "duration", "batchSize",
    "randomSeed",
    "CounterConfig.end", "CounterConfig.format", "CounterConfig.per_user",
    "CounterConfig.reset_on_tg_iteration", "TargetLevel", "RampUp", "Hold", "Steps", "Unit", "ArrivalsLimit",
])  # fmt: skip
TAGS = st.sampled_from([
    "HTTPSamplerProxy", "LoopController", "IfController", "WhileController", "RandomController",
    "RandomOrderController", "InterleaveControl", "OnceOnlyController", "GenericController", "CSVDataSet",
    "ThroughputController", "TransactionController", "ConstantTimer", "UniformRandomTimer",
    "GaussianRandomTimer", "PoissonRandomTimer", "HeaderManager", "ConstantThroughputTimer",
    "ResponseAssertion", "SizeAssertion", "DurationAssertion", "JSONPathAssertion", "RegexExtractor",
    "BoundaryExtractor", "JSONPostProcessor", "CookieManager", "CacheManager", "AuthManager", "Arguments",
    "CounterConfig", "RandomVariableConfig", "ThreadGroup", "OpenModelThreadGroup", "Nonsense",
    "SwitchController", "ConfigTestElement", "ForeachController", "ModuleController", "IncludeController",
    "TestFragmentController", "RunTime", "UserParameters", "ResultCollector",
    "kg.apc.jmeter.timers.VariableThroughputTimer",
    "SetupThreadGroup", "PostThreadGroup", "SyncTimer", "PreciseThroughputTimer", "XPathAssertion",
    "com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup",
    "com.blazemeter.jmeter.threads.arrivals.FreeFormArrivalsThreadGroup",
])  # fmt: skip
PLACED = re.compile(r"p\.jmx:\d+: \S")
"""How a refusal begins: file, line, element."""


def trees() -> st.SearchStrategy[str]:
    def properties(tag: str, pairs: list[tuple[str, str]], below: str) -> str:
        return element(tag, *(prop(name, value) for name, value in pairs), below=below)

    some = st.lists(st.tuples(NAMES, VALUES), max_size=4)
    sends = st.sampled_from([sampler(), sampler("/${v}"), posted("/echo", "${v}", found("v", "(.)"))])
    leaf = sends | st.builds(properties, TAGS, some, st.just(""))

    def branch(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.builds(properties, TAGS, some, st.lists(inner, max_size=3).map("".join))

    return st.recursive(leaf, branch, max_leaves=8)


@settings(max_examples=250, deadline=None)
@given(
    inside=st.lists(trees(), max_size=4).map("".join),
    beside=st.just("") | trees(),
    group=st.lists(st.tuples(NAMES, VALUES), max_size=2),
)
def test_any_tree_is_translated_or_refused(inside: str, beside: str, group: list[tuple[str, str]]) -> None:
    content = document(inside, beside, "".join(prop(name, value) for name, value in group))
    try:
        made = of_tree(jmx.parse(content, "p.jmx"), PLANS / "p.jmx", {}).translated
    except UsageError as refused:
        says = str(refused)
    else:
        says = ""
    if says:
        assert PLACED.match(says), says
        assert "\n" not in says
        return
    assert made.trial.workload.all_steps
    assert explained(made).workload.all_steps == made.trial.workload.all_steps
