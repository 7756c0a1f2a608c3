"""The page: gathers what the template needs and fills it in. Must not know where the file goes."""

from __future__ import annotations

from markupsafe import Markup

from prony.judge.finding import Status
from prony.report.finding_groups import finding_groups
from prony.report.history import history
from prony.report.html import drawings, socket_drawings
from prony.report.html.filled import filled
from prony.report.html.limits import not_known
from prony.report.html.theme import accent, shape
from prony.report.labels import rounded
from prony.report.model import ExperimentView, ServerView, TrialView
from prony.report.parts import HEADINGS as PART_HEADINGS
from prony.report.parts import part_cells
from prony.report.plan_view import PlanView
from prony.report.steps import HEADINGS, step_cells
from prony.report.summary import HEADLINE, overall, published_requests, sections, verdict_words
from prony.report.wording import bytes_in_words, number, ranges

TRIAL_COLUMNS = (HEADLINE, "p50_ms", "p99_ms", "time_to_steady_s")

_PATHS = {
    "circle": "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z",
    "square": "M2 2h8v8H2z",
    "triangle-up": "M6 1.2 11 10.4H1z",
    "diamond": "M6 .6 11.4 6 6 11.4.6 6z",
    "triangle-down": "M6 10.8 1 1.6h10z",
    "cross": "M4.2 1h3.6v3.2H11v3.6H7.8V11H4.2V7.8H1V4.2h3.2z",
    "triangle-right": "M1.6 1 10.8 6 1.6 11z",
    "triangle-left": "M10.4 1v10L1.2 6z",
}


def render_html(view: ExperimentView) -> str:
    """The whole page as text."""
    return filled(
        "page.html.j2",
        view=view,
        headline=HEADLINE,
        status=overall(view),
        words=verdict_words(view),
        subtitles=[_subtitle(server) for server in view.servers],
        marks=[mark_of(place) for place in range(len(view.servers))],
        places={server.address: place for place, server in enumerate(view.servers)},
        sections=sections(view),
        step_headings=HEADINGS,
        steps=[step_cells(view.of(server.address)) for server in view.servers],
        part_headings=PART_HEADINGS,
        time_parts=[part_cells(view.of(server.address)) for server in view.servers],
        open_loop=drawings.is_open(view),
        ratios=drawings.ratios(view),
        other_ratios=drawings.other_ratios(view),
        published_requests=f"{published_requests(view):,}",
        latency=drawings.latency(view),
        throughput=drawings.throughput(view),
        start_up=drawings.start_up(view),
        cpu=drawings.cpu(view),
        sockets=socket_drawings.sockets(view),
        socket_marks=socket_drawings.legend(),
        published=drawings.published(view),
        history=history(view),
        concerns=finding_groups(view),
        confirmed=finding_groups(view, only=Status.VALID),
        trial_columns=TRIAL_COLUMNS,
        trials=[_trial_line(trial) for trial in view.trials],
        host=host_facts(view),
        unknowns=not_known(view),
    )


def mark_of(place: int) -> Markup:
    """The server's mark as a tiny drawing, for tables and headings."""
    path = _PATHS[shape(place)]
    return Markup(
        '<svg class="mark" width="11" height="11" viewBox="0 0 12 12" aria-hidden="true">'
        f'<path d="{path}" fill="{accent(place).light}"/></svg>'
    )


def _subtitle(server: ServerView) -> list[str]:
    """What stands below a server's name: title, versions, JDK."""
    jdk = f"JDK {server.jdk}" if server.jdk[:1].isdigit() else server.jdk
    titled = server.title if server.title != server.address else ""
    lines = [titled, *(f"{name} {version}" for name, version in server.versions.items()), jdk]
    return [line for line in lines if line]


def _trial_line(trial: TrialView) -> dict[str, object]:
    """One line of the table of trials."""
    record = trial.record
    verdict = "rejected" if trial.rejected_because else trial.judgement.verdict.value
    figures = [
        rounded(f, trial.figures.get(f)) if trial.rejected_because is None else "–" for f in TRIAL_COLUMNS
    ]
    return {
        "server": record.server,
        "block": record.block + 1,
        "control": record.kind == "control",
        "started": f"{record.started_at:%H:%M:%S}",
        "verdict": verdict,
        "style": Status.INVALID.value if trial.rejected_because else trial.judgement.verdict.value,
        "figures": figures,
        "cause": trial.rejected_because or "",
        "bound_by": trial.judgement.bound_by,
        "notes": record.notes,
    }


def host_facts(view: ExperimentView | PlanView) -> list[tuple[str, str]]:
    """The host as (what, value) in the order a reader asks for; what could not be read is left out."""
    host = view.fingerprint
    if host is None:
        return []
    shared = {None: "", True: "hardware threads share cores", False: "one thread per core"}[host.smt]
    inside = ", ".join(note for note in (f"{host.cores} cores" if host.cores else "", shared) if note)
    rows: list[tuple[str, str | None]] = [
        ("CPU", f"{host.cpu_model} ({host.architecture})"),
        ("CPUs", f"{host.cpus} ({inside})" if inside else str(host.cpus)),
        ("CPU set of the server", ranges(view.partition.server) if view.partition else None),
        (
            "CPU set of services",
            ranges(view.partition.services) if view.partition and view.partition.services else None,
        ),
        ("CPU set of the client", ranges(view.partition.client) if view.partition else None),
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
