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


@pytest.mark.parametrize(
    ("nodeset", "node"),
    [
        ("0x00000001", 0),
        ("0x00000002", 1),
        ("0x80000000", 31),
        ("0x00000001,0x00000000", 32),
        ("0x00000001,,0x0", 64),
        ("0x00000002,0x00000001", None),  # two nodes
        ("0x00000003", None),
        ("0x0", None),
        ("", None),
        ("0xf...f", None),
    ],
)
def test_node_of_a_device_is_the_only_member_of_its_set(nodeset: str, node: int | None, tmp_path: Path) -> None:
    """Sets are written in groups of 32 bits, the highest first. Source: hwloc's ``hwloc_bitmap_snprintf``."""
    text = TOPOLOGY.replace('os_index="1" nodeset="0x00000002">', f'os_index="1" nodeset="{nodeset}">')
    assert imported_pci(tmp_path, text).devices[0].numa_node == node


def test_device_is_near_the_node_of_the_closest_object(tmp_path: Path) -> None:
    text = TOPOLOGY.replace('<object type="Bridge" bridge_type="0-1">', '<object type="Bridge" nodeset="0x00000001">')
    assert imported_pci(tmp_path, text).devices[0].numa_node == 0
    text = TOPOLOGY.replace('os_index="1" nodeset="0x00000002">', 'os_index="1">').replace("0x00000003", "0x00000004")
    assert imported_pci(tmp_path, text).devices[0].numa_node == 2


def test_empty_subsystem_is_unknown(tmp_path: Path) -> None:
    device = imported_pci(tmp_path, TOPOLOGY.replace("[10de:134f]", "[0000:0000]")).devices[0]
    assert device.subsystem is None


def test_devices_of_a_topology_are_in_the_order_of_their_addresses(tmp_path: Path) -> None:
    text = linked("1000000 50000 50000 1000000").replace("0000:3b:00.0", "0000:6b:00.0")
    assert [gpu.bus_id for gpu in imported_pci(tmp_path, text).devices] == ["0000:5e:00.0", "0000:6b:00.0"]
    assert [(gpu.index, gpu.bus_id) for gpu in imported_gpus(tmp_path, text).devices] == [
        (0, "0000:6b:00.0"),
        (1, "0000:5e:00.0"),
    ]


def test_number_of_gpus_is_known_if_all_are_listed(tmp_path: Path) -> None:
    whole = linked("1000000 50000 50000 1000000")
    assert imported_gpus(tmp_path, whole).count == 2
    assert imported_gpus(tmp_path, whole.replace("nvml1", "nvml2")).count is None
    assert imported_gpus(tmp_path, whole[: whole.index("<distances2")]).count is None


@pytest.mark.parametrize("name", ["XGMIBandwidth", "NUMALatency", "NVLinkBandwidth2"])
def test_other_matrix_has_no_links(tmp_path: Path, name: str) -> None:
    text = linked("1000000 50000 50000 1000000")
    (pair,) = imported_gpus(tmp_path, text.replace("NVLinkBandwidth", name)).pairs
    assert pair.nvlinks is None
    # Two matrices: that of the links counts, wherever it is.
    start, end = text.index("<distances2"), text.index("</topology>")
    other = text[start:end].replace("NVLinkBandwidth", name).replace("50000", "25000")
    for matrices in (other + text[start:end], text[start:end] + other):
        (pair,) = imported_gpus(tmp_path, text[:start] + matrices + text[end:]).pairs
        assert pair.nvlinks == 2


def test_matrix_without_one_of_the_gpus_has_no_links(tmp_path: Path) -> None:
    (pair,) = imported_gpus(tmp_path, linked("1000000 50000 50000 1000000").replace("OSDev:72", "OSDev:99")).pairs
    assert pair.nvlinks is None


def test_objects_of_other_makers_are_not_gpus(tmp_path: Path) -> None:
    text = TOPOLOGY.replace('name="nvml0"', 'name="rsmi0"')
    assert set(imported(tmp_path, text).facts) == {PciDevices}
    text = TOPOLOGY.replace("0302 [10de:20b0] [10de:134f]", "0302 [1002:740f] [1002:0c34]")
    facts = imported(tmp_path, text).facts
    assert Gpus not in facts
    assert facts[PciDevices] == PciDevices(devices=())


def test_information_of_other_objects_is_not_that_of_the_gpu(tmp_path: Path) -> None:
    start = TOPOLOGY.index('          <object type="PCIDev" pci_busid="0000:3b:00.1"')
    other = '<object type="OSDev" name="mlx5_0"><info name="GPUModel" value="a network adapter"/></object>'
    text = TOPOLOGY[:start] + f'<object type="PCIDev">{other}</object>\n' + TOPOLOGY[start:]
    (gpu,) = imported_gpus(tmp_path, text).devices
    assert (gpu.name, gpu.uuid) == ("NVIDIA Test 40GB", UUID.format(0))
