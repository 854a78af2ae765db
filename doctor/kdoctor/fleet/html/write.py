"""Fills the HTML template of a fleet: a map of the nodes that can be filtered without a network."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kdoctor.fleet.report import FleetReport, NodeNote, NodeState
from kdoctor.model import FAMILIES
from kdoctor.report.causes import cause_blocks, gap_blocks, heading
from kdoctor.report.phrases import CONCLUSIONS, FAMILY_TITLES, MARK_NAMES, SIGNS, verdict_line
from kdoctor.text.canvas import Canvas

_TEMPLATES = Environment(
    loader=PackageLoader("kdoctor.fleet.html", ""),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def render_html(shown: FleetReport, _: Canvas) -> str:
    """The fleet as one HTML file. Its policy forbids every request, and every script but the filter."""
    report = shown.report
    script = _file("kdoctor.fleet.html", "filter.js")
    states = Counter(node.state.value for node in shown.nodes)
    failing = {family for node in shown.nodes for family in _families(node)}
    return _TEMPLATES.get_template("fleet.html.j2").render(
        report=report,
        nodes=shown.nodes,
        others=[node for node in shown.nodes if node.state is not NodeState.PASSED],
        states=[(state.value, states[state.value]) for state in NodeState if states[state.value]],
        families=[family for family in FAMILIES if family in failing],
        families_of=lambda node: " ".join(_families(node)),
        blocks=(*cause_blocks(report), *gap_blocks(report)),
        conclusion=CONCLUSIONS[report.verdict.conclusion],
        verdict_line=verdict_line(report),
        heading=heading(report),
        family_titles=FAMILY_TITLES,
        mark_names=MARK_NAMES,
        signs=SIGNS,
        style=Markup(_file("kdoctor.report.html", "style.css") + _file("kdoctor.fleet.html", "fleet.css")),  # noqa: S704 - files of this package
        script=Markup(script),  # noqa: S704 - a file of this package
        script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
    )


def _families(node: NodeNote) -> list[str]:
    return sorted({item.check.partition(".")[0] for item in node.problems})


def _file(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")
