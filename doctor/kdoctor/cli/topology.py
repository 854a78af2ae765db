"""``kdoctor topology``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from kdoctor.cli.options import PluginOption
from kdoctor.cli.stderr import show
from kdoctor.engine.catalog import Catalog, load_catalog
from kdoctor.engine.judge import FactTable
from kdoctor.errors import UsageError
from kdoctor.facts import Gpus, Host, PciDevices, Unavailable
from kdoctor.probes.collector import collect_facts
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children
from kdoctor.run.plan import recorded
from kdoctor.text.canvas import canvas_for
from kdoctor.topology.advice import advise
from kdoctor.topology.choice import choose
from kdoctor.topology.json import document
from kdoctor.topology.layout import read_layout
from kdoctor.topology.render import write_topology
from kdoctor.topology.tree import grow

_PROBES = ("nvml", "pci", "host")


def topology(
    *,
    replicas: Annotated[
        int | None,
        typer.Option("--replicas", "-n", min=1, help="Choose GPUs for this many replicas.", show_default=False),
    ] = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="Show this recorded machine instead of this one.", show_default=False)
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["terminal", "json"], typer.Option("--format", "-f", help="What stdout carries.")
    ] = "terminal",
    plugin: PluginOption = None,
) -> None:
    """Show how the GPUs are connected, and say which of them to take for N replicas, and why.

    Without --replicas the choice is shown for 2, 4, 8, ... and all GPUs.
    """
    catalog = load_catalog(plugin or ())
    facts = recorded(snapshot, catalog) if snapshot else _read(catalog)
    gpus, pci, host = facts.get(Gpus), facts.get(PciDevices), facts.get(Host)
    if not isinstance(gpus, Gpus) or not gpus.devices:
        why = gpus.unavailable if isinstance(gpus, Unavailable) else _no_gpus(gpus if isinstance(gpus, Gpus) else None)
        raise UsageError(f"there are no GPUs to show: {why}", hint="kdoctor check --select driver says more.")
    layout = read_layout(gpus, pci if isinstance(pci, PciDevices) else None)
    wanted = [replicas] if replicas else _sizes(len(layout.usable))
    choices = [(choice, advise(layout, choice)) for choice in (choose(layout, size) for size in wanted)]
    tree = grow(layout, host if isinstance(host, Host) else None)
    if format == "json":
        show(document(layout, tree, choices).to_json())
    else:
        show(write_topology(layout, tree, choices, unicode=canvas_for(sys.stdout, os.environ).unicode))


def _read(catalog: Catalog) -> FactTable:
    """Read the GPUs, the PCI tree and the host of this machine."""
    context = Context(python=sys.executable, chosen_by="kdoctor's own", environ=dict(os.environ), children=Children())
    return collect_facts([probe for probe in catalog.probes if probe.name in _PROBES], context)


def _no_gpus(gpus: object) -> str:
    """Why the driver lists none."""
    error = getattr(gpus, "error", None)
    return error or "the driver lists none"


def _sizes(usable: int) -> list[int]:
    """2, 4, 8, ... and all of them; one GPU alone is shown as it is."""
    powers = [2**power for power in range(1, usable.bit_length()) if 2**power <= usable]
    return sorted({*powers, usable}) if usable else []
