import time
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import LSPCI, imported, imported_pci
from kdoctor.errors import UsageError
from kdoctor.facts import PciBridge, PciDevice, PciDevices

ACS_ON = 0x01 | 0x04 | 0x08 | 0x10


def test_path_to_root_port(tmp_path: Path) -> None:
    gpu, audio = imported_pci(tmp_path, LSPCI).devices
    root_port = PciBridge(
        bus_id="0000:00:01.0",
        device_id="0002",
        link_speed="16.0 GT/s PCIe",
        link_speed_max="16.0 GT/s PCIe",
        link_width=8,
        link_width_max=16,
        acs_control=ACS_ON,
        responds=True,
    )
    assert gpu == PciDevice(
        bus_id="0000:3b:00.0",
        device_id="20b0",
        device_class="0302",
        driver="nvidia",
        link_speed="2.5 GT/s PCIe",
        link_speed_max="16.0 GT/s PCIe",
        link_width=8,
        link_width_max=16,
        acs_control=0,
        responds=True,
        numa_node=1,
        iommu_group=27,
        path=(root_port, PciBridge(bus_id="0000:3a:00.0", device_id="0003", responds=True)),
    )
    assert (audio.device_class, audio.driver, audio.is_gpu) == ("0403", None, False)


def test_lspci_with_numbers_and_domains(tmp_path: Path) -> None:
    text = LSPCI.replace(
        "\n3b:00.0 3D controller: NVIDIA Corporation Device 20b0",
        "\n0008:3b:00.0 3D controller [0302]: Example [10de:2941]",
    )
    text = text.replace("Device 134f", "Device [10de:16c1]")
    gpu = imported_pci(tmp_path, text).find("0008:3b:00.0")
    assert gpu is not None
    assert (gpu.device_class, gpu.device_id, gpu.subsystem, gpu.path) == ("0302", "2941", "10de:16c1", None)


def test_acs_is_unknown_without_root(tmp_path: Path) -> None:
    gpu = imported_pci(tmp_path, LSPCI).gpus[0]
    assert gpu.path is not None
    assert gpu.path[1].acs_control is None


def test_listing_in_two_blocks_is_one(tmp_path: Path) -> None:
    blocks = "".join(f"```\n{place}:00.0 3D controller: NVIDIA Corporation Test\n```\n" for place in ("01", "02"))
    assert len(imported_pci(tmp_path, blocks).gpus) == 2


def test_megabyte_of_text_is_fast(tmp_path: Path) -> None:
    text = LSPCI + "".join(LSPCI.replace("00:", f"{bus:02x}:") for bus in range(0x40, 0xFF)) * 4
    assert len(text) > 1_000_000
    started = time.process_time()
    imported(tmp_path, text)
    assert time.process_time() - started < 2  # measured: 0.1; the margin is for busy machines


@cases(
    "3b:00.0 3D controller: NVIDIA Corporation Device 20b0 (rev ff)\n",
    "3b:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:20b0] (rev ff)\n\t!!! Unknown header type 7f\n",
    "3b:00.0 0302: 10de:20b0 (rev ff)\n",
    '3b:00.0 "3D controller" "NVIDIA Corporation" "Device 20b0" -rff -pff "" ""\n',
    '3b:00.0 "0302" "10de" "20b0" -rff "10de" "134f"\n',
    "Slot:\t3b:00.0\nClass:\t3D controller\nVendor:\tNVIDIA Corporation\nDevice:\tDevice 20b0\nRev:\tff\n",
    "3b:00.0 3D controller: NVIDIA Corporation Device 20b0 (rev a1)\n00: ff ff ff ff ff ff ff ff ff ff\n",
    ids=("plain", "-vnn", "-n", "-mm", "-nmm", "-vmm", "-xxx"),
)
def test_gpu_whose_configuration_space_is_all_ones(tmp_path: Path, text: str) -> None:
    (gpu,) = imported_pci(tmp_path, text).gpus
    assert (gpu.bus_id, gpu.device_id, gpu.responds) == ("0000:3b:00.0", "20b0", False)


