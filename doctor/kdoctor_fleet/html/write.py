"""Fills the HTML template of a fleet: a map of the nodes that can be filtered without a network."""

from collections import Counter

from kdoctor.model import family_order
from kdoctor.report.causes import heading, problem_blocks
from kdoctor.report.html.templates import SHARED, packaged, policy_hash, templates_of
from kdoctor.report.phrases import CONCLUSIONS, MARK_NAMES, SIGNS, family_title, verdict_line
from kdoctor.text.canvas import Canvas
from kdoctor_fleet.facts import NodeState
from kdoctor_fleet.report import FleetReport, NodeNote

_HERE = "kdoctor_fleet.html"
_TEMPLATES = templates_of(_HERE)


def render_html(report: FleetReport, _: Canvas) -> str:
    """The fleet as one HTML file. Its policy forbids every request, and every script but the filter."""
    script = packaged(_HERE, "filter.js")
    states = Counter(node.state.value for node in report.nodes)
    failing = {family for node in report.nodes for family in _families(node)}
    return _TEMPLATES.get_template("fleet.html.j2").render(
        report=report,
        nodes=report.nodes,
        others=[node for node in report.nodes if node.state is not NodeState.PASSED],
        states=[(state.value, states[state.value]) for state in NodeState if states[state.value]],
        families=sorted(failing, key=family_order),
        families_of=lambda node: " ".join(_families(node)),
        blocks=problem_blocks(report),
        conclusion=CONCLUSIONS[report.verdict.conclusion],
        verdict_line=verdict_line(report),
        heading=heading(report),
        family_title=family_title,
        mark_names=MARK_NAMES,
        signs=SIGNS,
        style=packaged(SHARED, "style.css") + packaged(_HERE, "fleet.css"),
        script=script,
        script_hash=policy_hash(script),
    )


def _families(node: NodeNote) -> list[str]:
    return sorted({item.check.partition(".")[0] for item in node.problems})
