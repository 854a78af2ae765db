from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.machine import context, write
from kdoctor.facts import Kernel, KernelDriver, Unavailable
from kdoctor.probes.kernel import PROBE, collect

SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def read(root: Path) -> Kernel:
    facts = collect(context(root))[Kernel]
    assert isinstance(facts, Kernel), facts
    return facts


def test_empty_proc_leaves_facts_unknown(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    assert read(tmp_path) == Kernel()


def test_nvidia_modules_are_listed(tmp_path: Path) -> None:
    write(tmp_path, proc__modules="nvidia_uvm 1 0 - Live 0x0\next4 1 0 - Live 0x0\nnvidia 1 1 nvidia_uvm, Live 0x0\n")
    facts = read(tmp_path)
    assert facts.modules == ("nvidia", "nvidia_uvm")


def test_loaded_nouveau_is_detected(tmp_path: Path) -> None:
    write(tmp_path, proc__modules="nouveau 2453504 0 - Live 0x0\n")
    assert "nouveau" in (read(tmp_path).modules or ())


@pytest.mark.parametrize(("byte", "expected"), [(0, False), (1, True)])
def test_secure_boot_is_read_from_firmware(tmp_path: Path, *, byte: int, expected: bool) -> None:
    (tmp_path / "proc").mkdir()
    variable = tmp_path / SECURE_BOOT
    variable.parent.mkdir(parents=True)
    variable.write_bytes(bytes([6, 0, 0, 0, byte]))
    assert read(tmp_path).secure_boot is expected


def test_machine_without_efi_has_no_secure_boot(tmp_path: Path) -> None:
    write(tmp_path, proc__cmdline="", sys__firmware__dmi__x="")
    assert read(tmp_path).secure_boot is False


def test_secure_boot_is_unknown_if_firmware_is_hidden(tmp_path: Path) -> None:
    write(tmp_path, proc__cmdline="")
    (tmp_path / "sys/firmware").mkdir(parents=True)
    assert read(tmp_path).secure_boot is None


@cases(
    ("[none] integrity confidentiality", "none"),
    ("none [integrity] confidentiality", "integrity"),
    ("none integrity", None),
    ("[new]", None),
)
def test_lockdown(tmp_path: Path, text: str, expected: str | None) -> None:
    write(tmp_path, proc__cmdline="", sys__kernel__security__lockdown=text)
    assert read(tmp_path).lockdown == expected


def test_iommu_parameters_are_read_from_command_line(tmp_path: Path) -> None:
    line = "BOOT_IMAGE=/vmlinuz ro intel_iommu=on iommu=pt iommu.strict=0 pcie_acs_override=downstream quiet"
    write(tmp_path, proc__cmdline=line)
    expected = ("intel_iommu=on", "iommu=pt", "iommu.strict=0", "pcie_acs_override=downstream")
    assert read(tmp_path).iommu_parameters == expected


@pytest.mark.parametrize("groups", [0, 3])
def test_iommu_groups_are_counted(tmp_path: Path, groups: int) -> None:
    write(tmp_path, proc__cmdline="")
    (tmp_path / "sys/kernel/iommu_groups").mkdir(parents=True)
    for number in range(groups):
        (tmp_path / f"sys/kernel/iommu_groups/{number}").mkdir()
    assert read(tmp_path).iommu_groups == groups


def test_daemons_are_found_by_truncated_names(tmp_path: Path) -> None:
    # /proc/<pid>/comm holds fifteen characters.
    names = {1: "systemd", 800: "nv-fabricmanage", 801: "nvidia-persiste", 802: "nvidia-smi", 803: "nvidia-cuda-mps"}
    write(tmp_path, **{f"proc__{pid}__comm": f"{name}\n" for pid, name in names.items()})
    assert read(tmp_path).daemons == ("nv-fabricmanager", "nvidia-persistenced", "nvidia-cuda-mps-control")


def test_no_daemons_and_no_proc_are_distinguished(tmp_path: Path) -> None:
    write(tmp_path, proc__1__comm="systemd\n")
    assert read(tmp_path).daemons == ()


def test_probe_provides_the_collected_groups(tmp_path: Path) -> None:
    assert set(collect(context(tmp_path))) == set(PROBE.provides) == {Kernel, KernelDriver}
    assert isinstance(collect(context(tmp_path))[Kernel], Unavailable)