@cases(
    ("\tRegion 0: Memory at <unassigned> (32-bit) [disabled]\n\tRegion 1: Memory at <ignored> (64-bit)\n", 2),
    ("\tMemory at d8000000 (32-bit) [size=16M]\n\tI/O ports at <unassigned> [disabled]\n", 0),
    ("\tExpansion ROM at <ignored> [disabled]\n", None),
)
def test_regions_without_addresses_are_counted(tmp_path: Path, text: str, number: int | None) -> None:
    (gpu,) = imported_pci(tmp_path, f"3b:00.0 3D controller: NVIDIA Corporation Device 20b0 (rev a1)\n{text}").gpus
    assert gpu.regions_without_address == number


def test_machine_readable_listings_have_drivers_and_nodes(tmp_path: Path) -> None:
    block = "Slot:\t{}:00.0\nClass:\t{}\nVendor:\t{}\nDevice:\tDevice 20b0\nRev:\ta1\nDriver:\tnvidia\nNUMANode:\t1\n\n"
    text = block.format("3b", "3D controller", "NVIDIA Corporation") + block.format("5e", "Bridge", "Example Corp.")
    (gpu,) = imported_pci(tmp_path, text).devices
    assert (gpu.bus_id, gpu.driver, gpu.numa_node, gpu.responds) == ("0000:3b:00.0", "nvidia", 1, None)


@cases(
    ("Speed 2.5GT/s (downgraded), Width x8 (downgraded)\n\t\t\tTrErr- Train-", 8, "2.5 GT/s PCIe"),
    ("Speed 16GT/s, Width x16\n\t\t\tTrErr- Train- SlotClk+", 16, "16.0 GT/s PCIe"),
    ("Speed 8GT/s, Width x4, TrErr- Train- SlotClk+", 4, "8.0 GT/s PCIe"),
    ("Speed 5GT/s (degraded), Width x1 (degraded)", 1, "5.0 GT/s PCIe"),
    ("Speed unknown, Width x2", 2, None),
    ("Speed unknown, Width x0, TrErr-", None, None),
)
def test_links_of_several_versions_of_lspci(tmp_path: Path, link: str, width: int | None, speed: str | None) -> None:
    text = LSPCI.replace("Speed 2.5GT/s (downgraded), Width x8 (downgraded)", link)
    gpu = imported_pci(tmp_path, text).gpus[0]
    assert (gpu.link_width, gpu.link_speed) == (width, speed)


@cases(
    ("UESta:\tDLP- SDES- TLP- FCP- CmpltTO- RxOF- MalfTLP- ECRC- UnsupReq- ACSViol-", ()),
    ("UESta:\tDLP- SDES- TLP- FCP- CmpltTO+\n\t\t\tRxOF- MalfTLP+ UnsupReq+", ("CmpltTO", "MalfTLP", "UnsupReq")),
    ("DevSta:\tCorrErr+ NonFatalErr- FatalErr+ UnsupReq-", ("FatalErr",)),
    ("DevSta:\tCorrErr+ NonFatalErr+ FatalErr- UnsupReq-", None),
)
def test_recorded_errors(tmp_path: Path, register: str, found: tuple[str, ...] | None) -> None:
    text = LSPCI.replace("\tKernel modules: nouveau", f"\t\t{register}\n\tKernel modules: nouveau")
    assert imported_pci(tmp_path, text).gpus[0].aer_status == found


