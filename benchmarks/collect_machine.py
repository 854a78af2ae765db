"""Runs the probes of kdoctor on a machine, except those of the Python environment."""

import os
import sys

from kdoctor.facts import Gpus
from kdoctor.probes import environment, host, kernel, kernel_log, pci
from kdoctor.probes.collector import collect_facts
from kdoctor.probes.nvml import probe as nvml
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children

PROBES = (nvml.PROBE, kernel.PROBE, kernel_log.PROBE, pci.PROBE, host.PROBE, environment.PROBE)


def main() -> None:
    """Collect the facts and print their number.

    Raises:
        SystemExit: the GPUs were not read, so that the time is meaningless.
    """
    children = Children()
    context = Context(python=sys.executable, chosen_by="kdoctor's own", environ=dict(os.environ), children=children)
    facts = collect_facts(PROBES, context)
    gpus = facts[Gpus]
    if not isinstance(gpus, Gpus) or not gpus.devices:
        raise SystemExit(f"the GPUs were not read: {gpus}")
    print(f"{len(gpus.devices)} GPUs, {len(gpus.pairs)} pairs, {len(facts)} groups of facts")


if __name__ == "__main__":
    main()
