"""The page: gathers what the template needs and fills it in."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from prony.compare.sentence import LATER
from prony.report.answer import answer, label_lines, provided, quick_words
from prony.report.blocks import KIND_WORDS
from prony.report.html.chapters import chapters, pictures
from prony.report.html.drawings import Drawer
from prony.report.html.first import answer_table
from prony.report.html.theme import mark_of, stylesheet
from prony.report.result import Drawn, ResultView, ServerView
from prony.report.wording import bytes_in_words, counted, number, printable, ranges

_NOTHING = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
POLICY = f"{_NOTHING}; form-action 'none'"
"""Nothing may be loaded, run or sent: the page is self-contained."""
SITE_POLICY = f"{_NOTHING}; form-action 'self'"
"""For a served page, whose header has a form (the logout button)."""


def policy(view: ResultView, base: str = POLICY) -> str:
    """What the page may do. With flame graphs their script may run, and no other: it is named by its hash."""
    text = script(view)
    return f"{base}; script-src '{source_of(text)}'" if text else base


def source_of(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def script(view: ResultView) -> str:
    """Of the flame graphs, where the page has some; else empty."""
    explanations = (part.explanation for part in view.parts)
    return next((explanation.script for explanation in explanations if isinstance(explanation, Drawn)), "")


def environment(package: str | None = None) -> Environment:
    """Where templates come from: those of the report, after those of another package, which may use them."""
    own = PackageLoader("prony.report.html")
    return Environment(
        loader=own if package is None else ChoiceLoader([PackageLoader(package), own]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def style() -> str:
    return stylesheet() + files("prony.report.html").joinpath("style.css").read_text(encoding="utf-8")


def render_html(view: ResultView, *, above: Markup | None = None, more_style: str = "") -> str:
    """The whole page as text. `above`: what a site puts over it, with its rules of style."""
    places = {server.address: place for place, server in enumerate(view.servers)}
    several = len(view.parts) > 1
    answers = answer(view)
    parts = []
    for at, (part, answer_part) in enumerate(zip(view.parts, answers.parts, strict=True)):
        drawer = Drawer(part, places, f"p{at}-" if several else "")
        table = answer_table(answer_part, places.__getitem__)
        drawn = {"pictures": pictures(drawer), "chapters": chapters(drawer)}
        parts.append({"id": part.part.name, "part": part, "answer": answer_part, "table": table, **drawn})
    return printable(
        environment()
        .get_template("page.html.j2")
        .render(
            policy=policy(view, POLICY if above is None else SITE_POLICY),
            referrer="no-referrer" if above is None else "same-origin",  # a form's origin goes with it
            style=Markup(style() + more_style),
            above=above,
            view=view,
            several=several,
            answer=answers,
            provided=provided(answers),
            quick_words=quick_words(view),
            labels=label_lines(view),
            kind_words=KIND_WORDS,
            parts=parts,
            script=Markup(script(view)) or None,
            places=places,
            marks={server: mark_of(place) for server, place in places.items()},
            subtitles={server.address: _subtitle(server) for server in view.servers},
            host=host_facts(view),
            conditions=conditions(view),
            kind=lambda value: type(value).__name__,
            counted=counted,
            beyond=LATER,
        )
    )


def _subtitle(server: ServerView) -> list[str]:
    jdk = f"JDK {server.jdk}" if server.jdk[:1].isdigit() else server.jdk
    titled = server.title if server.title != server.address else ""
    lines = [titled, *(f"{name} {version}" for name, version in server.versions.items()), jdk]
    return [line for line in lines if line]


def host_facts(view: ResultView) -> list[tuple[str, str]]:
    """The host as (what, value) in the order a reader asks for; what could not be read is left out."""
    host, partition = view.fingerprint, view.partition
    if host is None:
        return []
    shared = {None: "", True: "hardware threads share cores", False: "one thread per core"}[host.smt]
    inside = ", ".join(note for note in (f"{host.cores} cores" if host.cores else "", shared) if note)
    rows: list[tuple[str, str | None]] = [
        ("CPU", f"{host.cpu_model} ({host.architecture})"),
        ("CPUs", f"{host.cpus} ({inside})" if inside else str(host.cpus)),
        ("CPU set of the server", ranges(partition.server) if partition else None),
        ("CPU set of services", ranges(partition.services) if partition and partition.services else None),
        ("CPU set of the client", ranges(partition.client) if partition else None),
        ("Caches", ", ".join(f"{k} {v}" for k, v in host.caches.items()) or None),
        ("Highest clock", f"{number(host.cpu_max_mhz)} MHz" if host.cpu_max_mhz else None),
        ("Governor", host.governor),
        ("Turbo", None if host.turbo is None else "on" if host.turbo else "off"),
        ("Memory", bytes_in_words(host.memory_bytes)),
        ("Swap", bytes_in_words(host.swap_bytes) if host.swap_bytes is not None else None),
        ("NUMA nodes", str(host.numa_nodes) if host.numa_nodes else None),
        ("Hypervisor", host.hypervisor or None),
        ("Kernel", host.kernel),
        ("System", host.os),
        ("Clock source", host.clocksource),
        ("Mitigations", host.mitigations),
        ("Transparent huge pages", host.thp),
        ("CPU quota", f"{host.cgroup_cpu_quota:g} CPUs" if host.cgroup_cpu_quota else None),
        *((f"Version of {name}", version) for name, version in host.software.items()),
        *((name, text) for name, text in host.sysctls.items()),
        ("Host name", host.hostname),
        ("Fingerprint", host.key),
    ]
    return [(name, text) for name, text in rows if text]


def conditions(view: ResultView) -> tuple[str, ...]:
    """What a report cannot know beyond what its checks say, the most important first."""
    lines = [_of_load(view), *_host(view), *_always(view)]
    return tuple(sentence for sentence in lines if sentence)


def _of_load(view: ResultView) -> str:
    loads = {cell.cell.trial.load.model for cell in view.cells}
    if loads != {"closed"}:
        return ""
    users = {cell.users for cell in view.cells}
    of = f" of {counted(next(iter(users)) or 0, 'user')}" if len(users) == 1 else ""
    return (
        f"The load was a closed loop{of}: a user sends the next request only after the last response. That "
        "shows how much a server carries, not how long requests wait that arrive whether or not it keeps up."
    )


def _host(view: ResultView) -> list[str]:
    sentences = []
    partition, host = view.partition, view.fingerprint
    if partition is not None and partition.shared:
        sentences.append(
            f"Server and client shared CPU {ranges(partition.server)}: what one used, the other missed. "
            "Ratios are comparable; the figures themselves are too low."
        )
    if host is not None and host.hypervisor:
        sentences.append(
            f"The host is a virtual machine ({host.hypervisor}). Its neighbours show only as steal time; "
            "what they did to shared caches and memory bandwidth does not show at all."
        )
    if host is not None and host.smt and partition is not None and not partition.shared:
        sentences.append(
            "The host's CPUs are hardware threads that share cores: server and client may have slowed each "
            "other although their CPU sets are disjoint."
        )
    return sentences


def _always(view: ResultView) -> list[str]:
    external = view.external
    sentences = [
        "Client and server talked over the loopback device of one host: no network card, cable or switch, "
        "and none of their interrupts. Figures over a network differ."
        if not external
        else "The network between client and server is part of every time.",
        "The servers ran with the settings of the plan below and their defaults otherwise; the "
        "effect of tuning is unknown."
        if not external
        else "The server was already running: its settings, its age and its CPUs are not known.",
    ]
    if len({cell.cell.trial.workload.name for cell in view.cells}) == 1:
        sentences.append(
            "One workload was measured. Another request, response size or mix may order the servers "
            "differently."
        )
    sentences.append(
        "Intervals cover the variation between trials on this host on this day, not between hosts, "
        "kernels or versions."
    )
    return sentences