def test_tree_is_refused_with_what_to_record_instead(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lspci -vvv"):
        imported(tmp_path, "-[0000:00]-+-00.0\n           +-01.0-[01]----00.0\n")


@cases(
    ("SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-", 0),
    ("SrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-", 0x01),
    ("SrcValid- TransBlk+ ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-", 0x02),
    ("SrcValid- TransBlk- ReqRedir+ CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-", 0x04),
    ("SrcValid- TransBlk- ReqRedir- CmpltRedir+ UpstreamFwd- EgressCtrl- DirectTrans-", 0x08),
    ("SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd+ EgressCtrl- DirectTrans-", 0x10),
    ("SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl+ DirectTrans-", 0x20),
    ("SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans+", 0x40),
    ("SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl+ DirectTrans+", 0x7F),
    ("SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+", None),  # a bit that matters is missing
)
def test_register_of_acs(tmp_path: Path, bits: str, control: int | None) -> None:
    """The bits of the register are those of PCI_ACS_* in Linux's ``include/uapi/linux/pci_regs.h``."""
    old = "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-"
    assert old in LSPCI
    gpu = imported_pci(tmp_path, LSPCI.replace(old, f"ACSCtl:\t{bits}")).gpus[0]
    assert gpu.path is not None
    assert gpu.path[0].acs_control == control


def device(address: str, *lines: str, name: str = "3D controller: NVIDIA Corporation Device 20b0 (rev a1)") -> str:
    """The lines of one function."""
    return f"{address} {name}\n" + "".join(f"\t{line}\n" for line in lines) + "\n"


def bridge(address: str, below: str, *lines: str) -> str:
    """The lines of a bridge."""
    buses = f"Bus: primary={address[-7:-5]}, secondary={below}, subordinate=ff, sec-latency=0"
    return device(address, buses, *lines, name="PCI bridge: Example Corp. Device 0003")


def test_path_ends_where_bridges_are_in_a_circle(tmp_path: Path) -> None:
    text = device("00:00.0", name="Host bridge: Example Corp. Device 0001") + bridge("3a:00.0", "3b")
    (gpu,) = imported_pci(tmp_path, text + bridge("3b:01.0", "3a") + device("3b:00.0", "NUMA node: 0")).gpus
    assert [above.bus_id for above in gpu.path or ()] == ["0000:3b:01.0", "0000:3a:00.0"]


@cases(
    # The first function of the domain shows that the listing is a full one.
    (bridge("3a:00.0", "3b") + device("3b:00.0", "NUMA node: 0"), None),
    (bridge("3a:00.0", "3b", "Capabilities: [40] Root Port") + device("3b:00.0", "NUMA node: 0"), 1),
    (device("00:00.0", name="Host bridge: Example") + device("3b:00.0", "NUMA node: 0"), 0),
    (device("0001:00:00.0", name="Host bridge: Example") + device("3b:00.0", "NUMA node: 0"), None),
    (device("00:00.0", "NUMA node: 0"), None),  # the GPU is that function
    (device("00:00.0", name="Host bridge: Example") + device("00:02.0"), 0),  # of the root complex
    (device("00:00.0", name="Host bridge: Example") + device("3b:00.0"), None),  # without details
)
def test_path_is_known_only_in_a_full_listing(tmp_path: Path, text: str, path: int | None) -> None:
    (gpu,) = imported_pci(tmp_path, text).gpus
    assert (None if gpu.path is None else len(gpu.path)) == path


@cases(
    (device("3b:00.0", "NUMA node: 0"), False),
    (device("3b:00.0", "NUMA node: 0")[:-1], True),  # no empty line follows
    (device("3b:00.0", "NUMA node: 0")[:-2], False),  # nothing of the device is left
    (device("3b:00.0")[:-1], False),  # without details
    (device("3b:00.0", "!!! Unknown header type 7f")[:-1], False),  # that is all of it
    (device("3b:00.0", "NUMA node: 0") + bridge("3c:00.0", "3d")[:-1], False),  # not NVIDIA's
    (device("3b:00.0", "NUMA node: 0", "IOMMU group: 7")[:-3], True),
)
def test_note_on_a_last_device_that_may_be_incomplete(tmp_path: Path, text: str, *, is_incomplete: bool) -> None:
    found = imported(tmp_path, text)
    assert len(found.notes) == is_incomplete + 1  # one counts the GPUs, whose links are not in it
    assert isinstance(found.facts[PciDevices], PciDevices)


def test_sentence_below_a_device_is_not_its_configuration(tmp_path: Path) -> None:
    assert "incomplete" not in str(imported(tmp_path, device("3b:00.0")[:-1] + "Removing the pod ...\n").notes)


def test_last_line_without_line_end_is_ignored(tmp_path: Path) -> None:
    text = device("3b:00.0", "IOMMU group: 2", "NUMA node: 1")
    assert imported_pci(tmp_path, text[:-1]).gpus[0].numa_node == 1
    cut = imported_pci(tmp_path, text[:-2]).gpus[0]
    assert (cut.iommu_group, cut.numa_node) == (2, None)


def test_machine_readable_blocks_are_separate_devices(tmp_path: Path) -> None:
    first = "Slot:\t3b:00.0\nClass:\t0302\nVendor:\t10de\nDevice:\t20b0\nIOMMUGroup:\t7\n"
    second = "Slot:\tAF:00.0\nClass:\t3D controller\nVendor:\tNVIDIA Corporation\nDevice:\tDevice 20b2\nRev:\tff\n"
    for between in ("\n", ""):
        found = imported_pci(tmp_path, f"{first}{between}{second.lower().replace('slot', 'Slot')}").devices
        assert (found[0].bus_id, found[0].device_id, found[0].iommu_group) == ("0000:3b:00.0", "20b0", 7)
    gpus = imported_pci(tmp_path, f"{first}\n{second.replace('AF', 'af')}").devices
    assert [(gpu.bus_id, gpu.device_id, gpu.responds) for gpu in gpus] == [
        ("0000:3b:00.0", "20b0", None),
        ("0000:af:00.0", "20b2", False),
    ]


@cases(("2.5", "2.5"), ("5", "5.0"), ("32", "32.0"), ("64", "64.0"), ("7", None))
def test_speed_of_a_link_is_written_as_in_sysfs(tmp_path: Path, speed: str, shown: str | None) -> None:
    gpu = imported_pci(tmp_path, device("3b:00.0", f"LnkCap:\tPort #0, Speed {speed}GT/s, Width x16, ASPM")).gpus[0]
    assert (gpu.link_speed_max, gpu.link_width_max) == (shown and f"{shown} GT/s PCIe", 16)
    assert (gpu.link_speed, gpu.link_width) == (None, None)


@cases(
    (("DevSta:\tCorrErr- NonFatalErr- FatalErr+", "UESta:\tDLP+ SDES-"), ("FatalErr", "DLP")),
    (("DevSta:\tCorrErr- NonFatalErr- FatalErr-", "UESta:\tDLP- SDES-"), ()),
    (("UESta:\tDLP+ SDES+ TLP-",), ("DLP", "SDES")),
    ((), None),
)
def test_errors_of_both_registers(tmp_path: Path, lines: tuple[str, ...], errors: tuple[str, ...] | None) -> None:
    assert imported_pci(tmp_path, device("3b:00.0", "NUMA node: 0", *lines)).gpus[0].aer_status == errors


@cases(
    "LnkCap: Port #0, Speed 16GT/s, Width x16\nLnkSta: Speed 2.5GT/s (downgraded), Width x8 (downgraded)",
    "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (downgraded)",
    "\tControl: I/O+ Mem+ BusMaster+\n\tStatus: Cap+ 66MHz- UDF-\n\tLatency: 0",
)
def test_block_without_its_device_is_read_and_no_gpu(tmp_path: Path, text: str) -> None:
    found = imported(tmp_path, f"{text}\n")
    assert not found.facts
    (note,) = found.notes
    assert ("x8 at 2.5 GT/s" in note, "x16 at 16 GT/s" in note) == ("LnkSta" in text, "LnkCap" in text)
