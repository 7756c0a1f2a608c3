"""A template of ours, filled in: what every page shares. Must not know what is on a page."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from prony.report.html.theme import stylesheet
from prony.report.labels import label_of, rounded, unit_of
from prony.report.wording import counted, number, ranges, ratio

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""Nothing may be loaded, run or sent: the page is complete as it stands."""


def filled(template: str, **values: object) -> str:
    """The page as text: `values` with the style, the policy and the functions that write figures."""
    environment = Environment(
        loader=PackageLoader("prony.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        ratio=ratio,
        number=number,
        rounded=rounded,
        label_of=label_of,
        unit_of=unit_of,
        ranges=ranges,
        counted=counted,
    )
    style = files("prony.report.html").joinpath("style.css").read_text(encoding="utf-8")
    return environment.get_template(template).render(
        policy=POLICY, style=Markup(stylesheet() + style), **values
    )
