"""NCCL's topology. The machine is invented; elements and attributes are those of NCCL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from helpers.dumps import imported
from kdoctor.facts import Gpus, PciBridge, PciDevice, PciDevices
from kdoctor.snapshot.imports.nccl import _level

TOPOLOGY = """\
<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:15:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:19:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:5d:00.0" count="18" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:1b:00.0" class="0x020700" vendor="0x15b3" device="0x1021"/>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ff00" arch="x86_64">
    <pci busid="0000:5d:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="" link_width="0">
      <gpu dev="1" sm="90" rank="1" gdr="1"><nvlink target="0000:19:00.0" count="18" tclass="0x030200"/></gpu>
    </pci>
  </cpu>
</system>
"""


def test_devices_and_links(tmp_path: Path) -> None:
    facts = imported(tmp_path, f"<!-- a comment -->\n{TOPOLOGY}").facts
    gpus, pci = facts[Gpus], facts[PciDevices]
    assert isinstance(gpus, Gpus)
    assert isinstance(pci, PciDevices)
    assert [(gpu.index, gpu.bus_id) for gpu in gpus.devices] == [(0, "0000:19:00.0"), (1, "0000:5d:00.0")]
    assert [(pair.nvlinks, pair.level) for pair in gpus.pairs] == [(18, "SYS")]
    assert [(gpu.numa_node, gpu.link_width, len(gpu.path or ())) for gpu in pci.gpus] == [(0, 16, 1), (1, None, 0)]


def test_cut_off_file_keeps_what_is_complete(tmp_path: Path) -> None:
    found = imported(tmp_path, TOPOLOGY.partition('  <cpu numaid="1"')[0])
    assert isinstance(found.facts[PciDevices], PciDevices)
    assert any("incomplete" in note for note in found.notes)


def test_number_of_the_device_is_read_if_it_is_there(tmp_path: Path) -> None:
    pci = imported(tmp_path, TOPOLOGY).facts[PciDevices]
    assert isinstance(pci, PciDevices)
    assert [gpu.device_id for gpu in pci.gpus] == [None, "2330"]


GPU = PciDevice(bus_id="0000:19:00.0", device_id="2330", device_class="0302", driver="nvidia")


@pytest.mark.parametrize(
    ("first", "second", "level"),
    [
        (("a", "b"), ("a", "b"), "PIX"),
        (("a", "b"), ("a", "c"), "PXB"),
        (("a", "c"), ("b", "c"), "PHB"),
        ((), (), "PHB"),
    ],
)
def test_distance_by_bridges(first: tuple[str, ...], second: tuple[str, ...], level: str) -> None:
    one, other = (
        replace(GPU, bus_id=bus, numa_node=0, path=tuple(PciBridge(bus_id=bridge, device_id=None) for bridge in path))
        for bus, path in (("0000:19:00.0", first), ("0000:5d:00.0", second))
    )
    assert _level(one, other) == level


@pytest.mark.parametrize(
    ("nodes", "level"), [((0, 0), "PHB"), ((0, 1), "SYS"), ((None, None), "SYS"), ((0, None), "SYS")]
)
def test_distance_by_nodes(nodes: tuple[int | None, int | None], level: str) -> None:
    one, other = (replace(GPU, bus_id=f"0000:{place}9:00.0", numa_node=node) for place, node in enumerate(nodes))
    assert _level(one, other) == level


UNNUMBERED = TOPOLOGY.replace("0000:19:00.0", "0000:99:00.0").replace('dev="0"', "").replace('dev="1"', "")
SWAPPED = TOPOLOGY.replace('dev="0"', 'dev="9"').replace('dev="1"', 'dev="0"').replace('dev="9"', 'dev="1"')


@pytest.mark.parametrize(("text", "second"), [(UNNUMBERED, "0000:99:00.0"), (SWAPPED, "0000:19:00.0")])
def test_gpus_are_in_the_order_of_cuda_or_of_their_addresses(tmp_path: Path, text: str, second: str) -> None:
    gpus = imported(tmp_path, text).facts[Gpus]
    assert isinstance(gpus, Gpus)
    assert [(gpu.index, gpu.bus_id) for gpu in gpus.devices] == [(0, "0000:5d:00.0"), (1, second)]
    assert [(pair.first, pair.second, pair.nvlinks) for pair in gpus.pairs] == [(0, 1, 18)]


@pytest.mark.parametrize(
    ("old", "new", "links"),
    [
        ('<nvlink target="0000:19:00.0" count="18" tclass="0x030200"/>', "", 18),  # one side is enough
        ('target="0000:19:00.0"', 'target="something"', 18),
        ('count="18"', 'count="many"', None),
        ('count="18"', 'count="0"', None),
        ("<nvlink ", "<other ", None),
    ],
)
def test_links_that_one_gpu_shows(tmp_path: Path, old: str, new: str, links: int | None) -> None:
    assert old in TOPOLOGY
    gpus = imported(tmp_path, TOPOLOGY.replace(old, new)).facts[Gpus]
    assert isinstance(gpus, Gpus)
    assert [pair.nvlinks for pair in gpus.pairs] == [links]


@pytest.mark.parametrize(
    ("attributes", "is_gpu"),
    [
        ('class="0x030200" vendor="0x10de"', True),
        ('class="0x030000"', True),
        ('class="0x030200" vendor="0x1002"', False),
        ('class="0x020700" vendor="0x10de"', False),
        ('vendor="0x10de"', False),
    ],
)
def test_gpus_are_known_by_class_and_vendor(tmp_path: Path, attributes: str, *, is_gpu: bool) -> None:
    text = f'<system version="1">\n<cpu numaid="x">\n<pci busid="0000:3b:00.0" {attributes} device="0x2330"/>\n</cpu>\n'
    pci = imported(tmp_path, f"{text}</system>\n").facts[PciDevices]
    assert isinstance(pci, PciDevices)
    expected = [("2330", attributes[9:13], None)] if is_gpu else []
    assert [(gpu.device_id, gpu.device_class, gpu.numa_node) for gpu in pci.devices] == expected


def test_bridges_above_a_gpu_are_its_path(tmp_path: Path) -> None:
    bridges = "".join(f'<pci busid="ffff:ff:0{place}.0" class="0x060400">\n' for place in (1, 2))
    gpus = '<pci busid="0000:3b:00.0" class="0x030200"/>\n</pci>\n<pci busid="0000:3c:00.0" class="0x030200"/>\n'
    text = f'<system version="1">\n<cpu numaid="0">\n{bridges}{gpus}</pci>\n</cpu>\n</system>\n'
    pci = imported(tmp_path, text).facts[PciDevices]
    assert isinstance(pci, PciDevices)
    assert [[above.bus_id for above in gpu.path or ()] for gpu in pci.gpus] == [
        ["ffff:ff:01.0", "ffff:ff:02.0"],
        ["ffff:ff:01.0"],
    ]
