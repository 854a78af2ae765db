from __future__ import annotations

from pathlib import Path

import pytest

from helpers.dumps import UUID, imported, imported_gpus, imported_pci, query
from kdoctor.errors import UsageError
from kdoctor.facts import Gpus, PciBridge, PciDevice, PciDevices

TOPOLOGY = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="3.0">
  <object type="Machine" nodeset="0x00000003">
    <object type="Package" os_index="1" nodeset="0x00000002">
      <object type="NUMANode" os_index="1" nodeset="0x00000002"/>
      <object type="Bridge" bridge_type="0-1">
        <object type="Bridge" bridge_type="1-1" pci_busid="0000:3a:01.0" pci_type="0604 [8086:2030] [8086:0000] 04 00">
          <object type="PCIDev" pci_busid="0000:3b:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1 00">
            <object type="OSDev" name="nvml0" osdev_type="12">
              <info name="GPUModel" value="NVIDIA Test 40GB"/>
              <info name="NVIDIAUUID" value="{UUID.format(0)}"/>
            </object>
          </object>
          <object type="PCIDev" pci_busid="0000:3b:00.1" pci_type="0200 [15b3:1017] [15b3:0001] 00 00"/>
        </object>
      </object>
    </object>
  </object>
</topology>
"""


def test_devices_and_their_paths_are_read(tmp_path: Path) -> None:
    assert imported_pci(tmp_path, TOPOLOGY).devices == (
        PciDevice(
            bus_id="0000:3b:00.0",
            device_id="20b0",
            device_class="0302",
            subsystem="10de:134f",
            driver="nvidia",
            numa_node=1,
            path=(PciBridge(bus_id="0000:3a:01.0", device_id="2030", vendor_id="8086"),),
        ),
    )


def test_hwloc_joins_nvidia_smi(tmp_path: Path) -> None:
    gpus = imported(tmp_path, TOPOLOGY, query("3B")).facts[Gpus]
    assert isinstance(gpus, Gpus)
    (gpu,) = gpus.devices
    assert (gpu.bus_id, gpu.temperature_c) == ("0000:3b:00.0", 61)


def test_hwloc_without_nvml_has_no_driver(tmp_path: Path) -> None:
    start, end = (
        TOPOLOGY.index('            <object type="OSDev"'),
        TOPOLOGY.index("          </object>\n          <object"),
    )
    facts = imported(tmp_path, TOPOLOGY[:start] + TOPOLOGY[end:]).facts
    assert set(facts) == {PciDevices}


def test_truncated_topology_has_only_correct_devices(tmp_path: Path) -> None:
    for end in range(TOPOLOGY.index("<topology "), len(TOPOLOGY), 7):
        facts = imported(tmp_path, TOPOLOGY[:end]).facts
        pci = facts[PciDevices]
        assert isinstance(pci, PciDevices)
        for device in pci.devices:
            assert (device.bus_id, device.numa_node) == ("0000:3b:00.0", 1)
            assert device.path
        gpus = facts.get(Gpus)
        if isinstance(gpus, Gpus):
            assert {gpu.name for gpu in gpus.devices} <= {None, "NVIDIA Test 40GB"}


def test_entities_and_deep_nesting_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="declares entities"):
        imported(tmp_path, TOPOLOGY.replace('"hwloc2.dtd">', '"hwloc2.dtd" [<!ENTITY x SYSTEM "file:///etc/passwd">]>'))
    with pytest.raises(UsageError, match="nested too deeply"):
        imported(tmp_path, '<topology version="3.0">' + '<object type="Group">' * 10_000)


def linked(speeds: str, *, others: str = "") -> str:
    """Two GPUs below one switch, with a matrix of the bandwidths of their NVLinks."""
    gpu = (
        '<object type="PCIDev" pci_busid="0000:{bus}:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1 00">'
        '<object type="OSDev" gp_index="{number}" name="nvml{index}" osdev_type="12"/></object>'
    )
    bridge = '<object type="Bridge" bridge_type="1-1" pci_busid="0000:{}:00.0" pci_type="0604 [8086:2030] [8086:0000]">'
    names = f"OSDev:71 OSDev:72{others}"
    return (
        '<?xml version="1.0"?>\n<topology version="3.0"><object type="Machine" nodeset="0x1">'
        f"{bridge.format('3a')}{gpu.format(bus='3b', number=71, index=0)}</object>"
        f"{bridge.format('5d')}{gpu.format(bus='5e', number=72, index=1)}</object></object>"
        f'<distances2hetero nbobjs="{len(names.split())}" kind="25" name="NVLinkBandwidth">'
        f'<indexes length="9">{names} </indexes><u64values length="9">{speeds} </u64values></distances2hetero>'
        "</topology>\n"
    )


@pytest.mark.parametrize(
    ("speed", "links"), [(40_000, 2), (50_000, 2), (150_000, 6), (300_000, 12), (900_000, 18), (0, 0), (33_333, None)]
)
def test_bandwidth_of_nvlinks_is_a_number_of_links(speed: int, links: int | None, tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, linked(f"1000000 {speed} {speed} 1000000"))
    (pair,) = gpus.pairs
    assert (pair.nvlinks, pair.level, gpus.count) == (links, "NODE", 2)


def test_links_through_a_switch(tmp_path: Path) -> None:
    (pair,) = imported_gpus(tmp_path, linked("0 0 150000 0 0 125000 0 0 0", others=" PCIDev:90")).pairs
    assert pair.nvlinks == 5


def test_incomplete_matrix_has_no_links(tmp_path: Path) -> None:
    (pair,) = imported_gpus(tmp_path, linked("1000000 50000 50000")).pairs
    assert pair.nvlinks is None


def test_gpus_with_links_to_different_switches_are_not_linked(tmp_path: Path) -> None:
    speeds = "0 0 150000 0  0 0 0 150000  0 0 0 0  0 0 0 0"
    (pair,) = imported_gpus(tmp_path, linked(speeds, others=" PCIDev:90 PCIDev:91")).pairs
    assert pair.nvlinks == 0


def test_one_common_switch_of_several_is_enough(tmp_path: Path) -> None:
    speeds = "0 0 150000 0  0 0 125000 25000  0 0 0 0  0 0 0 0"
    (pair,) = imported_gpus(tmp_path, linked(speeds, others=" PCIDev:90 PCIDev:91")).pairs
    assert pair.nvlinks == 6


def test_one_switch_is_enough_for_three_gpus(tmp_path: Path) -> None:
    """At least half as many switches as GPUs are needed, and the half is rounded down."""
    bridge = '<object type="Bridge" bridge_type="1-1" pci_busid="0000:{}:00.0" pci_type="0604 [8086:2030] [8086:0000]">'
    gpu = (
        '<object type="PCIDev" pci_busid="0000:{bus}:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1 00">'
        '<object type="OSDev" gp_index="{number}" name="nvml{index}" osdev_type="12"/></object></object>'
    )
    third = bridge.format("6c") + gpu.format(bus="6d", number=73, index=2)
    speeds = " ".join(["0 0 0 150000"] * 3 + ["0 0 0 0"])
    text = linked(speeds, others=" OSDev:73 PCIDev:90").replace("</object><distances", f"{third}</object><distances")
    assert [pair.nvlinks for pair in imported_gpus(tmp_path, text).pairs] == [6, 6, 6]


@pytest.mark.parametrize(("between", "level"), [(0, "PIX"), (1, "PIX"), (2, "PXB")])
def test_gpus_below_one_bridge_are_as_far_as_the_bridges_between(tmp_path: Path, between: int, level: str) -> None:
    """PIX: at most one bridge. Source: the legend of ``nvidia-smi topo -m``."""
    bridge = (
        '<object type="Bridge" bridge_type="1-1" pci_busid="0000:{:02x}:00.0" pci_type="0604 [8086:2030] [8086:0000]">'
    )
    gpu = (
        '<object type="PCIDev" pci_busid="0000:{bus:02x}:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1 00">'
        '<object type="OSDev" name="nvml{index}" osdev_type="12"/></object>'
    )
    first = "".join(bridge.format(0x30 + place) for place in range(between))
    text = (
        '<?xml version="1.0"?>\n<topology version="3.0"><object type="Machine" nodeset="0x1">'
        f"{bridge.format(0x10)}{first}{gpu.format(bus=0x40, index=0)}{'</object>' * between}"
        f"{gpu.format(bus=0x41, index=1)}</object></object></topology>\n"
    )
    (pair,) = imported_gpus(tmp_path, text).pairs
    assert pair.level == level
