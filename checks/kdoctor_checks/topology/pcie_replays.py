from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Remedy, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, judge, readings, smi, span
from kdoctor_checks.topology._pcie import reseat


@check("topology.pcie-replays", severity=Severity.INFO, needs_gpus=True, requires=DRIVER)
def pcie_replays(gpus: Gpus, *, most: int = 1000) -> Iterator[Outcome]:
    """GPU PCIe links have few replays since the driver was loaded.

    Why: a replay repairs a packet that arrived damaged. A few are normal (43 to 120 per GPU on recorded 8 x H100
    nodes). Thousands, or a growing number, indicate a bad contact. A single reading cannot show growth, so this is only
    a note.
    Remedy: read the counter again after some minutes of load. If it grows, reseat the GPU or replace the riser.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "pcie_replay_counter")
    yield from others
    many = [gpu for gpu in judged if (gpu.pcie_replay_counter or 0) > most]
    remedy = Remedy.inspect(
        f"Read the counter again under load. If it grows, {reseat(many)}.",
        smi(many, "-q | grep -i replay", among=gpus),
        smi(many, "-q -d PERFORMANCE", among=gpus),
    )
    for gpu in judged:
        yield judge(
            gpu.subject,
            counted(gpu.pcie_replay_counter or 0, "PCIe replay"),
            ok=gpu not in many,
            expected=f"at most {most}, not growing",
            remedy=remedy,
            brief=span([other.pcie_replay_counter or 0 for other in many or [gpu]], "PCIe replays"),
            explained_by=("topology.pcie-width",) if gpu.pcie_width != gpu.pcie_width_max else (),
        )
