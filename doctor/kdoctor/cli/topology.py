"""``kdoctor topology``."""

import os
import sys
from typing import Annotated, Literal

import typer

from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.cli.options import PluginOption, SnapshotOption, option
from kdoctor.cli.stderr import show
from kdoctor.commands.shell import quoted
from kdoctor.engine.judge import PlannedCheck, Rules, judge
from kdoctor.errors import UsageError
from kdoctor.facts import Facts, Gpus, Host, PciDevices, Unavailable
from kdoctor.model import Severity, Status
from kdoctor.probes.collector import collect_facts
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children
from kdoctor.run.collect import read_snapshot
from kdoctor.run.plan import today
from kdoctor.text.canvas import canvas_for
from kdoctor.text.subjects import gpu_index
from kdoctor.topology.advice import advise
from kdoctor.topology.choice import choose
from kdoctor.topology.json import document
from kdoctor.topology.layout import read_layout
from kdoctor.topology.render import write_topology
from kdoctor.topology.tree import grow

_PROBES = ("nvml", "pci", "host", "kernel log")


def topology(
    *,
    replicas: Annotated[
        int | None, option("Choose GPUs for this number of replicas.", "--replicas", "-n", min=1)
    ] = None,
    snapshot: SnapshotOption = None,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["terminal", "json"], typer.Option("--format", "-f", help="Output format.")
    ] = "terminal",
    plugin: PluginOption = None,
) -> None:
    """Show how GPUs are connected, and which to use for N replicas.

    Without --replicas, GPUs are chosen for 2, 4, 8, ... and all replicas.
    """
    catalog = load_catalog(plugin or ())
    facts = read_snapshot(snapshot, catalog).facts if snapshot else _read(catalog)
    gpus, pci, host = facts.get(Gpus), facts.get(PciDevices), facts.get(Host)
    if not isinstance(gpus, Gpus) or not gpus.devices:
        reason = gpus.unavailable if isinstance(gpus, Unavailable) else gpus and getattr(gpus, "error", None)
        if isinstance(pci, PciDevices) and not pci.gpus:
            reason = "no NVIDIA GPU is recorded" if snapshot else "this machine has no NVIDIA GPU"
        reason = reason or f"the {'recording' if snapshot else 'driver'} lists no GPU"
        of = ("--snapshot", str(snapshot)) if snapshot else ("--select", "driver")
        raise UsageError(f"no GPUs to show: {reason}", hint=f"Details: {quoted('kdoctor', 'check', *of)}")
    layout = read_layout(gpus, pci if isinstance(pci, PciDevices) else None, _failing(catalog, facts))
    sizes = [replicas] if replicas else _sizes(len(layout.usable))
    choices = [(choice, advise(layout, choice)) for choice in (choose(layout, size) for size in sizes)]
    tree = grow(layout, host if isinstance(host, Host) else None)
    if format == "json":
        show(document(layout, tree, choices).to_json(), rendered=True)
    else:
        canvas = canvas_for(sys.stdout, os.environ)
        show(write_topology(layout, tree, choices, canvas=canvas, is_recorded=snapshot is not None))


def _read(catalog: Catalog) -> Facts:
    """The GPUs, PCI devices and host of this machine."""
    context = Context(python=sys.executable, chosen_by="kdoctor's own", environ=dict(os.environ), children=Children())
    return collect_facts([probe for probe in catalog.probes if probe.name in _PROBES], context)


def _failing(catalog: Catalog, facts: Facts) -> set[int]:
    """The GPUs for which a check fails, by what the kernel and the driver say."""
    checks = [check for check in catalog.checks.values() if check.severity is Severity.ERROR]
    plan = [PlannedCheck(check=check, severity=check.severity) for check in checks]
    results = judge(plan, facts, Rules(today=today()))
    findings = [item.finding for result in results if result.status is Status.FAIL for item in result.findings]
    return {index for index in (gpu_index(finding.subject) for finding in findings) if index is not None}


def _sizes(usable: int) -> list[int]:
    """2, 4, 8, ... and all of the GPUs."""
    powers = [2**power for power in range(1, usable.bit_length()) if 2**power <= usable]
    return sorted({*powers, usable}) if usable else []
