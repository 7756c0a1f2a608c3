"""JMeter's command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.errors import UsageError
from prony_frontends.base import Refused
from prony_frontends.jmeter import property_files

TOOL = "jmeter"
VERSION = "5.6.3"
"""The JMeter version whose requests and output are reproduced."""
USAGE = """\
usage: prony jmeter -n -t PLAN.jmx [-l OUT.jtl] [-f] [-Jname=value]... [-q FILE]...
    -n, --nongui                 Required as in JMeter; there is no GUI
    -t, --testfile FILE          The test plan (.jmx)
    -l, --logfile FILE           One line per request, CSV with JMeter's default columns
    -f, --forceDeleteResultFile  Replace the file of -l instead of appending
    -e, --reportatendofloadtests Write Prony's report page instead of JMeter's dashboard
    -o, --reportoutputfolder DIR Its folder (DIR/index.html; default report-output)
    -J, --jmeterproperty N=V     A property, for ${__P(name)}
    -D, --systemproperty N=V     A property of the Java system, for ${__P(name)} as well
    -p, --propfile FILE          Properties
    -q, --addprop FILE           More properties
    -j, --jmeterlogfile FILE     Accepted, without effect: see Prony's result
    -L, --loglevel LEVEL         Accepted, without effect
    -v, --version                Version of JMeter that is reproduced
    --duration SECONDS           Duration of thread groups without an end, like -Jduration=SECONDS
    --csv-dir DIR                Fallback folder for data files
    --skip-unsupported           Skips listeners whose script cannot affect the load, and samplers whose
                                 script only logs
"""
LONG = {
    "nongui": "n", "testfile": "t", "logfile": "l", "forceDeleteResultFile": "f", "jmeterproperty": "J",
    "systemproperty": "D", "propfile": "p", "addprop": "q", "jmeterlogfile": "j", "loglevel": "L",
    "version": "v", "help": "h", "reportatendofloadtests": "e", "reportoutputfolder": "o",
}  # fmt: skip
WITH_VALUE = "tlJDpqjLo"
OWN = {"duration": True, "csv-dir": True, "skip-unsupported": False}
"""Options of Prony only -> whether they take a value."""
ALONE = "nfvh?e"
ELSEWHERE = {
    "r": ("servers of a distributed test", "run prony jmeter on each host"),
    "R": ("servers of a distributed test", "run prony jmeter on each host"),
    "X": ("servers of a distributed test", "run prony jmeter on each host"),
    "G": ("a property for remote servers", "use -J"),
    "S": ("a file of system properties", "use -q"),
    "g": ("JMeter's dashboard of an old log", "prony report makes one of a stored result"),
    "H": ("a proxy", "name the server itself"),
    "P": ("a proxy", "name the server itself"),
    "N": ("a proxy", "name the server itself"),
    "u": ("a proxy's user", "name the server itself"),
    "a": ("a proxy's password", "name the server itself"),
    "s": ("JMeter as a server", "run prony jmeter on each host"),
    "d": ("JMeter's home", "leave it out: JMeter is not used"),
    "i": ("a configuration of JMeter's own log", "leave it out"),
}
CHANGING = ("jmeter.save.saveservice.", "summariser.", "httpclient", "http.", "https.", "httpsampler.",
            "CookieManager.", "cacheManager.", "cookies", "csvdataset.", "jmeterthread.", "jmeterengine.",
            "timer.", "hc.parameters.", "user.properties", "plugin_dependency", "sampleresult.",
            "system.properties")  # fmt: skip
"""Prefixes of properties that change JMeter's requests or output."""
UNCHANGED = {"jmeter.save.saveservice.output_format": "csv"}
"""Of these, properties at their default values."""
PAGE, PAGES = "index.html", "report-output"
"""The page of -e, and its default folder."""


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """Settings that JMeter's command line lacks."""

    duration_s: float | None = None
    """Duration of groups without an end."""
    csv_dir: Path | None = None
    skip_unsupported: bool = False


@dataclass(frozen=True, slots=True)
class JMeterArguments:
    """A parsed command line."""

    plan: Path | None
    log: Path | None
    replace_log: bool
    properties: dict[str, str]
    version: bool
    help: bool
    page: Path | None = None
    """Where to write Prony's page of the run."""
    own_settings: OwnSettings = OwnSettings()


