"""Whether the GPUs' PCIe links had to repeat much."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import LOOKING, readings, smi


@check("topology.pcie-replays", severity=Severity.INFO, needs_gpus=True, requires=["driver.library-matches-module"])
def pcie_replays(gpus: Gpus, *, most: int = 1000) -> Iterator[Outcome]:
    """No GPU's PCIe link repeated unusually many packets since the driver was loaded.

    Why: a replay repairs a packet that arrived damaged. A few stand on every healthy machine (43 to 120 per GPU on
    recorded 8 x H100 nodes); thousands, or a number that grows while you look, point at a bad contact. One reading
    cannot tell growth, hence no more than a note.
    Remedy: read the counter again after some minutes of load; if it grows, reseat the GPU or replace the riser.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "pcie_replay_counter")
    yield from others
    for gpu in judged:
        words = f"{gpu.pcie_replay_counter} replays"
        if (gpu.pcie_replay_counter or 0) <= most:
            yield Evidence(subject=gpu.subject, observed=words)
            continue
        yield Finding(
            subject=gpu.subject,
            observed=words,
            expected=f"at most {most}, and no growth",
            remedy=Remedy(
                summary="Read the counter again under load; if it grows, reseat the GPU or replace the riser.",
                action=Action.INSPECT_HARDWARE,
                commands=(smi(gpu, "-q -d PERFORMANCE"), smi(gpu, "-q | grep -i replay")),
            ),
            rollback=LOOKING,
        )
