"""Properties that JMeter 5.6.3 reads from elements often written by hand. It ignores other names there."""

from __future__ import annotations

_HTTP = frozenset(
    f"HTTPSampler.{name}"
    for name in (
        "auth_manager", "auto_redirects", "BROWSER_COMPATIBLE_MULTIPART", "cache_manager", "concurrentDwn",
        "concurrentPool", "connect_timeout", "contentEncoding", "CONTENT_TYPE", "cookie_manager",
        "dns_cache_manager", "DO_MULTIPART_POST", "domain", "embedded_url_exclude_re", "embedded_url_re",
        "FILE_FIELD", "FILE_NAME", "follow_redirects", "header_manager", "image_parser", "implementation",
        "ipSource", "ipSourceType", "keystore_configuration", "md5", "method", "mimetype", "monitor", "path",
        "port", "postBodyRaw", "protocol", "proxyHost", "proxyPass", "proxyPort", "proxyScheme", "proxyUser",
        "response_timeout", "sample_timeout", "URL", "use_keepalive",
    )
) | {"HTTPsampler.Arguments", "HTTPsampler.Files",
     *(f"GraphQLHTTPSampler.{name}" for name in ("query", "variables", "operationName"))}  # fmt: skip
_GROUP = frozenset(
    f"ThreadGroup.{name}"
    for name in (
        "delay", "delayedStart", "duration", "end_time", "main_controller", "num_threads", "on_sample_error",
        "ramp_time", "same_user_on_next_iteration", "scheduler", "start_time",
    )
)  # fmt: skip
_DELAY, _RANGE = "ConstantTimer.delay", "RandomTimer.range"
_SCOPE = ("Sample.scope", "Scope.variable")

KNOWN: dict[str, frozenset[str]] = {
    **dict.fromkeys(("HTTPSamplerProxy", "HTTPSampler", "HTTPSampler2", "ConfigTestElement"), _HTTP),
    **dict.fromkeys(("ThreadGroup", "SetupThreadGroup", "PostThreadGroup"), _GROUP),
    "ConstantTimer": frozenset({_DELAY}),
    **dict.fromkeys(
        ("UniformRandomTimer", "GaussianRandomTimer", "PoissonRandomTimer"), frozenset({_DELAY, _RANGE})
    ),
    "LoopController": frozenset({"LoopController.loops", "LoopController.continue_forever"}),
    "IfController": frozenset(
        f"IfController.{name}" for name in ("condition", "evaluateAll", "useExpression")
    ),
    "WhileController": frozenset({"WhileController.condition"}),
    "SwitchController": frozenset({"SwitchController.value"}),
    "TransactionController": frozenset(
        {"TransactionController.includeTimers", "TransactionController.parent"}
    ),
    **dict.fromkeys(("GenericController", "OnceOnlyController", "RandomOrderController"), frozenset[str]()),
    "ResponseAssertion": frozenset(
        {"Asserion.test_strings", "Assertion.assume_success", "Assertion.custom_message",
         "Assertion.test_field", "Assertion.test_type", "Assertion.scope", *_SCOPE}
    ),
    "DurationAssertion": frozenset({"DurationAssertion.duration", "Assertion.scope", *_SCOPE}),
    "RegexExtractor": frozenset(
        {*(f"RegexExtractor.{name}" for name in (
            "default", "default_empty_value", "match_number", "refname", "regex", "template", "useHeaders")),
         *_SCOPE}
    ),
    "JSONPostProcessor": frozenset(
        {*(f"JSONPostProcessor.{name}" for name in (
            "compute_concat", "defaultValues", "jsonPathExprs", "match_numbers", "referenceNames")), *_SCOPE}
    ),
    "JSONPathAssertion": frozenset(
        {"JSON_PATH", "EXPECTED_VALUE", "JSONVALIDATION", "EXPECT_NULL", "INVERT", "ISREGEX"}
    ),
    "HeaderManager": frozenset({"HeaderManager.headers"}),
    "TestPlan": frozenset(
        f"TestPlan.{name}" for name in ("functional_mode", "serialize_threadgroups", "tearDown_on_shutdown",
                                        "user_define_classpath", "user_defined_variables")
    ),
    "CookieManager": frozenset(
        f"CookieManager.{name}"
        for name in ("clearEachIteration", "controlledByThreadGroup", "cookies", "implementation", "policy")
    ),
    "CSVDataSet": frozenset(
        {"delimiter", "fileEncoding", "filename", "ignoreFirstLine", "quotedData", "recycle", "shareMode",
         "stopThread", "variableNames"}
    ),
}  # fmt: skip
"""Element -> names of its own properties, without those common to all elements."""


def is_foreign(tag: str, name: str) -> bool:
    """Whether JMeter ignores a property of this name in this element."""
    return tag in KNOWN and name not in KNOWN[tag]