def parse(argv: Sequence[str]) -> JMeterArguments:
    """Parses the command line. Raises UsageError."""
    values: dict[str, str] = {}
    properties: dict[str, str] = {}
    flags: set[str] = set()
    options = list(_options(argv))
    for option, value in options:  # the others change them in their order
        if option == "p":
            properties.update(property_files.read(Path(value)))
    for option, value in options:
        if option == "p":
            continue
        if option in ("J", "D"):
            name, equals, given = value.partition("=")
            if not name or not equals:
                raise UsageError(f"jmeter: -{option} is '{value}'; expected NAME=VALUE")
            if given:
                properties[name] = given
            else:  # as in JMeter
                properties.pop(name, None)
        elif option == "q":
            properties.update(property_files.read(Path(value)))
        elif option in ALONE or OWN.get(option) is False:
            flags.add(option)
        elif option in values:
            raise UsageError(f"jmeter: -{option} is given twice; give it once")
        else:
            values[option] = value
    for name, value in properties.items():
        if name.startswith(CHANGING) and UNCHANGED.get(name) != value.strip():
            raise Refused(
                f"the property {name}", TOOL, None, f"it changes what JMeter sends or writes ('{value}')",
                "leave it out, or say the same in the test plan",
            )  # fmt: skip
    helped = bool(flags & {"h", "?"})
    if not helped and "v" not in flags:
        if "n" not in flags:
            raise UsageError("jmeter: -n is missing; Prony has no window: prony jmeter -n -t PLAN.jmx")
        if "t" not in values:
            raise UsageError("jmeter: -t is missing; name the test plan: prony jmeter -n -t PLAN.jmx")
    log = values.get("l")
    return JMeterArguments(
        plan=Path(values["t"]) if "t" in values else None,
        log=None if log is None else Path(log),
        replace_log="f" in flags,
        properties=properties,
        version="v" in flags,
        help=helped,
        page=Path(values.get("o", PAGES)) / PAGE if "e" in flags else None,
        own_settings=_own_settings(values, flags, properties),
    )


def _own_settings(values: dict[str, str], flags: set[str], properties: dict[str, str]) -> OwnSettings:
    folder = Path(values["csv-dir"]) if "csv-dir" in values else None
    if folder is not None and not folder.is_dir():
        raise UsageError(f"jmeter: --csv-dir is '{folder}'; expected an existing folder")
    duration_s = _seconds("--duration", values.get("duration"))
    if duration_s is None:
        duration_s = _seconds("-Jduration", properties.get("duration"))
    return OwnSettings(duration_s, folder, "skip-unsupported" in flags)


def _seconds(option: str, text: str | None) -> float | None:
    """Seconds; None without the option. Any text is allowed: a plan may use the property otherwise."""
    if text is None:
        return None
    try:
        parsed_s = float(text)
    except ValueError:
        parsed_s = 0.0
    if 0 < parsed_s < 1e7:
        return parsed_s
    if option.startswith("-J"):
        return None
    raise UsageError(f"jmeter: {option} is '{text}'; expected seconds above 0")


def _options(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    words = iter(argv)
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            if name in OWN:
                needed = value if equals else next(words, None) if OWN[name] else ""
                if needed is None or (OWN[name] and not needed) or (equals and not OWN[name]):
                    expected = "a value" if OWN[name] else "none"
                    raise UsageError(f"jmeter: --{name}: expected {expected}; options: prony jmeter -h")
                yield name, needed
                continue
            option = LONG.get(name)
            if option is None:
                raise UsageError(f"jmeter: the option --{name} is not known; prony jmeter -h lists them")
            given = value if equals else ""
        elif word.startswith("-") and len(word) > 1:
            option, given = word[1], word[2:]
        else:
            raise UsageError(f"jmeter: unknown option '{word}'; expected -n -t PLAN.jmx")
        if option in ALONE:
            if given:
                yield option, ""
                yield from _options(["-" + given])
                continue
        elif option in ELSEWHERE:
            unsupported, instead = ELSEWHERE[option]
            raise Refused(f"-{option}", TOOL, None, unsupported, instead)
        elif option not in WITH_VALUE:
            raise UsageError(f"jmeter: the option {word} is not known; prony jmeter -h lists them")
        elif not given:
            following = next(words, None)
            if following is None:
                raise UsageError(f"jmeter: {word} needs a value; prony jmeter -h lists the options")
            given = following
        yield option, given
