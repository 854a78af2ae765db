"""The output formats of a fleet's report. All but JSON and HTML extend those of an ordinary report."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pkgutil import resolve_name

from kdoctor.report import formats as of_report
from kdoctor.report.prometheus import family
from kdoctor.text.canvas import PLAIN, Canvas
from kdoctor.text.markdown import escape
from kdoctor.text.sanitize import cleaned
from kdoctor_fleet.facts import NodeState
from kdoctor_fleet.report import FleetReport, NodeNote, make_document

Renderer = Callable[[FleetReport, Canvas], str]

_RENDERERS: Mapping[str, str] = {
    "terminal": "kdoctor_fleet.formats:render_terminal",
    "json": "kdoctor_fleet.formats:render_json",
    "junit": "kdoctor_fleet.formats:render_junit",
    "markdown": "kdoctor_fleet.formats:render_markdown",
    "html": "kdoctor_fleet.html.write:render_html",
    "prometheus": "kdoctor_fleet.formats:render_prometheus",
}


def render(report: FleetReport, format: str, canvas: Canvas = PLAIN) -> str:  # noqa: A002 - the option's name
    """Write the report in a format of ``FORMATS``.

    Raises:
        KeyError: the format does not exist.
    """
    clean = cleaned(report)
    if format in _RENDERERS:
        renderer: Renderer = resolve_name(_RENDERERS[format])
        return renderer(clean, canvas)
    return of_report.render(clean, format, canvas)


FORMATS = tuple(name for name in of_report.FORMATS if name not in ("github", "fix-script"))
"""Names of the formats. A fix script would run the commands of one node on another, and GitHub has no nodes."""


def render_json(report: FleetReport, _: Canvas) -> str:
    """The fleet's document."""
    return make_document(report).to_json()


def render_terminal(report: FleetReport, canvas: Canvas) -> str:
    """The short or full report, and with the full one the nodes that did not pass."""
    text = of_report.render(report, "terminal", canvas)
    if not canvas.verbosity:
        return text
    lines = [f"{node.name}: {node.state.value}, {node.reason}" for node in _not_passed(report)]
    return text if not lines else f"{text}\nNodes that did not pass\n" + "".join(f"  {line}\n" for line in lines)


def _not_passed(report: FleetReport) -> Iterator[NodeNote]:
    return (node for node in report.nodes if node.state is not NodeState.PASSED)


def render_markdown(report: FleetReport, canvas: Canvas) -> str:
    """The report with a table of the nodes that did not pass."""
    rows = [f"| {escape(node.name)} | {node.state.value} | {escape(node.reason)} |\n" for node in _not_passed(report)]
    table = (
        f"\n### Nodes that did not pass\n\n| Node | State | Reason |\n|---|---|---|\n{''.join(rows)}" if rows else ""
    )
    return of_report.render(report, "markdown", canvas) + table


def render_junit(report: FleetReport, canvas: Canvas) -> str:
    """The report with one more suite, in which each node is a case."""
    root = ET.fromstring(of_report.render(report, "junit", canvas))  # noqa: S314 - written by kdoctor
    suite = ET.SubElement(root, "testsuite", name="kdoctor.nodes", time="0")
    kinds: Counter[str] = Counter()
    for node in report.nodes:
        case = ET.SubElement(suite, "testcase", name=node.name, classname="kdoctor.nodes", time="0")
        kind = {NodeState.PASSED: "", NodeState.FAILED: "failure"}.get(node.state, "error")
        kinds[kind] += 1
        if kind:
            found = ET.SubElement(case, kind, type=node.state.value, message=node.reason)
            found.text = "\n".join(f"{item.headline} ({item.check}, {item.scope})" for item in node.problems)
    for name, number in (("tests", len(report.nodes)), ("failures", kinds["failure"]), ("errors", kinds["error"])):
        suite.set(name, str(number))
        root.set(name, str(int(root.get(name, "0")) + number))
    suite.set("skipped", "0")
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def render_prometheus(report: FleetReport, canvas: Canvas) -> str:
    """The report's gauges, and those of the nodes."""
    common = {"checklist": report.checklist.name}
    states = Counter(node.state for node in report.nodes)
    return (
        of_report.render(report, "prometheus", canvas)
        + family(
            "fleet_nodes",
            "Number of nodes by state.",
            [({"state": state.value}, states[state]) for state in NodeState],
            common,
        )
        + family("fleet_nodes_needed", "Number of nodes that must pass.", [({}, report.needed)], common)
        + family(
            "fleet_node_passed",
            "Whether a job can use the node: 1 or 0.",
            [({"node": node.name}, node.state is NodeState.PASSED) for node in report.nodes],
            common,
        )
    )
