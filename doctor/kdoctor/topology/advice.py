"""Which cross-device communication of ``MirroredStrategy`` suits a set of GPUs.

Sources: https://www.tensorflow.org/api_docs/python/tf/distribute/NcclAllReduce,
https://www.tensorflow.org/api_docs/python/tf/distribute/HierarchicalCopyAllReduce,
https://www.tensorflow.org/api_docs/python/tf/distribute/ReductionToOneDevice.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

from kdoctor.facts.pci import TRANSLATED
from kdoctor.records import record
from kdoctor.topology.choice import Choice
from kdoctor.topology.layout import Layout, Place

CrossDeviceOps = Literal["NcclAllReduce", "HierarchicalCopyAllReduce", "ReductionToOneDevice"]

_CUBE_MESH = 8
"""GPUs of a hybrid cube mesh (DGX-1), for which TensorFlow's hierarchical copy was written."""


@record
class Advice:
    """The argument for ``MirroredStrategy(cross_device_ops=...)``."""

    cross_device_ops: CrossDeviceOps | None
    """None for one GPU, and for GPUs that one process cannot use together."""
    why: str
    fallback: CrossDeviceOps | None = None
    """What to try if that one hangs or fails."""
    environment: tuple[str, ...] = ()
    """Variables to set with it."""


def advise(layout: Layout, choice: Choice) -> Advice:
    """The communication for the chosen GPUs."""
    places = [place for place in layout.places if place.gpu.index in choice.gpus]
    if len(places) == 1:
        return Advice(cross_device_ops=None, why="a single GPU needs no distribution strategy")
    if any(place.in_mig_mode for place in places):
        return Advice(
            cross_device_ops=None,
            why="a CUDA process sees only one MIG instance and no other GPU, so a strategy would train one replica. "
            "Turn MIG off: kdoctor explain gpu.mig-mode",
        )
    part = next((place for place in places if place.gpu.virtualization_mode == "vgpu"), None)
    if part:
        return Advice(
            cross_device_ops="ReductionToOneDevice", why=f"{part.gpu.subject} is a vGPU, which NCCL does not support"
        )
    return _nccl(layout, choice, places)


def _nccl(layout: Layout, choice: Choice, places: Sequence[Place]) -> Advice:
    """How NCCL connects whole GPUs, and what to try if it fails."""
    links = [layout.link(*pair) for pair in combinations(choice.gpus, 2)]
    if all(link.nvlinks for link in links):
        return Advice(
            cross_device_ops="NcclAllReduce",
            why="NCCL uses the NVLinks, which connect all pairs",
            fallback="HierarchicalCopyAllReduce" if len(places) == _CUBE_MESH else "ReductionToOneDevice",
        )
    if any(link.nvlinks for link in links) and len(places) == _CUBE_MESH:
        return Advice(
            cross_device_ops="NcclAllReduce",
            why="NVLink connects some of the pairs, and NCCL builds rings from them. Also measure "
            "HierarchicalCopyAllReduce, which was written for eight GPUs connected like this",
            fallback="HierarchicalCopyAllReduce",
        )
    trouble = _peer_trouble(places)
    if trouble:
        return Advice(
            cross_device_ops="NcclAllReduce",
            why=f"{trouble}. Peer copies over PCIe may then hang or return wrong data, so NCCL should use host memory "
            "until this is fixed",
            fallback="ReductionToOneDevice",
            environment=("NCCL_P2P_DISABLE=1",),
        )
    why = "NCCL uses peer access where it is allowed, and host memory elsewhere"
    return Advice(cross_device_ops="NcclAllReduce", why=why, fallback="ReductionToOneDevice")


def _peer_trouble(places: Sequence[Place]) -> str | None:
    """ACS above a GPU, or address translation by an IOMMU, on bare metal. Virtual machines need both."""
    if any(place.gpu.virtualization_mode not in (None, "none") for place in places):
        return None
    for place in places:
        bridges = place.device.path if place.device and place.device.path else ()
        redirecting = next((bridge.bus_id for bridge in bridges if bridge.acs_redirects), None)
        if redirecting:
            return f"ACS on {redirecting} redirects the peer traffic of {place.gpu.subject}"
        if place.device and place.device.iommu_type in TRANSLATED:
            return f"the IOMMU translates the addresses of {place.gpu.subject}"
    return None
