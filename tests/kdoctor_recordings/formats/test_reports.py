"""Bug reports, parts of ``nvidia-smi -q``, and output from Windows and WSL."""

import gzip
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import (
    LOG,
    LSPCI,
    NVLINK,
    TABLE,
    TOPOLOGY,
    UUID,
    group,
    imported,
    imported_gpus,
    query,
    xml,
)
from kdoctor.errors import UsageError
from kdoctor.facts import Gpus, KernelDriver, KernelLog, PciDevices
from kdoctor_recordings.facts import ImportedLines
from kdoctor_recordings.importer import import_files

RULE = "____________________________________________"
TWO = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-13\nGPU1\tSYS\t X \t14-27\n"
VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 17 22:55:48 UTC 2024\n"
HEAD = """\
==============NVSMI LOG==============

Timestamp                                 : Mon Jan  5 10:00:00 2026
Driver Version                            : {driver}
CUDA Version                              : 12.2

Attached GPUs                             : {count}
"""


def bug_report() -> str:
    """A report of nvidia-bug-report.sh with the sections that are read, and some that are not."""
    sections = (
        "Start of NVIDIA bug report log file.  Please include this file, along\nwith a detailed description.\n",
        f"*** /proc/driver/nvidia/./version\n*** ls: -r--r--r-- 1 root version\n{VERSION}GCC version:  gcc 11.4\n",
        "*** /etc/frobnication.conf\n*** ls: -rw-r--r-- 1 root root 42 /etc/frobnication.conf\nfrob = failed\n",
        f"/usr/bin/lspci -nnDvvxxxx\n\n{LSPCI}",
        f"/usr/bin/nvidia-smi --query\n{query('3B', 'AF')}",
        f"/usr/bin/nvidia-smi nvlink -s\n\n{NVLINK}",
        f"/usr/bin/nvidia-smi topo -m\n\n{TWO}",
        f"/usr/bin/journalctl -b -0\n\n{LOG}",
        "End of NVIDIA bug report log file.\n",
    )
    return f"\n{RULE}\n\n".join(("", *sections))


def part(section: str, *buses: str, driver: str = "535.161.08", count: int | None = None) -> str:
    """``nvidia-smi -q -d`` of GPUs on these buses."""
    blocks = "".join(f"GPU 00000000:{bus}:00.0\n{section}\n" for bus in buses)
    return HEAD.format(driver=driver, count=len(buses) if count is None else count) + blocks


ECC = """\
    ECC Mode
        Current                           : Enabled
        Pending                           : Enabled
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            DRAM Uncorrectable            : 4
"""
STATE = """\
    Performance State                     : P2
"""


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_bug_report(tmp_path: Path, *, packed: bool, ends: str) -> None:
    data = bug_report().replace("\n", ends).encode()
    file = tmp_path / ("nvidia-bug-report.log.gz" if packed else "nvidia-bug-report.log")
    file.write_bytes(gzip.compress(data) if packed else data)
    found = import_files([file]).facts
    gpus, pci, driver = group(found, Gpus), group(found, PciDevices), group(found, KernelDriver)
    log, unread = group(found, KernelLog), group(found, ImportedLines)
    assert [gpu.bus_id for gpu in gpus.devices] == ["0000:3b:00.0", "0000:af:00.0"]
    assert [gpu.cpu_affinity for gpu in gpus.devices] == [tuple(range(14)), tuple(range(14, 28))]
    assert all(len(gpu.nvlinks or ()) == 3 for gpu in gpus.devices)
    assert gpus.pairs[0].level == "SYS"
    assert driver.version == gpus.driver_version == "535.161.08"
    assert [gpu.bus_id for gpu in pci.gpus] == ["0000:3b:00.0"]
    assert [(event.kind, event.code, event.bus_id) for event in log.events] == [("xid", 79, "0000:3b:00.0")]
    assert "frob = failed" in [line.text for line in unread.lines]
    assert all(bug_report().split("\n")[line.line - 1].strip() == line.text for line in unread.lines)


