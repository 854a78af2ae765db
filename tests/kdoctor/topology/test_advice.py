"""Advice on communication: NVLink, PCIe, and the limits of NCCL."""

from dataclasses import replace
from itertools import combinations

from helpers import facts as healthy
from kdoctor.facts import Gpu, GpuPair, Gpus, PciDevices
from kdoctor.facts.pci import ACS_REQUEST_REDIRECT, PciBridge, PciDevice
from kdoctor.topology.advice import Advice, advise
from kdoctor.topology.choice import choose
from kdoctor.topology.layout import read_layout


def advice_for(*devices: Gpu, nvlinks: int = 0, bridged: int = 0, pci: PciDevices | None = None) -> Advice:
    """Advice for all of these; the first two have as many links as ``bridged`` says, if it does."""
    pairs = tuple(
        GpuPair(first=first, second=second, level="PHB", nvlinks=bridged if second == 1 and bridged else nvlinks)
        for first, second in combinations(range(len(devices)), 2)
    )
    layout = read_layout(Gpus(state="ready", count=len(devices), devices=devices, pairs=pairs), pci)
    return advise(layout, choose(layout, len(devices)))


def pci_of(*devices: Gpu, acs: int | None = 0, iommu: str | None = None) -> PciDevices:
    bridge = PciBridge(bus_id="0000:00:01.0", device_id="1234", acs_control=acs)
    return PciDevices(
        devices=tuple(
            PciDevice(
                bus_id=gpu.bus_id or "", device_id="2330", device_class="0302", driver="nvidia", path=(bridge,),
                iommu_type=iommu,  # type: ignore[arg-type]
            )
            for gpu in devices
        )
    )  # fmt: skip


TWO = (healthy.gpu(0, virtualization_mode="none"), healthy.gpu(1, virtualization_mode="none"))


def test_nvlink_uses_nccl() -> None:
    advice = advice_for(*TWO, nvlinks=4)
    assert advice.cross_device_ops == "NcclAllReduce"
    assert advice.environment == ()


def test_links_of_one_pair_connect_not_all() -> None:
    three = (*TWO, healthy.gpu(2, virtualization_mode="none"))
    assert "connect all pairs" in advice_for(*three, nvlinks=4).why
    assert "NVLink" not in advice_for(*three, bridged=4).why


def test_eight_gpus_fall_back_to_hierarchical_copy() -> None:
    assert advice_for(*map(healthy.gpu, range(8)), nvlinks=12).fallback == "HierarchicalCopyAllReduce"


def test_plain_pcie_uses_nccl_with_peer_access() -> None:
    advice = advice_for(*TWO, pci=pci_of(*TWO))
    assert (advice.cross_device_ops, advice.environment) == ("NcclAllReduce", ())


def test_acs_above_gpu_disables_peer_access() -> None:
    advice = advice_for(*TWO, pci=pci_of(*TWO, acs=ACS_REQUEST_REDIRECT))
    assert advice.environment == ("NCCL_P2P_DISABLE=1",)
    assert "0000:00:01.0" in advice.why


def test_iommu_translation_disables_peer_access_except_in_virtual_machine() -> None:
    assert advice_for(*TWO, pci=pci_of(*TWO, iommu="DMA-FQ")).environment == ("NCCL_P2P_DISABLE=1",)
    guests = tuple(replace(gpu, virtualization_mode="passthrough") for gpu in TWO)
    assert advice_for(*guests, pci=pci_of(*guests, iommu="DMA")).environment == ()
    assert advice_for(TWO[0], guests[1], pci=pci_of(*guests, iommu="DMA")).environment == ()


def test_vgpu_does_not_use_nccl() -> None:
    part = healthy.gpu(1, virtualization_mode="vgpu")
    assert advice_for(healthy.gpu(0), part).cross_device_ops == "ReductionToOneDevice"


def test_mig_gpus_get_no_strategy() -> None:
    advice = advice_for(healthy.gpu(0), healthy.gpu(1, mig_mode=True))
    assert advice.cross_device_ops is None
    assert "gpu.mig-mode" in advice.why


def test_single_gpu_needs_no_communication() -> None:
    assert advice_for(healthy.gpu(0)).cross_device_ops is None
    layout = read_layout(Gpus(state="ready", count=2, devices=TWO), None)
    assert advise(layout, choose(layout, 1)).why == "a single GPU needs no distribution strategy"