def test_parts_of_the_query_in_several_files(tmp_path: Path) -> None:
    gpus = imported_gpus(tmp_path, part(ECC, "3B", "AF"), part(STATE, "3B", "AF"), TWO)
    assert [(gpu.ecc_mode, gpu.performance_state, gpu.cpu_affinity) for gpu in gpus.devices] == [
        (True, 2, tuple(range(14))),
        (True, 2, tuple(range(14, 28))),
    ]


WINDOWS = TABLE.replace("/opt/job/bin/python    ", r"C:\Python310\python.exe").replace("Persistence-M", "Driver-Model ")
WINDOWS = WINDOWS.replace("On  |", "TCC |").replace("Off |   00000000:AF", "WDDM|   00000000:AF")
WSL = TABLE.replace("/opt/job/bin/python    ", "/python3.10            ")


@pytest.mark.parametrize("command", ["jane@DESKTOP-7:/mnt/c/Users/jane$ nvidia-smi", "nvidia-smi"])
@pytest.mark.parametrize("table", [WINDOWS, WSL])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_windows_and_wsl(tmp_path: Path, command: str, table: str, ends: str) -> None:
    found = imported(tmp_path, f"{command}\n{table}".replace("\n", ends))
    gpus = group(found.facts, Gpus)
    assert [(gpu.bus_id, gpu.temperature_c) for gpu in gpus.devices] == [("0000:3b:00.0", 40), ("0000:af:00.0", None)]
    assert [process.pid for process in gpus.devices[0].processes or ()] == [4711]
    assert (gpus.count, found.notes) == (2, ())


@cases(
    (part(ECC, "3B"), part(STATE, "3B", driver="550.54.15"), ("535.161.08", "550.54.15")),
    (part(ECC, "3B", "AF"), part(STATE, "3B", "AF", "D8"), ("2 GPUs", "3")),
    (query("3B", "AF"), part(STATE, "3B", count=4), ("2 GPUs", "4")),
    (query("3B", "AF"), TOPOLOGY, ("2 GPUs", "3")),
    (TWO, TOPOLOGY, ("2 GPUs", "3")),
    (TOPOLOGY, TOPOLOGY.replace("SYS", "PIX"), ("GPU 0 and GPU 2",)),
    (query("3B"), query("3B").replace(UUID.format(0), UUID.format(7)), (UUID.format(0), UUID.format(7))),
    (query("3B", "AF"), NVLINK.replace(UUID.format(1), UUID.format(7)), (UUID.format(1), UUID.format(7))),
    (query("3B"), LSPCI.replace("3b", "5e"), ("no GPU address in common",)),
    (query("3B"), xml("3B"), ("driver version",)),
    (query("3B"), query("3B").replace("NVIDIA Test 40GB", "NVIDIA Test 80GB"), ("name", "40GB", "80GB")),
    (query("3B", "AF", "D8", "D9"), TOPOLOGY, ("4 GPUs", "3")),
    (VERSION, VERSION.replace("535.161.08", "550.10.02"), ("kernel module",)),
)
@pytest.mark.parametrize("swapped", [False, True])
def test_contradictions_are_refused_by_name(
    tmp_path: Path, *, swapped: bool, first: str, second: str, named: tuple[str, ...]
) -> None:
    texts = (second, first) if swapped else (first, second)
    with pytest.raises(UsageError, match="not from the same machine") as error:
        imported(tmp_path, *texts)
    assert all(name.removesuffix(" GPUs") in str(error.value) for name in (*named, "file-0", "file-1"))
    found = imported(tmp_path, "\n".join(texts))
    assert "not from the same machine" in found.notes[0]
    # lspci alone says less than nvidia-smi.
    judged = texts[1] if LSPCI.replace("3b", "5e") == texts[0] else texts[0]
    assert found.facts == imported(tmp_path, judged).facts


def test_failure_in_a_container_counts_next_to_its_host_in_one_paste_alone(tmp_path: Path) -> None:
    failure = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    with pytest.raises(UsageError, match="fails in the first"):
        imported(tmp_path, failure, query("3B"))
    assert imported_gpus(tmp_path, f"{failure}\n{query('3B')}").state == "driver-not-loaded"
